"""What was measured of a translation run, and what follows from it without a sentence at hand."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from howattend import alignment
from howattend.decomposition import Components

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
    weights_hash: str  # sha256 of the network's parameters: a measurement is of these weights and no others
    accuracy: float  # teacher-forced word accuracy, ends of sentence included
    score_scale: float  # scores = score_scale · query · key
    encoder: (
        Components  # of the keys: temporal [T, n], input [V_E, n] (NaN for words without an occurrence), delta None
    )
    decoder: Components  # of the queries: temporal [S, n], input [V_D, n]; a step's word is the one fed to it
    encoder_counts: np.ndarray  # [V_E, T] int64: occurrences of each word at each step
    decoder_counts: np.ndarray  # [V_D, S] int64
    length_counts: np.ndarray  # [T + 1, S + 1] int64: pairs of each source and target length, ends of sentence included
    term_sums: np.ndarray  # [2, 3, S, 3, 3] (words, all) × (signed, centred, absolute) × s × decoder × encoder part
    distance_sums: np.ndarray  # [2, 3, S] (words, all) × WEIGHTS: sums of the mean |t/T − s/S| over outputs at s
    variances: (
        np.ndarray
    )  # [2, 2, V_E] (words at common steps, all) × (var h^E, var h^E − μ^E); NaN below 2 occurrences
    delta_shares: np.ndarray  # [2] (words at common steps, all): Σ‖Δh^E‖² / Σ‖h^E − mean‖²
    length_ratio: float  # target words per source word in the training split, ends of sentence left out
    aligned: (
        np.ndarray
    )  # [S] mean position, from 1, of the source word that IBM model 1 aligns with the word at s, in the
    # training split; NaN where none is (the prediction of Fig. 5b is this minus s)
    aligned_counts: np.ndarray  # [S] int64: how many words that mean is over

    # ---- sizes ------------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> int:
        """M, the number of sentence pairs."""
        return int(self.length_counts.sum())

    @cached_property
    def encoder_steps(self) -> int:
        """The number of common source steps: those at which a quarter of the sentences still has a word."""
        raise NotImplementedError

    @cached_property
    def decoder_steps(self) -> int:
        """The number of common target steps."""
        raise NotImplementedError

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
        """μ^D_s·μ^E_t [S, T], scaled as the scores are, over all steps; NaN at steps that never occur."""
        raise NotImplementedError

    @property
    def common_scores(self) -> np.ndarray:
        """The same at common steps only, [decoder_steps, encoder_steps]."""
        return self.temporal_scores[: self.decoder_steps, : self.encoder_steps]

    # ---- Fig. 5a: the nine terms ------------------------------------------------------------------------------------

    @cached_property
    def shares(self) -> alignment.Shares:
        """The nine terms' shares of the largest score [3, 3], over words at common decoder steps."""
        raise NotImplementedError

    @cached_property
    def shares_all_steps(self) -> alignment.Shares:
        """The same over all steps, ends of sentence included."""
        raise NotImplementedError

    @cached_property
    def shares_by_step(self) -> alignment.Shares:
        """The same by decoder step [S, 3, 3], over words."""
        raise NotImplementedError

    # ---- Fig. 4a: how diagonal attention is -------------------------------------------------------------------------

    def distance(self, weights: str, *, all_steps: bool = False) -> float:
        """The attention-weighted mean of |t/T − s/S|, over words at common decoder steps, or over all steps.

        Args:
            weights: "attention", "temporal" (softmax of μ^D·μ^E) or "shuffled" (attention with its weights permuted
                over the sentence's steps, in expectation).
            all_steps: over all steps, ends of sentence included.
        """
        raise NotImplementedError

    def distances_by_step(self, weights: str) -> np.ndarray:
        """The same by decoder step [S], over words; NaN where no sentence has one."""
        raise NotImplementedError

    # ---- Fig. 5b: offsets -------------------------------------------------------------------------------------------

    @property
    def peaks(self) -> np.ndarray:
        """Where μ^D_s·μ^E_t peaks over the common source steps, by common decoder step: positions from 1, between
        steps by a parabola [decoder_steps].
        """
        raise NotImplementedError

    # ---- Fig. 5c: variance ------------------------------------------------------------------------------------------

    def variance_drops(self, words: np.ndarray, *, all_steps: bool = False) -> np.ndarray:
        """1 − var(h^E − μ^E) / var(h^E) of source words [W] (ids), over their occurrences at common steps, or at all."""
        raise NotImplementedError

    # ---- file -------------------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Write an npz in one move; words that do not occur take no room in it."""
        raise NotImplementedError
