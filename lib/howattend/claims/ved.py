"""V4: what the states of a network without attention look like, on a task that keeps the order of the words (SM)."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from howattend import statistics
from howattend.analysis import Run, array
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.shared import Runs
from howattend.statistics import PrefixPurity

DEPTH = 4  # the words of the longest prefix


def tree(runs: Runs) -> Measurement:
    """V4: the encoder's states branch by prefix, the decoder's do not. claims.toml has the statistic in full."""
    run, limits = runs["run"], CRITERIA["V4"].limits
    step = int(limits["step"])
    encoder, decoder = encoder_tree(run, step), decoder_tree(run, step)
    last, back, first = encoder_tree(run, run.encoder_steps), mirrored_tree(run, step), decoder_tree(run, 0)
    above = decoder.purity - decoder.null
    branches = encoder.purity[:2].min()
    return Measurement.of(
        "V4",
        run,
        branches >= limits["purity"] and above.max() <= limits["null"],
        {
            "encoder, depth 1–2": branches,
            "decoder above null": above.max(),
            **_by_depth("encoder", encoder.purity),
            **_by_depth("decoder", decoder.purity),
            **_by_depth("null", decoder.null),
            **_by_depth("encoder, last common step", last.purity[:2]),
            **_by_depth("decoder, mirrored", back.purity[:2]),
            **_by_depth("decoder, first step", first.purity[:2]),
            **_by_depth("encoder, by last words", encoder_tree(run, step, backwards=True).purity[:2]),
            **_by_depth("encoder, just read", [encoder_tree(run, n, depth=n).purity[-1] for n in (1, 2)]),
            **_by_depth("decoder, just fed", [decoder_tree(run, n, depth=n).purity[-1] for n in (1, 2)]),
        },
    )


def encoder_tree(run: Run, step: int, depth: int = DEPTH, *, backwards: bool = False) -> PrefixPurity:
    """Purity of the encoder's states that have read ``step`` words, by the sentence's first 1 … ``depth`` words.

    Args:
        run: with a test set of one-to-one.
        step: words read; every sentence must have as many.
        depth: at most ``step``.
        backwards: by the last words read instead, the last one first.

    Raises ValueError where sentences are too short.
    """
    _check(step, run.encoder_steps, depth)
    words = run.test.source[:, step - depth : step].flip(1) if backwards else run.test.source[:, :depth]
    return _purity(run.trace.encoder_states[:, step - 1], words)


def decoder_tree(run: Run, step: int, depth: int = DEPTH) -> PrefixPurity:
    """The same of the decoder's states that were fed ``step`` words, the start of sentence not counted."""
    _check(step, run.decoder_steps - 1, 0)
    return _purity(run.trace.decoder_states[:, step], run.test.target[:, :depth])


def mirrored_tree(run: Run, step: int) -> PrefixPurity:
    """The same backwards in time: the decoder's states with ``step`` words left to say, by the last words."""
    _check(step, run.decoder_steps - 1, DEPTH)
    rows, ends = torch.arange(len(run.test)), run.test.target_lengths - 1  # where the end of sentence is said
    states = run.trace.decoder_states[rows, ends - step]
    return _purity(states, torch.stack([run.test.target[rows, ends - word] for word in range(1, DEPTH + 1)], 1))


def _purity(states: torch.Tensor, words: torch.Tensor) -> PrefixPurity:
    return statistics.prefix_purity(array(states), array(words), limit=int(CRITERIA["V4"].limits["samples"]))


def _check(step: int, most: int, least: int) -> None:
    if not least <= step <= most:
        raise ValueError(f"step must lie in {least} … {most} (every sentence reaches it), got {step}")


def _by_depth(name: str, values: Iterable[float]) -> dict[str, float]:
    return {f"{name}, depth {depth}": value for depth, value in enumerate(values, 1)}


CLAIMS = {"V4": tree}
PLAN: list[tuple[str, dict[str, str]]] = [("V4", {"run": "one_to_one-ved-gru"})]
