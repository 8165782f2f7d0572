"""From seeds to a statement: rank correlation, t-intervals and straight lines."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from ._arrays import Sizes, numbers


@dataclass(frozen=True)
class Interval:
    """A mean over `n` values with its confidence interval; low and high are NaN if n is 1."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Line:
    """A line fitted by ordinary least squares to `n` points, with the confidence interval of its slope."""

    slope: float
    low: float
    high: float
    intercept: float
    n: int


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation of x [N] and y [N] (H1, T2, T7), ties at their mean rank.

    N >= 3 (two points always give ±1), and neither may be constant.
    """
    sizes: Sizes = {}
    x = numbers("x", x, "N", sizes)
    y = numbers("y", y, "N", sizes)
    if len(x) < 3:
        raise ValueError(f"x has {len(x)} values: a rank correlation needs at least 3")
    for name, values in (("x", x), ("y", y)):
        if (values == values[0]).all():
            raise ValueError(f"{name} is constant: it has no ranks to correlate")
    return float(np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1])


def t_interval(values: ArrayLike, confidence: float = 0.95) -> Interval:
    """The mean of values [N] with its two-sided Student t-interval (every ledger row's interval over seeds).

    Args:
        values: one per seed, finite. A single value has no interval: low and high are NaN.
        confidence: between 0 and 1, exclusive.
    """
    values = numbers("values", values, "N", {})
    confidence = float(numbers("confidence", confidence, "", {}))
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, exclusive, got {confidence}")
    mean, n = float(values.mean()), len(values)
    if n == 1:
        return Interval(mean, float("nan"), float("nan"), n)
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def fit_line(x: ArrayLike, y: ArrayLike, confidence: float = 0.95) -> Line:
    """The least-squares line y ≈ intercept + slope · x with the slope's two-sided Student t-interval (E5, D4, T5).

    Args:
        x: [N], N >= 3, not all equal.
        y: [N].
        confidence: between 0 and 1, exclusive. The interval takes the residuals as independent, of one variance.
    """
    sizes: Sizes = {}
    x = numbers("x", x, "N", sizes)
    y = numbers("y", y, "N", sizes)
    confidence = float(numbers("confidence", confidence, "", {}))
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, exclusive, got {confidence}")
    if len(x) < 3:
        raise ValueError(f"x has {len(x)} values: the interval of a slope needs at least 3")
    if (x == x[0]).all():
        raise ValueError("x is constant: no line has a slope through it")
    centred = x - x.mean()
    spread = (centred**2).sum()
    slope = float(centred @ y / spread)
    residuals = y - y.mean() - slope * centred
    error = np.sqrt((residuals**2).sum() / (len(x) - 2) / spread)
    half = float(stats.t.ppf((1 + confidence) / 2, len(x) - 2) * error)
    return Line(slope, slope - half, slope + half, float(y.mean() - slope * x.mean()), len(x))
