"""R1: the claim on the reversed task (Fig. 2g)."""

from __future__ import annotations

import numpy as np

from howattend import decomposition, statistics
from howattend.analysis import Run, array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.shared import Runs


def paths_by_length(run: Run) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """μ^D [S, n] and μ^E [T, n] of the test sentences of each number of words, decomposed by themselves.

    The end of sentence, the last step of both, is in them. For a task of one length these are the run's own.
    """
    trace, paths = run.trace, {}
    words = len(run.task.source_vocabulary), len(run.task.target_vocabulary)
    for length in run.test.source_lengths.unique().tolist():
        part = trace[run.test.source_lengths == length]
        encoder = decomposition.decompose(part.encoder_states, part.encoder_tokens, part.encoder_mask, words[0])
        decoder = decomposition.decompose(part.decoder_states, part.decoder_tokens, part.decoder_mask, words[1])
        paths[length - 1] = array(decoder.temporal)[:length], array(encoder.temporal)[:length]
    return paths


def anti_diagonal(runs: Runs) -> Measurement:
    """R1: the temporal components alone attend to the mirrored step, sentence length by sentence length.

    No function of s and t alone can do so for several lengths: where a run has several, the same from one decomposition
    of all of them stands beside, as the mean over lengths.
    """
    run = runs["run"]
    together = array(run.decoder.temporal) @ array(run.encoder.temporal).T
    found: dict[str, list[float]] = {"argmax": [], "argmax within 1": [], "argmax, all steps": [], "mixed": []}
    for length, (decoder, encoder) in paths_by_length(run).items():
        scores, mirrored = decoder @ encoder.T, np.arange(length)[::-1]
        words = scores[:length, :length]
        found["argmax"].append(statistics.argmax_agreement(words, mirrored))
        found["argmax within 1"].append(statistics.argmax_agreement(words, mirrored, within=1))
        found["argmax, all steps"].append(statistics.argmax_agreement(scores, [*mirrored, length]))
        found["mixed"].append(statistics.argmax_agreement(together[:length, :length], mirrored))
    lengths = len(found["argmax"])
    quantities = {name: float(np.mean(values)) for name, values in found.items()}
    mixed = quantities.pop("mixed")
    if lengths > 1:
        quantities["argmax, lengths mixed"] = mixed
    quantities["share"] = run.shares.signed[0, 0]
    return Measurement.of("R1", run, quantities["argmax"] >= CRITERIA["R1"].limits["argmax"], quantities)


CLAIMS = {"R1": anti_diagonal}

#: The rows of the ledger: claim, and the run of each part. AO at several lengths stands beside as what cannot be done.
PLAN: list[tuple[str, dict[str, str]]] = [
    ("R1", {"run": run}) for run in ("reversed-aed-gru", "reversed-ao-gru", "reversed-aed-gru-varied")
]
