"""Beam search: translations that are likelier than the one that greedy decoding finds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from howattend.tasks.vocabulary import BOS, EOS, PAD

if TYPE_CHECKING:
    from howattend.models.encoder_decoder import EncoderDecoder


@torch.no_grad()
def beam_search(
    model: EncoderDecoder,
    source: Tensor,
    source_lengths: Tensor,
    max_length: int,
    width: int = 5,
    *,
    length_power: float = 1.0,
    forbidden: Sequence[int] = (),
) -> Tensor:
    """The best translation that a search over ``width`` hypotheses at a time finds: [B, ≤ max_length], end of sentence
    included, padded behind it, as :meth:`EncoderDecoder.generate` gives it; on the device of ``source``.

    Every step extends the sentence's open hypotheses by every word and keeps the likeliest. One that has ended leaves
    the search with its place (``width`` counts it on), so the search is over once ``width`` have ended, and a width of
    1 is greedy decoding. Of those that ended, the one with the highest score wins,

        score(y) = Σ_s log p(y_s | y_<s, x) / S ** length_power,

    S counting the end of sentence. A hypothesis that is still open at ``max_length`` can win only where none ended: it
    has paid for no end, and "la la la …" has a high mean.

    Args:
        model: of any architecture; the decoder is fed each hypothesis's own words, unless it was trained on a constant.
        source: [B, T] word ids.
        source_lengths: [B], ends of sentence included.
        max_length: words of the longest translation, its end included.
        width: hypotheses a sentence. Memory and time grow with it.
        length_power: 1 compares the mean log-probability of a word, 0 that of the whole sentence, which favours short
            ones.
        forbidden: ids that are never said. None by default: greedy decoding may say any word too, and an ``<unk>``
            shows where the network means a word that it cannot name. ``(UNK,)`` makes it name another one.

    Raises ValueError for a width, length or power out of range, and for ids that are no words of the model.
    """
    for name, value in (("max_length", max_length), ("width", width)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}")
    if not (isinstance(length_power, int | float) and 0 <= length_power < math.inf):
        raise ValueError(f"length_power must be a number ≥ 0, got {length_power!r}")
    forbidden = sorted(set(forbidden))
    if forbidden and not (forbidden[0] >= 0 and forbidden[-1] < model.target_words > len(forbidden)):
        raise ValueError(
            f"forbidden must hold some, not all, of the word ids 0 … {model.target_words - 1}, got {forbidden}"
        )
    words, total, lengths, ended = _search(model, source, source_lengths, max_length, width, forbidden)
    scores = (total / lengths**length_power).masked_fill(ended.any(1, keepdim=True) & ~ended, -math.inf)
    best = torch.arange(len(source), device=source.device), scores.argmax(1)
    return words[best][:, : int(lengths[best].max())]


def _search(
    model: EncoderDecoder, source: Tensor, source_lengths: Tensor, max_length: int, width: int, forbidden: list[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The last beam: words [B, width, steps] padded behind the end and, [B, width] each, log-probability, length and
    whether the hypothesis has ended."""
    model._check(source, source_lengths)
    size, device = len(source), source.device
    encoded = model.encode(source, source_lengths).repeat(width)  # the hypotheses of a sentence lie side by side
    tables, state = model._projections(model.decoder, model.target_embedding, max_length), encoded.start
    first = (torch.arange(size, device=device) * width)[:, None]  # [B, 1] where a sentence's hypotheses begin
    words = torch.full((size * width, 0), PAD, device=device)
    fed = torch.full((size * width,), BOS, device=device)
    # All begin alike, so only the first counts; −∞ marks places that no hypothesis has.
    total = model.readout_bias.new_full((size, width), -math.inf)
    total[:, 0] = 0.0
    ended = torch.zeros_like(total, dtype=torch.bool)
    lengths = torch.zeros_like(total)
    for step in range(max_length):
        state = model._next_state(tables, step, fed, state)
        logits = model._logits(encoded, state[0][:, None])[:, 0]
        normaliser = logits.logsumexp(-1, keepdim=True)
        logits[:, forbidden] = -math.inf
        # No more than `width` words of one hypothesis can be among the sentence's best: [B, width, ≤ width].
        likeliest, choices = logits.topk(min(width, logits.shape[1]))
        gain = (likeliest - normaliser).view(size, width, -1)
        candidates, choices = total[:, :, None] + gain, choices.view(size, width, -1)
        # What has ended goes on as one candidate, itself, which nothing displaces.
        rank = candidates.masked_fill(ended[:, :, None], -math.inf)
        rank[:, :, 0] = rank[:, :, 0].masked_fill(ended, math.inf)
        candidates = torch.where(ended[:, :, None], total[:, :, None], candidates)
        choices = choices.masked_fill(ended[:, :, None], PAD)
        picked = rank.flatten(1).topk(width, dim=1).indices  # [B, width]
        parents = picked // choices.shape[2]
        total, word = candidates.flatten(1).gather(1, picked), choices.flatten(1).gather(1, picked)
        ended, lengths = ended.gather(1, parents), lengths.gather(1, parents)
        lengths = lengths + ~ended
        ended = ended | (word == EOS) & (total > -math.inf)
        origins = (first + parents).flatten()
        words = torch.cat([words[origins], word.view(-1, 1)], 1)
        state = tuple(part[origins] for part in state)
        if model.config.decoder_input != "constant":
            fed = word.flatten()
        if bool((ended | (total == -math.inf)).all()):
            break
    return words.view(size, width, -1), total, lengths, ended
