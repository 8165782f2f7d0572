"""Phrases joined at random to sentences of a given length: the exact distribution, samples of it, and its mean offsets.

A sentence is a chain of segments: a phrase, or "and" and a phrase. The first is a phrase; each later one is preceded by
"and" with probability p, independently; every phrase is equally likely. Sentences of L words are that chain,
conditioned on one of its phrases ending with the L-th word. With f(r) the probability that a chain that may begin with
"and" has a phrase end after exactly r words,

    f(0) = 1,   f(r) = Σ_k P(k) f(r − words of segment k),

the next segment, where r words are left, is k with probability P(k) f(r − words of k) / f(r). So nothing is rejected,
and expectations over all sentences are sums over the places where a segment can begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class MeanOffsets(NamedTuple):
    """The exact mean of the true offset t − s over all sentences, by decoder step (dotted in Fig. 5b)."""

    mean: np.ndarray  # [S] float64, NaN where no sentence has an output
    reached: np.ndarray  # [S] float64, the probability that a sentence has an output at the step


class Shifts(NamedTuple):
    """The exact distribution of the words without output before a phrase, by decoder step."""

    values: np.ndarray  # [K] int64, the words before the phrase minus the outputs before it
    probability: np.ndarray  # [S, K] float64, that a sentence has an output at s and that it is shifted so far


@dataclass(frozen=True)
class Segment:
    """A phrase, or "and" and a phrase, as word ids; each output is an id and the place of the word it comes from."""

    words: tuple[int, ...]
    outputs: tuple[int, ...]
    alignment: tuple[int, ...]
    first: float  # probability as a sentence's first segment
    later: float  # as a later one


@dataclass(frozen=True, eq=False)
class Concatenation:
    """Sentences of ``lengths`` words, each length equally likely, made of ``segments``."""

    segments: tuple[Segment, ...]
    min_length: int
    max_length: int

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """f(r) and the same of a whole sentence, whose first segment has no "and", [max_length + 1] each."""
        later, whole = np.zeros(self.max_length + 1), np.zeros(self.max_length + 1)
        later[0] = 1.0
        for words in range(1, self.max_length + 1):
            for segment in self.segments:
                if len(segment.words) <= words:
                    rest = later[words - len(segment.words)]
                    later[words] += segment.later * rest
                    whole[words] += segment.first * rest
        return later, whole

    @cached_property
    def reachable(self) -> tuple[int, ...]:
        """The lengths up to ``max_length`` that some concatenation has."""
        return tuple(int(words) for words in np.flatnonzero(self._ends[1]))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Those of them that are asked for."""
        return tuple(words for words in self.reachable if words >= self.min_length)

    @cached_property
    def most_outputs(self) -> int:
        """The largest number of outputs of a sentence."""
        most = np.full(self.max_length + 1, -np.inf)
        most[0] = 0
        for words in range(1, self.max_length + 1):
            for segment in self.segments:
                before = words - len(segment.words)
                if before >= 0 and (segment.later if before else segment.first) > 0:
                    most[words] = max(most[words], most[before] + len(segment.outputs))
        return int(max(most[list(self.lengths)]))

    # ---- samples --------------------------------------------------------------------------------------------------

    @cached_property
    def _cumulative(self) -> tuple[Tensor, Tensor]:
        """Cumulative probabilities of the segments, where r words are left: [max_length + 1, K], first and later.

        With no words left they are 0, which leads to the segment number K: none.
        """
        ends, tables = self._ends[0], []
        for field in ("first", "later"):
            table = np.zeros((self.max_length + 1, len(self.segments)))
            for index, segment in enumerate(self.segments):
                size = len(segment.words)
                table[size:, index] = getattr(segment, field) * ends[: self.max_length + 1 - size]
            cumulative = np.cumsum(table, axis=1)
            total = cumulative[:, -1:]
            # Not 1, which rounding may miss: no draw lands behind the last segment that is possible.
            cumulative = np.where(cumulative >= total, np.inf, cumulative / np.where(total > 0, total, 1))
            tables.append(torch.from_numpy(np.where(total > 0, cumulative, 0.0)))
        return tables[0], tables[1]

    @cached_property
    def _sizes(self) -> Tensor:
        """Words of each segment, and 0 for none, [K + 1]."""
        return torch.tensor([*(len(segment.words) for segment in self.segments), 0])

    def draw(self, size: int, random: torch.Generator) -> Tensor:
        """Segment numbers [size, max_length], those of no segment, K, at the end of each row."""
        left = torch.tensor(self.lengths)[torch.randint(len(self.lengths), (size,), generator=random)]
        draws = torch.rand(size, self.max_length, generator=random, dtype=torch.float64)
        chosen = torch.full((size, self.max_length), len(self.segments))
        first, later = self._cumulative
        for place in range(self.max_length):
            if not bool(left.any()):
                break
            cumulative = (later if place else first)[left]
            chosen[:, place] = (draws[:, place, None] >= cumulative).sum(1)
            left = left - self._sizes[chosen[:, place]]
        return chosen

    def lay_out(self, chosen: Tensor, field: str, steps: int, fill: int) -> tuple[Tensor, Tensor]:
        """The "words", "outputs" or "alignment" of segments [B, G], in a row each: [B, steps], and lengths [B].

        ``alignment`` becomes the source step in the sentence. What lies behind a row's end is ``fill``.
        """
        counts, values = self._tables[field]
        sizes = counts[chosen]
        starts = sizes.cumsum(1) - sizes
        rows = torch.full((len(chosen), steps + 1), fill)  # the last column takes what is not there
        for place in range(values.shape[1]):
            value = values[chosen, place]
            if field == "alignment":
                words = self._sizes[chosen]
                value = value + words.cumsum(1) - words
            rows.scatter_(1, torch.where(place < sizes, starts + place, steps), value)
        return rows[:, :steps], sizes.sum(1)

    @cached_property
    def _tables(self) -> dict[str, tuple[Tensor, Tensor]]:
        tables = {}
        for field in ("words", "outputs", "alignment"):
            entries: Sequence[tuple[int, ...]] = [*(getattr(segment, field) for segment in self.segments), ()]
            width = max(len(entry) for entry in entries)
            padded = torch.tensor([[*entry, *[0] * (width - len(entry))] for entry in entries])
            tables[field] = torch.tensor([len(entry) for entry in entries]), padded
        return tables

    # ---- expectations -----------------------------------------------------------------------------------------------

    @cached_property
    def _boundaries(self) -> np.ndarray:
        """[i, o]: the probability that a chain has a phrase end after i words with o outputs, i from 1."""
        outputs = max(len(segment.outputs) for segment in self.segments)
        arrive = np.zeros((self.max_length + 1, outputs * self.max_length + 1))
        for words in range(1, self.max_length + 1):
            for segment in self.segments:
                before, made = words - len(segment.words), len(segment.outputs)
                if before == 0:
                    arrive[words, made] += segment.first
                elif before > 0:
                    arrive[words, made:] += segment.later * arrive[before, : arrive.shape[1] - made]
        return arrive

    def mean_offsets(self, steps: int, end_of_sentence: bool) -> MeanOffsets:
        """See :meth:`ExtendedSCAN.mean_offsets`; ``steps`` is S."""
        size = self._boundaries.shape[1] + 1
        reached, total = np.zeros(size), np.zeros(size)
        for probability, place, source_step, _ in self._places():
            outputs = np.arange(len(probability)) + place
            reached[outputs] += probability
            total[outputs] += probability * (source_step - outputs)
        if end_of_sentence:
            whole = self._ends[1]
            for length in self.lengths:
                probability = self._boundaries[length] / whole[length] / len(self.lengths)
                reached[:-1] += probability
                total[:-1] += probability * (length - np.arange(size - 1))
        reached, total = reached[:steps], total[:steps]
        with np.errstate(invalid="ignore"):
            return MeanOffsets(np.where(reached > 0, total / reached, np.nan), reached)

    def shifts(self, steps: int) -> Shifts:
        """See :meth:`ExtendedSCAN.shifts`; ``steps`` is S."""
        most = self._boundaries.shape[1]  # no more outputs before a phrase than this; words are at most max_length
        values = np.arange(-most, self.max_length + 1)
        probabilities = np.zeros((most + 1, len(values)))
        for probability, place, _, words in self._places():
            outputs = np.arange(len(probability))
            probabilities[outputs + place, words - outputs + most] += probability
        occurs = probabilities[:steps].any(0)
        return Shifts(values[occurs], probabilities[:steps, occurs])

    def _places(self) -> Iterator[tuple[np.ndarray, int, int, int]]:
        """Every place where an output can come from: the probability [o] that a sentence has o outputs before its
        phrase, its number in the phrase, its word's source step, and the number of words before the phrase.
        """
        later, whole = self._ends
        arrive = self._boundaries
        start = np.zeros(arrive.shape[1])
        start[0] = 1.0
        for begin in range(self.max_length):
            for segment in self.segments:
                end = begin + len(segment.words)
                # Over sentences of all lengths: the chance that the rest ends where the sentence does.
                rest = sum(later[length - end] / whole[length] for length in self.lengths if length >= end)
                here = arrive[begin] * segment.later if begin else start * segment.first
                # A phrase begins behind its "and": with the verb, the first word that an output can come from.
                verb = begin + min(segment.alignment)
                for place, step in enumerate(segment.alignment):
                    # The places of the phrase's outputs behind the most that there can be have probability 0.
                    kept = len(here) - place
                    yield (here * rest / len(self.lengths))[:kept], place, begin + step, verb
