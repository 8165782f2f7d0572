"""Shapes in state space: principal components, circles, paths, simplices."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, centred_unit, distinct, numbers, ratio, whole

# Relative tie between two distances: on a closed circle a step's two neighbours are equally near, up to rounding.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """Principal components of a cloud of points.

    Attributes:
        mean: [n], the points' mean.
        axes: [k, n], orthonormal, by falling variance; of each axis the entry of largest magnitude is positive.
        variance_ratio: [k], the share of the total variance along each axis.
    """

    mean: NDArray[np.float64]
    axes: NDArray[np.float64]
    variance_ratio: NDArray[np.float64]

    def project(self, x: ArrayLike) -> NDArray[np.float64]:
        """Coordinates [..., k] of the points x [..., n] along the axes, measured from the mean."""
        return (numbers("x", x, "... n", {"n": len(self.mean)}) - self.mean) @ self.axes.T


def principal_components(*point_sets: ArrayLike, count: int) -> PrincipalComponents:
    """The first `count` principal components of all points of all sets together (axes of Fig. 2–4, 6; O3).

    Args:
        point_sets: one or more arrays [..., n]; every leading axis counts points.
        count: how many axes, 1 to the smaller of n and the number of points.

    Raises:
        ValueError: on sets of different n, NaN, a count out of range, or points that all coincide.
    """
    if not point_sets:
        raise ValueError("point_sets is empty: pass at least one array [..., n]")
    sets: list[NDArray[np.float64]] = []
    for index, point_set in enumerate(point_sets):
        array = numbers(f"point_sets[{index}]", point_set, "... n", {"n": sets[0].shape[1]} if sets else {})
        sets.append(array.reshape(-1, array.shape[-1]))
    points = distinct("point_sets", np.concatenate(sets))
    count = whole("count", count, 1, min(points.shape))
    mean = points.mean(axis=0)
    centred = points - mean
    # The covariance is [n, n] however many points there are, where an SVD would hold another copy of them all.
    variances, axes = np.linalg.eigh(centred.T @ centred)
    variances, axes = np.clip(variances[::-1], 0.0, None), axes.T[::-1][:count]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1, keepdims=True), axis=1)
    return PrincipalComponents(mean, axes * np.sign(largest), variances[:count] / variances.sum())


def explained_variance(*point_sets: ArrayLike, count: int = 3) -> float:
    """The share of the variance of all points [..., n] together that their first `count` PCs hold (O3)."""
    return float(principal_components(*point_sets, count=count).variance_ratio.sum())


@dataclass(frozen=True)
class Circle:
    """How circular a path is (O3).

    Attributes:
        angle_swept: radians, the magnitude of the sum of the signed turns about the centre; 2π for one full turn.
        radius_mean: mean distance from the centre, in the states' units.
        radius_variation: standard deviation of that distance over its mean; 0 on a circle.
    """

    angle_swept: float
    radius_mean: float
    radius_variation: float


def circle(path: ArrayLike) -> Circle:
    """Fit a circle to a path in the plane of its own first two principal components (O3).

    The centre is Kåsa's: the least squares solution of 2ax + 2by + c = x² + y². A turn between two steps is taken
    the short way round (below π). A straight path has no such centre; the solution of least norm then lies on the
    line, and the radius varies widely.

    Args:
        path: [T, n] in order of time, T >= 3, n >= 2, not all one point.
    """
    path = numbers("path", path, "T n", {})
    if path.shape[0] < 3 or path.shape[1] < 2:
        raise ValueError(f"path has shape {path.shape}: a circle needs at least 3 steps in at least 2 dimensions")
    plane = principal_components(path, count=2).project(path)
    scale = np.sqrt((plane**2).sum(axis=1).mean())  # in units of the path's own size, so that rcond means the same
    x, y = (plane / scale).T
    design = np.column_stack([2 * x, 2 * y, np.ones_like(x)])
    (a, b, _), *_ = np.linalg.lstsq(design, x**2 + y**2, rcond=1e-9)
    radius = np.hypot(x - a, y - b)
    angle = np.arctan2(y - b, x - a)
    turns = (np.diff(angle) + np.pi) % (2 * np.pi) - np.pi
    return Circle(float(abs(turns.sum())), float(scale * radius.mean()), float(radius.std() / radius.mean()))


def path_similarity(decoder_path: ArrayLike, encoder_path: ArrayLike) -> float:
    """How nearly two paths follow one another (O3): 1 step for step, about 0 if unrelated, −1 if opposed.

    The mean, over the steps that both have, of the cosine between μ^D_s and μ^E_s, each path's own mean (over all its
    steps) removed first.

    Args:
        decoder_path: [S, n].
        encoder_path: [T, n].
    """
    sizes: Sizes = {}
    decoder_path = numbers("decoder_path", decoder_path, "S n", sizes)
    encoder_path = numbers("encoder_path", encoder_path, "T n", sizes)
    shared = min(len(decoder_path), len(encoder_path))
    decoder = centred_unit("decoder_path", decoder_path)[:shared]
    encoder = centred_unit("encoder_path", encoder_path)[:shared]
    return float((decoder * encoder).sum(axis=1).mean())


def adjacent_neighbours(path: ArrayLike) -> float:
    """The share of steps of a path [T, n], T >= 3, whose nearest other step is the one before or after (O10).

    A tie between an adjacent and another step counts as adjacent.
    """
    path = numbers("path", path, "T n", {})
    if len(path) < 3:
        raise ValueError(f"path has {len(path)} steps: with fewer than 3 every other step is adjacent")
    distances = np.linalg.norm(distinct("path", path)[:, None] - path[None], axis=-1)
    gaps = np.diagonal(distances, offset=1)
    adjacent = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    np.fill_diagonal(distances, np.inf)
    return float((adjacent <= distances.min(axis=1) * (1 + _TIE)).mean())


def join_distance(last_encoder_states: ArrayLike, decoder_start: ArrayLike, path: ArrayLike) -> float:
    """How far the decoder's path starts from where the encoder ends (O10: next to it, so about 1 or less).

    Args:
        last_encoder_states: [M, n], each sample's encoder state at its last step.
        decoder_start: μ^D_1 [n].
        path: the temporal path [T, n], T >= 2, whose mean distance between adjacent steps is the unit.

    Returns:
        The distance from the mean last encoder state to decoder_start, in mean steps of the path.
    """
    sizes: Sizes = {}
    ends = numbers("last_encoder_states", last_encoder_states, "M n", sizes)
    start = numbers("decoder_start", decoder_start, "n", sizes)
    path = numbers("path", path, "T n", sizes)
    if len(path) < 2:
        raise ValueError("path has 1 step: its step length needs at least 2")
    gap = np.linalg.norm(np.diff(path, axis=0), axis=1).mean()
    return ratio(np.linalg.norm(ends.mean(axis=0) - start), gap, "the mean distance between adjacent steps of path")


def simplex_cosines(points: ArrayLike) -> NDArray[np.float64]:
    """Cosines [N, N] between N >= 2 points [N, n] after their plain mean is subtracted (O8).

    Between any two corners of a regular (N−1)-simplex it is −1/(N−1).
    """
    points = numbers("points", points, "N n", {})
    if len(points) < 2:
        raise ValueError("points holds 1 point: a simplex needs at least 2")
    directions = centred_unit("points", points)
    return directions @ directions.T


def simplex_deviation(points: ArrayLike) -> float:
    """The largest |cos + 1/(N−1)| over the pairs of N points [N, n] (O8): 0 for a regular simplex.

    It looks at angles alone. N = 2 always gives 0, and N = 3 is weak: three random points often come near.
    """
    cosines = simplex_cosines(points)
    count = len(cosines)
    return float(np.abs(cosines[~np.eye(count, dtype=bool)] + 1 / (count - 1)).max())
