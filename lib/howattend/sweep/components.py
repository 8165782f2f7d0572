"""What is kept of each network of the sweep beside its claims: products of its components, its terms, its training.

The products of all components and readouts with each other (a Gram matrix) are a tenth of the components' size, and all
that does not name single units follows from them: temporal and input alignment, angles, lengths, paths on their
principal components (:meth:`Stored.coordinates`), what each readout is largest on. Deltas are not kept.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from howattend import alignment, files, measured
from howattend.analysis import Run, array
from howattend.measured.passes import weights_hash
from howattend.measured.results import ALL
from howattend.tasks import EOS, Batch, Translation

_FORMAT = 1
#: Bits of a product's 23-bit fraction that are kept, a relative error of 1e-4: the zeros behind them pack well.
_BITS = 12
_PLAIN = ("run", "seed", "config_hash", "weights_sha256", "accuracy")
_ARRAYS = ("terms", "counts", "log", "log_shares")


@dataclass(frozen=True, eq=False)
class Stored:
    """What is kept of one network. S, T: target and source steps.

    Blocks are "decoder temporal" and "encoder temporal" (steps), "decoder input" and "encoder input" (word ids),
    "context readout" and "state readout" (word ids), where the network has them; with learned attention the components
    are those of queries and keys, and "value input" those of the values. Only steps and words that occur are kept; of
    translation, whose words are thousands, steps alone.
    """

    run: str
    seed: int
    config_hash: str
    weights_sha256: str
    accuracy: float
    blocks: Mapping[str, tuple[int, ...]]  # the step or word of each of a block's vectors, in the order of the matrix
    gram: np.ndarray  # [N, N] float32, products of all vectors
    terms: np.ndarray  # [3, S, 3, 3] float16, (signed, centred, absolute) terms of the largest score, sample means
    counts: np.ndarray  # [S] samples that these means are over; no entries without attention
    log: np.ndarray  # [L, 3] float32, step, loss and accuracy on the validation set while training
    log_shares: np.ndarray  # [L, 2, 3, 3] float16, the nine terms' (signed, centred) shares there; NaN if not watched

    def products(self, rows: str, columns: str) -> np.ndarray:
        """Dot products of two blocks' vectors."""
        return self.gram[np.ix_(self._places(rows), self._places(columns))]

    def coordinates(self, *blocks: str, count: int = 2) -> np.ndarray:
        """Vectors of some blocks on their joint principal components [vectors, count], up to the signs of the axes."""
        places = [place for block in blocks for place in self._places(block)]
        some = self.gram[np.ix_(places, places)].astype(np.float64)
        centring = np.eye(len(places)) - 1 / len(places)
        values, vectors = np.linalg.eigh(centring @ some @ centring)
        return vectors[:, ::-1][:, :count] * np.sqrt(np.maximum(values[::-1][:count], 0))

    def _places(self, block: str) -> list[int]:
        if block not in self.blocks:
            raise ValueError(f"block must be one of {', '.join(self.blocks)}, got {block!r}")
        start = 0
        for name, entries in self.blocks.items():
            if name == block:
                return list(range(start, start + len(entries)))
            start += len(entries)
        raise AssertionError(block)


def path(name: str, seed: int) -> Path:
    """data/results/components/sweep/NAME-seedK.npz."""
    return files.data_folder() / "results" / "components" / "sweep" / f"{name}-seed{seed}.npz"


def save(run: Run, log: list[dict]) -> Path:
    """Write what is kept of a run, some 5 KB, in one move.

    Args:
        run: a network with its test set.
        log: of its training; entries may have the "shares" that :func:`watch` adds.
    """
    blocks = _blocks(run)
    vectors = np.concatenate([vectors for _, vectors in blocks.values()]).astype(np.float64)
    upper = np.triu_indices(len(vectors))
    arrays = {
        "gram": _rounded((vectors @ vectors.T)[upper].astype(np.float32)),
        "log": np.array([[entry[name] for name in ("step", "loss", "accuracy")] for entry in log], dtype=np.float32),
        "log_shares": np.array([entry.get("shares", _UNKNOWN) for entry in log], dtype=np.float16),
        **_terms(run),
    }
    plain = {
        "format": _FORMAT,
        **dict(zip(_PLAIN, (run.name, run.seed, run.config.hash, weights_hash(run.model), run.accuracy), strict=True)),
        "blocks": {name: entries for name, (entries, _) in blocks.items()},
    }
    place = path(run.name, run.seed)
    with files.replacing(place) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, plain=np.array(json.dumps(plain)), **arrays)
    return place


_UNKNOWN = np.full((2, 3, 3), np.nan).tolist()


def _blocks(run: Run) -> dict[str, tuple[list[int], np.ndarray]]:
    """Each block's steps or words, and its vectors."""
    found = {}
    if isinstance(run.task, Translation):
        for side in ("decoder", "encoder"):
            parts = getattr(run.measured, side)
            kept = np.flatnonzero(parts.step_counts).tolist()
            found[f"{side} temporal"] = kept, parts.temporal[kept]
        return found
    for side in ("decoder", "encoder"):
        parts = getattr(run, side)
        for name, vectors, counts in (
            ("temporal", parts.temporal, parts.step_counts),
            ("input", parts.input, parts.word_counts),
        ):
            kept = torch.nonzero(counts)[:, 0].tolist()
            found[f"{side} {name}"] = kept, array(vectors)[kept]
    if run.learns_keys:
        kept = found["encoder input"][0]
        found["value input"] = kept, array(run.value_input)[kept]
    words = [EOS, *run.task.target_vocabulary.content_ids]
    for side in ("context", "state"):
        if getattr(run.model, f"{side}_readout") is not None:
            found[f"{side} readout"] = words, array(getattr(run.model, f"{side}_readout"))[words]
    return found


def _terms(run: Run) -> dict[str, np.ndarray]:
    if isinstance(run.task, Translation):
        sums, counts = run.measured.term_sums[ALL], run.measured.decoder.step_counts
        means = sums / np.maximum(counts, 1)[:, None, None]
        return {"terms": means.astype(np.float16), "counts": counts.astype(np.int32)}
    if run.trace.scores is None or run.trace.score_scale is None:
        return {"terms": np.zeros((3, 0, 3, 3), np.float16), "counts": np.zeros(0, np.int32)}
    sums = array(alignment.share_sums(run.decoder, run.encoder, run.trace))
    counts = array(run.trace.decoder_mask.sum(0))
    means = sums / np.maximum(counts, 1)[:, None, None]
    return {"terms": means.astype(np.float16), "counts": counts.astype(np.int32)}


def _rounded(values: np.ndarray) -> np.ndarray:
    """float32 with its last bits rounded away."""
    last = 23 - _BITS
    bits = values.view(np.uint32)
    return ((bits + (1 << (last - 1))) & np.uint32(0xFFFFFFFF << last & 0xFFFFFFFF)).view(np.float32)


def load(name: str, seed: int) -> Stored:
    """What is kept of one network; ValueError where the file is damaged, FileNotFoundError where there is none."""
    place = path(name, seed)
    if not place.exists():
        raise FileNotFoundError(f"{place} is missing; restore it with git checkout, or: python -m howattend sweep")
    try:
        with np.load(place, allow_pickle=False) as content:
            arrays = {key: content[key] for key in content.files}
        plain = json.loads(str(arrays.pop("plain")))
        if plain.pop("format") != _FORMAT:
            raise ValueError("it is of another version of this library")
        blocks = {key: tuple(entries) for key, entries in plain["blocks"].items()}
        size = sum(map(len, blocks.values()))
        gram = np.zeros((size, size), np.float32)
        upper = np.triu_indices(size)
        gram[upper] = gram.T[upper] = arrays["gram"]
        values = {key: plain[key] for key in _PLAIN} | {key: arrays[key] for key in _ARRAYS}
    except (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{place} is damaged ({error}); restore it with git checkout") from None
    return Stored(**values, blocks=blocks, gram=gram)


class _Watched(Run):
    """A network in training, on its validation set."""

    @cached_property
    def test(self) -> Batch:
        return self.task.validation_set()


def watch(run: Run, entry: dict) -> None:
    """Add to a training's log entry the (signed, centred) shares of the nine terms at this point, on the validation set
    and over common steps: when does the temporal part win?
    """
    if run.architecture != "VED" and run.config.model.attention != "additive":
        with contextlib.suppress(ValueError):  # states that are no use yet; what is watched must not end the training
            if isinstance(run.task, Translation):
                shares = measured.measure_batches(run, [run.task.validation_set()], progress=False).shares
            else:
                shares = _Watched(run.config, run.model, run.seed).shares
            entry["shares"] = [shares.signed.tolist(), shares.centred.tolist()]
