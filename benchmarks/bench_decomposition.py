"""How long the decomposition takes, as a multiple of copying the states, and how much memory streaming needs.

    python benchmarks/bench_decomposition.py --mb 200 --threads 1

Every time is the median of several repeats. The calls take turns within one run, so that a slow or busy machine changes
their ratios little. What "a copy" costs depends on where it goes: ``numpy.copy`` (the reference here) and
``Tensor.clone`` go to fresh memory, as the deltas do; ``Tensor.copy_`` goes to memory that is there already. Machines
and their loads differ, so this is never a timed test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from howattend.decomposition import StreamingDecomposition, decompose

STEPS, UNITS, SHORTEST = 21, 128, 16
REFERENCE = "numpy.copy"


def make_case(megabytes: float, num_words: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random float32 states [M, 21, 128] of some megabytes, tokens and a mask of lengths 16 to 21."""
    rng = torch.Generator().manual_seed(seed)
    samples = max(8, round(megabytes * 1e6 / (4 * STEPS * UNITS)))
    states = torch.randn(samples, STEPS, UNITS, generator=rng)
    tokens = torch.randint(0, num_words, (samples, STEPS), generator=rng)
    mask = torch.arange(STEPS) < torch.randint(SHORTEST, STEPS + 1, (samples, 1), generator=rng)
    return states, tokens, mask


def time_in_turn(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each call; the calls take turns, so that a slow spell of the machine falls on all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if repeat:  # the first round warms up
                seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def streaming_peak(batches: int, num_words: int, megabytes: float = 5) -> float:
    """Peak megabytes that streaming adds to what is in memory already, over some batches of one size.

    Counted at torch's allocator, where all of it comes from. The process's resident memory would depend on what the
    system reclaims.
    """
    states, tokens, mask = make_case(megabytes, num_words)
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        streaming = StreamingDecomposition(STEPS, num_words, UNITS)
        for _ in range(batches):
            streaming.update(states, tokens, mask)
        streaming.components()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = np.cumsum([event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())])
    return float(held.max()) / 1e6


def run(megabytes: float = 200, threads: int = 1, repeats: int = 9, words: tuple[int, ...] = (7, 8000)) -> pd.DataFrame:
    """Time everything once. Columns: what, words, milliseconds, and ratio to ``numpy.copy``; or megabytes of memory.

    Args:
        megabytes: size of the float32 states.
        threads: torch's threads while this runs.
        repeats: repeats of each measurement, of which the median counts.
        words: vocabulary sizes V.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        rows = [row for num_words in words for row in _rows(megabytes, num_words, repeats)]
    finally:
        torch.set_num_threads(before)
    return pd.DataFrame(rows)


def _rows(megabytes: float, num_words: int, repeats: int) -> list[dict[str, object]]:
    states, tokens, mask = make_case(megabytes, num_words)
    there = torch.empty_like(states)
    streaming = StreamingDecomposition(STEPS, num_words, UNITS)
    seconds = time_in_turn(
        {
            REFERENCE: lambda: states.numpy().copy(),
            "Tensor.clone": lambda: states.clone(),
            "Tensor.copy_": lambda: there.copy_(states),
            "StreamingDecomposition.update": lambda: streaming.update(states, tokens, mask),
            "decompose": lambda: decompose(states, tokens, mask, num_words),
        },
        repeats,
    )
    rows: list[dict[str, object]] = [
        {"what": name, "words": num_words, "milliseconds": 1e3 * value, "ratio": value / seconds[REFERENCE]}
        for name, value in seconds.items()
    ]
    for batches in (1, 8):
        what = f"streaming peak, {batches} batch{'es' if batches > 1 else ''} of 5 MB"
        rows.append({"what": what, "words": num_words, "megabytes": streaming_peak(batches, num_words)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=float, default=200, help="size of the float32 states (default: 200)")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads (default: 1)")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of which the median counts (default: 9)")
    arguments = parser.parse_args()
    table = run(arguments.mb, arguments.threads, arguments.repeats)
    print(f"{arguments.mb:g} MB of float32 states, T = {STEPS}, n = {UNITS}, {arguments.threads} thread(s)")
    print(table.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
