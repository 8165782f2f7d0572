"""What a forward pass leaves behind: every quantity that the decomposition and the figures need."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True)
class Trace:
    """The hidden states, scores and logits of a batch. B samples, T source steps, S target steps, n units, V words.

    Every float tensor is 0 at padded steps, so that sums over steps need no mask. Networks without attention (VED)
    have None for ``scores``, ``attention``, ``queries``, ``keys``, ``values`` and ``contexts``.
    """

    encoder_states: Tensor  # [B, T, n]  h^E_t
    decoder_states: Tensor  # [B, S, n]  h^D_s
    scores: Tensor | None  # [B, S, T]  a_st
    attention: Tensor | None  # [B, S, T]  α_st: rows sum to 1 over the source's words
    contexts: Tensor | None  # [B, S, n]  c_s = Σ_t α_st values_t
    logits: Tensor  # [B, S, V]
    encoder_tokens: Tensor  # [B, T]  source words, end of sentence included
    decoder_tokens: Tensor  # [B, S]  the words as fed to the decoder; the first is the start of sentence
    encoder_mask: Tensor  # [B, T]  bool, True on words
    decoder_mask: Tensor  # [B, S]  bool, True on words
    queries: Tensor | None  # [B, S, n]  decoder side of the scores: the states themselves for "dot"
    keys: Tensor | None  # [B, T, n]  encoder side of the scores: the states themselves for "dot"
    values: Tensor | None  # [B, T, n]  what the context averages: the states themselves for "dot"
    score_scale: float | None  # scores = score_scale · query · key; None where the scores are no dot product

    def __len__(self) -> int:
        return self.encoder_states.shape[0]

    def __getitem__(self, index: slice | Tensor) -> Trace:
        """The samples picked by a slice or an index tensor."""
        picked = {
            field.name: value[index] for field in fields(self) if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **picked)

    @staticmethod
    def concatenate(traces: list[Trace]) -> Trace:
        """One trace of all the samples of several, which must have the same numbers of steps."""
        first = traces[0]
        joined = {
            field.name: torch.cat([getattr(trace, field.name) for trace in traces])
            for field in fields(first)
            if isinstance(getattr(first, field.name), Tensor)
        }
        return replace(first, **joined)
