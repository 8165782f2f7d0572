"""T1–T10: the claims on English to French (Fig. 4, 5), from what was measured of the test split.

What all have in common (common steps, positions, common words) stands in claims.toml. "All steps" is the value with
every step and end of sentence included.
"""

from __future__ import annotations

import numpy as np

from howattend import measured, statistics
from howattend.analysis import Run, array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.shared import Runs, mean_variance_drop
from howattend.measured import Measured
from howattend.tasks import Translation

ARTICLES = ("la", "le", "les")


def _measured(run: Run) -> Measured:
    if not isinstance(run.task, Translation):
        raise ValueError(f"run must be one of translation, but {run.name} is of the task {run.task.name!r}")
    return run.measured


def _scores(found: Measured, all_steps: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Positions s, from 1, and μ^D_s·μ^E_t at them: at common steps, or at all that occur; [as many, t]."""
    scores = found.temporal_scores if all_steps else found.common_scores
    reached = np.isfinite(scores)
    rows = reached.any(1)
    return np.flatnonzero(rows) + 1, scores[rows][:, reached.any(0)]


# ---- T1, T8: the diagonal --------------------------------------------------------------------------------------------


def diagonal_distances(run: Run) -> dict[str, float]:
    """T1's measure on a synthetic run, of its attention and of softmax(μ^D·μ^E), over common decoder steps."""
    trace, mask = run.trace, array(run.common_decoder_mask)
    source = array(trace.encoder_mask)
    scores = array(run.decoder.temporal) @ array(run.encoder.temporal).T
    weights = {
        "attention": array(trace.attention),
        "temporal": statistics.softmax(np.broadcast_to(scores, trace.scores.shape), source[:, None]),
    }
    lengths = source.sum(1), array(trace.decoder_mask).sum(1)
    return {
        name: float(np.nanmean(statistics.diagonal_distance(each, *lengths, mask))) for name, each in weights.items()
    }


def diagonal(runs: Runs) -> Measurement:
    """T1: how near the diagonal attention is, beside attention with its weights shuffled and extended SCAN's."""
    run, found = runs["run"], _measured(runs["run"])
    value, shuffled = found.distance("attention"), found.distance("shuffled")
    every = found.distance("attention", all_steps=True)
    quantities = {
        "distance / shuffled": value / shuffled,
        "distance": value,
        "shuffled": shuffled,
        "extended SCAN's": diagonal_distances(runs["escan"])["attention"],
        "distance, all steps": every,
        "distance / shuffled, all steps": every / found.distance("shuffled", all_steps=True),
    }
    return Measurement.of("T1", run, value < CRITERIA["T1"].limits["null"] * shuffled, quantities)


def temporal_diagonal(runs: Runs) -> Measurement:
    """T8: the same of the attention that the temporal components alone would give."""
    run, found = runs["run"], _measured(runs["run"])
    value, of_escan = found.distance("temporal"), diagonal_distances(runs["escan"])["temporal"]
    quantities = {
        "distance": value,
        "extended SCAN's": of_escan,
        "shuffled": found.distance("shuffled"),
        "distance, all steps": found.distance("temporal", all_steps=True),
    }
    return Measurement.of("T8", run, value > of_escan, quantities)


# ---- T2: the paths ---------------------------------------------------------------------------------------------------


def entropies(found: Measured, *, all_steps: bool = False) -> np.ndarray:
    """The entropy in nats of softmax_t(μ^D_s·μ^E_t) over the common source steps, by common decoder step; or of all."""
    return statistics.entropy(statistics.softmax(_scores(found, all_steps)[1]))


def paths(runs: Runs) -> Measurement:
    """T2: whether the temporal alignment blurs with s; and how alike the two paths run."""
    run, found = runs["run"], _measured(runs["run"])
    by_step, every = entropies(found), entropies(found, all_steps=True)
    value = statistics.spearman(np.arange(len(by_step)), by_step)
    quantities = {
        "ρ(entropy, s)": value,
        "entropy, first step": by_step[0],
        "entropy, last step": by_step[-1],
        "paths' cosine": statistics.path_similarity(found.decoder_path, found.encoder_path),
        "ρ(entropy, s), all steps": statistics.spearman(np.arange(len(every)), every),
    }
    return Measurement.of("T2", run, value >= CRITERIA["T2"].limits["rho"], quantities)


# ---- T3: the nine terms ----------------------------------------------------------------------------------------------


def no_term_dominates(runs: Runs) -> Measurement:
    """T3: absolute shares overall; in AED also whether μ^D·μ^E has the largest signed share at the first steps."""
    run, limits, found = runs["run"], CRITERIA["T3"].limits, _measured(runs["run"])
    shares, by_step, every = found.shares, found.shares_by_step.signed, found.shares_all_steps
    largest = shares.absolute.max()
    verdict = largest <= limits["share"]
    quantities = {
        "largest absolute share": largest,
        "μD·μE, absolute": shares.absolute[0, 0],
        "μD·μE, signed": shares.signed[0, 0],
        "μD·μE, centred": shares.centred[0, 0],
        "extended SCAN's, signed": runs["escan"].shares.signed[0, 0],
    }
    for step in range(limits["steps"]):
        first, others = by_step[step, 0, 0], np.delete(by_step[step].ravel(), 0)
        quantities[f"μD·μE at s = {step + 1}"] = first
        quantities[f"largest other at s = {step + 1}"] = others.max()
        if run.architecture == "AED":
            verdict = verdict and first > others.max()
    quantities |= {
        "largest absolute share, all steps": every.absolute.max(),
        "μD·μE, signed, all steps": every.signed[0, 0],
    }
    return Measurement.of("T3", run, verdict, quantities)


# ---- T4: variance ----------------------------------------------------------------------------------------------------


def common_words(run: Run) -> np.ndarray:
    """The ids of T4's words, the most common first."""
    found, limits = _measured(run), CRITERIA["T4"].limits
    content = np.array(run.task.source_vocabulary.content_ids)
    occurrences = found.encoder_counts[content, : found.encoder_steps].sum(1)
    order = np.argsort(-found.encoder.word_counts[content], kind="stable")[: limits["words"]]
    words = content[order[occurrences[order] >= limits["occurrences"]]]
    if not len(words):
        raise ValueError(f"no word occurs {limits['occurrences']} times at the common steps of {run.name}'s test split")
    return words


def _drop(run: Run, *, all_steps: bool = False) -> float:
    """The mean over common words; one whose states are all equal, as AED's are of a word that only begins sentences,
    has no variance that could drop.
    """
    return float(np.nanmean(_measured(run).variance_drops(common_words(run), all_steps=all_steps)))


def variance_drop(runs: Runs) -> Measurement:
    """T4: how little of the variance of a word's states its step explains, in AED and in AO."""
    run, ao = runs["run"], runs["ao"]
    value, of_ao = _drop(run), _drop(ao)
    synthetic = {name: mean_variance_drop(runs[name], runs[name].common_encoder_mask) for name in ("escan", "escan_ao")}
    part = CRITERIA["T4"].limits["times_escan"]
    verdict = value < part * synthetic["escan"] and of_ao < part * synthetic["escan_ao"] and value < of_ao
    quantities = {
        "variance drop": value,
        "AO's": of_ao,
        "extended SCAN's": synthetic["escan"],
        "extended SCAN's, AO": synthetic["escan_ao"],
        "words": len(common_words(run)),
        "variance drop, all steps": _drop(run, all_steps=True),
        "AO's, all steps": _drop(ao, all_steps=True),
    }
    return Measurement.of("T4", run, verdict, quantities)


# ---- T5, T9, T10: the drift ------------------------------------------------------------------------------------------


def drift(found: Measured, *, all_steps: bool = False, ends: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Positions s, from 1, and where μ^D_s·μ^E_t peaks [as many].

    At common steps, and where the length ratio predicts a peak among the common source steps: one behind these could
    not be found there. ``all_steps``: at all steps that occur. Without ``ends``: of temporal components that are means
    over words alone. The paper's mix in the ends of sentence, more of them the later the step, and a network that
    attends to these has its peak there.
    """
    positions, scores = _scores(found, all_steps)
    if not ends:
        scores = found.word_scores
    inside = positions / found.length_ratio <= scores.shape[1]
    return positions[inside], statistics.peak_steps(scores[inside]) + 1


def drift_slope(found: Measured, *, all_steps: bool = False, ends: bool = True) -> statistics.Line:
    """The line of the peak's position over s, with the interval of its slope; arguments as for :func:`drift`."""
    return statistics.fit_line(*drift(found, all_steps=all_steps, ends=ends))


def _contains(line: statistics.Line, value: float) -> bool:
    return line.low <= value <= line.high


def length_drift(runs: Runs) -> Measurement:
    """T5: whether the peak's position grows with s as much less than s as English is shorter than French."""
    run, found = runs["run"], _measured(runs["run"])
    line, predicted = drift_slope(found), 1 / found.length_ratio
    positions, peaks = drift(found)
    quantities = {
        "slope": line.slope,
        "slope, low": line.low,
        "slope, high": line.high,
        "predicted slope": predicted,
        "mean t − s": (peaks - positions).mean(),
        "slope, ends left out": drift_slope(found, ends=False).slope,
        "slope, all steps": drift_slope(found, all_steps=True).slope,
    }
    return Measurement.of("T5", run, _contains(line, predicted), quantities)


def register_drift(runs: Runs) -> Measurement:
    """T9: whether the drift is the larger in the register whose French is the longer."""
    run, of_run, of_verses = runs["run"], _measured(runs["run"]), _measured(runs["verses"])
    lines = {"catalogues": drift_slope(of_run), "verses": drift_slope(of_verses)}
    predicted = {"catalogues": 1 / of_run.length_ratio, "verses": 1 / of_verses.length_ratio}
    differs = lines["verses"].slope - lines["catalogues"].slope
    verdict = differs > 0 and all(_contains(lines[name], predicted[name]) for name in lines)
    quantities = {"slope, verses − catalogues": differs, "predicted": predicted["verses"] - predicted["catalogues"]}
    for name, line in lines.items():
        quantities |= {f"slope, {name}": line.slope, f"low, {name}": line.low, f"high, {name}": line.high}
        quantities[f"predicted, {name}"] = predicted[name]
    for name, found in (("catalogues", of_run), ("verses", of_verses)):
        line = drift_slope(found, ends=False)
        values = {"slope": line.slope, "low": line.low, "high": line.high}
        quantities |= {f"{what}, {name}, ends left out": value for what, value in values.items()}
    return Measurement.of("T9", run, verdict, quantities)


def aligned_drift(runs: Runs) -> Measurement:
    """T10: whether the peak lies where the corpus's words are aligned, nearer than to the diagonal."""
    run, found = runs["run"], _measured(runs["run"])
    positions, peaks = drift(found)
    known = np.isfinite(found.aligned[positions - 1])
    positions, peaks = positions[known], peaks[known]
    expected = found.aligned[positions - 1]
    error, diagonal_error = np.abs(peaks - expected).mean(), np.abs(peaks - positions).mean()
    without_ends = drift(found, ends=False)[1][known]
    quantities = {
        "mean error": error,
        "mean error of the diagonal": diagonal_error,
        "mean t − s": (peaks - positions).mean(),
        "mean t − s, aligned": (expected - positions).mean(),
        "slope": statistics.fit_line(positions, peaks).slope,
        "slope, aligned": statistics.fit_line(positions, expected).slope,
        "mean error, ends left out": np.abs(without_ends - expected).mean(),
        "mean error of the diagonal, ends left out": np.abs(without_ends - positions).mean(),
    }
    return Measurement.of("T10", run, error <= CRITERIA["T10"].limits["error"] and error < diagonal_error, quantities)


# ---- T6: the dictionary ----------------------------------------------------------------------------------------------


def candidates(run: Run) -> np.ndarray:
    """χ^E [V, n] of the content words that occur often enough for T6, NaN for all others."""
    found, content = _measured(run), run.task.source_vocabulary.content_ids
    often = found.encoder.word_counts >= CRITERIA["T6"].limits["occurrences"]
    often[: content.start] = False
    return np.where(often[:, None], found.encoder.input, np.nan)


def readout_dictionary(runs: Runs) -> Measurement:
    """T6: whether a French word's context readout is largest on χ^E of the English word that translates it."""
    run, limits = runs["run"], CRITERIA["T6"].limits
    task, inputs = run.task, candidates(run)
    words = [task.target_vocabulary.words[index] for index in task.target_vocabulary.content_ids[: limits["words"]]]
    known = measured.read_lexicon()
    entries = dict(list(known.groupby("french")["english"]))
    if missing := [word for word in words if word not in entries]:
        raise ValueError(
            f"the dictionary has no {', '.join(missing[:5])}: it is of other vocabularies than {run.name}'s; with the "
            "corpus, write it anew: python -m howattend measure"
        )
    chosen = statistics.dictionary(run.readouts("context")[: len(words)], inputs)
    english = [task.source_vocabulary.words[index] for index in chosen]
    first = np.array([entries[word].iloc[0] == found for word, found in zip(words, english, strict=True)])
    among = np.array([found in set(entries[word]) for word, found in zip(words, english, strict=True)])
    spelt = np.array([any(map(str.isalpha, word)) for word in words])
    possible = ~np.isnan(inputs[[task.source_vocabulary.id(entries[word].iloc[0]) for word in words]]).any(1)
    articles = [english[words.index(word)] == "the" for word in ARTICLES if word in words]
    quantities = {
        "agreement": first.mean(),
        "articles that are “the”": sum(articles),
        "among the dictionary's three": among.mean(),
        "agreement without punctuation": first[spelt].mean(),
        "whose translation is a candidate": possible.mean(),
    }
    verdict = first.mean() >= limits["agreement"] and sum(articles) == len(ARTICLES)
    return Measurement.of("T6", run, verdict, quantities)


# ---- T7: how it falls off --------------------------------------------------------------------------------------------


def fall_off(runs: Runs) -> Measurement:
    """T7: whether μ^D_s·μ^E_t falls off more slowly beside its peak at late s."""
    run, found = runs["run"], _measured(runs["run"])
    drops, every = (statistics.peak_drops(_scores(found, all_steps)[1]) for all_steps in (False, True))
    value = statistics.spearman(np.arange(len(drops)), drops)
    quantities = {
        "ρ(drop, s)": value,
        "drop, first step": drops[0],
        "drop, last step": drops[-1],
        "ρ(drop, s), all steps": statistics.spearman(np.arange(len(every)), every),
    }
    return Measurement.of("T7", run, value <= CRITERIA["T7"].limits["rho"], quantities)


CLAIMS = {
    "T1": diagonal,
    "T2": paths,
    "T3": no_term_dominates,
    "T4": variance_drop,
    "T5": length_drift,
    "T6": readout_dictionary,
    "T7": fall_off,
    "T8": temporal_diagonal,
    "T9": register_drift,
    "T10": aligned_drift,
}

_AED, _AO = "translation-aed-gru", "translation-ao-gru"
_WITH_ESCAN = ({"run": _AED, "escan": "escan-aed-gru"}, {"run": _AO, "escan": "escan-ao-gru"})
_REGISTERS = [{name: f"{base}-{name}" for name in ("catalogues", "verses")} for base in (_AED, _AO)]
_DRIFTING = (_AED, _AO, *(run for registers in _REGISTERS for run in registers.values()))
#: The rows of the ledger: claim, and the run of each part. The paper shows T5 and T7 for AO.
PLAN: list[tuple[str, dict[str, str]]] = [
    *(("T1", parts) for parts in _WITH_ESCAN),
    *(("T2", {"run": run}) for run in (_AED, _AO)),
    *(("T3", parts) for parts in _WITH_ESCAN),
    ("T4", {"run": _AED, "ao": _AO, "escan": "escan-aed-gru", "escan_ao": "escan-ao-gru"}),
    *(("T5", {"run": run}) for run in _DRIFTING),
    *(("T6", {"run": run}) for run in (_AED, _AO)),
    *(("T7", {"run": run}) for run in (_AED, _AO)),
    *(("T8", parts) for parts in _WITH_ESCAN),
    *(("T9", {"run": registers["catalogues"], "verses": registers["verses"]}) for registers in _REGISTERS),
    *(("T10", {"run": run}) for run in _DRIFTING),
]
