"""Reading and writing files so that nothing is ever half-written, half-read or unpickled."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

_METADATA = "howattend"  # the one metadata entry of a tensor file


def cache_folder() -> Path:
    """Where checkpoints and unshipped weights go: $HOWATTEND_CACHE, by default ~/.cache/howattend."""
    return Path(os.environ.get("HOWATTEND_CACHE") or Path.home() / ".cache" / "howattend")


def data_folder() -> Path:
    """The repository's data/ with weights and results: $HOWATTEND_DATA, by default beside the library's sources."""
    return Path(os.environ.get("HOWATTEND_DATA") or Path(__file__).resolve().parents[2] / "data")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path``, moved into its place on success and removed on failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)  # mkstemp's are private
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """A folder for what is not finished: empty at first, whatever an interrupted process left there, and gone at the
    end."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def locked(path: Path, seconds: float = 30.0) -> Iterator[None]:
    """Hold ``path`` alone among processes, to read and write it as one; TimeoutError if another does not let go."""
    lock, until = path.with_name(f"{path.name}.lock"), time.monotonic() + seconds
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{path} is held by another process for {seconds:.0f} s; if none is running, delete {lock}"
                ) from None
            time.sleep(0.05)
    try:
        yield
    finally:
        lock.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file in one move, with the same line ends on every system."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, content: object) -> None:
    """Write JSON that is the same text for the same content."""
    write_text(path, json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def canonical_hash(content: object) -> str:
    """sha256 of the content's canonical JSON: the same on every machine and in every session."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_hash(path: Path) -> str:
    """sha256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors as safetensors in one move: the same bytes for the same content, with a checksum of it all."""
    stored = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    record = {"metadata": dict(metadata or {}), "sha256": content_hash(stored, metadata or {})}
    with replacing(path) as temporary:
        # In one entry, because safetensors writes several in random order.
        try:
            save_file(stored, temporary, {_METADATA: json.dumps(record, sort_keys=True)})
        except SafetensorError as error:  # how safetensors reports a full disk
            raise OSError(f"could not write {path}: {error}") from None


def load_tensors(path: Path, device: str = "cpu") -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file; ValueError says so where it is damaged.

    Metadata and checksum are those that :func:`save_tensors` wrote; a file by others has none, and is read as it is.
    """
    try:
        with safe_open(path, framework="pt", device=str(device)) as stored:
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            record = (stored.metadata() or {}).get(_METADATA)
        if record is None:
            return tensors, {}
        record = json.loads(record)
        if record["sha256"] != content_hash(tensors, record["metadata"]):
            raise ValueError("its content does not match its checksum")
        return tensors, record["metadata"]
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged or no safetensors file ({error}); delete it or restore it") from None


def content_hash(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """sha256 of named tensors, with their types and shapes, and of text beside them."""
    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).cpu().numpy())
    return digest.hexdigest()
