"""What follows from the little that is stored of a network of the sweep: angles of readouts, how its training went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from howattend._validation import require_count
from howattend.sweep.components import Stored


@dataclass(frozen=True)
class Readouts:
    """Angles of a network's readouts, means over content words: cosines, signed unless named otherwise."""

    context_own: float  # of a word's context readout with χ^E of the word that it translates
    context_other: float  # the largest with another word's
    state_own: float  # of its state readout with the same χ^E
    between: float  # of its two readouts: O12 is about the absolute value
    state_fed: float  # of its state readout with χ^D of the word itself, as when it was fed last
    fed_own: float  # of that χ^D with χ^E of the same word
    state_place: float  # of its state readout with the mean of μ^D, the same at every step
    fed_inside: float  # the part of the squared length of that χ^D that lies in the span of all χ^E
    by_fed: float  # what ``between`` has by way of χ^D: state_fed times the cosine of the context readout with it
    by_place: float  # the same by way of the mean of μ^D
    outside: float  # what of the absolute value of ``between`` is left without the span of all χ^D and the mean of μ^D


def readouts(stored: Stored, words: Sequence[int], steps: int) -> Readouts:
    """The geometry behind O12, from the stored products of a network that attends with its states.

    Args:
        stored: of the network; not with learned attention, whose components live in another space than its readouts.
        words: ids of the content words, whose translations have the same ids (one-to-one).
        steps: decoder steps that every sample reaches, over which μ^D is averaged.

    Raises ValueError for learned attention, and for words or steps of which nothing is stored.
    """
    if len(words) < 2:
        raise ValueError(f"words must be two or more, to compare a readout with other words, got {list(words)}")
    require_count(steps, "steps")
    if "value input" in stored.blocks:
        raise ValueError(f"{stored.run} learns its queries and keys: its state readout and χ^D have no common space")
    picks = {name: _pick(stored, name, words) for name in ("context readout", "state readout")}
    picks |= {name: _pick(stored, name, words) for name in ("encoder input", "decoder input")}
    place = _pick(stored, "decoder temporal", range(steps)).mean(0, keepdims=True)
    gram = stored.gram.astype(np.float64)

    def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return one @ gram @ other.T / np.outer(lengths(one), lengths(other))

    def lengths(vectors: np.ndarray) -> np.ndarray:
        return np.sqrt(np.einsum("kn,nm,km->k", vectors, gram, vectors))

    context, state = picks["context readout"], picks["state readout"]
    matched = cosines(context, picks["encoder input"])
    between = np.diag(cosines(context, state))
    fed, read = picks["decoder input"], picks["encoder input"]
    state_fed, state_place = np.diag(cosines(state, fed)), cosines(state, place)[:, 0]

    def within(one: np.ndarray, other: np.ndarray, span: np.ndarray) -> np.ndarray:
        """Products of two vectors' projections on a span, over their lengths."""
        inner = np.linalg.pinv(span @ gram @ span.T, rcond=1e-5, hermitian=True)
        return np.diag(one @ gram @ span.T @ inner @ span @ gram @ other.T) / (lengths(one) * lengths(other))

    return Readouts(
        context_own=float(np.diag(matched).mean()),
        context_other=float(matched[~np.eye(len(words), dtype=bool)].max()),
        state_own=float(np.diag(cosines(state, read)).mean()),
        between=float(between.mean()),
        state_fed=float(state_fed.mean()),
        fed_own=float(np.diag(cosines(fed, read)).mean()),
        state_place=float(state_place.mean()),
        fed_inside=float(within(fed, fed, read).mean()),
        by_fed=float((state_fed * np.diag(cosines(context, fed))).mean()),
        by_place=float((state_place * cosines(context, place)[:, 0]).mean()),
        outside=float(np.abs(between - within(context, state, np.concatenate([fed, place]))).mean()),
    )


def _pick(stored: Stored, block: str, entries: Iterable[int]) -> np.ndarray:
    """The rows [K, N] that pick a block's words or steps out of the stored vectors."""
    start, entries = 0, list(entries)
    for name, there in stored.blocks.items():
        if name == block:
            if missing := [entry for entry in entries if entry not in there]:
                raise ValueError(f"{stored.run} has no {block} of {missing[0]}; it has {there[0]} to {there[-1]}")
            return np.eye(len(stored.gram))[[start + there.index(entry) for entry in entries]]
        start += len(there)
    raise ValueError(f"{stored.run} has no {block}; it has {', '.join(stored.blocks)}")


@dataclass(frozen=True, eq=False)
class Course:
    """A training, every 250 steps, on the validation set. Shares are of the largest scores; NaN where not watched."""

    steps: np.ndarray  # [L]
    accuracy: np.ndarray  # [L]
    temporal: np.ndarray  # [L] μ^D·μ^E
    mixed: np.ndarray  # [L] one factor temporal: μ^D·(χ^E + Δh^E) + (χ^D + Δh^D)·μ^E
    content: np.ndarray  # [L] neither: (χ^D + Δh^D)·(χ^E + Δh^E)

    @property
    def watched(self) -> bool:
        """Whether shares were taken while training: not of the networks that were trained before the sweep."""
        return bool(np.isfinite(self.temporal).any())


def course(stored: Stored, *, centred: bool = False) -> Course:
    """How a training went on, from what is stored of it: signed shares, or centred ones (claims.toml, shares)."""
    shares = stored.log_shares[:, int(centred)].astype(np.float64)
    temporal, content = shares[:, 0, 0], shares[:, 1:, 1:].sum((1, 2))
    mixed = shares.sum((1, 2)) - temporal - content
    return Course(stored.log[:, 0].astype(int), stored.log[:, 2], temporal, mixed, content)


def first_for_good(steps: np.ndarray, reached: np.ndarray) -> int | None:
    """The first of the steps [L] from which on a condition [L] holds to the end; None where it does not at the end.

    ValueError where the two differ in length.
    """
    if len(steps) != len(reached):
        raise ValueError(f"steps and reached must be as long, got {len(steps)} and {len(reached)}")
    after = np.flatnonzero(~np.asarray(reached, dtype=bool))
    start = after[-1] + 1 if len(after) else 0
    return None if start == len(steps) else int(steps[start])
