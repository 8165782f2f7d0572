"""Labelled clouds of points: how far they are apart, and which centre each point is nearest to."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import silhouette_score

from ._arrays import Sizes, integers, numbers, whole


def silhouette(points: ArrayLike, labels: ArrayLike, limit: int = 2000, seed: int = 0) -> float:
    """How well labels split a cloud: the mean silhouette coefficient, Euclidean (D1, D2).

    1: clusters far apart and tight; 0: the labels say nothing about where a point lies; negative: points lie nearer to
    another label's.

    Args:
        points: [P, n].
        labels: whole numbers [P], at least two different ones, each at least twice.
        limit: with more points than this a part of them is drawn, each label's share kept: the cost is quadratic.
        seed: of that draw.
    """
    sizes: Sizes = {}
    points = numbers("points", points, "P n", sizes)
    labels = integers("labels", labels, "P", sizes)
    limit, rng = whole("limit", limit, 4), np.random.default_rng(whole("seed", seed, 0))
    found, counts = np.unique(labels, return_counts=True)
    if len(found) < 2 or counts.min() < 2:
        occur = ", ".join(f"{label} ({count} ×)" for label, count in zip(found, counts, strict=True))
        raise ValueError(f"labels must hold at least two labels, each at least twice, got {occur}")
    if len(points) > limit:
        share = limit / len(points)
        kept = [
            rng.choice(np.flatnonzero(labels == label), max(2, round(share * count)), replace=False)
            for label, count in zip(found, counts, strict=True)
        ]
        chosen = np.sort(np.concatenate(kept))
        points, labels = points[chosen], labels[chosen]
    return float(silhouette_score(points, labels))


def nearest_centre_share(points: ArrayLike, labels: ArrayLike, centres: ArrayLike) -> float:
    """The share of points whose nearest centre, in Euclidean distance, is that of their own label (D1).

    Args:
        points: [P, n].
        labels: rows of centres [P], 0 to K − 1.
        centres: [K, n], K >= 2. Of equally near ones the first counts.
    """
    sizes: Sizes = {}
    points = numbers("points", points, "P n", sizes)
    centres = numbers("centres", centres, "K n", sizes)
    if len(centres) < 2:
        raise ValueError("centres has K = 1: every point is nearest to it")
    labels = integers("labels", labels, "P", sizes, low=0, high=len(centres) - 1)
    # |p − c|² up to |p|², which is the same for every centre.
    distances = (centres**2).sum(axis=1) - 2 * points @ centres.T
    return float((distances.argmin(axis=1) == labels).mean())
