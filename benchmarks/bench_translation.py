"""What each device that makes a translation training step cheap is worth, measured in the same run.

    python benchmarks/bench_translation.py [--steps 12]

The networks, vocabularies and recipe are the registry's. The sentences are random words with the corpus's lengths, so
that no corpus is needed: what a step costs does not depend on what they say. In every round each variant takes one
step, on one thread, and it is the processor's time that counts, so that other work on the machine moves the ratios
little. The gain of a device is the words a second with it divided by those without it; a word is one of the target's,
end of sentence included.

- length buckets: batches of sentences of like lengths, against batches of any.
- readout on words: logits at real target steps only, against all steps of the padded batch; in buckets, which hold
  little padding, and in batches of any lengths.
- both: length buckets and the readout on words, against neither.
- bfloat16 readout: its matrix products in bfloat16, against float32.
- projecting what occurs: input projections of the words of the batch, against those of the whole vocabulary, both
  without dropout (with it there is no choice: each occurrence has its own).
- batches of 256, 128: against batches of half the size; more words a second, but fewer updates an epoch.

One run of 8 rounds on a shared machine gave (other runs differ by up to 0.3):

                                       AED    AO     VED
    length buckets                     1.07   1.06   1.12
    readout on words, in buckets       1.08   1.08   1.03
    the same, batches of any lengths   1.53   1.68   1.50
    both                               1.64   1.78   1.67
    bfloat16 readout                   1.43   1.41   1.34
    projecting what occurs             1.40   1.47   1.54
    batches of 256                     0.85   0.90   0.92
    batches of 128                     0.99   0.92   0.98
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from howattend import models, runs, tasks, training
from howattend.models.encoder_decoder import Drop
from howattend.tasks import corpora

ARCHITECTURES = ("AED", "AO", "VED")
#: Training sentences of the open default with 1 … 15 English words, in hundreds, and how French lengths differ.
LENGTHS = (15, 47, 31, 21, 22, 27, 31, 36, 40, 40, 37, 33, 30, 27, 21)
LONGER, SPREAD = 0.4, 1.9  # words: mean and standard deviation
PAIRS, WORDS = 20_000, 12_000


def plant_corpus() -> None:
    """Random sentences in the open default's place in the cache folder; words are as common as Zipf has it."""
    random, longest = np.random.default_rng(0), corpora.MAX_LENGTH
    source = random.choice(np.arange(1, longest + 1), PAIRS, p=np.divide(LENGTHS, sum(LENGTHS)))
    target = np.clip(np.rint(source + random.normal(LONGER, SPREAD, PAIRS)), 1, longest)
    often = 1 / np.arange(3, WORDS + 3)
    sides = []
    for lengths in (source, target):
        numbers = random.choice(WORDS, (PAIRS, longest), p=often / often.sum())
        numbers[np.arange(longest) >= lengths[:, None]] = -1
        sides.append(torch.from_numpy(numbers.astype(np.int32)))
    labels = (torch.zeros(PAIRS, dtype=torch.uint8) for _ in range(3))  # split, register, origin
    names = tuple(f"w{number}" for number in range(WORDS))
    planted = corpora.Corpus(*sides, *labels, names, names, ("random",), ("random",), {"fingerprint": {}})
    planted.save(corpora.path(corpora.OpenDefault()))


class WholeVocabulary(models.EncoderDecoder):
    """The same network, whose input projections are those of all words there are, whether they occur or not."""

    def _project(self, cell: models.cells.Cell, embedding: Tensor, words: Tensor, drop: Drop | None = None) -> Tensor:
        table, positions = self._projections(cell, embedding, words.shape[1])
        projected = nn.functional.embedding(words.t(), table)
        return projected if positions is None else projected + positions[:, None]


def padded_step(model: models.EncoderDecoder, adam: torch.optim.Optimizer, batch: tasks.Batch, **how: object) -> None:
    """A training step that computes the logits of padding, too, and leaves them out of the loss."""
    config, random = how["config"], how["random"]
    contexts, states = model.decode(batch, dropout=random)
    with torch.autocast("cpu", torch.bfloat16, enabled=config.bfloat16):
        logits = model.readout(contexts, states).flatten(0, 1)
        loss = nn.functional.cross_entropy(
            logits, batch.target.flatten(), ignore_index=tasks.PAD, label_smoothing=config.label_smoothing
        )
    adam.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    adam.step()


@dataclass(frozen=True)
class Variant:
    """One way to take a step: the batches of the rounds, and the step."""

    batch: Callable[[int], tasks.Batch]  # by round
    step: Callable[[tasks.Batch], object]


def words_per_second(variants: Mapping[str, Variant], steps: int) -> dict[str, float]:
    """Target words a second of processor time of each variant, over ``steps`` rounds, after two to warm up."""
    seconds, words = dict.fromkeys(variants, 0.0), dict.fromkeys(variants, 0)
    for number in range(steps + 2):
        for name, variant in variants.items():
            begun = time.process_time()  # what it takes to make a batch counts
            batch = variant.batch(number)
            variant.step(batch)
            if number >= 2:
                seconds[name] += time.process_time() - begun
                words[name] += int(batch.target_lengths.sum())
    return {name: words[name] / seconds[name] for name in variants}


def measure(architecture: str, steps: int) -> pd.DataFrame:
    """The gain of each device on the architecture's translation run."""
    config = runs.config(f"translation-{architecture.lower()}-gru")
    task, recipe = config.task, config.train
    size = recipe.batch_size

    def stepping(model: models.EncoderDecoder, step: Callable = training.train_step, dropout: bool = True, **changed):
        adam = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, fused=True)
        random = tasks.generator("dropout", 0, 0) if dropout else None
        how = {"config": replace(recipe, **changed), "random": random}
        return lambda batch: step(model, adam, batch, **how)

    def buckets(size: int) -> Callable[[int], tasks.Batch]:
        return lambda number: task.training_batch(size, 0, number)

    def any_lengths(number: int) -> tasks.Batch:
        return task.sample(size, number).trimmed()

    model = config.new_model(0)
    whole = WholeVocabulary(config.model, task, 0)
    as_trained, bare = stepping(model), stepping(model, dropout=False)
    speed = words_per_second(
        {
            "as trained": Variant(buckets(size), as_trained),
            "any lengths": Variant(any_lengths, as_trained),
            "padding read out": Variant(buckets(size), stepping(model, padded_step)),
            "neither": Variant(any_lengths, stepping(model, padded_step)),
            "float32": Variant(buckets(size), stepping(model, bfloat16=False)),
            "without dropout": Variant(buckets(size), bare),
            "whole vocabulary": Variant(buckets(size), stepping(whole, dropout=False)),
            "halved": Variant(buckets(size // 2), as_trained),
            "doubled": Variant(buckets(2 * size), as_trained),
        },
        steps,
    )
    gains = {
        "length buckets": ("as trained", "any lengths"),
        "readout on words": ("as trained", "padding read out"),
        "readout on words, any lengths": ("any lengths", "neither"),
        "both": ("as trained", "neither"),
        "bfloat16 readout": ("as trained", "float32"),
        "projecting what occurs": ("without dropout", "whole vocabulary"),
        f"batches of {2 * size}": ("doubled", "as trained"),
        f"batches of {size}": ("as trained", "halved"),
    }
    rows = [(architecture, name, speed[with_it], speed[without]) for name, (with_it, without) in gains.items()]
    table = pd.DataFrame(rows, columns=["network", "device", "words/s with it", "without"])
    return table.assign(gain=table["words/s with it"] / table["without"])


def run(steps: int = 12) -> pd.DataFrame:
    """The gains on all three architectures."""
    torch.set_num_threads(1)
    training.keep_memory()  # as train does
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOWATTEND_CACHE=folder, HOWATTEND_DATA=folder)  # neither the corpus nor what is shipped
        plant_corpus()
        return pd.concat([measure(architecture, steps) for architecture in ARCHITECTURES])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12, help="rounds that are measured")
    print(run(parser.parse_args().steps).round({"words/s with it": 0, "without": 0, "gain": 2}).to_string(index=False))
