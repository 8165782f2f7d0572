"""Predictions and attention: word accuracy, softmax, distances between attention matrices, alignment of the argmax."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, integers, numbers, real, selected, truths, whole

# How far float32 attention weights may be from summing to 1; scores passed by mistake are much further.
_SUM_TOLERANCE = 1e-3


def accuracy(predicted: ArrayLike, target: ArrayLike, mask: ArrayLike) -> float:
    """Word accuracy (O1, E1): the share of masked target positions where the predicted word is the true one.

    Args:
        predicted: word ids [M, P], as a decoder generates them. If P < S, the positions it never reached count as
            wrong; what lies beyond S is ignored (the true end of sentence was missed, and that counts already).
        target: true word ids [M, S].
        mask: bool [M, S], the target positions that count.

    Returns:
        A share in [0, 1].
    """
    sizes: Sizes = {}
    target = integers("target", target, "M S", sizes)
    mask = truths("mask", mask, "M S", sizes)
    predicted = integers("predicted", predicted, "M P", sizes)
    shared = min(predicted.shape[1], target.shape[1])
    correct = np.zeros(target.shape, dtype=bool)
    correct[:, :shared] = predicted[:, :shared] == target[:, :shared]
    return float(correct[mask].mean())


def softmax(scores: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float64]:
    """Attention weights of scores [..., T], softmax over the last axis, as in the paper's AED.

    Args:
        scores: [..., T], finite where the mask is True.
        mask: bool, of the scores' shape or one that broadcasts to it; False positions get weight 0. None: all count.

    Returns:
        Weights [..., T], each row summing to 1. A row without a True is a ValueError.
    """
    sizes: Sizes = {}
    scores = real("scores", scores, "... T", sizes)
    if mask is None:
        mask = np.ones(scores.shape, dtype=bool)
    else:
        mask = truths("mask", mask, "...", {})
        try:
            mask = np.broadcast_to(mask, scores.shape)
        except ValueError as error:
            raise ValueError(f"mask has shape {mask.shape}, expected the scores' shape {scores.shape}") from error
    if not mask.any(axis=-1).all():
        raise ValueError("mask has a row with no True entry: its softmax does not exist")
    exponents = np.full(scores.shape, -np.inf)
    exponents[mask] = selected("scores", scores, "... T", sizes, mask)
    weights = np.exp(exponents - exponents.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def total_variation(p: ArrayLike, q: ArrayLike) -> NDArray[np.float64]:
    """Total variation 0.5 Σ|p − q| over the last axis (H1, O2, S1): 0 for equal distributions, 1 for disjoint ones.

    p and q are [..., T], finite and not negative, of one shape; returns [...].
    """
    sizes: Sizes = {}
    p = numbers("p", p, "... T", sizes)
    q = numbers("q", q, "... T", sizes)
    for name, weights in (("p", p), ("q", q)):
        if weights.min() < 0:
            raise ValueError(f"{name} holds {weights.min():.3g}: weights are not negative (were scores passed?)")
    return 0.5 * np.abs(p - q).sum(axis=-1)


def mean_attention(
    attention: ArrayLike, lengths: ArrayLike, decoder_mask: ArrayLike | None = None
) -> dict[int, NDArray[np.float64]]:
    """Mean attention matrix of the samples of each source length (H1, O2).

    Args:
        attention: weights [M, S, T], rows summing to 1 over t.
        lengths: source length of each sample [M], 1 to T.
        decoder_mask: bool [M, S], the steps a sample reaches. Each step's mean is over the samples that reach it, as
            for the temporal components; a step that none of a length reaches is NaN. None: all count.

    Returns:
        {length: mean attention [S, T]}, in order of length.
    """
    attention, lengths, mask = _checked_attention(attention, lengths, decoder_mask)
    means = {}
    for length in np.unique(lengths):
        counts = mask[lengths == length].sum(axis=0)[:, None]
        total = attention[lengths == length].sum(axis=0)
        means[int(length)] = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
    return means


def distance_to_mean_attention(attention: ArrayLike, lengths: ArrayLike, decoder_mask: ArrayLike) -> float:
    """How far a sample's attention is from the mean attention of its length (H1, O2).

    The mean, over every sample and step in decoder_mask, of the total variation between the sample's weights and
    the mean weights of that step over the samples of its length. A sample is part of its own mean: a length that
    occurs once is at distance 0, so each length should occur often.

    Args:
        attention: weights [M, S, T], rows summing to 1 over t.
        lengths: source length of each sample [M], 1 to T.
        decoder_mask: bool [M, S].

    Returns:
        A total variation in [0, 1].
    """
    means = mean_attention(attention, lengths, decoder_mask)
    attention, lengths, mask = _checked_attention(attention, lengths, decoder_mask)
    expected = np.array([means[length] for length in lengths.tolist()])
    return float(total_variation(attention[mask], expected[mask]).mean())


def distance_to_attention(
    scores: ArrayLike, attention: ArrayLike, encoder_mask: ArrayLike, decoder_mask: ArrayLike
) -> float:
    """How far the attention that some scores alone would give is from the attention itself (S1, Fig. 2h).

    The mean, over every sample and step in decoder_mask, of the total variation between softmax_t(scores) and the
    attention weights: 0 for the full scores.

    Args:
        scores: [M, S, T], such as one of the nine terms; or [S, T], the same for every sample.
        attention: weights [M, S, T], rows summing to 1 over t.
        encoder_mask: bool [M, T], the source steps that the softmax runs over: those that the attention's does.
        decoder_mask: bool [M, S].

    Returns:
        A total variation in [0, 1].
    """
    sizes: Sizes = {}
    attention = real("attention", attention, "M S T", sizes)
    encoder_mask = truths("encoder_mask", encoder_mask, "M T", sizes)
    mask = truths("decoder_mask", decoder_mask, "M S", sizes)
    scores = real("scores", scores, "...", {})
    if scores.ndim == 2:
        scores = np.broadcast_to(real("scores", scores, "S T", sizes), attention.shape)
    scores = real("scores", scores, "M S T", sizes)[mask]
    source = encoder_mask[np.nonzero(mask)[0]]
    weights = numbers("attention", np.where(source, attention[mask], 0), "P T", {})
    return float(total_variation(softmax(scores, source), weights).mean())


def top_weights_on(attention: ArrayLike, steps: ArrayLike, mask: ArrayLike) -> float:
    """The share of decoder steps whose largest weight is on a given source step (E7, E8, D3).

    Args:
        attention: weights, or scores, [M, S, T]; of equal ones the first counts.
        steps: the source step of each decoder step [M, S], 0 to T − 1 where it counts.
        mask: bool [M, S], the decoder steps that count.

    Returns:
        A share in [0, 1].
    """
    sizes: Sizes = {}
    mask = truths("mask", mask, "M S", sizes)
    rows = selected("attention", attention, "M S T", sizes, mask)
    steps = integers("steps", steps, "M S", sizes)[mask]
    steps = integers("steps", steps, "P", {}, low=0, high=rows.shape[1] - 1)
    return float((rows.argmax(axis=1) == steps).mean())


def ranked_steps(scores: ArrayLike, rank: int = 0) -> NDArray[np.int64]:
    """The source step [S] with the largest score (rank 0), the second largest (rank 1) and so on (D3).

    Args:
        scores: [S, T]; NaN and −∞ come last. Of equal scores the first step comes first.
        rank: 0 to T − 1.
    """
    scores = np.asarray(real("scores", scores, "S T", {}), dtype=np.float64)
    rank = whole("rank", rank, 0, scores.shape[1] - 1)
    return np.argsort(-np.where(np.isnan(scores), -np.inf, scores), axis=1, kind="stable")[:, rank]


def peak_steps(scores: ArrayLike) -> NDArray[np.float64]:
    """Where between the steps each row of scores [S, T] peaks: the parabola through its largest and the two beside it.

    The vertex lies within half a step of the largest score's step (E5, T5). A largest score without a neighbour on
    either side (the first step, the last, or beside a NaN) is its own peak: no parabola passes through two points.

    Returns:
        Source steps [S] counted from 0. A row without a finite number is a ValueError.
    """
    scores = np.asarray(real("scores", scores, "S T", {}), dtype=np.float64)
    if not np.isfinite(scores).any(axis=1).all():
        raise ValueError("scores has a row without a finite number, which peaks nowhere: leave that step out")
    top = ranked_steps(scores)
    padded = np.pad(scores, ((0, 0), (1, 1)), constant_values=np.nan)
    before, here, after = (padded[np.arange(len(scores)), top + shift] for shift in range(3))
    curvature = before - 2 * here + after
    usable = np.isfinite(curvature) & (curvature < 0)
    return top + np.where(usable, 0.5 * (before - after) / np.where(usable, curvature, 1.0), 0.0)


def argmax_agreement(scores: ArrayLike, expected: ArrayLike, within: float = 0) -> float:
    """The share of steps s with |argmax_t scores[s] − expected[s]| <= within (O2, R1).

    Args:
        scores: [S, T]; NaN (a step without a temporal component) and −∞ are passed over.
        expected: source step [S] counted from 0, 0 to T − 1; leave out steps that have none.
        within: steps by which the argmax may be off.

    Returns:
        A share in [0, 1]. A row of scores with no number in it is a ValueError.
    """
    sizes: Sizes = {}
    scores = np.asarray(real("scores", scores, "S T", sizes), dtype=np.float64)
    expected = numbers("expected", expected, "S", sizes)
    within = float(numbers("within", within, "", {}))
    if within < 0:
        raise ValueError(f"within must be at least 0, got {within}")
    if expected.min() < 0 or expected.max() > scores.shape[1] - 1:
        raise ValueError(
            f"expected must lie between 0 and T - 1 = {scores.shape[1] - 1}, got values from {expected.min():g} to "
            f"{expected.max():g}: leave out steps without a source step"
        )
    if np.isposinf(scores).any():
        raise ValueError("scores holds +infinity, which hides every other score")
    if not np.isfinite(scores).any(axis=1).all():
        raise ValueError("scores has a row without a finite number, whose argmax does not exist: leave that step out")
    found = np.where(np.isnan(scores), -np.inf, scores).argmax(axis=1)
    return float((np.abs(found - expected) <= within).mean())


def _checked_attention(
    attention: ArrayLike, lengths: ArrayLike, decoder_mask: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.integer], NDArray[np.bool_]]:
    """attention [M, S, T], its masked rows checked to be distributions and the others 0; lengths [M]; mask [M, S]."""
    sizes: Sizes = {}
    attention = real("attention", attention, "M S T", sizes)
    weights = np.zeros(attention.shape)
    lengths = integers("lengths", lengths, "M", sizes, low=1, high=attention.shape[2])
    if decoder_mask is None:
        mask = np.ones(attention.shape[:2], dtype=bool)
    else:
        mask = truths("decoder_mask", decoder_mask, "M S", sizes)
    rows = selected("attention", attention, "M S T", sizes, mask)
    if rows.min() < 0 or np.abs(rows.sum(axis=-1) - 1).max() > _SUM_TOLERANCE:
        raise ValueError("attention must hold weights: rows that are not negative and sum to 1 (were scores passed?)")
    weights[mask] = rows
    return weights, lengths, mask
