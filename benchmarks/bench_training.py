"""A training step against the matrix products that it cannot do without, measured in the same run.

    python benchmarks/bench_training.py [--threads 1]

The products: each cell's recurrent product forward, and the two of its backward pass, at every step; the input
projections; scores and contexts and their gradients; for a decoder fed its own predictions also the products that
choose each word; the readouts. All else (gates, softmax, the optimiser, autograd's book-keeping) is what the ratio
shows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import pandas as pd
import torch

from howattend import models, tasks, training

BATCH = 128


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of a call, after two to warm up."""
    for _ in range(2):
        work()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def matrix_products(model: models.EncoderDecoder, batch: tasks.Batch) -> Callable[[], None]:
    """The products of one step alone, on random matrices of the right shapes."""
    n, gates, words = model.config.hidden_size, model.encoder.gates, model.target_words
    B, T, S = len(batch), batch.source.shape[1], batch.target.shape[1]
    state, weight, before = torch.randn(B, n), torch.randn(n, gates * n), torch.randn(B, gates * n)
    table, table_gradient = torch.randn(words, n), torch.randn(words, gates * n)
    queries, keys, scores = torch.randn(B, S, n), torch.randn(B, T, n), torch.randn(B, S, T)
    flat, readout, logits = torch.randn(B * S, n), torch.randn(n, words), torch.randn(B * S, words)

    def cell(steps: int) -> None:
        for _ in range(steps):
            state @ weight  # forward
            before @ weight.t()  # gradient of the state
            state.t() @ before  # gradient of the weights
        table @ weight
        table_gradient @ weight.t()
        table.t() @ table_gradient

    def products() -> None:
        cell(T)
        cell(S)
        for _ in range(2):  # scores and contexts: one product forward, two backward each
            queries @ keys.transpose(1, 2)
            scores @ keys
            scores.transpose(1, 2) @ queries
        if model.config.decoder_input == "predicted":
            for step in range(S):  # the choice of each word
                weights = queries[:, step : step + 1] @ keys.transpose(1, 2)
                weights @ keys
                for _ in range(2):
                    state @ readout
        for _ in range(2):  # readouts of context and state
            flat @ readout
            logits @ readout.t()
            flat.t() @ logits

    return products


def run(threads: int = 1, repeats: int = 30) -> pd.DataFrame:
    """Milliseconds of an AED step and of its matrix products alone, for both kinds of decoder input."""
    torch.set_num_threads(threads)
    training.keep_memory()  # as train does
    task, config = tasks.OneToOne(), training.TrainConfig(batch_size=BATCH)
    rows = []
    for decoder_input in ("predicted", "teacher"):
        model = models.EncoderDecoder(models.ModelConfig(decoder_input=decoder_input), task)
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        batch = task.training_batch(BATCH, 0, 0)
        step = seconds(lambda m=model, a=adam, b=batch: training.train_step(m, a, b, config), repeats)
        with torch.no_grad():
            products = seconds(matrix_products(model, batch), repeats)
        rows.append((f"AED step, {decoder_input}", 1e3 * step, 1e3 * products, step / products))
    return pd.DataFrame(rows, columns=["what", "ms", "matrix products alone, ms", "ratio"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    print(run(parser.parse_args().threads).round(2).to_string(index=False))
