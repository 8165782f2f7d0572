"""A training step of the AED against one of JoeyNMT's recurrent encoder–decoder, in turns in one process.

    python -m pip install --no-deps -r benchmarks/requirements-joeynmt.txt
    python benchmarks/bench_joeynmt.py [--rounds 12]

A step is forward pass, loss, backward pass, clipping and the optimiser's update. Both networks take it on the same
sentence pairs, in float32 on one thread, with GRUs, the same sizes of embeddings and hidden states, the same
vocabularies (JoeyNMT's always has ``<unk>``), the same dropout at the same places, the same clipping and weight decay,
and torch's fused Adam. Sizes and recipe are those of two runs: one-to-one (n = 128, 3 words, 15 to 20 words a sentence)
and translation (n = 224, 5,000 words, up to 15 words a sentence, dropout 0.4; random words, in the recipe's batches of
128 pairs of like lengths; label smoothing only where a row says so). Making, sorting and moving batches is not timed.
In every round each network takes a step on each of four batches; the networks' order changes from round to round. What
counts is the processor's time, so other work on the machine moves the ratios little. "times faster" is JoeyNMT's time
over ours: the median over the rounds and its distribution-free interval, of at least 95 %. README.md has the last
recorded result.

The networks are not the same, and cannot be made so:

- JoeyNMT's encoder is bidirectional, two GRUs of n/2 units: a unidirectional one of this version stops with an
  IndexError. Its recurrent products are half as many as ours, its steps twice as many.
- It projects the inputs word by word as they occur, the decoder's within its loop; ours projects all steps' at once,
  and of a small vocabulary each word only once.
- Scores are Luong's "general" ones, h^D · K h^E with a learned K [n, n]; ours are h^D · h^E.
- Attention is computed within the loop over decoder steps, as input feeding needs it; ours follows the loop, for all
  steps at once.
- Context and decoder state become an attentional vector tanh(C [h^D, c]) of n units, and one matrix [V, n] without bias
  reads it out. The book's AED has a matrix [V, n] for each of context and state, and a bias: the paper's readout, whose
  two parts it analyses. That is twice the products with the vocabulary, most of all there are with 5,000 words.
  "context readout" is our network with one matrix, of the context.
- Its logits and their softmax are of all steps of the padded batch; ours of the words only.
- It counts the correct words of each batch and asks for loss and count as numbers, as its trainer does.
- The loss of both is the mean over words. Label smoothing deals the rest to the words but the true one and padding;
  ours to all.

What can be turned off is off: input feeding, and the bridge between encoder and decoder (the decoder starts from the
encoder's last states). "its defaults" has both, Adam as JoeyNMT builds it (not fused), and sorts the batch within the
step, as its trainer does. Rows that compare unlike work say so: "predicted" chooses and feeds a word of its own at each
step, the book's default for synthetic tasks, where JoeyNMT is always fed the true words; the "bfloat16 readout" is what
the translation recipe uses, where JoeyNMT turns half precision off on a CPU. Memory that a step frees is kept for the
next (``training.keep_memory``), JoeyNMT's too.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from types import SimpleNamespace

import numpy as np
import pandas as pd
import torch
from bench_translation import plant_corpus
from scipy.stats import binom
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from howattend import models, runs, tasks, training

VERSION = "2.3.0"
HOW = "python -m pip install --no-deps -r benchmarks/requirements-joeynmt.txt"
UNK, PAD, BOS, EOS = range(4)  # JoeyNMT's special words; their order is fixed, and all vocabularies have all four
BATCHES = 4
BAR = 2  # times faster that the step should be


def missing() -> str | None:
    """Why this benchmark cannot run here and what to do about it, or None where it can."""
    try:
        version = metadata.version("joeynmt")
    except metadata.PackageNotFoundError:
        return f"joeynmt is not installed, nothing is measured; to install it: {HOW}"
    if version != VERSION:
        return f"joeynmt must be {VERSION}, got {version}, nothing is measured; to install it: {HOW}"
    try:
        import_module("joeynmt.model")
    except ImportError as error:
        return f"joeynmt cannot be imported ({error}), nothing is measured; to install what it needs: {HOW}"
    return None


# ---- JoeyNMT's side --------------------------------------------------------------------------------------------------


def joey_ids(words: Tensor, vocabulary: tasks.Vocabulary) -> Tensor:
    """Our word ids as JoeyNMT's, which puts its four special words first."""
    content = vocabulary.content_ids
    table = torch.full((len(vocabulary),), UNK)
    table[[tasks.PAD, tasks.BOS, tasks.EOS]] = torch.tensor([PAD, BOS, EOS])
    table[content.start : content.stop] = torch.arange(len(content)) + 4
    return table[words]


def joey_batch(batch: tasks.Batch, task: tasks.Task):
    """The same sentence pairs as a ``joeynmt.batch.Batch``, sorted by source length as its encoder needs them."""
    from joeynmt.batch import Batch

    target = joey_ids(batch.target, task.target_vocabulary)
    converted = Batch(
        src=joey_ids(batch.source, task.source_vocabulary),
        src_length=batch.source_lengths,
        src_prompt_mask=None,
        trg=nn.functional.pad(target, (1, 0), value=BOS),
        trg_prompt_mask=None,
        indices=torch.arange(len(batch)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=EOS,
    )
    converted.sort_by_src_length()
    return converted


def joey_model(task: tasks.Task, size: int, dropout: float, smoothing: float, defaults: bool) -> nn.Module:
    """JoeyNMT's network of n = ``size``, with input feeding and bridge (its ``defaults``) or without."""
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

    special = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "sep_token": None}
    ids = {"unk_id": UNK, "pad_id": PAD, "bos_id": BOS, "eos_id": EOS, "sep_id": None}
    words = SimpleNamespace(**special, **ids, lang_tags=[])
    sides = [
        Vocabulary([vocabulary.words[number] for number in vocabulary.content_ids], words)
        for vocabulary in (task.source_vocabulary, task.target_vocabulary)
    ]
    shared = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1, "dropout": dropout}
    shared["embeddings"] = {"embedding_dim": size}
    decoder = {"attention": "luong", "hidden_dropout": dropout, "input_feeding": defaults}
    decoder["init_hidden"] = "bridge" if defaults else "last"
    settings = {
        "encoder": {**shared, "hidden_size": size // 2, "bidirectional": True},
        "decoder": {**shared, **decoder, "hidden_size": size},
    }
    logging.getLogger("joeynmt.model").setLevel(logging.WARNING)
    model = build_model(settings, *sides)
    model.loss_function = ("crossentropy", smoothing)
    return model


def joey_step(model: nn.Module, adam: torch.optim.Optimizer, batch, config: training.TrainConfig) -> float:
    """One update as JoeyNMT's ``TrainManager`` makes it; returns the loss before it, the mean over words."""
    model.train()
    total, _, _, correct = model(return_type="loss", **vars(batch))
    loss = batch.normalize(total, "tokens")
    loss.backward()
    loss, _ = loss.item(), correct.item()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=config.clip_norm)
    adam.step()
    model.zero_grad()
    return loss


# ---- both ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """One of the networks that take turns: it, and a step of its training on batch number i, which gives the loss."""

    model: nn.Module
    step: Callable[[int], float]


@dataclass(frozen=True)
class Setting:
    """Sizes and recipe of a run of the registry, in float32 and without label smoothing, and which pairs of networks
    are compared: (ours, JoeyNMT's, whether they do like work)."""

    run: str
    pairs: tuple[tuple[str, str, bool], ...]


MATCHED, DEFAULTS, SMOOTHED = "matched", "its defaults", "matched, label smoothing"
SETTINGS = (
    Setting(
        "one_to_one-aed-gru",
        (("teacher forcing", MATCHED, True), ("teacher forcing", DEFAULTS, False), ("predicted", MATCHED, False)),
    ),
    Setting(
        "translation-aed-gru",
        (
            ("teacher forcing", MATCHED, True),
            ("teacher forcing", DEFAULTS, False),
            ("context readout", MATCHED, True),
            ("label smoothing", SMOOTHED, True),
            ("bfloat16 readout", MATCHED, False),
        ),
    ),
)


def build(setting: Setting) -> dict[tuple[str, str], Network]:
    """The networks of a setting by (whose, name)."""
    run = runs.config(setting.run)
    task, config = run.task, replace(run.train, bfloat16=False, label_smoothing=0.0)
    smoothing = run.train.label_smoothing
    batches = [task.training_batch(config.batch_size, 0, number) for number in range(BATCHES)]
    theirs = [joey_batch(batch, task) for batch in batches]
    if [batch.ntokens for batch in theirs] != [int(batch.target_lengths.sum()) for batch in batches]:
        raise AssertionError("JoeyNMT's batches must hold the same words as ours, and do not")

    def adam(model: nn.Module, fused: bool = True) -> torch.optim.Optimizer:
        decay = 2 * config.l2
        return torch.optim.Adam(model.parameters(), lr=config.learning_rate, weight_decay=decay, fused=fused or None)

    def our(decoder_input: str = "teacher", readout: str = "both", **changed: object) -> Network:
        model = models.EncoderDecoder(replace(run.model, decoder_input=decoder_input, readout=readout), task)
        optimiser, recipe, random = adam(model), replace(config, **changed), tasks.generator("dropout", 0, 0)
        return Network(model, lambda i: float(training.train_step(model, optimiser, batches[i], recipe, random)))

    def joey(defaults: bool = False, smoothing: float = 0.0) -> Network:
        model = joey_model(task, run.model.hidden_size, run.model.dropout, smoothing, defaults)
        optimiser = adam(model, fused=not defaults)

        def step(i: int) -> float:
            if defaults:
                theirs[i].sort_by_src_length()
            return joey_step(model, optimiser, theirs[i], config)

        return Network(model, step)

    makers = {
        ("ours", "teacher forcing"): our,
        ("ours", "predicted"): lambda: our("predicted"),
        ("ours", "context readout"): lambda: our(readout="context"),
        ("ours", "label smoothing"): lambda: our(label_smoothing=smoothing),
        ("ours", "bfloat16 readout"): lambda: our(bfloat16=True),
        ("JoeyNMT", MATCHED): joey,
        ("JoeyNMT", DEFAULTS): lambda: joey(defaults=True),
        ("JoeyNMT", SMOOTHED): lambda: joey(smoothing=smoothing),
    }
    wanted = {key for one, other, _ in setting.pairs for key in (("ours", one), ("JoeyNMT", other))}
    return {key: make() for key, make in makers.items() if key in wanted}


def seconds(networks: dict[tuple[str, str], Network], rounds: int) -> pd.DataFrame:
    """Seconds of processor time of a step, [rounds, networks], after a round to warm up.

    Raises AssertionError where a network does not learn these batches: its steps would be no training steps.
    """
    names, rows, losses = list(networks), [], {}
    for number in range(rounds + 1):
        row = {}
        for name in names[number % len(names) :] + names[: number % len(names)]:
            begun = time.process_time()
            loss = statistics.fmean(networks[name].step(i) for i in range(BATCHES))
            row[name] = (time.process_time() - begun) / BATCHES
            if loss > losses.setdefault(name, loss):
                raise AssertionError(f"{' '.join(name)} does not learn: loss {losses[name]:.3f}, later {loss:.3f}")
        rows.append(row)
    return pd.DataFrame(rows[1:])


def median_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The median and the ends of its distribution-free interval: order statistics with at least this coverage.

    With fewer than six values no two of them cover 95 %; the interval is then the whole line.
    """
    ordered = np.sort(values)
    place = int(binom.ppf((1 - level) / 2, len(ordered), 0.5))  # of the ends, counted from 1 from either side
    low, high = (ordered[place - 1], ordered[-place]) if place else (-np.inf, np.inf)
    return float(np.median(ordered)), float(low), float(high)


def measure(setting: Setting, rounds: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many times faster ours is, pair by pair, and what the networks are: parameters and products of a step."""
    networks = build(setting)
    sizes = []
    for (whose, name), network in networks.items():
        with FlopCounterMode(display=False) as counter:
            network.step(0)
        count = sum(parameter.numel() for parameter in network.model.parameters())
        sizes.append((setting.run, whose, name, count, counter.get_total_flops() / 1e9))
    times = seconds(networks, rounds)
    rows = []
    for one, other, like in setting.pairs:
        ours, theirs = times["ours", one], times["JoeyNMT", other]
        times_faster, low, high = median_interval(theirs / ours)
        verdict = "yes" if low >= BAR else "no" if high < BAR else "open"
        medians = (1e3 * ours.median(), 1e3 * theirs.median())
        rows.append((setting.run, one, other, *medians, times_faster, low, high, verdict, "yes" if like else "no"))
    compared = ["run", "ours", "JoeyNMT", "ours, ms", "JoeyNMT, ms", "times faster", "low", "high", f"≥ {BAR}"]
    compared.append("like for like")
    sized = pd.DataFrame(sizes, columns=["run", "whose", "network", "parameters", "GFLOP of products a step"])
    return pd.DataFrame(rows, columns=compared), sized


def run(rounds: int = 12) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both tables of all settings."""
    torch.set_num_threads(1)
    training.keep_memory()  # as train does
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOWATTEND_CACHE=folder, HOWATTEND_DATA=folder)  # neither the corpus nor what is shipped
        plant_corpus()
        tables = zip(*(measure(setting, rounds) for setting in SETTINGS), strict=True)
        compared, sized = (pd.concat(parts, ignore_index=True) for parts in tables)
    return compared, sized


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=12, help="rounds that are measured, six at least (default: 12)")
    rounds = parser.parse_args().rounds
    if rounds < 6:
        parser.error(f"--rounds must be at least 6, got {rounds}: fewer have no 95 % interval")
    if (reason := missing()) is not None:
        print(reason)  # no failure: python -m howattend bench goes on with the others
        return
    compared, sized = run(rounds)
    print(sized.to_string(index=False, float_format="{:.2f}".format), end="\n\n")
    shown = compared.round({"ours, ms": 0, "JoeyNMT, ms": 0})
    print(shown.to_string(index=False, float_format="{:.3g}".format))


if __name__ == "__main__":
    main()
