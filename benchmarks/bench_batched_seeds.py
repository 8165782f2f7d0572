"""Several seeds of one configuration in one training, against one after the other: what batched parameters gain.

    python benchmarks/bench_batched_seeds.py [--threads 1] [--seeds 2 5]

The sweep trains small networks, each at several seeds. Their parameters can be stacked, with the seeds as a leading
axis of every product, so that each operation is called once for all. What that saves is the cost of calls; the products
stay as they are. The AED on one-to-one that is fed its own predictions is trained in both ways here, on the same
batches, in turns within one run. That both are the same training is checked first.

It does not pay, so nothing of this is in the library: see FINDING.
"""

from __future__ import annotations

import argparse
import statistics
import time

import pandas as pd
import torch
from torch import Tensor, nn

from howattend import models, tasks, training

FINDING = """\
Found with one thread of an AVX-512 server processor: 2 seeds at once are 1.03 to 1.05 times as fast, 5 seeds 0.88 to
0.97 times. The products of batches of 128 already fill a core, and with more seeds the states no longer fit its cache.
A gain of less than 1.3 is not worth a second training loop: the sweep trains one network a core instead."""
TASK, CONFIG = tasks.OneToOne(), training.TrainConfig(l2=1e-2)


class Batched:
    """The training of K networks at once: AED, GRU, dot attention, both readouts, fed its own predictions."""

    def __init__(self, seeds: int) -> None:
        networks = [models.EncoderDecoder(models.ModelConfig(), TASK, seed) for seed in range(seeds)]
        stacked = zip(*(network.named_parameters() for network in networks), strict=True)
        self.weights = {
            some[0][0]: nn.Parameter(torch.stack([value for _, value in some]).detach()) for some in stacked
        }
        self.adam = torch.optim.Adam(self.weights.values(), lr=1e-3, weight_decay=2 * CONFIG.l2, fused=True)

    def _cell(self, name: str, embedding: str) -> tuple[Tensor, Tensor, Tensor]:
        """What each word adds to the gates [K·V, 3n], and the recurrent weights [K, n, 3n] and biases [K, 1, 3n]."""
        w = self.weights
        table = torch.baddbmm(w[f"{name}.bias_ih"][:, None], w[embedding], w[f"{name}.weight_ih"].transpose(1, 2))
        return table.flatten(0, 1), w[f"{name}.weight_hh"].transpose(1, 2), w[f"{name}.bias_hh"][:, None]

    @staticmethod
    def _step(projected: Tensor, state: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """projected [K, B, 3n], state [K, B, n] → state, as models.cells.GRU."""
        n = state.shape[-1]
        gates_in, candidate_in = projected.split([2 * n, n], -1)
        gates, candidate = torch.baddbmm(bias, state, weight).split([2 * n, n], -1)
        reset, update = torch.sigmoid(gates_in + gates).split(n, -1)
        return torch.lerp(torch.tanh(torch.addcmul(candidate_in, reset, candidate)), state, update)

    def _logits(self, queries: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        """queries [K, B, S, n], keys [K, B, T, n], mask [K, B, T] → [K, B·S, V]."""
        w, (seeds, _, _, n) = self.weights, queries.shape
        scores = (queries.flatten(0, 1) @ keys.flatten(0, 1).transpose(1, 2)).unflatten(0, queries.shape[:2])
        attention = torch.softmax(scores.masked_fill(~mask[:, :, None], -torch.inf), -1)
        contexts = attention.flatten(0, 1) @ keys.flatten(0, 1)
        logits = torch.baddbmm(
            w["readout_bias"][:, None], contexts.reshape(seeds, -1, n), w["context_readout"].transpose(1, 2)
        )
        return torch.baddbmm(logits, queries.reshape(seeds, -1, n), w["state_readout"].transpose(1, 2))

    def step(self, batches: list[tasks.Batch]) -> Tensor:
        """One update of every network on its own batch; the losses before it [K]."""
        w, seeds = self.weights, len(batches)
        source, target = (torch.stack([getattr(batch, side) for batch in batches]) for side in ("source", "target"))
        lengths = torch.stack([batch.source_lengths for batch in batches])
        source_mask, target_mask = (
            torch.stack([getattr(batch, f"{side}_mask") for batch in batches]) for side in ("source", "target")
        )
        rows, words = torch.arange(seeds)[:, None], self.weights["source_embedding"].shape[1]
        first = rows * words  # of each network's words in the joint table
        table, weight, bias = self._cell("encoder", "source_embedding")
        state, states = w["source_embedding"].new_zeros(*lengths.shape, w["source_embedding"].shape[2]), []
        for projected in nn.functional.embedding((source + first[:, :, None]).movedim(-1, 0), table).unbind():
            state = self._step(projected, state, weight, bias)
            states.append(state)
        keys = torch.stack(states, 2)
        state = keys[rows, torch.arange(lengths.shape[1]), lengths - 1]
        table, weight, bias = self._cell("decoder", "target_embedding")
        word, states, frozen = torch.full_like(lengths, tasks.BOS), [], keys.detach()
        for _ in range(target.shape[2]):
            state = self._step(nn.functional.embedding(word + first, table), state, weight, bias)
            states.append(state)
            with torch.no_grad():
                word = self._logits(state.detach()[:, :, None], frozen, source_mask).argmax(-1)
        logits = self._logits(torch.stack(states, 2), keys, source_mask)
        losses = nn.functional.cross_entropy(logits.transpose(1, 2), target.flatten(1), reduction="none")
        mask = target_mask.flatten(1)
        losses = (losses * mask).sum(1) / mask.sum(1)
        self.adam.zero_grad(set_to_none=True)
        losses.sum().backward()
        gradients = [parameter.grad for parameter in w.values()]
        norms = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0).sqrt()
        scale = (CONFIG.clip_norm / (norms + 1e-6)).clamp(max=1)
        for gradient in gradients:
            gradient.mul_(scale.view(-1, *(1,) * (gradient.ndim - 1)))
        self.adam.step()
        return losses.detach()


class OneByOne:
    """The library's training of the same networks."""

    def __init__(self, seeds: int) -> None:
        self.networks = [models.EncoderDecoder(models.ModelConfig(), TASK, seed) for seed in range(seeds)]
        self.adams = [
            torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=2 * CONFIG.l2, fused=True)
            for network in self.networks
        ]

    def step(self, batches: list[tasks.Batch]) -> Tensor:
        each = zip(self.networks, self.adams, batches, strict=True)
        return torch.stack([training.train_step(network, adam, batch, CONFIG) for network, adam, batch in each])


def batches_of(seeds: int, step: int) -> list[tasks.Batch]:
    """What each seed is trained on at a step."""
    return [TASK.training_batch(CONFIG.batch_size, seed, step) for seed in range(seeds)]


def check(seeds: int = 3, steps: int = 5) -> float:
    """The largest relative difference between the losses of the two ways."""
    one, other, worst = OneByOne(seeds), Batched(seeds), 0.0
    for step in range(steps):
        batches = batches_of(seeds, step)
        first, second = one.step(batches), other.step(batches)
        worst = max(worst, float(((first - second).abs() / first).max()))
    return worst


def run(seeds: tuple[int, ...] = (2, 5), threads: int = 1, repeats: int = 20) -> pd.DataFrame:
    """Milliseconds a network and step in both ways, and how many times faster batched parameters are."""
    torch.set_num_threads(threads)
    training.keep_memory()
    if (difference := check()) > 1e-3:
        raise AssertionError(f"the two ways are not the same training: losses differ by {difference:.1e}")
    rows = []
    for count in seeds:
        ways, batches = {"one by one": OneByOne(count), "batched": Batched(count)}, batches_of(count, 0)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(repeats + 2):
            for name, way in ways.items():  # in turns, so that a slow spell of the machine falls on both
                begun = time.perf_counter()
                way.step(batches)
                if repeat >= 2:
                    times[name].append(time.perf_counter() - begun)
        one, batched = (1e3 * statistics.median(times[name]) / count for name in ways)
        rows.append((count, one, batched, one / batched))
    return pd.DataFrame(rows, columns=["seeds", "one by one, ms", "batched, ms", "times faster"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 5])
    arguments = parser.parse_args()
    print(run(tuple(arguments.seeds), arguments.threads).round(2).to_string(index=False))
    print(FINDING)
