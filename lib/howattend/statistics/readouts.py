"""What the readouts do: the dictionary they implement, and which of them carries the logits."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import Sizes, integers, numbers, ratio, real, selected, truths


def dictionary(readouts: ArrayLike, inputs: ArrayLike) -> NDArray[np.int64]:
    """For each output word the input word whose component its readout has the largest dot product with (O7, E6, T6).

    Args:
        readouts: R [V, n], such as the context readout's rows.
        inputs: χ^E [W, n]. A row that is NaN throughout (a word that never occurs has no component) is never chosen.

    Returns:
        Input word ids [V].
    """
    sizes: Sizes = {}
    readouts = numbers("readouts", readouts, "V n", sizes)
    inputs = real("inputs", inputs, "W n", sizes)
    occurs = ~np.isnan(inputs).all(axis=1)
    if not occurs.any():
        raise ValueError("inputs is NaN throughout: no word has a component")
    chosen = (readouts @ selected("inputs", inputs, "W n", sizes, occurs).T).argmax(axis=1)
    return np.flatnonzero(occurs)[chosen]


def dictionary_agreement(readouts: ArrayLike, inputs: ArrayLike, translation: ArrayLike) -> float:
    """The share of output words y whose readout is largest on χ^E of translation[y] (O7, T6).

    Args:
        readouts: R [V, n]; pass only the words that have a translation.
        inputs: χ^E [W, n], as for `dictionary`.
        translation: input word id [V], 0 to W − 1, of words that occur.
    """
    found = dictionary(readouts, inputs)
    inputs = np.asarray(inputs)
    translation = integers("translation", translation, "V", {"V": len(found)}, low=0, high=len(inputs) - 1)
    missing = np.isnan(inputs[translation]).any(axis=1)
    if missing.any():
        raise ValueError(
            f"translation names words without an input component: {np.unique(translation[missing]).tolist()}"
        )
    return float((found == translation).mean())


def logit_difference_shares(
    context_logits: ArrayLike,
    state_logits: ArrayLike,
    bias: ArrayLike | None,
    target: ArrayLike,
    mask: ArrayLike | None = None,
) -> dict[str, float]:
    """Which readout decides for the true word (O9).

    logits = context_logits + state_logits + bias. At each position the difference between the true word's logit and
    the runner-up's (the largest among the other words) splits into the three parts' differences; a share is the sum
    of a part's differences over all positions, divided by the sum of the full ones.

    Args:
        context_logits: [..., V], the context readout applied to the context.
        state_logits: [..., V], the state readout applied to the decoder state.
        bias: [V], or None for a readout without one.
        target: true word ids [...], 0 to V − 1 where they count.
        mask: bool [...], the positions that count; None: all.

    Returns:
        {"context", "state", "bias"}: shares that sum to 1; single ones may be negative or exceed 1.
    """
    sizes: Sizes = {}
    target = integers("target", target, "...", sizes)
    mask = np.ones(target.shape, dtype=bool) if mask is None else truths("mask", mask, "...", sizes)
    context = selected("context_logits", context_logits, "... V", sizes, mask)
    state = selected("state_logits", state_logits, "... V", sizes, mask)
    words = context.shape[1]
    bias = np.zeros(words) if bias is None else numbers("bias", bias, "V", sizes)
    if words < 2:
        raise ValueError("context_logits has V = 1: a runner-up needs at least 2 words")
    true = integers("target", target[mask], "P", {}, low=0, high=words - 1)

    positions = np.arange(len(true))
    others = context + state + bias
    others[positions, true] = -np.inf
    runner_up = others.argmax(axis=1)
    differences = {
        "context": (context[positions, true] - context[positions, runner_up]).sum(),
        "state": (state[positions, true] - state[positions, runner_up]).sum(),
        "bias": (bias[true] - bias[runner_up]).sum(),
    }
    total = sum(differences.values())
    return {name: ratio(part, total, "the summed logit difference") for name, part in differences.items()}
