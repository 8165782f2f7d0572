"""Temporal, input and delta components of hidden states (Eq. 1 and 2 of the paper).

A hidden state is the sum of what its step, its word, and everything else contribute:

    h_t = μ_t + χ_x + Δh_t,   x the word at step t,

where the temporal component μ_t is the mean over the samples that reach step t, the input component χ_x the mean of
h_t − μ_t over every occurrence of the word x, and the delta Δh_t the rest. Encoder and decoder are treated alike; a
decoder state's word is the token fed to it at that step.

Both means follow from the sums of h by step and by word and the counts C[x, t] of word x at step t,

    μ_t = Σ h_t / Σ_x C[x, t],   χ_x = (Σ_x h − Σ_t C[x, t] μ_t) / Σ_t C[x, t],

so that one pass over the states is enough, in memory that does not grow with the number of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from howattend._validation import (
    Array,
    like,
    require_count,
    require_floats,
    require_integers,
    require_mask,
    require_shape,
    to_tensor,
)

MOST_GUESSED_WORDS = 10_000_000  # a larger vocabulary must be asked for: it is more likely a stray id


@dataclass(frozen=True)
class Components:
    """The components of M samples of T steps, n units and V words, in the kind, dtype and device of the states.

    A step or word that never occurs has no component: its row is NaN and its count 0.
    """

    temporal: Array  # [T, n]  μ_t
    input: Array  # [V, n]  χ_x
    delta: Array | None  # [M, T, n]  Δh_t, 0 where masked; None if streamed: see ``delta_of``
    step_counts: Array  # [T] int64  samples that reach step t
    word_counts: Array  # [V] int64  occurrences of word x

    @torch.no_grad()
    def delta_of(self, states: Array, tokens: Array, mask: Array) -> Array:
        """Δh_t = h_t − μ_t − χ_x [M, T, n] of any states, 0 where masked, in the kind, dtype and device of the states.

        For the deltas of streamed components, or of other samples than those that the components are the means of.
        The delta is NaN where the components have no row for the step or word.

        Args:
            states: [M, T, n] float32 or float64.
            tokens: [M, T] integers in 0 … V − 1; anything where masked.
            mask: [M, T] bool, True on words.

        Raises:
            TypeError, ValueError: as for ``decompose``, and if T or n differ from these components'.
        """
        temporal, inputs = to_tensor(self.temporal, "temporal"), to_tensor(self.input, "input")
        sizes = {"T": temporal.shape[0], "n": temporal.shape[1]}
        batch = _checked(states, tokens, mask, len(inputs), sizes)
        return like(_delta(batch, temporal.to(batch.states), inputs.to(batch.states)), states)

    @torch.no_grad()
    def input_at(self, tokens: Array, mask: Array) -> Array:
        """χ_x of the word at every step [M, T, n], 0 where masked; NaN for a word that never occurred.

        Args:
            tokens: [M, T] integers in 0 … V − 1; anything where masked.
            mask: [M, T] bool, True on words.
        """
        inputs = to_tensor(self.input, "input")
        words, mask_, _ = _checked_words(tokens, mask, len(inputs), {"T": len(self.temporal)}, inputs.device)
        rows = inputs.index_select(0, words.flatten()).view(*words.shape, -1)
        return like(rows.masked_fill_(~mask_[..., None], 0), self.input)

    @torch.no_grad()
    def input_delta(self, tokens: Array, mask: Array, delta: Array | None = None) -> Array:
        """The input-delta components χ_x + Δh_t = h_t − μ_t [M, T, n], 0 where masked.

        Args:
            tokens: [M, T] integers, as decomposed.
            mask: [M, T] bool, as decomposed.
            delta: [M, T, n]; these components' own if None. Streamed components have none: pass ``delta_of(...)``.
        """
        delta = self.delta if delta is None else delta
        if delta is None:
            raise ValueError(
                "delta must be given, because streamed components keep none: pass "
                "delta=components.delta_of(states, tokens, mask)"
            )
        inputs = to_tensor(self.input_at(tokens, mask), "input")
        deltas = to_tensor(delta, "delta")
        if deltas.shape != inputs.shape:
            raise ValueError(
                f"tokens must have shape [M, T] with M, T = {list(deltas.shape[:2])} as delta does, got "
                f"{list(inputs.shape[:2])}: pass the tokens and mask that were decomposed, or another delta"
            )
        return like(inputs + deltas.to(inputs), self.input)

    @torch.no_grad()
    def reconstruct(self, tokens: Array, mask: Array, delta: Array | None = None) -> Array:
        """The states μ_t + χ_x + Δh_t [M, T, n] (Eq. 2), 0 where masked. Arguments as for ``input_delta``."""
        rest = to_tensor(self.input_delta(tokens, mask, delta), "delta")
        masked = ~to_tensor(mask, "mask").to(rest.device)[..., None]
        return like((rest + to_tensor(self.temporal, "temporal")).masked_fill_(masked, 0), self.temporal)


@torch.no_grad()
def decompose(states: Array, tokens: Array, mask: Array, num_words: int | None = None) -> Components:
    """The temporal, input and delta components of hidden states (Eq. 1 and 2).

    Sums run in float64; the components come in the kind (torch or numpy), dtype and device of the states, outside of
    any autograd graph. h = μ + χ + Δ up to the last bits of the dtype, and the mean of χ over occurrences is 0.

    Args:
        states: [M, T, n] hidden states, float32 or float64. Padded steps may hold anything, NaN too.
        tokens: [M, T] the word of each state, integers of any width in 0 … V − 1; anything where masked.
        mask: [M, T] bool, True on words. It need not be a prefix of each row.
        num_words: V, the size of the vocabulary; the largest word of the batch + 1 if None.

    Raises:
        TypeError: if an argument is no tensor or array, or of the wrong dtype.
        ValueError: if shapes do not match, nothing is unmasked, a word lies outside 0 … V − 1, or a state is not
            finite.
    """
    num_words = None if num_words is None else require_count(num_words, "num_words")
    batch = _checked(states, tokens, mask, num_words, {})
    sums = _sum(batch)
    temporal, inputs = (part.to(batch.states.dtype) for part in sums.means())
    delta = _delta(batch, temporal, inputs)
    parts = (temporal, inputs, delta, sums.counts.sum(0), sums.counts.sum(1))
    return Components(*(like(part, states) for part in parts))


class StreamingDecomposition:
    """The decomposition of states that arrive in batches, in O((T + V) n + T V) memory whatever their number.

    ``components()`` equals ``decompose`` on the concatenation of all batches, up to the last bits of the float64
    sums, except that it keeps no deltas: ``components().delta_of(states, tokens, mask)`` has those of any batch.

    Args:
        num_steps: T, the number of steps of every batch.
        num_words: V, the size of the vocabulary.
        hidden_size: n, the number of units.
    """

    def __init__(self, num_steps: int, num_words: int, hidden_size: int) -> None:
        self.num_steps = require_count(num_steps, "num_steps")
        self.num_words = require_count(num_words, "num_words")
        self.hidden_size = require_count(hidden_size, "hidden_size")
        self._sums: _Sums | None = None
        self._first: Array | None = None  # an empty slice of the first states, to remember their kind, dtype and device

    @torch.no_grad()
    def update(self, states: Array, tokens: Array, mask: Array) -> None:
        """Take in a batch. A batch that is refused changes nothing.

        Args:
            states: [M, T, n] float32 or float64, of the kind, dtype and device of the first batch. M may vary.
            tokens: [M, T] integers in 0 … V − 1; anything where masked.
            mask: [M, T] bool, True on words.

        Raises:
            TypeError, ValueError: as for ``decompose``, and if T, n, kind, dtype or device are not those of before.
        """
        sizes = {"T": self.num_steps, "n": self.hidden_size}
        batch = _checked(states, tokens, mask, self.num_words, sizes)
        if self._first is not None and _kind(states) != _kind(self._first):
            raise TypeError(
                f"states must be a {_kind(self._first)} as in the first update, got a {_kind(states)}: convert the "
                "batch, or start a new StreamingDecomposition"
            )
        sums = _sum(batch)
        if self._sums is None:
            self._sums = sums
            self._first = batch.states.new_empty(0) if isinstance(states, Tensor) else np.empty(0, states.dtype)
        else:
            self._sums.add_(sums)

    @torch.no_grad()
    def components(self) -> Components:
        """The components of all batches so far, with None for the deltas.

        Raises:
            ValueError: before the first update.
        """
        if self._sums is None:
            raise ValueError("components() needs at least one batch: call update(states, tokens, mask) first")
        temporal, inputs = (like(part.to(_torch_dtype(self._first)), self._first) for part in self._sums.means())
        counts = self._sums.counts
        return Components(temporal, inputs, None, like(counts.sum(0), self._first), like(counts.sum(1), self._first))


class _Batch(NamedTuple):
    """Checked arguments, on one device."""

    states: Tensor  # [M, T, n]
    words: Tensor  # [M, T] int64, 0 where masked
    mask: Tensor  # [M, T] bool
    num_words: int  # V


class _Sums(NamedTuple):
    """All that the components need to know of the states."""

    steps: Tensor  # [T, n] float64  Σ h over the samples that reach the step
    words: Tensor  # [V, n] float64  Σ h over the occurrences of the word
    counts: Tensor  # [V, T] int64   C[x, t]

    def add_(self, other: _Sums) -> None:
        for mine, theirs in zip(self, other, strict=True):
            mine.add_(theirs)

    def means(self) -> tuple[Tensor, Tensor]:
        """μ [T, n] and χ [V, n] in float64 (Eq. 1), NaN (0 / 0) where the count is 0."""
        counts = self.counts.to(torch.float64)
        temporal = self.steps / counts.sum(0)[:, None]
        # A step that never occurs has no words to correct: its count is 0, but 0 · NaN would spread.
        of_steps = counts @ temporal.nan_to_num(nan=0.0)
        return temporal, (self.words - of_steps) / counts.sum(1)[:, None]


def _checked(states: Array, tokens: Array, mask: Array, num_words: int | None, sizes: dict[str, int]) -> _Batch:
    """The arguments as tensors on the device of the states; ``sizes`` holds the T and n that are required already."""
    values = require_floats(to_tensor(states, "states"), "states")
    if values.device.type == "mps":
        raise TypeError(
            "states must be on a device that has float64, such as cpu or cuda, got mps: pass states.cpu(), and tokens "
            "and mask likewise"
        )
    require_shape(values, "states", "M T n", sizes)
    words, mask_, num_words = _checked_words(tokens, mask, num_words, sizes, values.device)
    return _Batch(values, words, mask_, num_words)


def _checked_words(
    tokens: Array, mask: Array, num_words: int | None, sizes: dict[str, int], device: torch.device
) -> tuple[Tensor, Tensor, int]:
    """The words [M, T] as int64, 0 where masked, the mask [M, T], and V; every token under the mask is a word."""
    words = require_integers(to_tensor(tokens, "tokens"), "tokens").to(device)
    require_shape(words, "tokens", "M T", sizes)
    mask_ = require_mask(to_tensor(mask, "mask"), "mask").to(device)
    require_shape(mask_, "mask", "M T", sizes)
    if not mask_.any():
        raise ValueError("mask must be True somewhere, got no True at all: pass True on words, False on padding")
    words = words.masked_fill(~mask_, 0)
    low, high = int(words.min()), int(words.max())
    if low < 0 or (num_words is not None and high >= num_words):
        valid = "0 or more" if num_words is None else f"in 0 … {num_words - 1} (num_words = {num_words})"
        raise ValueError(
            f"tokens must be {valid} where mask is True, got {low if low < 0 else high}: mask padding, or pass a "
            "num_words that covers the vocabulary"
        )
    if num_words is None and high >= MOST_GUESSED_WORDS:
        raise ValueError(
            f"tokens must be smaller than {MOST_GUESSED_WORDS} unless num_words is given, got {high}: look for a stray "
            f"id, or pass num_words = {high + 1}"
        )
    return words, mask_, high + 1 if num_words is None else num_words


def _sum(batch: _Batch) -> _Sums:
    """Sums by step and by word in one pass over the states, which visits each block while it is in the cache."""
    states, words, mask, num_words = batch
    num_steps, size = states.shape[1:]
    step = torch.arange(num_steps, device=states.device)
    # Padding goes to rows of its own, after those of the steps and words, that are dropped with whatever they hold.
    steps, words = torch.where(mask, step, num_steps), words.masked_fill(~mask, num_words)
    pairs = words * num_steps + step
    counts = torch.bincount(pairs.flatten(), minlength=(num_words + 1) * num_steps).view(-1, num_steps)
    # With few words, one sum by (word, step) holds both of the others and takes half the time.
    few = counts.numel() <= 1024
    groups, lengths = ([pairs], [counts.numel()]) if few else ([steps, words], [num_steps + 1, num_words + 1])
    totals = [torch.zeros(length, size, dtype=torch.float64, device=states.device) for length in lengths]
    # One buffer for all blocks: memory fresh from the system would cost more than the sums.
    buffer = torch.empty(_block_samples(states), num_steps, size, dtype=torch.float64, device=states.device)
    for part in _blocks(states):
        rows = buffer[: part.stop - part.start].copy_(states[part]).view(-1, size)
        for group, total in zip(groups, totals, strict=True):
            total.index_add_(0, group[part].flatten(), rows)
    if few:
        by_pair = totals[0].view(num_words + 1, num_steps, size)[:-1]
        of_steps, of_words = by_pair.sum(0), by_pair.sum(1)
    else:
        of_steps, of_words = (total[:-1] for total in totals)
    # Every unmasked state is in exactly one of these sums, and no sum with a NaN or infinity in it is finite.
    if not of_steps.isfinite().all():
        _refuse_not_finite(batch)
    return _Sums(of_steps, of_words, counts[:-1])


def _refuse_not_finite(batch: _Batch) -> None:
    for part in _blocks(batch.states):
        bad = ~batch.states[part].isfinite().all(-1) & batch.mask[part]
        if bad.any():
            sample, step = bad.nonzero()[0].tolist()
            raise ValueError(
                f"states must be finite where mask is True, got NaN or infinity in sample {part.start + sample} at "
                f"step {step}: mask that step, or look for what made the network diverge"
            )
    raise ValueError("states must have finite sums in float64, got an overflow: scale them down before decomposing")


def _delta(batch: _Batch, temporal: Tensor, inputs: Tensor) -> Tensor:
    """Δh_t = h_t − μ_t − χ_x [M, T, n], 0 where masked, in a second pass over the blocks."""
    states, words, mask, _ = batch
    delta = _empty_like(states)
    buffer = torch.empty_like(delta[: _block_samples(states)]).view(-1, states.shape[-1])
    for part in _blocks(states):
        rows = torch.sub(states[part], temporal, out=delta[part]).view(-1, states.shape[-1])
        rows.sub_(torch.index_select(inputs, 0, words[part].flatten(), out=buffer[: len(rows)]))
        rows.index_fill_(0, (~mask[part]).flatten().nonzero()[:, 0], 0)
    return delta


def _empty_like(states: Tensor) -> Tensor:
    """An uninitialised contiguous tensor. On a CPU numpy asks for huge pages, which come several times faster."""
    if states.device.type != "cpu":
        return torch.empty(states.shape, dtype=states.dtype, device=states.device)
    return torch.from_numpy(np.empty(states.shape, np.float32 if states.dtype == torch.float32 else np.float64))


def _block_samples(states: Tensor) -> int:
    """How many samples' states in float64 fit a processor's cache (a GPU wants fewer, larger blocks)."""
    size = 2**21 if states.device.type == "cpu" else 2**26  # bytes
    samples, steps, units = states.shape
    return min(samples, max(1, size // (8 * steps * units)))


def _blocks(states: Tensor) -> list[slice]:
    samples, count = len(states), _block_samples(states)
    return [slice(start, min(start + count, samples)) for start in range(0, samples, count)]


def _kind(states: Array) -> str:
    if isinstance(states, Tensor):
        return f"torch tensor of {states.dtype} on {states.device}"
    return f"numpy array of {states.dtype}"


def _torch_dtype(states: Array) -> torch.dtype:
    return to_tensor(states, "states").dtype
