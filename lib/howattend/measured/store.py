"""Where measurements are kept, and whether a stored one is of the run at hand."""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from howattend import files
from howattend.decomposition import Components
from howattend.measured.passes import measure, require_measured, weights_hash
from howattend.measured.results import Measured
from howattend.tasks import corpora

if TYPE_CHECKING:
    from howattend.analysis import Run

_FORMAT = 1  # of the file
_PLAIN = ("run", "seed", "config_hash", "weights_hash", "accuracy", "length_ratio")
_ARRAYS = (
    *("encoder_words", "decoder_words", "length_counts", "term_sums", "distance_sums", "variances", "delta_shares"),
    *("aligned", "aligned_counts"),
)
_SIDES = ("encoder", "decoder")

#: How far two measurements of the same weights may be apart: shares of an array's largest magnitude, and of accuracy
#: (30 of 30,000 words). Another processor moves last bits, and with them a few words and largest scores.
_TOLERANCE, _ACCURACY_TOLERANCE = 0.01, 1e-3


def path(name: str) -> Path:
    """Where the measurement of a run is kept: data/results/components/NAME.npz."""
    return files.data_folder() / "results" / "components" / f"{name}.npz"


def save(found: Measured, path: Path) -> None:
    """Write an npz in one move; words that do not occur take no room in it."""
    plain = {name: getattr(found, name) for name in _PLAIN} | {"format": _FORMAT}
    arrays = {name: getattr(found, name) for name in _ARRAYS}
    arrays["variances"] = arrays["variances"][:, :, found.encoder.word_counts > 0]
    for side in _SIDES:
        components, counts = getattr(found, side), getattr(found, f"{side}_counts")
        words = np.flatnonzero(components.word_counts)
        plain[f"{side}_size"] = len(components.word_counts)
        arrays[f"{side}_ids"] = words.astype(np.int32)
        arrays[f"{side}_temporal"] = components.temporal
        arrays[f"{side}_input"] = components.input[words].astype(np.float16)
        arrays[f"{side}_counts"] = counts[words].astype(np.min_scalar_type(counts.max()))
    with files.replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, plain=np.array(json.dumps(plain, sort_keys=True)), **arrays)


def load(path: Path) -> Measured:
    """Read a measurement; ValueError where the file is damaged, FileNotFoundError, with what to do, where none is."""
    advice = f"restore it with git checkout, or with the corpus: python -m howattend measure {path.stem}"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; {advice}")
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files}
        plain = json.loads(str(arrays.pop("plain")))
        if plain.pop("format") != _FORMAT:
            raise ValueError("it is of another version of this library")
        values: dict[str, object] = {name: plain[name] for name in _PLAIN} | {name: arrays[name] for name in _ARRAYS}
        for side in _SIDES:
            part = {name: arrays[f"{side}_{name}"] for name in ("ids", "temporal", "input", "counts")}
            size, words = plain[f"{side}_size"], part["ids"]
            inputs = _spread(part["input"].astype(np.float32), words, size, np.nan)
            counts = _spread(part["counts"].astype(np.int64), words, size, 0)
            values[f"{side}_counts"] = counts
            values[side] = Components(part["temporal"], inputs, None, counts.sum(0), counts.sum(1))
        size, words = plain["encoder_size"], arrays["encoder_ids"]
        values["variances"] = np.moveaxis(_spread(np.moveaxis(arrays["variances"], -1, 0), words, size, np.nan), 0, -1)
    except (ValueError, KeyError, TypeError, IndexError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged or no measurement ({error}); {advice}") from None
    return Measured(**values)


def _spread(rows: np.ndarray, words: np.ndarray, size: int, missing: float) -> np.ndarray:
    """Rows of the words that occur [W, ...] as rows of all words [V, ...]."""
    spread = np.full((size, *rows.shape[1:]), missing, rows.dtype)
    spread[words] = rows
    return spread


def stored(run: Run) -> Measured:
    """The stored measurement of a run. Raises as :func:`load`, and ValueError where it is of other weights."""
    found = load(path(run.name))
    if not _is_of(found, run):
        what = "another configuration" if found.config_hash != run.config.hash else "other weights"
        raise ValueError(
            f"{path(run.name)} is of {what} than this run of {run.name} (seed {found.seed}, here {run.seed}); with the "
            f"corpus, the shipped weights are measured with: python -m howattend measure {run.name}"
        )
    return found


def _is_of(found: Measured, run: Run) -> bool:
    return found.config_hash == run.config.hash and found.weights_hash == weights_hash(run.model)


def of(run: Run) -> Measured:
    """The stored measurement where it is of this run's very weights; else it is measured here, which needs the corpus.

    ``run.measured`` is this, computed once. ValueError for a run of another task, or without dot-product attention.
    """
    require_measured(run.config)
    if not _has_corpus(run):
        return stored(run)
    place = path(run.name)
    recorded = load(place) if place.exists() else None
    return recorded if recorded is not None and _is_of(recorded, run) else measure(run)


def obtain(run: Run, *, progress: bool = True) -> tuple[Measured, bool]:
    """The measurement of a run, and whether it was recomputed.

    With the corpus at hand all is computed anew, and compared with what is stored of the same weights: ValueError names
    what differs. Without it the stored one is loaded; FileNotFoundError says what to do where there is none.
    """
    require_measured(run.config)
    if not _has_corpus(run):
        return stored(run), False
    found, place = measure(run, progress=progress), path(run.name)
    recorded = load(place) if place.exists() else None
    if recorded is not None and _is_of(recorded, run) and (differing := differences(found, recorded)):
        raise ValueError(
            f"what is measured of {run.name} here is not what {place} holds: {', '.join(differing)}. If the corpus "
            f"here is another one, this is why; else write it anew: python -m howattend measure {run.name}"
        )
    return found, True


def _has_corpus(run: Run) -> bool:
    return corpora.path(run.task.corpus).exists()


def differences(found: Measured, recorded: Measured) -> list[str]:
    """What differs between two measurements of the same weights by more than another processor explains."""
    differing = []
    if abs(found.accuracy - recorded.accuracy) > _ACCURACY_TOLERANCE:
        differing.append(f"accuracy {found.accuracy:.4f}, not {recorded.accuracy:.4f}")
    if not np.isclose(found.length_ratio, recorded.length_ratio, rtol=_TOLERANCE, equal_nan=True):
        differing.append(f"length_ratio {found.length_ratio:.4f}, not {recorded.length_ratio:.4f}")
    for name, mine, theirs in _arrays_of(found, recorded):
        if mine.shape != theirs.shape:
            differing.append(f"{name} has shape {mine.shape}, not {theirs.shape}")
        elif mine.dtype.kind == "i":
            if (mine != theirs).any():
                differing.append(f"{name} has other counts")
        elif (np.isnan(mine) != np.isnan(theirs)).any():
            differing.append(f"{name} is missing in other places")
        elif (error := _largest(mine - theirs)) > _TOLERANCE * _largest(theirs):
            differing.append(f"{name} is off by up to {error:.2g}, its largest being {_largest(theirs):.2g}")
    return differing


def _arrays_of(*both: Measured) -> list[tuple[str, np.ndarray, np.ndarray]]:
    found = []
    for field in fields(Measured):
        mine, theirs = (getattr(each, field.name) for each in both)
        if isinstance(mine, np.ndarray):
            found.append((field.name, mine, theirs))
        elif isinstance(mine, Components):
            found += [
                (f"{field.name}.{part}", getattr(mine, part), getattr(theirs, part)) for part in ("temporal", "input")
            ]
    return found


def _largest(values: np.ndarray) -> float:
    """The largest magnitude, NaN left out."""
    return float(np.nanmax(np.abs(values), initial=0.0))
