"""What every statistic asks of its arguments: kind, shape, something to count, finite numbers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Relative to the longest vector of a set. Below it a vector is float32 rounding (a state minus a mean equal to it),
# and an angle to it would be noise.
_NO_DIRECTION = 1e-6

Sizes = dict[str, Any]
"""Axis name to its size, filled by the first argument that has the axis ("..." to the tuple of leading sizes)."""


def _array(name: str, value: ArrayLike, kinds: str, what: str) -> NDArray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array of {what}: {error}") from error
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}): it must hold at least one value")
    if array.dtype.kind not in kinds:
        raise ValueError(f"{name} must hold {what}, got dtype {array.dtype}")
    return array


def _check_shape(name: str, array: NDArray, axes: str, sizes: Sizes) -> None:
    names = axes.split()
    known = {axis: sizes[axis] for axis in names if axis in sizes}
    shape: tuple[Any, ...] = array.shape
    if names[:1] == ["..."]:
        leading = max(array.ndim - len(names) + 1, 0)
        shape = (shape[:leading], *shape[leading:])
    if len(shape) != len(names) or any(sizes.setdefault(a, size) != size for a, size in zip(names, shape, strict=True)):
        where = f" with {', '.join(f'{axis} = {size}' for axis, size in known.items())}" if known else ""
        expected = f"[{', '.join(names)}]" if names else "a single value"
        raise ValueError(f"{name} has shape {array.shape}, expected {expected}{where}")


def _finite(name: str, array: NDArray) -> NDArray[np.float64]:
    array = np.asarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity where a finite number is needed: leave those positions out")
    return array


def real(name: str, value: ArrayLike, axes: str, sizes: Sizes) -> NDArray:
    """`value` as an array of real numbers of shape `axes` in its own precision, NaN and infinity allowed."""
    array = _array(name, value, "iuf", "real numbers")
    _check_shape(name, array, axes, sizes)
    return array


def numbers(name: str, value: ArrayLike, axes: str, sizes: Sizes) -> NDArray[np.float64]:
    """`value` as a float64 array of shape `axes`, every entry finite."""
    return _finite(name, real(name, value, axes, sizes))


def selected(name: str, value: ArrayLike, axes: str, sizes: Sizes, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The entries of `value` (shape `axes`) where `mask` is True, as finite float64 [P, ...]; the rest is not read."""
    return _finite(name, real(name, value, axes, sizes)[mask])


def integers(
    name: str, value: ArrayLike, axes: str, sizes: Sizes, low: int | None = None, high: int | None = None
) -> NDArray[np.integer]:
    """`value` as an array of whole numbers of shape `axes`, at least `low` and at most `high` (with `low` only)."""
    array = _array(name, value, "iu", "whole numbers")
    _check_shape(name, array, axes, sizes)
    if low is not None and (array.min() < low or (high is not None and array.max() > high)):
        valid = f"at least {low}" if high is None else f"between {low} and {high}"
        raise ValueError(f"{name} must be {valid}, got values from {array.min()} to {array.max()}")
    return array


def truths(name: str, value: ArrayLike, axes: str, sizes: Sizes) -> NDArray[np.bool_]:
    """`value` as a bool array of shape `axes` with at least one True."""
    array = _array(name, value, "b", "True or False")
    _check_shape(name, array, axes, sizes)
    if not array.any():
        raise ValueError(f"{name} has no True entry: there is nothing to count")
    return array


def whole(name: str, value: int, low: int, high: int | None = None) -> int:
    """`value` as an int between `low` and `high` (None: no bound above)."""
    return int(integers(name, value, "", {}, low, high))


def distinct(name: str, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """`points` [N, n] as they are, if they do not all coincide."""
    if (points == points[0]).all():
        raise ValueError(f"{name} holds one point only, repeated: it must hold at least two different points")
    return points


def unit(name: str, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors [..., n] scaled to length 1; a vector without direction is an error."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    if (norms <= _NO_DIRECTION * norms.max()).any():
        raise ValueError(f"{name} holds a vector of length 0 (or rounding noise), which has no direction: leave it out")
    return vectors / norms


def centred_unit(name: str, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points [N, n] minus their plain mean, each scaled to length 1."""
    return unit(f"{name}, its mean removed,", distinct(name, points) - points.mean(axis=0))


def ratio(numerator: float, denominator: float, name: str) -> float:
    """numerator / denominator; `name` says in the error what was 0."""
    if denominator == 0:
        raise ValueError(f"{name} is 0, so that no share or ratio to it exists")
    return float(numerator / denominator)
