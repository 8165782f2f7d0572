"""D1–D4: how AED and AO attend off the diagonal, on "twice", "and" and "left" of extended SCAN (Fig. 6)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from howattend import statistics
from howattend.analysis import Run, array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.escan import some, suited, task_of
from howattend.claims.shared import Runs
from howattend.tasks import Kind, Role

#: The offsets t − s of Fig. 5b and 6d.
OFFSETS = np.arange(-5, 6)


def twice_clusters(run: Run, mask: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The input-delta components of "twice" behind a verb, and those of the verbs before it (Fig. 6a).

    Args:
        run: of extended SCAN.
        mask: [M, T] bool, the source steps that count.

    Returns:
        χ_twice + Δh_t [P, n], χ_v + Δh_{t−1} [P, n], and the word id of the verb [P].
    """
    phrases = task_of(run).parse(run.test)
    rows, steps = (mask & (phrases.role == Role.TWICE) & (phrases.kind == Kind.TWICE)).nonzero(as_tuple=True)
    components = run.encoder_input_delta
    return array(components[rows, steps]), array(components[rows, steps - 1]), array(phrases.verb[rows, steps])


def _clusters(run: Run, claim: str, mask: Tensor) -> dict[str, float]:
    suited(run, claim, ["twice"], verbs=2)
    twice, before, verbs = twice_clusters(run, mask)
    found, labels, counts = np.unique(verbs, return_inverse=True, return_counts=True)
    if len(found) < 2 or counts.min() < 2:
        raise ValueError(
            f'{claim} is about "twice" behind two verbs or more, at least twice behind each, and the test set of '
            f"{run.name} has {', '.join(map(str, counts)) or 'none'}: choose other phrases or lengths, or a larger set"
        )
    centres = np.stack([before[verbs == verb].mean(0) for verb in found])
    return {
        "silhouette": statistics.silhouette(twice, labels),
        "own verb nearest": statistics.nearest_centre_share(twice, labels, centres),
    }


def twice_splits(runs: Runs) -> Measurement:
    """D1: AED's input-delta components of "twice" split by the verb before it, and lie near that verb's own.

    A verb's own is the mean of χ_v + Δh_{t−1} over the occurrences of the verb before "twice".
    """
    run, limits = runs["run"], CRITERIA["D1"].limits
    found, every = (_clusters(run, "D1", mask) for mask in (run.common_encoder_mask, run.trace.encoder_mask))
    verdict = found["silhouette"] >= limits["silhouette"] and found["own verb nearest"] >= limits["nearest"]
    return Measurement.of("D1", run, verdict, found | {f"{name}, all steps": value for name, value in every.items()})


def twice_is_one(runs: Runs) -> Measurement:
    """D2: AO's do not, since its states know nothing of other words."""
    run = runs["run"]
    found, every = (_clusters(run, "D2", mask) for mask in (run.common_encoder_mask, run.trace.encoder_mask))
    quantities = found | {f"{name}, all steps": value for name, value in every.items()}
    return Measurement.of("D2", run, found["silhouette"] <= CRITERIA["D2"].limits["silhouette"], quantities)


def temporal_dots(run: Run) -> np.ndarray:
    """μ^D_s · (χ^E_x + Δh^E_t) at the common steps [M, S, T] (Fig. 6c, d)."""
    components = run.encoder_input_delta[:, : run.encoder_steps]
    path = run.decoder.temporal[: run.decoder_steps]
    return array(torch.einsum("sn,mtn->mst", path, components))


def offset_profile(run: Run, word: str, offsets: np.ndarray = OFFSETS) -> np.ndarray:
    """The mean of ``temporal_dots`` over the occurrences of a word, by offset t − s [K]; NaN where there is none."""
    here = run.test.source[:, : run.encoder_steps] == task_of(run).source_vocabulary.id(word)
    return statistics.mean_by_offset(temporal_dots(run), array(here)[:, None], offsets)


def twice_hides(runs: Runs) -> Measurement:
    """D3: where "twice" is at t = s its contribution is negative; the step before, second in μ^D·μ^E, is attended.

    Over the pairs with T = S, as in Fig. 6b; the first value is the lowest of the three shares.
    """
    run = runs["run"]
    task, steps = suited(run, "D3", ["twice"]), min(run.encoder_steps, run.decoder_steps)
    on_diagonal = task.twice_on_diagonal(run.test)[:, :steps] & task.same_length(run.test)[:, None]
    chosen = array(some(on_diagonal, run, "D3", '"twice" at t = s, where T = S'))
    diagonal = np.arange(steps)
    dots = temporal_dots(run)[:, diagonal, diagonal]
    temporal = run.decoder_path[:steps] @ run.encoder_path.T
    occurrences = np.nonzero(chosen)[1]

    def ranked(rank: int, offset: int) -> float:
        at = statistics.ranked_steps(temporal, rank) == diagonal + offset
        return float(at[occurrences].mean())

    attention = array(run.trace.attention)[:, :steps]
    before = np.broadcast_to(diagonal - 1, chosen.shape)
    shares = {
        "contribution negative": statistics.negative_share(dots, chosen),
        "μD·μE second largest at s − 1": ranked(1, -1),
        "attention largest at s − 1": statistics.top_weights_on(attention, before, chosen),
    }
    lowest = min(shares.values())
    quantities = {"lowest share": lowest, **shares, "μD·μE largest at s": ranked(0, 0)}
    return Measurement.of("D3", run, lowest >= CRITERIA["D3"].limits["share"], quantities)


def offsets_of_words(runs: Runs) -> Measurement:
    """D4: μ^D_s·(χ^E_x + Δh^E_t) by offset: "and" and "twice" negative at each, "left" negative at 0 and rising."""
    run, limits = runs["run"], CRITERIA["D4"].limits
    words = suited(run, "D4", ["and", "twice", "left"]).source_vocabulary
    for word in ("and", "twice", "left"):
        some(run.common_encoder_mask & (run.test.source == words.id(word)), run, "D4", f'"{word}"')
    profiles = {word: offset_profile(run, word) for word in ("and", "twice", "left")}
    there = np.isfinite(profiles["left"])
    line = statistics.fit_line(OFFSETS[there], profiles["left"][there])
    largest = {word: np.nanmax(profiles[word]) for word in ("and", "twice")}
    at_zero = profiles["left"][OFFSETS == 0].item()
    hide = max(*largest.values(), at_zero) < limits["sign"]
    quantities = {
        "left, slope": line.slope,
        "left, slope, low": line.low,
        "left at 0": at_zero,
        "and, largest": largest["and"],
        "twice, largest": largest["twice"],
        "and, share of offsets negative": np.mean(profiles["and"][np.isfinite(profiles["and"])] < limits["sign"]),
        "twice, share of offsets negative": np.mean(profiles["twice"][np.isfinite(profiles["twice"])] < limits["sign"]),
    }
    return Measurement.of("D4", run, hide and line.slope > limits["slope"], quantities)


CLAIMS = {"D1": twice_splits, "D2": twice_is_one, "D3": twice_hides, "D4": offsets_of_words}

_AO = ("escan-ao-gru", "escan-ao-gru-l2_1e-3", "escan-ao-gru-constant")
#: The rows of the ledger: claim, and the run of each part. L2, the rate of "and" (AED) and the
#: word that is fed (AO) are conditions.
PLAN: list[tuple[str, dict[str, str]]] = [
    *(("D1", {"run": run}) for run in ("escan-aed-gru", "escan-aed-gru-l2_1e-4", "escan-aed-gru-and30")),
    *((claim, {"run": run}) for claim in ("D2", "D3", "D4") for run in _AO),
]
