"""``python -m howattend``: what it prints, and how it exits."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from howattend import files, runs, training
from howattend.__main__ import main
from howattend.models import ModelConfig
from howattend.runs import RunConfig
from howattend.tasks import OneToOne
from howattend.training import TrainConfig

FIRST, SECOND = "one_to_one-ao-ff", "one_to_one-ao-ugrnn"


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """Two tiny runs, nothing shipped."""
    tiny = RunConfig(
        name=FIRST,
        task=OneToOne(num_words=2, min_length=1, max_length=2),
        model=ModelConfig("AO", "ff", hidden_size=4),
        train=TrainConfig(steps=5, batch_size=8),
        accuracy_bar=0.0,
    )
    both = {FIRST: tiny, SECOND: replace(tiny, name=SECOND, model=replace(tiny.model, cell="ugrnn"))}
    monkeypatch.setattr(runs, "REGISTRY", both)
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    return both


def call(capsys, *arguments):
    """Exit status, standard output and standard error of a command."""
    status = main(list(arguments))
    return (status, *capsys.readouterr())


# ---- usage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["lost"], "invalid choice: 'lost'"),
        (["train", FIRST, "--seed", "one"], "argument --seed: invalid int value: 'one'"),
        (["list", "--fast"], "unrecognized arguments: --fast"),
    ],
)
def test_wrong_usage_exits_2_and_shows_how(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("usage: python -m howattend")
    assert message in printed.err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert all(f"    {command} " in printed for command in ("book", "chapters", "train", "list", "verify"))


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "howattend", "list"], capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(runs.REGISTRY)
    assert done.stderr == ""


# ---- train, list, verify -----------------------------------------------------------------------------------------


def test_a_run_is_trained_listed_and_verified(registry, capsys):
    assert call(capsys, "list") == (0, f"{FIRST:36s} not shipped\n{SECOND:36s} not shipped\n", "")
    status, out, err = call(capsys, "train", FIRST, "--seed", "3")
    assert (status, err) == (0, "")
    assert out.startswith(f"{FIRST}: word accuracy ")
    assert out.endswith(" s (seed 3)\n")
    entry = runs.manifest()[FIRST]
    assert (entry["seed"], entry["steps"]) == (3, 5)
    status, out, err = call(capsys, "list")
    first, second = out.splitlines()
    assert f"word accuracy {entry['accuracy']:.3%}, seed 3" in first
    assert "not shipped" in second
    status, out, err = call(capsys, "verify")
    share = f"{entry['accuracy']:.4%}"
    assert (status, out, err) == (0, f"ok     {FIRST:36s} recorded {share}, measured {share}\n", "")


def test_train_all_trains_what_is_missing_or_outdated(registry, capsys, monkeypatch):
    assert call(capsys, "train", FIRST, SECOND)[0] == 0
    assert call(capsys, "train", "--all") == (0, "", "")
    registry[SECOND] = replace(registry[SECOND], train=TrainConfig(steps=6, batch_size=8))
    assert "shipped weights are of another configuration" in call(capsys, "list")[1].splitlines()[1]
    status, out, _ = call(capsys, "train", "--all")
    assert status == 0
    assert [line.split(":")[0] for line in out.splitlines()] == [SECOND]
    assert runs.manifest()[SECOND]["config_hash"] == registry[SECOND].hash
    assert call(capsys, "verify", SECOND)[0] == 0


def test_verify_exits_1_where_an_accuracy_is_not_repeated(registry, capsys):
    call(capsys, "train", "--all")
    path = files.data_folder() / "weights" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["runs"][FIRST]["accuracy"] += 0.01
    path.write_text(json.dumps(manifest), encoding="utf-8")
    status, out, _ = call(capsys, "verify")
    assert status == 1
    assert [line.split()[:2] for line in out.splitlines()] == [["FAILED", FIRST], ["ok", SECOND]]
    assert call(capsys, "verify", SECOND)[0] == 0


def test_verify_reports_every_run_though_one_is_damaged(registry, capsys):
    call(capsys, "train", "--all")
    (files.data_folder() / "weights" / f"{FIRST}.safetensors").write_bytes(b"")
    status, out, err = call(capsys, "verify")
    assert status == 1
    assert out.startswith(f"ok     {SECOND}")
    assert err.startswith("howattend: ")
    assert f"{FIRST}.safetensors is damaged" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify"], "no run is shipped, so there is nothing to verify"),
        (["verify", FIRST], f"no weights are shipped for {FIRST}; train it with: python -m howattend train {FIRST}"),
        (["verify", "lost"], f"unknown run 'lost'; the runs are {FIRST}, {SECOND}"),
        (["train", "lost"], f"unknown run 'lost'; the runs are {FIRST}, {SECOND}"),
        (["train", FIRST, "lost"], "unknown run 'lost'"),
        (["train"], "name the runs to train, or give --all"),
        (["train", FIRST, "--all"], "name the runs to train, or give --all"),
        (["train", FIRST, "--seed", "-1"], "seed must be an integer ≥ 0, got -1"),
    ],
)
def test_what_cannot_be_done_exits_1_and_says_why(registry, capsys, arguments, message):
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (1, "")
    assert err.startswith("howattend: ")
    assert message in err
    assert runs.manifest() == {}  # train FIRST lost: stopped before the first training, not after


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 1, "No space left on device"),
        (FloatingPointError("the loss is nan"), 1, "the loss is nan"),
        (KeyboardInterrupt(), 130, "stopped; the same command goes on from here"),
    ],
)
def test_what_stops_a_training_is_told_without_a_traceback(registry, capsys, monkeypatch, error, status, message):
    def fail(*_):
        raise error

    monkeypatch.setattr(training, "train_step", fail)
    got, out, err = call(capsys, "train", FIRST)
    assert (got, out) == (status, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_run_that_does_not_train_exits_1(registry, capsys):
    registry[FIRST] = replace(registry[FIRST], accuracy_bar=1.01)
    status, out, err = call(capsys, "train", FIRST, "--seed", "0")
    assert (status, out) == (1, "")
    assert f"{FIRST} did not reach its word accuracy of 101.0% with any seed" in err
    assert runs.manifest() == {}


STOPPED = """
import signal, sys
from pathlib import Path
from howattend import runs, training
from howattend.__main__ import main
from howattend.models import ModelConfig
from howattend.tasks import OneToOne
from howattend.training import TrainConfig

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may have it ignored
task = OneToOne(num_words=2, min_length=1, max_length=2)
train = TrainConfig(steps=1_000_000, batch_size=8)
runs.REGISTRY = {"tiny": runs.RunConfig("tiny", task, ModelConfig("AO", "ff", 4), train, 0.0)}
save = training._save

def tell(*arguments):
    save(*arguments)
    Path(sys.argv[1]).touch()

training._save = tell
sys.exit(main(["train", "tiny"]))
"""


def test_ctrl_c_saves_and_exits_130(tmp_path):
    environment = {**os.environ, "HOWATTEND_DATA": str(tmp_path / "data")}
    command = [sys.executable, "-c", STOPPED, str(tmp_path / "saved")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, encoding="utf-8") as child:
        until = time.monotonic() + 60
        while not (tmp_path / "saved").exists():
            assert child.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err.splitlines()[-1] == "stopped; the same command goes on from here"
    (checkpoint,) = (tmp_path / "cache" / "checkpoints").iterdir()
    assert json.loads(files.load_tensors(checkpoint)[1]["progress"])["step"] >= 100
    assert not (tmp_path / "data").exists()
