"""O1–O12: the claims on the one-to-one task (Fig. 2a–f, 5a, 5c).

Statistics run over content words and over the steps that every sample reaches, since the temporal component mixes in
ends of sentence behind the shortest length; the value with every step and word included stands beside ("all steps").
"""

from __future__ import annotations

import numpy as np
import torch

from howattend import statistics
from howattend.analysis import array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.shared import Runs, delta_share, mean_variance_drop


def accuracy(runs: Runs) -> Measurement:
    """O1: free-running word accuracy."""
    run = runs["run"]
    return Measurement.of("O1", run, run.accuracy >= CRITERIA["O1"].limits["accuracy"], {"accuracy": run.accuracy})


def temporal_attention(runs: Runs) -> Measurement:
    """O2: how far the temporal components alone make the attention."""
    run, limits = runs["run"], CRITERIA["O2"].limits
    trace, common, every = run.trace, run.shares, run.shares_all_steps
    scores = run.decoder_path @ run.encoder_path.T
    agreement = statistics.argmax_agreement(scores, np.arange(run.decoder_steps), within=limits["steps"])
    exact = statistics.argmax_agreement(scores, np.arange(run.decoder_steps))
    whole = trace.score_scale * array(run.decoder.temporal) @ array(run.encoder.temporal).T
    temporal = statistics.softmax(np.broadcast_to(whole, trace.scores.shape), array(trace.encoder_mask)[:, None])
    attention, steps = array(trace.attention), array(run.common_decoder_mask)
    distance = statistics.total_variation(temporal[steps], attention[steps]).mean()
    to_mean = statistics.distance_to_mean_attention(attention, array(run.test.source_lengths), steps)
    return Measurement.of(
        "O2",
        run,
        common.signed[0, 0] >= limits["share"] and agreement >= limits["argmax"],
        {
            "share": float(common.signed[0, 0]),
            "argmax within 1": agreement,
            "argmax exact": exact,
            "centred share": float(common.centred[0, 0]),
            "absolute share": float(common.absolute[0, 0]),
            "TV, temporal": float(distance),
            "TV, mean attention": to_mean,
            "share, all steps": float(every.signed[0, 0]),
        },
    )


def dimensions(runs: Runs) -> Measurement:
    """O3: dimensions of the temporal and input paths, how the two paths follow one another, the circle."""
    run = runs["run"]
    encoder, decoder = run.encoder_path, run.decoder_path
    variance = statistics.explained_variance(encoder, decoder, count=3)
    circle = statistics.circle(encoder)
    content = list(run.task.target_vocabulary.content_ids)
    verdict = variance >= CRITERIA["O3"].limits["variance"] if run.config.model.architecture == "AED" else None
    return Measurement.of(
        "O3",
        run,
        verdict,
        {
            "variance in 3 PCs": variance,
            "each path alone": min(statistics.explained_variance(path, count=3) for path in (encoder, decoder)),
            "variance, input": statistics.explained_variance(run.inputs, array(run.decoder.input)[content], count=3),
            "paths' cosine": statistics.path_similarity(decoder, encoder),
            "turns": circle.angle_swept / (2 * np.pi),
            "radius variation": circle.radius_variation,
            "variance, all steps": statistics.explained_variance(
                array(run.encoder.temporal), array(run.decoder.temporal), count=3
            ),
        },
    )


def encoder_deltas(runs: Runs) -> Measurement:
    """O4: the encoder deltas' share of the states' variance."""
    run = runs["run"]
    value = delta_share(run, run.common_encoder_mask)
    every = delta_share(run, run.trace.encoder_mask)
    verdict = value <= CRITERIA["O4"].limits["delta"]
    return Measurement.of("O4", run, verdict, {"delta share": value, "delta share, all steps": every})


def decoder_input_delta(runs: Runs) -> Measurement:
    """O5: the decoder's input-delta components beside its temporal ones."""
    run = runs["run"]
    part, temporal = array(run.decoder_input_delta), array(run.decoder.temporal)
    value = statistics.energy_ratio(part, temporal, array(run.common_decoder_mask))
    every = statistics.energy_ratio(part, temporal, array(run.trace.decoder_mask))
    return Measurement.of(
        "O5", run, value <= CRITERIA["O5"].limits["ratio"], {"ratio": value, "ratio, all steps": every}
    )


def orthogonality(runs: Runs) -> Measurement:
    """O6: temporal and input-delta components at the same step, against random directions in the states' span."""
    run = runs["run"]
    steps = min(run.encoder_steps, run.decoder_steps)
    vectors, states = (array(x[:, :steps]) for x in (run.encoder_input_delta, run.encoder_vectors))
    mask = array(run.common_encoder_mask[:, :steps])
    found = {}
    for name, path in (("encoder", run.encoder_path), ("decoder", run.decoder_path)):
        directions = path[:steps] - path[:steps].mean(0)
        found[name] = statistics.orthogonality(directions, vectors, mask, states, pairing="step")
    return Measurement.of(
        "O6",
        run,
        all(side.value < side.null_high for side in found.values()),
        {
            "|cos| to μE": found["encoder"].value,
            "|cos| to μD": found["decoder"].value,
            "null to μE, 95 %": found["encoder"].null_high,
            "5 %": found["encoder"].null_low,
            "null to μD, 95 %": found["decoder"].null_high,
        },
    )


def readout_dictionary(runs: Runs) -> Measurement:
    """O7: each word's context readout is largest on the input component of the word that it translates."""
    run = runs["run"]
    share = statistics.dictionary_agreement(run.readouts("context"), run.inputs, np.arange(len(run.inputs)))
    return Measurement.of("O7", run, share >= CRITERIA["O7"].limits["words"], {"words": share})


def simplex(runs: Runs) -> Measurement:
    """O8: input components form a simplex, for the run's number of words and for the "words8" run's."""
    few = statistics.simplex_deviation(runs["run"].inputs)
    many = statistics.simplex_deviation(runs["words8"].inputs)
    limit = CRITERIA["O8"].limits["deviation"]
    quantities = {"largest deviation": max(few, many), "N = 3": few, "N = 8": many}
    return Measurement.of("O8", runs["run"], max(few, many) <= limit, quantities)


def readout_logits(runs: Runs) -> Measurement:
    """O9: which readout makes the difference between the true word's logit and the runner-up's."""
    run = runs["run"]
    context = array(run.trace.contexts) @ array(run.model.context_readout).T
    state = array(run.trace.decoder_states) @ array(run.model.state_readout).T

    def shares(mask: torch.Tensor) -> dict[str, float]:
        bias, target = array(run.model.readout_bias), array(run.test.target)
        return statistics.logit_difference_shares(context, state, bias, target, array(mask))

    common, every = shares(run.common_decoder_mask), shares(run.trace.decoder_mask)
    verdict = common["context"] >= CRITERIA["O9"].limits["context"]
    quantities = {
        **{name: common[name] for name in ("context", "state", "bias")},
        "context, all steps": every["context"],
    }
    return Measurement.of("O9", run, verdict, quantities)


def unattended_paths(runs: Runs) -> Measurement:
    """O10: the VED's temporal paths are continuous, and its deltas much larger than AO's."""
    run, limits = runs["run"], CRITERIA["O10"].limits
    paths = run.encoder_path, run.decoder_path
    adjacent = [statistics.adjacent_neighbours(path) for path in paths]
    rows = torch.arange(len(run.test))
    last = run.trace.encoder_states[rows, run.test.source_lengths - 1]
    delta, ao = delta_share(run, run.common_encoder_mask), delta_share(runs["ao"], runs["ao"].common_encoder_mask)
    return Measurement.of(
        "O10",
        run,
        min(adjacent) >= limits["adjacent"] and delta >= limits["times_ao"] * ao,
        {
            "neighbours adjacent": min(adjacent),
            "encoder's": adjacent[0],
            "decoder's": adjacent[1],
            "join, in steps": statistics.join_distance(array(last), array(run.decoder.temporal[0]), paths[1]),
            "delta share": delta,
            "AO's delta share": ao,
        },
    )


def variance_drop(runs: Runs) -> Measurement:
    """O11: the temporal share of the score, and of the variance of a word's states."""
    run = runs["run"]
    quantities = {
        "variance drop": mean_variance_drop(run, run.common_encoder_mask),
        "variance drop, all steps": mean_variance_drop(run, run.trace.encoder_mask),
        "share": run.shares.signed[0, 0],
    }
    return Measurement.of("O11", run, None, quantities)


def readouts_apart(runs: Runs) -> Measurement:
    """O12: a word's readout from the context and its readout from the state are orthogonal."""
    run = runs["run"]
    found = statistics.readout_orthogonality(run.readouts("context"), run.readouts("state"))
    quantities = {"|cos|": found.value, "null, 95 %": found.null_high, "null, mean": found.null_mean}
    return Measurement.of("O12", run, found.value < found.null_high, quantities)


CLAIMS = {
    "O1": accuracy,
    "O2": temporal_attention,
    "O3": dimensions,
    "O4": encoder_deltas,
    "O5": decoder_input_delta,
    "O6": orthogonality,
    "O7": readout_dictionary,
    "O8": simplex,
    "O9": readout_logits,
    "O10": unattended_paths,
    "O11": variance_drop,
    "O12": readouts_apart,
}

_AED, _AO, _VED = (f"one_to_one-{name}-gru" for name in ("aed", "ao", "ved"))
_FED = (_AED, f"{_AED}-teacher", f"{_AED}-l2_1e-5", f"{_AED}-teacher-l2_1e-5")  # what it is fed, and how strong L2 is
#: The rows of the ledger: claim, and the run of each part. What depends on the fed word or on L2 has a row for each.
PLAN: list[tuple[str, dict[str, str]]] = [
    *(("O1", {"run": run}) for run in (_AED, _AO)),
    *(("O2", {"run": run}) for run in (*_FED, _AO)),
    *(("O3", {"run": run}) for run in (_AED, _AO, _VED)),
    *(("O4", {"run": run}) for run in (*_FED, _AO)),
    *(("O5", {"run": run}) for run in _FED),
    *((claim, {"run": run}) for claim in ("O6", "O7") for run in (_AED, _AO)),
    *(("O8", {"run": f"{run}{l2}", "words8": f"{run}-words8{l2}"}) for run in (_AED, _AO) for l2 in ("", "-l2_1e-3")),
    *(("O9", {"run": run}) for run in (_AED, _AO)),
    ("O10", {"run": _VED, "ao": _AO}),
    *(("O11", {"run": run}) for run in (_AED, _AO)),
    *(("O12", {"run": f"{run}{l2}"}) for run in (_AED, _AO) for l2 in ("", "-l2_1e-3")),
]
