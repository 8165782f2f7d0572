"""Angles between directions, against what directions drawn at random would show."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, numbers, selected, truths, unit, whole
from .geometry import principal_components

# Share of the states' variance that spans the null's directions (see `orthogonality`).
_SPAN = 0.99
# Most vectors that one direction of the null is compared with: their mean |cos| is then known to about 0.5 % of
# itself. (With 2000 the maximum over the directions would pick up that noise, and the null would be too lax.)
_NULL_VECTORS = 20_000


@dataclass(frozen=True, eq=False)
class Orthogonality:
    """A mean |cos|, beside the same statistic of random directions.

    Attributes:
        value: the statistic; the claim holds if it is below null_high.
        per_step: what the statistic is taken of: mean |cos| of each direction [K], or |cos| of each word [V]. NaN for
            a step that no masked vector reaches.
        null_mean: mean of the statistic over the null's draws.
        null_low: 5 % quantile of the same.
        null_high: 95 % quantile.
    """

    value: float
    per_step: NDArray[np.float64]
    null_mean: float
    null_low: float
    null_high: float


def mean_absolute_cosine(a: ArrayLike, b: ArrayLike) -> float:
    """Mean |cos| between the vectors a [..., n] and b [..., n], whose leading axes may broadcast; none may be 0."""
    sizes: Sizes = {}
    a = numbers("a", a, "... n", sizes)
    b = numbers("b", b, "... n", {"n": sizes["n"]})
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError as error:
        raise ValueError(f"b has shape {b.shape}, which does not broadcast with a's {a.shape}") from error
    return float(np.abs((unit("a", a) * unit("b", b)).sum(axis=-1)).mean())


def orthogonality(
    directions: ArrayLike,
    vectors: ArrayLike,
    mask: ArrayLike,
    states: ArrayLike | None = None,
    pairing: Literal["step", "all"] = "step",
    seed: int = 0,
    draws: int = 200,
) -> Orthogonality:
    """Whether the temporal components are orthogonal to the input-delta components at every step (O6).

    The statistic is the largest, over the directions, of the mean |cos| between a direction and its vectors. In high
    dimensions any two directions are nearly orthogonal, so it means something only beside a null: the same statistic
    with each direction replaced by one drawn isotropically in the span of the centred masked states. The span is that
    of the principal axes which hold 99 % of their variance: a trained network's states have full rank in a numerical
    sense, and axes that carry no more than traces would dilute the null towards directions the states never take.

    Args:
        directions: [K, n], such as μ_t with its mean over t removed.
        vectors: [M, T, n], such as χ_x + Δh_t.
        mask: bool [M, T].
        states: [M, T, n], whose span the null draws from; None: all of R^n, a stricter null for states that fill less.
        pairing: "step" compares direction t with the vectors at step t (K = T; a step that the mask does not reach
            takes no part), "all" compares each direction with every masked vector.
        seed: of the null, which compares each direction with at most 20,000 of its vectors, drawn without
            replacement, to save time; the value itself is over all of them.
        draws: repetitions of the null.

    Raises:
        ValueError: also for a direction or a masked vector of length 0, as when every sample has the same state.
    """
    if pairing not in ("step", "all"):
        raise ValueError(f'pairing must be "step" or "all", got {pairing!r}')
    draws, rng = whole("draws", draws, 1), np.random.default_rng(whole("seed", seed, 0))
    sizes: Sizes = {}
    mask = truths("mask", mask, "M T", sizes)
    cloud = unit("vectors", selected("vectors", vectors, "M T n", sizes, mask))
    steps = np.nonzero(mask)[1]
    if pairing == "step":
        reached = mask.any(axis=0)
        used = selected("directions", directions, "T n", sizes, reached)
    else:
        used = numbers("directions", directions, "K n", sizes)
        reached = np.ones(len(used), dtype=bool)
    axes = np.eye(sizes["n"]) if states is None else _span(selected("states", states, "M T n", sizes, mask))

    per_step, null = np.full(len(reached), np.nan), []
    for index, direction in zip(np.flatnonzero(reached), unit("directions", used), strict=True):
        paired = cloud[steps == index] if pairing == "step" else cloud
        per_step[index] = np.abs(paired @ direction).mean()
        if len(paired) > _NULL_VECTORS:
            paired = rng.choice(paired, _NULL_VECTORS, replace=False)
        drawn = unit("draws", rng.standard_normal((draws, len(axes)))) @ axes
        null.append(np.abs(paired @ drawn.T).mean(axis=0))
    return _against(np.nanmax(per_step), per_step, np.max(null, axis=0))


def readout_orthogonality(
    context_readout: ArrayLike, state_readout: ArrayLike, seed: int = 0, draws: int = 1000
) -> Orthogonality:
    """Whether a word's context readout and decoder-state readout are orthogonal (O12).

    The statistic is the mean over words of the |cos| between a word's two vectors; in the null each vector of the
    state readout is replaced by an isotropic random direction in R^n.

    Args:
        context_readout: [V, n], n >= 2.
        state_readout: [V, n].
        seed: of the null.
        draws: repetitions of the null.
    """
    draws, rng = whole("draws", draws, 1), np.random.default_rng(whole("seed", seed, 0))
    sizes: Sizes = {}
    context = unit("context_readout", numbers("context_readout", context_readout, "V n", sizes))
    state = unit("state_readout", numbers("state_readout", state_readout, "V n", sizes))
    words, n = context.shape
    if n < 2:
        raise ValueError("context_readout has n = 1: angles need at least 2 dimensions")
    cosines = np.abs((context * state).sum(axis=1))
    # The squared cosine of an isotropic direction with any fixed one is Beta(1/2, (n − 1)/2): no vectors are needed.
    null = np.array([np.sqrt(rng.beta(0.5, (n - 1) / 2, size=words)).mean() for _ in range(draws)])
    return _against(cosines.mean(), cosines, null)


def _span(states: NDArray[np.float64]) -> NDArray[np.float64]:
    """The principal axes [k, n] that hold the share _SPAN of the variance of the states [P, n]."""
    components = principal_components(states, count=min(states.shape))
    held = np.cumsum(components.variance_ratio)
    return components.axes[: np.searchsorted(held, _SPAN) + 1]


def _against(value: float, per_step: NDArray[np.float64], null: NDArray[np.float64]) -> Orthogonality:
    low, high = np.quantile(null, [0.05, 0.95])
    return Orthogonality(float(value), per_step, float(null.mean()), float(low), float(high))
