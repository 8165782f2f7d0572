"""S1: the claim on the sort task (Fig. 2h)."""

from __future__ import annotations

from torch import Tensor

from howattend import alignment, statistics
from howattend.analysis import Run, array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.shared import Runs

_TEMPORAL, _INPUT, _DELTA = range(3)  # rows (decoder) and columns (encoder) of the nine terms


def matrices(nine: Tensor) -> dict[str, Tensor]:
    """The scores of Fig. 2h by name, [M, S, T] each, and those of the paper's text, h^D·χ^E.

    Args:
        nine: the terms [3, 3, M, S, T] of ``alignment.terms``.
    """
    return {
        "all terms": nine.sum((0, 1)),
        "μD·μE": nine[_TEMPORAL, _TEMPORAL],
        "χD·ΔE": nine[_INPUT, _DELTA],
        "ΔD·χE": nine[_DELTA, _INPUT],
        "hD·χE": nine[:, _INPUT].sum(0),
    }


def distances(run: Run) -> dict[str, float]:
    """Mean total variation to the attention of the softmax of each of ``matrices``, over the common decoder steps."""
    trace, steps = run.trace, array(run.common_decoder_mask)
    attention, mask = array(trace.attention), array(trace.encoder_mask)
    nine = alignment.terms(run.decoder, run.encoder, trace)
    return {
        name: statistics.distance_to_attention(array(scores), attention, mask, steps)
        for name, scores in matrices(nine).items()
    }


def attended_words(run: Run, mask: Tensor) -> float:
    """The share of masked decoder steps whose largest weight is on an occurrence of the word that the step puts out.

    Equal letters are all right: the sorted word may come from any of them.
    """
    top = run.trace.attention.argmax(-1)
    attended = run.test.source.gather(1, top)
    return float((attended == run.test.target)[mask].double().mean())


def sort_alignment(runs: Runs) -> Measurement:
    """S1: which of the nine terms make the scores, where no function of the steps alone can.

    It reproduces if μ^D·μ^E is small and either Δh^D·χ^E is the largest of the nine or h^D·χ^E, the row's other
    reading of the paper's text, is at least half; "ΔD·χE is the largest" (1 or 0) and "hD·χE" say which.
    """
    run, limits = runs["run"], CRITERIA["S1"].limits
    signed, centred, every = run.shares.signed, run.shares.centred, run.shares_all_steps.signed
    largest = signed.argmax() == 3 * _DELTA + _INPUT
    state_input = signed[:, _INPUT].sum()
    quantities = {
        "μD·μE": signed[_TEMPORAL, _TEMPORAL],
        "ΔD·χE": signed[_DELTA, _INPUT],
        "ΔD·χE is the largest": largest,
        "hD·χE": state_input,
    }
    for row, names in enumerate(alignment.TERM_NAMES):
        for column, name in enumerate(names):
            quantities.setdefault(name, signed[row, column])
            quantities[f"{name}, centred"] = centred[row, column]
    quantities |= {f"TV, {name}": value for name, value in distances(run).items() if name != "all terms"}
    quantities |= {
        "attends the word": attended_words(run, run.common_decoder_mask),
        "μD·μE, all steps": every[_TEMPORAL, _TEMPORAL],
        "hD·χE, all steps": every[:, _INPUT].sum(),
    }
    small = signed[_TEMPORAL, _TEMPORAL] <= limits["temporal"]
    return Measurement.of("S1", run, small and (largest or state_input >= limits["state_input"]), quantities)


CLAIMS = {"S1": sort_alignment}

#: The rows of the ledger: claim, and the run of each part.
PLAN: list[tuple[str, dict[str, str]]] = [("S1", {"run": "sort-aed-gru"})]
