"""Time and memory of the measurement of a translation run against the number of sentence pairs M.

    python benchmarks/bench_streaming.py --record

Streamed in batches, as ``python -m howattend measure`` does, and at once, as the small synthetic tasks are analysed:
the trace of all pairs, its decomposition and shares. The network has the size of the book's and random weights; pairs
are random too, made batch by batch. Neither time nor memory depends on what they say, and no corpus is needed. Every
number is of a process of its own with one thread: ``seconds`` of processor time, so that other programs on the machine
change them little, and ``peak_mb``, the largest resident memory less what it had before the first pair.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import pandas as pd
import torch

from howattend import alignment, decomposition, files, measured
from howattend.analysis import Run
from howattend.measured.passes import CHUNK
from howattend.models import EncoderDecoder, ModelConfig
from howattend.runs import RunConfig
from howattend.tasks import EOS, PAD, Batch, Translation, Vocabulary
from howattend.training import TrainConfig

WORDS, UNITS, STEPS = 5000, 224, 16
PAIRS = {"streamed": (500, 1000, 2000, 3870, 8000), "at once": (500, 1000, 2000)}
COLUMNS = ("way", "pairs", "seconds", "peak_mb")


def random_run() -> Run:
    """An untrained AED of the book's size, of a task that has vocabularies and no sentences."""
    task = Translation(num_words=WORDS)
    words = Vocabulary.of_words((f"w{number}" for number in range(WORDS)), unknown=True)
    task.__dict__["_vocabularies"] = words, words  # where cached_property keeps them
    config = RunConfig("random", task, ModelConfig("AED", hidden_size=UNITS), TrainConfig(1), 0.0)
    return Run(config, EncoderDecoder(config.model, task, 0).eval(), 0)


class RandomPairs:
    """Batches of random pairs, the same ones each time, none of which is kept."""

    def __init__(self, pairs: int, size: int) -> None:
        self.sizes = [min(size, pairs - start) for start in range(0, pairs, size)]

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Batch]:
        random = torch.Generator().manual_seed(0)
        for size in self.sizes:
            source, target = self._side(size, random), self._side(size, random)
            yield Batch(*source, *target, torch.full_like(target[0], -1))

    @staticmethod
    def _side(size: int, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Words as common as in a language (Zipf), and lengths from 2 to 16 with the end of sentence."""
        lengths = torch.randint(2, STEPS + 1, (size,), generator=random)
        frequency = 1 / torch.arange(4, WORDS + 4)
        words = 4 + torch.multinomial(frequency, size * STEPS, replacement=True, generator=random).view(size, STEPS)
        step = torch.arange(STEPS)
        words = words.masked_fill(step >= lengths[:, None], PAD)
        words[torch.arange(size), lengths - 1] = EOS
        return words, lengths


def measure_at_once(run: Run, batch: Batch) -> None:
    """The same components and shares with all states, logits and deltas in memory."""
    trace = run.model.trace(batch)
    encoder = decomposition.decompose(trace.encoder_states, trace.encoder_tokens, trace.encoder_mask, WORDS + 4)
    decoder = decomposition.decompose(trace.decoder_states, trace.decoder_tokens, trace.decoder_mask, WORDS + 4)
    alignment.shares(decoder, encoder, trace)


def one(way: str, pairs: int) -> dict[str, object]:
    """Seconds and memory of one measurement, in this process."""
    run = random_run()
    if way == "streamed":  # a first, short one: what the library keeps for good is no matter of the number of pairs
        measured.measure_batches(run, RandomPairs(2, 1), progress=False)
    before, begun = peak_mb(), time.process_time()
    if way == "streamed":
        measured.measure_batches(run, RandomPairs(pairs, CHUNK), progress=False)
    else:
        measure_at_once(run, next(iter(RandomPairs(pairs, pairs))))
    return {"way": way, "pairs": pairs, "seconds": time.process_time() - begun, "peak_mb": peak_mb() - before}


def peak_mb() -> float:
    """This process's largest resident memory so far, in 10^6 bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def run_all(pairs: dict[str, tuple[int, ...]] = PAIRS) -> pd.DataFrame:
    """Every measurement, each in a process of its own with one thread."""
    rows = []
    for way, sizes in pairs.items():
        for size in sizes:
            command = [sys.executable, __file__, "--one", way, str(size)]
            found = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(json.loads(found.stdout))
            print(f"{way:9s} {size:6d} pairs: {rows[-1]['seconds']:6.1f} s, {rows[-1]['peak_mb']:6.0f} MB", flush=True)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write data/results/streaming.csv, which the book draws")
    parser.add_argument("--one", nargs=2, metavar=("WAY", "PAIRS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.one:
        print(json.dumps(one(options.one[0], int(options.one[1]))))
        return
    table = run_all()
    streamed = table[table["way"] == "streamed"].set_index("pairs")
    largest = streamed.index.max()
    hours = streamed.loc[largest, "seconds"] / largest * 1e6 / 3600
    print(f"at the rate of the longest a million pairs would take {hours:.1f} hours of one processor")
    if options.record:
        path = files.data_folder() / "results" / "streaming.csv"
        files.write_text(path, table.to_csv(index=False, float_format="%.4g", lineterminator="\n"))
        print(path)


if __name__ == "__main__":
    main()
