"""How large the components of the states are: energy shares, and the variance that the temporal part takes away."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, distinct, integers, ratio, real, selected, truths

# A word's variance relative to its states' mean square: below it the states are equal up to float32 rounding.
_NO_VARIANCE = 1e-12


def energy_share(part: ArrayLike, states: ArrayLike, mask: ArrayLike) -> float:
    """The energy of a part of the states (their deltas, say) relative to that of the states (O4, O10, E9).

    Σ‖part‖² / Σ‖states − mean‖², both over the masked positions, the mean being over the masked states.

    Args:
        part: [M, T, n].
        states: [M, T, n], not all equal.
        mask: bool [M, T].
    """
    sizes: Sizes = {}
    mask = truths("mask", mask, "M T", sizes)
    states = distinct("states", selected("states", states, "M T n", sizes, mask))
    part = selected("part", part, "M T n", sizes, mask)
    centred = states - states.mean(axis=0)
    return ratio((part**2).sum(), (centred**2).sum(), "the energy of states about their mean")


def energy_ratio(part: ArrayLike, reference: ArrayLike, mask: ArrayLike) -> float:
    """Σ‖part‖² / Σ‖reference‖², both over the same masked (sample, step) pairs (O5).

    Args:
        part: [M, S, n], such as the decoder's input-delta components.
        reference: [M, S, n], or [S, n] for what is the same in every sample, such as the temporal components.
        mask: bool [M, S].
    """
    sizes: Sizes = {}
    mask = truths("mask", mask, "M S", sizes)
    part = selected("part", part, "M S n", sizes, mask)
    reference = real("reference", reference, "...", {})
    if reference.ndim == 2:
        reference = np.broadcast_to(reference, (mask.shape[0], *reference.shape))
    reference = selected("reference", reference, "M S n", sizes, mask)
    return ratio((part**2).sum(), (reference**2).sum(), "the energy of reference")


def variance_drop(
    states: ArrayLike, temporal: ArrayLike, tokens: ArrayLike, mask: ArrayLike, words: ArrayLike
) -> NDArray[np.float64]:
    """How much of a word's variance the temporal component explains: 1 − var(h − μ) / var(h) (Fig. 5c; O11, E4, T4).

    var is the total variance (trace of the covariance) over the word's masked occurrences. 1: a word's states differ
    by their step only; 0: the step says nothing; negative: subtracting μ makes them differ more.

    Args:
        states: h [M, T, n].
        temporal: μ [T, n], finite at every step that the mask reaches.
        tokens: word ids [M, T].
        mask: bool [M, T].
        words: the word ids asked for [W].

    Returns:
        [W]; NaN for a word with fewer than 2 occurrences, or whose states are all equal.
    """
    sizes: Sizes = {}
    mask = truths("mask", mask, "M T", sizes)
    states = selected("states", states, "M T n", sizes, mask)
    reached = mask.any(axis=0)
    means = np.zeros((mask.shape[1], states.shape[1]))
    means[reached] = selected("temporal", temporal, "T n", sizes, reached)
    residuals = states - means[np.nonzero(mask)[1]]
    tokens = integers("tokens", tokens, "M T", sizes)[mask]
    words = integers("words", words, "W", sizes)
    drops = np.full(words.shape, np.nan)
    for index, word in enumerate(words):
        here = states[tokens == word]
        if len(here) < 2:
            continue
        variance = here.var(axis=0).sum()
        if variance > _NO_VARIANCE * (here**2).sum(axis=1).mean():
            drops[index] = 1 - residuals[tokens == word].var(axis=0).sum() / variance
    return drops
