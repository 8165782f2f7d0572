"""What a forward pass leaves behind: every quantity that the decomposition and the figures need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Trace:
    """The hidden states, scores and logits of a batch. B samples, T source steps, S target steps, n units, V words.

    Every float tensor is 0 at padded steps, so that sums over steps need no mask. Networks without attention (VED)
    have None for ``scores``, ``attention``, ``queries``, ``keys``, ``values`` and ``contexts``. For "dot" attention,
    queries are the decoder states themselves, keys and values the encoder states: they take no memory of their own.
    """

    encoder_states: Tensor  # [B, T, n]  h^E_t
    decoder_states: Tensor  # [B, S, n]  h^D_s
    scores: Tensor | None  # [B, S, T]  a_st
    attention: Tensor | None  # [B, S, T]  α_st: rows sum to 1 over the source's words
    logits: Tensor  # [B, S, V]
    encoder_tokens: Tensor  # [B, T]  source words, end of sentence included
    decoder_tokens: Tensor  # [B, S]  the words as fed to the decoder; the first is the start of sentence
    encoder_mask: Tensor  # [B, T]  bool, True on words
    decoder_mask: Tensor  # [B, S]  bool, True on words
    queries: Tensor | None  # [B, S, n]  decoder side of the scores: the states themselves for "dot"
    keys: Tensor | None  # [B, T, n]  encoder side of the scores: the states themselves for "dot"
    values: Tensor | None  # [B, T, n]  what the context averages: the states themselves for "dot"
    score_scale: float | None  # scores = score_scale · query · key; None where the scores are no dot product

    @property
    def contexts(self) -> Tensor | None:
        """c_s = Σ_t α_st values_t [B, S, n]; computed anew on each access."""
        return None if self.attention is None else self.attention @ self.values

    def __len__(self) -> int:
        return self.encoder_states.shape[0]

    def __getitem__(self, index: slice | Tensor) -> Trace:
        """The samples picked by a slice or an index tensor."""
        return self._each(lambda tensor: tensor[index])

    def to(self, device: torch.device | str) -> Trace:
        """The same trace on another device."""
        return self._each(lambda tensor: tensor.to(device))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Trace:
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        changed = {id(value): change(value) for value in tensors.values()}  # shared fields stay shared
        return replace(self, **{name: changed[id(value)] for name, value in tensors.items()})

    @staticmethod
    def concatenate(traces: list[Trace]) -> Trace:
        """One trace of all the samples of several, which must have the same numbers of steps."""
        first = traces[0]
        joined: dict[int, Tensor] = {}  # shared fields stay shared
        for name, value in vars(first).items():
            if isinstance(value, Tensor) and id(value) not in joined:
                joined[id(value)] = torch.cat([getattr(trace, name) for trace in traces])
        return first._each(lambda tensor: joined[id(tensor)])
