"""How sharp attention is, how near the diagonal, and how its scores fall off beside their peak (T1, T2, T7, T8)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, integers, numbers, real, truths
from .attention import ranked_steps


def entropy(weights: ArrayLike) -> NDArray[np.float64]:
    """The entropy −Σ w log w in nats of weights [..., T] over the last axis (T2): 0 if one has all, log T if equal.

    Weights are not negative and sum to 1; returns [...].
    """
    weights = numbers("weights", weights, "... T", {})
    if weights.min() < 0 or np.abs(weights.sum(axis=-1) - 1).max() > 1e-3:
        raise ValueError("weights must not be negative and must sum to 1 over the last axis (were scores passed?)")
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(axis=-1)


def diagonal_distance(
    weights: ArrayLike, source_lengths: ArrayLike, target_lengths: ArrayLike, mask: ArrayLike
) -> NDArray[np.float64]:
    """The weighted mean of |t/T − s/S| of every decoder step (T1, T8): 0 on the diagonal, below 1 everywhere.

    t and s count from 1 and T and S are the sample's own lengths, so the last steps of both lie at 1 (as in Dyer et
    al. 2013). Equal weights give what a row is expected to have after its weights are permuted: the shuffled null.

    Args:
        weights: [M, S, T], rows summing to 1 over the sample's source steps; what lies behind these is not read.
        source_lengths: [M], 1 to T.
        target_lengths: [M], 1 to S.
        mask: bool [M, S], the decoder steps that count, within the target lengths.

    Returns:
        [M, S]; NaN where the mask is False.
    """
    sizes: Sizes = {}
    weights = real("weights", weights, "M S T", sizes)
    mask = truths("mask", mask, "M S", sizes)
    source = integers("source_lengths", source_lengths, "M", sizes, low=1, high=sizes["T"])[:, None, None]
    target = integers("target_lengths", target_lengths, "M", sizes, low=1, high=sizes["S"])[:, None, None]
    columns, rows = np.arange(1, sizes["T"] + 1), np.arange(1, sizes["S"] + 1)[:, None]
    if (mask & (rows[:, 0] > target[:, 0])).any():
        raise ValueError("mask is True behind a target's length: leave out what is not part of the sentence")
    inside = np.broadcast_to(columns <= source, weights.shape)
    rest = np.where(inside & mask[..., None], weights, 0.0)
    kept = numbers("weights", rest, "M S T", {})
    if kept.min() < 0 or np.abs(kept.sum(axis=-1)[mask] - 1).max() > 1e-3:
        raise ValueError("weights must not be negative and must sum to 1 over a sample's source steps")
    distance = (kept * np.abs(columns / source - rows / target)).sum(axis=-1)
    return np.where(mask, distance, np.nan)


def peak_drops(scores: ArrayLike, offsets: tuple[int, ...] = (1, 2, 3)) -> NDArray[np.float64]:
    """How far each row of scores [S, T] falls off beside its largest (T7): the mean drop at some offsets from it.

    At an offset the drop is the mean over the two sides; near an end, where one side has no step, that of the other.

    Args:
        scores: [S, T], finite.
        offsets: whole numbers from 1, none so large that neither side has a step.

    Returns:
        [S], at least 0.
    """
    scores = numbers("scores", scores, "S T", {})
    offsets = integers("offsets", offsets, "K", {}, low=1)
    rows, top = np.arange(len(scores)), ranked_steps(scores)
    drops = np.empty((len(offsets), len(scores)))
    for index, offset in enumerate(offsets):
        sides = np.stack([top - offset, top + offset])
        there = (sides >= 0) & (sides < scores.shape[1])
        if not there.any(axis=0).all():
            raise ValueError(f"offsets must lie within the {scores.shape[1]} source steps on one side, got {offset}")
        found = scores[rows, np.clip(sides, 0, scores.shape[1] - 1)]
        drops[index] = scores[rows, top] - (found * there).sum(axis=0) / there.sum(axis=0)
    return drops.mean(axis=0)
