"""What was measured of a translation run, and what follows from it without a sentence at hand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from howattend import alignment, statistics
from howattend.decomposition import Components
from howattend.models import Trace

#: Sentences have 1 to 15 words, so no step but the first is reached by all. "Common" steps are those at which at least
#: this share of the test sentences still has a word.
COMMON_SHARE = 0.25

#: First axis of what is summed twice: over steps with a word (known or not), and over all, ends of sentence too.
WORDS, ALL = 0, 1
#: Second axis of ``distance_sums``.
WEIGHTS = ("attention", "temporal", "shuffled")


@dataclass(frozen=True, eq=False)
class Measured:
    """A translation run's test split of M pairs in numbers. T, S: source and target steps (16, ends of sentence
    included), n: units, V: words of a vocabulary. Steps are counted from 0, positions (``peaks``, ``aligned``) from 1.

    All arrays are numpy. Input components are kept in half precision, so that what was just measured and what was
    stored are the same.
    """

    run: str
    seed: int
    config_hash: str
    weights_hash: str
    """sha256 of the network's parameters: a measurement is of these weights and no others."""
    accuracy: float
    """Teacher-forced word accuracy, ends of sentence included."""
    encoder: Components
    """Of the encoder states: temporal [T, n], input [V, n] (NaN for words that do not occur), no delta."""
    decoder: Components
    """Of the decoder states: temporal [S, n], input [V, n] of the words fed, no delta."""
    encoder_counts: np.ndarray
    """[V, T] int64, occurrences of each source word at each step."""
    decoder_counts: np.ndarray
    """[V, S] int64, of each word fed to the decoder."""
    encoder_words: np.ndarray
    """[T, n], mean encoder state at each step over words alone: μ^E without ends of sentence. NaN where none is."""
    decoder_words: np.ndarray
    """[S, n], mean decoder state at each step over the outputs that are words."""
    length_counts: np.ndarray
    """[T + 1, S + 1] int64, pairs of each source and target length, ends of sentence included."""
    term_sums: np.ndarray
    """[2, 3, S, 3, 3], (words, all) × (signed, centred, absolute) × s × decoder part × encoder part."""
    distance_sums: np.ndarray
    """[2, 3, S], (words, all) × ``WEIGHTS`` × s: sums over outputs of the weighted mean of |t/T − s/S|."""
    variances: np.ndarray
    """[2, 2, V], (words at common steps, all) × (var h^E, var(h^E − μ^E)); NaN below 2 occurrences, or if equal."""
    delta_shares: np.ndarray
    """[2], (words at common steps, all): Σ‖Δh^E‖² / Σ‖h^E − mean‖²."""
    length_ratio: float
    """Target words per source word in the training split, ends of sentence left out."""
    aligned: np.ndarray
    """[S], mean position, from 1, of the source word that IBM model 1 aligns with the word at s, in the training split;
    NaN where none is. Minus s it is the prediction of Fig. 5b."""
    aligned_counts: np.ndarray
    """[S] int64, how many words that mean is over."""

    # ---- sizes ------------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> int:
        """M, the number of sentence pairs."""
        return int(self.length_counts.sum())

    @cached_property
    def encoder_steps(self) -> int:
        """The number of common source steps: those at which a quarter of the sentences still has a word."""
        return common_steps(self.length_counts.sum(1))

    @cached_property
    def decoder_steps(self) -> int:
        """The number of common target steps."""
        return common_steps(self.length_counts.sum(0))

    # ---- components -------------------------------------------------------------------------------------------------

    @property
    def encoder_path(self) -> np.ndarray:
        """μ^E at the common steps [steps, n]."""
        return self.encoder.temporal[: self.encoder_steps]

    @property
    def decoder_path(self) -> np.ndarray:
        """μ^D at the common steps [steps, n]."""
        return self.decoder.temporal[: self.decoder_steps]

    @property
    def temporal_scores(self) -> np.ndarray:
        """μ^D_s·μ^E_t [S, T] over all steps; NaN at steps that never occur."""
        return self.decoder.temporal @ self.encoder.temporal.T

    @property
    def common_scores(self) -> np.ndarray:
        """The same at common steps only, [decoder_steps, encoder_steps]."""
        return self.temporal_scores[: self.decoder_steps, : self.encoder_steps]

    @property
    def word_scores(self) -> np.ndarray:
        """The same at common steps [decoder_steps, encoder_steps], of means without ends of sentence."""
        return self.decoder_words[: self.decoder_steps] @ self.encoder_words[: self.encoder_steps].T

    # ---- Fig. 5a: the nine terms ------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> alignment.Shares:
        """The nine terms' shares of the largest score [3, 3], over words at common decoder steps."""
        return self._shares(self.term_sums[WORDS, :, : self.decoder_steps].sum(1))

    @cached_property
    def shares_all_steps(self) -> alignment.Shares:
        """The same over all steps, ends of sentence included."""
        return self._shares(self.term_sums[ALL].sum(1))

    @cached_property
    def shares_by_step(self) -> alignment.Shares:
        """The same by decoder step [S, 3, 3], over words."""
        return self._shares(self.term_sums[WORDS])

    def terms(self, trace: Trace) -> Tensor:
        """The nine terms [3, 3, B, S, T] of any sentences, by the components of the test split; they sum to the scores.

        A word or step that the split lacks has no component of its own, and counts as delta.

        Args:
            trace: of the same network, of sentences of the task.

        Raises ValueError for a trace that does not fit: of more steps, other words or another hidden size.
        """
        return alignment.terms(*(self._components(side, trace) for side in ("decoder", "encoder")), trace)

    def _components(self, side: str, trace: Trace) -> Components:
        """Components of one side as tensors like the trace's, cut to its steps, with 0 where there is none."""
        own, states, tokens = getattr(self, side), *(getattr(trace, f"{side}_{part}") for part in ("states", "tokens"))
        if states.shape[1] > len(own.temporal) or int(tokens.max()) >= len(own.input):
            raise ValueError(
                f"trace must be of sentences of {self.run}'s task: at most {len(own.temporal)} {side} steps and words "
                f"below {len(own.input)}, got {states.shape[1]} steps and word {int(tokens.max())}"
            )
        temporal, inputs = (torch.from_numpy(np.nan_to_num(part)).to(states) for part in (own.temporal, own.input))
        steps = states.shape[1]
        return Components(temporal[:steps], inputs, None, own.step_counts[:steps], own.word_counts)

    # ---- Fig. 4a: how diagonal attention is -------------------------------------------------------------------------

    def distance(self, weights: str, *, all_steps: bool = False) -> float:
        """The attention-weighted mean of |t/T − s/S|, over words at common decoder steps, or over all steps.

        Args:
            weights: "attention", "temporal" (softmax of μ^D·μ^E) or "shuffled" (attention with its weights permuted
                over the sentence's steps, in expectation).
            all_steps: over all steps, ends of sentence included.
        """
        sums, counts = self._distances(weights, ALL if all_steps else WORDS)
        steps = len(sums) if all_steps else self.decoder_steps
        return float(sums[:steps].sum() / counts[:steps].sum())

    def distances_by_step(self, weights: str) -> np.ndarray:
        """The same by decoder step [S], over words; NaN where no sentence has one."""
        sums, counts = self._distances(weights, WORDS)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    # ---- Fig. 5b: offsets -------------------------------------------------------------------------------------------

    @property
    def peaks(self) -> np.ndarray:
        """Where μ^D_s·μ^E_t peaks over the common source steps, by common decoder step: positions from 1, between
        steps by a parabola [decoder_steps].
        """
        return statistics.peak_steps(self.common_scores) + 1

    # ---- Fig. 5c: variance ------------------------------------------------------------------------------------------

    def variance_drops(self, words: np.ndarray, *, all_steps: bool = False) -> np.ndarray:
        """1 − var(h^E − μ^E) / var(h^E) of source words [W], over their occurrences at common steps or at all."""
        of_states, of_rest = self.variances[ALL if all_steps else WORDS][:, np.asarray(words)]
        return 1 - of_rest / of_states

    # ---- helpers ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _shares(sums: np.ndarray) -> alignment.Shares:
        return alignment.shares_of(torch.from_numpy(sums))

    def _distances(self, weights: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Sums [S] of one kind of weights, and the number of outputs that they are over [S]."""
        if weights not in WEIGHTS:
            raise ValueError(f"weights must be one of {', '.join(map(repr, WEIGHTS))}, got {weights!r}")
        lengths = self.length_counts.sum(0)
        counts = with_word(lengths) if rows == WORDS else _reaching(lengths)[1:]
        return self.distance_sums[rows, WEIGHTS.index(weights)], counts


def _reaching(lengths: np.ndarray) -> np.ndarray:
    """How many sentences have at least 0, 1, … steps, from the numbers of sentences of each length [steps + 1]."""
    return lengths[::-1].cumsum()[::-1]


def with_word(lengths: np.ndarray) -> np.ndarray:
    """How many sentences have a word, not their end, at each step [steps]."""
    return np.append(_reaching(lengths)[2:], 0)


def common_steps(lengths: np.ndarray) -> int:
    """How many steps are common, from the numbers of sentences of each length [steps + 1]."""
    return int((with_word(lengths) >= COMMON_SHARE * lengths.sum()).sum())
