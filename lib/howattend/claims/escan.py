"""E1–E9: the claims on extended SCAN (Fig. 3, 5).

Statistics run over content words and over the steps that every sample reaches with one; the value with every step and
word included stands beside ("all steps").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from howattend import statistics
from howattend.analysis import Run, array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.shared import Runs, delta_share, mean_variance_drop
from howattend.tasks import ExtendedSCAN

#: E5 is about a prediction that moves: by at least so many steps (its row in claims.toml) from first to last.
MOVES = 1.0


def task_of(run: Run) -> ExtendedSCAN:
    """The run's task, which knows phrases and offsets."""
    if not isinstance(run.task, ExtendedSCAN):
        raise ValueError(f"run must be one of extended SCAN, but {run.name} is of the task {run.task.name!r}")
    return run.task


def suited(run: Run, claim: str, words: Sequence[str] = (), verbs: int = 1) -> ExtendedSCAN:
    """The task of a run that a claim on attention, and on these words and so many verbs, can be measured on.

    ValueError, with what the task lacks, where it cannot: a task's settings choose its words.
    """
    task = task_of(run)
    if not run.config.model.has_attention:
        raise ValueError(f"{claim} is about networks with attention (AED, AO), but {run.name} is a {run.architecture}")
    if lacking := [word for word in words if word not in task.source_vocabulary]:
        known = [task.source_vocabulary.words[index] for index in task.source_vocabulary.content_ids]
        raise ValueError(
            f"{claim} is about {_quoted(words)}, but the task of {run.name} has no {_quoted(lacking)}, only "
            f"{', '.join(known)}: choose other phrases, directions or and_rate"
        )
    if len(task.verbs) < verbs:
        raise ValueError(
            f"{claim} compares verbs and needs {verbs}, but the task of {run.name} has only {', '.join(task.verbs)}"
        )
    return task


def some(mask: Tensor, run: Run, claim: str, what: str) -> Tensor:
    """The same mask; ValueError where nothing of the run's test set is what the claim is about."""
    if not bool(mask.any()):
        raise ValueError(
            f"{claim} is about {what}, and the test set of {run.name} has none at its common steps "
            f"({run.encoder_steps} source, {run.decoder_steps} target steps): choose other phrases, lengths or and_rate"
        )
    return mask


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def accuracy(runs: Runs) -> Measurement:
    """E1: free-running word accuracy."""
    run = runs["run"]
    return Measurement.of("E1", run, run.accuracy >= CRITERIA["E1"].limits["accuracy"], {"accuracy": run.accuracy})


def temporal_share(runs: Runs) -> Measurement:
    """E2: the share of μ^D·μ^E in the largest scores."""
    run = runs["run"]
    value = run.shares.signed[0, 0]
    quantities = {
        "share": value,
        "centred share": run.shares.centred[0, 0],
        "absolute share": run.shares.absolute[0, 0],
        "share, all steps": run.shares_all_steps.signed[0, 0],
    }
    return Measurement.of("E2", run, value >= CRITERIA["E2"].limits["share"], quantities)


def three_terms(runs: Runs) -> Measurement:
    """E3: the share of μ^D·(μ^E + χ^E + Δh^E), which is that of μ^D·h^E."""
    run = runs["run"]
    value = run.shares.signed[0].sum()
    quantities = {
        "share": value,
        "centred share": run.shares.centred[0].sum(),
        "absolute share": run.shares.absolute[0].sum(),
        "share, all steps": run.shares_all_steps.signed[0].sum(),
    }
    return Measurement.of("E3", run, abs(value - 1) <= CRITERIA["E3"].limits["deviation"], quantities)


def variance_drop(runs: Runs) -> Measurement:
    """E4: how much of the variance of a word's states its step explains."""
    run = runs["run"]
    suited(run, "E4")
    value, every = (mean_variance_drop(run, mask) for mask in (run.common_encoder_mask, run.trace.encoder_mask))
    limit = CRITERIA["E4"].limits[run.architecture.lower()]
    return Measurement.of("E4", run, value >= limit, {"variance drop": value, "variance drop, all steps": every})


def offset_peaks(runs: Runs) -> Measurement:
    """E5: μ^D_s·μ^E_t peaks, over t, where the task's mean offset says.

    The peak, between the steps by a parabola, as an offset t − s, against the exact mean offset of outputs and words;
    both by decoder step. The prediction moves with the "and"s and also swings at the first steps, where the turns of
    "run left" stand at even places more often than at odd ones; what has to move by a step for the claim to be tested
    is its trend, from the first common step to the last. Where it moves less, the row is reported without a verdict.
    """
    run, limits = runs["run"], CRITERIA["E5"].limits
    task = suited(run, "E5")
    predicted = task.mean_offsets().mean[: run.decoder_steps]
    if len(predicted) < 3 or np.ptp(predicted) == 0:
        raise ValueError(
            f"E5 is about a prediction that moves, over at least three common steps, but that of {run.name} goes from "
            f"{predicted[0]:.2f} to {predicted[-1]:.2f} over {len(predicted)}: raise min_length or and_rate"
        )
    steps = np.arange(run.decoder_steps)
    peaks = statistics.peak_steps(run.decoder_path @ run.encoder_path.T) - steps
    line = statistics.fit_line(predicted, peaks)
    error = np.abs(peaks - predicted).mean()
    drift = statistics.fit_line(steps, predicted).slope * steps[-1]

    every = task.mean_offsets(end_of_sentence=True).mean
    decoder, encoder = (array(side.temporal) for side in (run.decoder, run.encoder))
    reached = np.isfinite(every) & np.isfinite(decoder).all(1)
    whole = statistics.peak_steps(decoder[reached] @ encoder.T) - np.flatnonzero(reached)
    line_of_all = statistics.fit_line(every[reached], whole)

    follows = line.low > 0 and line.low <= limits["slope"] <= line.high and error <= limits["error"]
    quantities = {
        "slope": line.slope,
        "slope, low": line.low,
        "slope, high": line.high,
        "mean error": error,
        "prediction moves by": drift,
        "mean error if on the diagonal": np.abs(predicted).mean(),
        "slope, all steps": line_of_all.slope,
        "mean error, all steps": np.abs(whole - every[reached]).mean(),
    }
    return Measurement.of("E5", run, follows if abs(drift) >= MOVES else None, quantities)


def readout_dictionary(runs: Runs) -> Measurement:
    """E6: each action's context readout is largest on the input component of its word, none on "and" or "twice"."""
    run = runs["run"]
    task, actions = task_of(run), task_of(run).actions
    words = [task.source_vocabulary.words[index] for index in task.source_vocabulary.content_ids]
    chosen = statistics.dictionary(run.readouts("context"), run.inputs)
    expected = np.array([words.index(word) for word in actions])
    silent = [index for index, word in enumerate(words) if word not in actions]
    share = (chosen == expected).mean()
    quantities = {"words": share, "readouts largest on a word without output": np.isin(chosen, silent).sum()}
    return Measurement.of("E6", run, share >= CRITERIA["E6"].limits["words"], quantities)


def _ends(run: Run, mask: Tensor) -> dict[str, float]:
    """Of the masked outputs of phrases of several words: the shares that attend to the phrase's end, to their word."""
    of_outputs = suited(run, "E7").parse(run.test).at(run.test.alignment)
    counted = array(some(mask & (of_outputs.words > 1), run, "E7", "outputs of phrases of several words"))
    attention = array(run.trace.attention)
    return {
        "last word": statistics.top_weights_on(attention, array(of_outputs.end), counted),
        "own word": statistics.top_weights_on(attention, array(run.test.alignment), counted),
    }


def subphrase_ends(runs: Runs) -> Measurement:
    """E7: outputs of "run left" and "run twice" attend to the phrase's last word in AED, to their own word in AO."""
    run, ao = runs["run"], runs["ao"]
    found, of_ao = _ends(run, run.common_decoder_mask), _ends(ao, ao.common_decoder_mask)
    verdict = found["last word"] >= CRITERIA["E7"].limits["aed"] and found["last word"] > of_ao["last word"]
    quantities = {
        "on the last word": found["last word"],
        "AO's": of_ao["last word"],
        "on the own word": found["own word"],
        "AO's on the own word": of_ao["own word"],
        "on the last word, all steps": _ends(run, run.trace.decoder_mask)["last word"],
        "AO's, all steps": _ends(ao, ao.trace.decoder_mask)["last word"],
    }
    return Measurement.of("E7", run, verdict, quantities)


def word_before_twice(runs: Runs) -> Measurement:
    """E8: the second output of "run twice" attends to the word before "twice", which is at t = s − 1 if T = S.

    The verdict is over the pairs with T = S, as in Fig. 6: behind an "and" the word before "twice" is not at s − 1.
    The share over all pairs stands beside, and the share that attends to the word before "twice", wherever it is.
    """
    run = runs["run"]
    task = suited(run, "E8", ["twice"])
    second, attention = task.second_outputs(run.test), array(run.trace.attention)
    before = torch.arange(second.shape[1]).expand(second.shape) - 1
    same = task.same_length(run.test)[:, None]
    some(second & same & run.common_decoder_mask, run, "E8", 'second outputs of "V twice" where T = S')

    def share(steps: Tensor, mask: Tensor) -> float:
        return statistics.top_weights_on(attention, array(steps), array(second & mask))

    common = run.common_decoder_mask
    value = share(before, common & same)
    quantities = {
        "at s − 1": value,
        "at s − 1, any T": share(before, common),
        "on the word before, any T": share(run.test.alignment, common),
        "at s − 1, all steps": share(before, run.trace.decoder_mask & same),
    }
    return Measurement.of("E8", run, value >= CRITERIA["E8"].limits["share"], quantities)


def encoder_deltas(runs: Runs) -> Measurement:
    """E9: the encoder deltas' share of the states' variance, beside AED's on one-to-one and AO's on extended SCAN."""
    run, one, ao = (runs[part] for part in ("run", "one_to_one", "ao"))
    value, of_one, of_ao = (delta_share(each, each.common_encoder_mask) for each in (run, one, ao))
    verdict = value >= CRITERIA["E9"].limits["times_one_to_one"] * of_one and value > of_ao
    quantities = {
        "delta share": value,
        "AED's on one-to-one": of_one,
        "AO's": of_ao,
        "delta share, all steps": delta_share(run, run.trace.encoder_mask),
    }
    return Measurement.of("E9", run, verdict, quantities)


CLAIMS = {
    "E1": accuracy,
    "E2": temporal_share,
    "E3": three_terms,
    "E4": variance_drop,
    "E5": offset_peaks,
    "E6": readout_dictionary,
    "E7": subphrase_ends,
    "E8": word_before_twice,
    "E9": encoder_deltas,
}

_AED, _AO = "escan-aed-gru", "escan-ao-gru"
_AEDS = (_AED, f"{_AED}-l2_1e-4", f"{_AED}-and30")
#: The rows of the ledger: claim, and the run of each part. E5 needs a rate of "and" at which the prediction moves, and
#: for which AO cannot be trained. What AED does with its deltas may depend on L2 and on that rate, too; what AO attends
#: to, on L2 and on the word that it is fed.
PLAN: list[tuple[str, dict[str, str]]] = [
    *((claim, {"run": run}) for claim in ("E1", "E2", "E3", "E4") for run in (_AED, _AO)),
    *(("E5", {"run": run}) for run in (_AED, _AO, f"{_AED}-and30")),
    *(("E6", {"run": run}) for run in (_AED, _AO)),
    *(("E7", {"run": run, "ao": _AO}) for run in _AEDS),
    *(("E8", {"run": run}) for run in (_AO, f"{_AO}-l2_1e-3", f"{_AO}-constant")),
    *(("E9", {"run": run, "one_to_one": "one_to_one-aed-gru", "ao": _AO}) for run in _AEDS),
]
