"""Quantities that depend on how far a source step is from a decoder step: offset t − s (Fig. 5b, 6c, 6d)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, integers, real, selected, truths


def mean_by_offset(values: ArrayLike, mask: ArrayLike, offsets: ArrayLike) -> NDArray[np.float64]:
    """The mean of values over all places with t − s = offset (D4, Fig. 5b and 6d).

    Args:
        values: [M, S, T], such as μ^D_s · (χ_x + Δh_t); finite where the mask is True.
        mask: bool, of the values' shape or one that broadcasts to it, the places that count: a word's, say.
        offsets: whole numbers [K].

    Returns:
        [K]; NaN at an offset without a place.
    """
    sizes: Sizes = {}
    values = real("values", values, "M S T", sizes)
    mask = truths("mask", mask, "...", {})
    try:
        mask = np.broadcast_to(mask, values.shape)
    except ValueError as error:
        raise ValueError(f"mask has shape {mask.shape}, expected the values' shape {values.shape}") from error
    offsets = integers("offsets", offsets, "K", {})
    distance = np.broadcast_to(np.arange(values.shape[2]) - np.arange(values.shape[1])[:, None], values.shape)[mask]
    found = selected("values", values, "M S T", sizes, mask)
    return np.array([found[distance == offset].mean() if (distance == offset).any() else np.nan for offset in offsets])


def negative_share(values: ArrayLike, mask: ArrayLike) -> float:
    """The share of masked values that are below 0 (D3): values and mask of any one shape."""
    sizes: Sizes = {}
    mask = truths("mask", mask, "...", sizes)
    return float((selected("values", values, "...", sizes, mask) < 0).mean())
