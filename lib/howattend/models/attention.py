"""Attention: scores between decoder and encoder states, weights over the source, and the context they average."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class DotAttention(nn.Module):
    """a_st = h^D_s · h^E_t, as in the paper's main text. No parameters: queries, keys and values are the states."""

    score_scale: float | None = 1.0

    def queries(self, decoder_states: Tensor) -> Tensor:
        return decoder_states

    def keys(self, encoder_states: Tensor) -> Tensor:
        return encoder_states

    def values(self, encoder_states: Tensor) -> Tensor:
        return encoder_states

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[B, S, n] queries and [B, T, n] keys → [B, S, T]."""
        return queries @ keys.transpose(1, 2)


class ScaledDotAttention(DotAttention):
    """a_st = (Q h^D_s) · (K h^E_t) / √n with learned Q, K and V (Vaswani et al. 2017; the paper's supplement)."""

    def __init__(self, hidden_size: int, random: torch.Generator) -> None:
        super().__init__()
        self.score_scale = hidden_size**-0.5
        for name in ("query", "key", "value"):
            setattr(self, f"{name}_weight", _uniform(hidden_size, hidden_size, random))

    def queries(self, decoder_states: Tensor) -> Tensor:
        return decoder_states @ self.query_weight.t()

    def keys(self, encoder_states: Tensor) -> Tensor:
        return encoder_states @ self.key_weight.t()

    def values(self, encoder_states: Tensor) -> Tensor:
        return encoder_states @ self.value_weight.t()

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return super().scores(queries, keys) * self.score_scale


class AdditiveAttention(DotAttention):
    """a_st = v · tanh(Q h^D_s + K h^E_t) (Bahdanau et al. 2014). No dot product, so the scores have no nine terms."""

    score_scale = None

    def __init__(self, hidden_size: int, random: torch.Generator) -> None:
        super().__init__()
        self.query_weight = _uniform(hidden_size, hidden_size, random)
        self.key_weight = _uniform(hidden_size, hidden_size, random)
        self.score_weight = _uniform(1, hidden_size, random)

    def queries(self, decoder_states: Tensor) -> Tensor:
        return decoder_states @ self.query_weight.t()

    def keys(self, encoder_states: Tensor) -> Tensor:
        return encoder_states @ self.key_weight.t()

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        return torch.tanh(queries[:, :, None] + keys[:, None]) @ self.score_weight[0]


def attend(scores: Tensor, encoder_mask: Tensor) -> Tensor:
    """[B, S, T] scores → weights: softmax over the source's words, exactly 0 on padding."""
    return torch.softmax(scores.masked_fill(~encoder_mask[:, None], -torch.inf), dim=-1)


def make_attention(kind: str, hidden_size: int, random: torch.Generator) -> DotAttention:
    """The attention of a :class:`ModelConfig`."""
    if kind == "dot":
        return DotAttention()
    return {"scaled_dot": ScaledDotAttention, "additive": AdditiveAttention}[kind](hidden_size, random)


def _uniform(rows: int, columns: int, random: torch.Generator) -> nn.Parameter:
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound, generator=random))
