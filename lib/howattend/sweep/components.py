"""What is kept of each network of the sweep beside its claims: products of its components, its terms, its training.

The products of all components and readouts with each other (a Gram matrix) are a tenth of the components' size, and all
that does not name single units follows from them: temporal and input alignment, angles, lengths, paths on their
principal components (:meth:`Stored.coordinates`), what each readout is largest on. Deltas are not kept.

There are hundreds of networks, so a file is small: whole numbers of 16 bits, in the units below, in one member of an
npz.
"""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from howattend import alignment, files, measured
from howattend._validation import meant, require_count
from howattend.analysis import Run, array
from howattend.measured.passes import weights_hash
from howattend.measured.results import ALL
from howattend.tasks import EOS, Batch, Translation

_FORMAT = 2
_PLAIN = ("run", "seed", "config_hash", "weights_sha256", "accuracy")
_MEMBER = "content.npy"
_NOTHING = 1e-7  # a length or loss that is 0 up to rounding
_NONE = -(2**15)  # no number: NaN, or the logarithm of 0

# Units: what is kept is off by half of one at most.
_COSINE = 1e-3
_LOG_LENGTH = 5e-4  # of the natural logarithm of a vector's length
_TERM = 2e-3  # of the largest term
_LOG_LOSS = 1e-3
_ACCURACY = 1 / 30_000
_SHARE = 5e-3  # while training; shares beyond ±160, of a network that has learnt nothing, are cut off


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
    gram: np.ndarray  # [N, N], products of all vectors, to 0.001 of the product of two lengths
    terms: np.ndarray  # [3, S, 3, 3], (signed, centred, absolute) terms of the largest score, sample means
    counts: np.ndarray  # [S] samples that these means are over; no entries without attention
    log: np.ndarray  # [L, 3], step, loss and accuracy on the validation set while training
    log_shares: np.ndarray  # [L, 2, 3, 3], the nine terms' (signed, centred) shares there; NaN if not watched

    def products(self, rows: str, columns: str) -> np.ndarray:
        """Dot products of two blocks' vectors."""
        return self.gram[np.ix_(self._places(rows), self._places(columns))]

    def coordinates(self, *blocks: str, count: int = 2) -> np.ndarray:
        """Vectors of some blocks, one or more, on their joint principal components [vectors, count], up to the signs of
        the axes.
        """
        if not blocks:
            raise ValueError(f"blocks must be one or more of {', '.join(self.blocks)}, got none")
        require_count(count, "count")
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
    """Write what is kept of a run, some 4 KB, in one move.

    Args:
        run: a network with its test set.
        log: of its training; entries may have the "shares" that :func:`watch` adds.
    """
    blocks = _blocks(run)
    vectors = np.concatenate([vectors for _, vectors in blocks.values()]).astype(np.float64)
    origin = run.name, run.seed, run.config.hash, weights_hash(run.model), run.accuracy
    terms, counts = _terms(run)
    return write(
        Stored(
            *origin,
            blocks={name: tuple(entries) for name, (entries, _) in blocks.items()},
            gram=vectors @ vectors.T,
            terms=terms,
            counts=counts,
            log=np.array([[entry[name] for name in ("step", "loss", "accuracy")] for entry in log]),
            log_shares=np.array([entry.get("shares", _UNKNOWN) for entry in log], dtype=np.float64),
        )
    )


def write(kept: Stored) -> Path:
    """Write what is kept of a network: the same bytes for the same content."""
    lengths = np.sqrt(np.diag(kept.gram))
    divisors = np.where(lengths > _NOTHING, lengths, np.inf)
    cosines = (kept.gram / divisors / divisors[:, None])[np.triu_indices(len(lengths), 1)]
    largest = float(f"{np.abs(kept.terms).max(initial=0):.6g}") or 1.0
    numbers = (
        (_logarithms(lengths), _LOG_LENGTH),
        (cosines, _COSINE),
        (kept.terms, largest * _TERM),
        (kept.counts, 1),
        (kept.log[:, 0], 1),
        (_logarithms(kept.log[:, 1]), _LOG_LOSS),
        (kept.log[:, 2], _ACCURACY),
        (kept.log_shares.clip(-160, 160), _SHARE),
    )
    whole = np.concatenate([_whole(values, unit) for values, unit in numbers])
    plain = {"format": _FORMAT, **{name: getattr(kept, name) for name in _PLAIN}}
    plain |= {"blocks": {name: _brief(entries) for name, entries in kept.blocks.items()}}
    plain |= {"steps": len(kept.counts), "log": len(kept.log), "largest": largest}
    text = json.dumps(plain, separators=(",", ":")).encode()
    # High and low bytes apart: the high ones, mostly 0 or 255, pack well.
    content = np.frombuffer(text + b"\n" + whole.view(np.uint8).reshape(-1, 2).T.tobytes(), np.uint8)
    place = path(kept.run, kept.seed)
    with files.replacing(place) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        member = zipfile.ZipInfo(_MEMBER)
        member.compress_type = zipfile.ZIP_LZMA
        with archive.open(member, "w") as stream:
            np.lib.format.write_array(stream, content)
    return place


def _logarithms(values: np.ndarray) -> np.ndarray:
    """Natural logarithms, NaN for what is 0 up to rounding."""
    return np.log(np.where(values > _NOTHING, values, np.nan))


def _whole(values: np.ndarray, unit: float) -> np.ndarray:
    """Values in a unit as whole numbers of 16 bits."""
    rounded = np.round(np.asarray(values, dtype=np.float64).ravel() / unit)
    if (np.abs(rounded) > -_NONE - 1).any():
        raise ValueError(f"{np.nanmax(np.abs(rounded)) * unit:.6g} is too large to be kept in units of {unit:g}")
    return np.where(np.isnan(rounded), _NONE, rounded).astype("<i2")


def _brief(entries: tuple[int, ...]) -> int | list[int]:
    """All from 0 on as their number."""
    return len(entries) if entries == tuple(range(len(entries))) else list(entries)


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


def _terms(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Mean terms by decoder step, and the samples that they are over."""
    if isinstance(run.task, Translation):
        sums, counts = run.measured.term_sums[ALL], run.measured.decoder.step_counts
    elif run.trace.scores is None or run.trace.score_scale is None:
        return np.zeros((3, 0, 3, 3)), np.zeros(0, int)
    else:
        sums = array(alignment.share_sums(run.decoder, run.encoder, run.trace))
        counts = array(run.trace.decoder_mask.sum(0))
    return sums / np.maximum(counts, 1)[:, None, None], counts


class _DamageError(ValueError):
    """What is wrong with a file, in words for the user."""


def load(name: str, seed: int) -> Stored:
    """What is kept of one network; ValueError where the file is damaged, FileNotFoundError where there is none."""
    place = path(name, seed)
    if not place.exists():
        kept = [other.stem.rpartition("-seed") for other in sorted(place.parent.glob("*-seed*.npz"))]
        seeds = [of_seed for of, _, of_seed in kept if of == name]
        there = f"kept are its seeds {', '.join(seeds)}; " if seeds else meant(name, {of for of, *_ in kept})
        raise FileNotFoundError(
            f"{place} is missing; {there}restore it with git checkout, or see which networks there are: "
            "python -m howattend sweep --list"
        )
    stream = io.BytesIO(place.read_bytes())
    try:
        with np.load(stream, allow_pickle=False) as content:
            text, packed = content[_MEMBER.removesuffix(".npy")].tobytes().split(b"\n", 1)
        plain = json.loads(text)
        if plain.pop("format") != _FORMAT:
            raise _DamageError("it is of another version of this library")
        return _unpacked(plain, np.frombuffer(packed, np.uint8).reshape(2, -1).T.copy().view("<i2").ravel())
    except Exception as error:  # whatever the bytes of another file lead to
        reason = error if isinstance(error, _DamageError) else "it is no whole file of the sweep"
        raise ValueError(f"{place} is damaged ({reason}); restore it with git checkout") from None


def _unpacked(plain: Mapping, whole: np.ndarray) -> Stored:
    values = np.where(whole == _NONE, np.nan, whole.astype(np.float64))
    blocks = {
        name: tuple(range(entries)) if isinstance(entries, int) else tuple(entries)
        for name, entries in plain["blocks"].items()
    }
    size, steps, entries = sum(map(len, blocks.values())), plain["steps"], plain["log"]
    sizes = (size, size * (size - 1) // 2, 27 * steps, steps, entries, entries, entries, 18 * entries)
    if sum(sizes) != len(values):
        raise _DamageError(f"it has {len(values)} numbers and not {sum(sizes)}")
    parts = np.split(values, np.cumsum(sizes)[:-1])
    lengths, cosines, terms, counts, log_steps, losses, accuracies, shares = parts
    lengths = np.nan_to_num(np.exp(lengths * _LOG_LENGTH))
    gram, upper = np.eye(size), np.triu_indices(size, 1)
    gram[upper] = cosines * _COSINE
    gram.T[upper] = gram[upper]
    return Stored(
        **{name: plain[name] for name in _PLAIN},
        blocks=blocks,
        gram=gram * lengths * lengths[:, None],
        terms=terms.reshape(3, steps, 3, 3) * plain["largest"] * _TERM,
        counts=counts.astype(int),
        log=np.stack([log_steps, np.nan_to_num(np.exp(losses * _LOG_LOSS)), accuracies * _ACCURACY], 1),
        log_shares=shares.reshape(entries, 2, 3, 3) * _SHARE,
    )


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
