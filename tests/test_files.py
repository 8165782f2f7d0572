"""Reading and writing: nothing half-written, half-read or silently changed."""

import errno
import json

import pytest
import torch
from safetensors import SafetensorError

from howattend import files

CONTENT = {
    "a": torch.arange(6.0).reshape(2, 3),
    "b": torch.tensor(7),
    "c": torch.ones(2, 2, dtype=torch.float64).t(),
}
METADATA = {name: "ü" + name for name in "zyxwvutsrq"}


def test_tensors_come_back_as_they_were(tmp_path):
    files.save_tensors(tmp_path / "deep" / "x.safetensors", CONTENT, METADATA)
    tensors, metadata = files.load_tensors(tmp_path / "deep" / "x.safetensors")
    assert metadata == METADATA
    assert set(tensors) == set(CONTENT)
    for name, value in CONTENT.items():
        assert tensors[name].dtype == value.dtype
        assert torch.equal(tensors[name], value)


def test_the_same_content_is_the_same_file(tmp_path):
    for name in "12345":
        files.save_tensors(tmp_path / name, CONTENT, METADATA)
    assert len({files.file_hash(tmp_path / name) for name in "12345"}) == 1


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), SafetensorError("No space")])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, error):
    path = tmp_path / "x.safetensors"
    files.save_tensors(path, CONTENT)
    before = path.read_bytes()

    def fail(tensors, target, metadata):
        target.write_bytes(b"half of it")
        raise error

    monkeypatch.setattr(files, "save_file", fail)
    with pytest.raises(OSError, match="No space"):
        files.save_tensors(path, {"a": torch.zeros(3)})
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_json_and_text_are_written_in_one_move(tmp_path):
    files.write_json(tmp_path / "x.json", {"b": 1, "a": "ü"})
    assert (tmp_path / "x.json").read_bytes() == '{\n  "a": "ü",\n  "b": 1\n}\n'.encode()
    with pytest.raises(TypeError):
        files.write_json(tmp_path / "x.json", {"b": object()})
    with pytest.raises(UnicodeEncodeError):
        files.write_text(tmp_path / "x.json", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"a": "ü", "b": 1}


def test_the_environment_names_the_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "c"))
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "d"))
    assert files.cache_folder() == tmp_path / "c"
    assert files.data_folder() == tmp_path / "d"
    monkeypatch.delenv("HOWATTEND_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert files.cache_folder() == tmp_path / ".cache" / "howattend"


def test_a_scratch_folder_is_empty_at_first_and_gone_at_the_end(tmp_path):
    (tmp_path / "x" / "left").mkdir(parents=True)  # by a process that was killed
    with pytest.raises(KeyboardInterrupt), files.scratch(tmp_path / "x") as folder:
        assert not list(folder.iterdir())
        (folder / "half").touch()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_two_processes_take_turns_at_a_locked_file(tmp_path):
    path = tmp_path / "manifest.json"
    message = r"delete .*manifest\.json\.lock"
    with files.locked(path), pytest.raises(TimeoutError, match=message), files.locked(path, 0.1):
        pass
    with files.locked(path, 0.1):
        assert path.with_name("manifest.json.lock").exists()
    assert not list(tmp_path.iterdir())
