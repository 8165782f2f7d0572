"""Recurrent cells behind one interface: project the inputs of all steps at once, then step through the states.

Conventions and parameter names are those of ``torch.nn.GRUCell`` and ``torch.nn.LSTMCell`` where torch has the cell, so
weights can be exchanged. A state is a tuple of [B, n] tensors whose first entry is the hidden state h. ``None`` stands
for the zero state and costs no matrix product.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

State = tuple[Tensor, ...]


class Cell(nn.Module):
    """A map (input, state) → state with ``gates`` pre-activations a unit."""

    gates: ClassVar[int]

    def __init__(self, input_size: int, hidden_size: int, random: torch.Generator) -> None:
        super().__init__()
        rows, bound = self.gates * hidden_size, hidden_size**-0.5
        self.hidden_size = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(rows, input_size).uniform_(-bound, bound, generator=random))
        self.weight_hh = nn.Parameter(torch.empty(rows, hidden_size).uniform_(-bound, bound, generator=random))
        self.bias_ih = nn.Parameter(torch.empty(rows).uniform_(-bound, bound, generator=random))
        self.bias_hh = nn.Parameter(torch.empty(rows).uniform_(-bound, bound, generator=random))

    def project(self, inputs: Tensor) -> Tensor:
        """[…, d] inputs → […, gates·n] W_ih x + b_ih, what the input adds to the pre-activations."""
        return nn.functional.linear(inputs, self.weight_ih, self.bias_ih)

    def step(self, projected: Tensor, state: State | None) -> State:
        """One time step: projected inputs [B, gates·n] and the last state → the next state."""
        raise NotImplementedError

    def _recurrent(self, state: State | None) -> Tensor:
        """W_hh h + b_hh, [B, gates·n] (or [gates·n] for the zero state)."""
        if state is None:
            return self.bias_hh
        return torch.addmm(self.bias_hh, state[0], self.weight_hh.t())


class GRU(Cell):
    """Gated recurrent unit (Cho et al. 2014): h' = (1 − z)·tanh(W x + r·(U h)) + z·h."""

    gates = 3

    def step(self, projected: Tensor, state: State | None) -> State:
        n = self.hidden_size
        # Split, not sliced: a slice's gradient would be a padded copy of all gates each time.
        gates_in, candidate_in = projected.split([2 * n, n], -1)
        gates, candidate = self._recurrent(state).split([2 * n, n], -1)
        reset, update = torch.sigmoid(gates_in + gates).split(n, -1)
        candidate = torch.tanh(torch.addcmul(candidate_in, reset, candidate))
        return (candidate - update * candidate if state is None else torch.lerp(candidate, state[0], update),)


class LSTM(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997); the state is (h, c), the analysis uses h."""

    gates = 4

    def step(self, projected: Tensor, state: State | None) -> State:
        n = self.hidden_size
        before = projected + self._recurrent(state)
        take, keep, write, show = before.split(n, -1)
        memory = torch.sigmoid(take) * torch.tanh(write)
        if state is not None:
            memory = torch.addcmul(memory, torch.sigmoid(keep), state[1])
        return torch.sigmoid(show) * torch.tanh(memory), memory


class UGRNN(Cell):
    """Update-gate RNN (Collins et al. 2016): h' = u·h + (1 − u)·tanh(W x + U h), u = σ(W_u x + U_u h + gate bias)."""

    gates = 2
    gate_bias: ClassVar[float] = 1.0  # as in Collins et al.: begins by keeping most of the state

    def step(self, projected: Tensor, state: State | None) -> State:
        before = projected + self._recurrent(state)
        update, candidate = before.split(self.hidden_size, -1)
        update, candidate = torch.sigmoid(update + self.gate_bias), torch.tanh(candidate)
        return (candidate - update * candidate if state is None else torch.lerp(candidate, state[0], update),)


class NonGated(Cell):
    """No gate: h' = tanh(W x + U h + b); from the zero state a feedforward layer."""

    gates = 1

    def step(self, projected: Tensor, state: State | None) -> State:
        return (torch.tanh(projected + self._recurrent(state)),)


CELL_CLASSES: dict[str, type[Cell]] = {"gru": GRU, "lstm": LSTM, "ugrnn": UGRNN, "ff": NonGated}
