"""VED, AED and AO in one set of code (Fig. 1): encoder, attention where there is any, decoder and linear readout."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from howattend.models.attention import DotAttention, attend, make_attention
from howattend.models.cells import CELL_CLASSES, Cell, State
from howattend.models.config import DECODER_INPUTS, ModelConfig
from howattend.models.trace import Trace
from howattend.tasks import BOS, EOS, PAD, Batch, Task, generator, length_mask
from howattend.tasks.batch import check_tokens

TIMESCALE = 10_000.0  # of the sinusoidal positional encoding

Edit = Callable[[Tensor, slice], Tensor]  # of encoder states, see EncoderDecoder.trace
Drop = Callable[[Tensor], Tensor]  # dropout


@dataclass(frozen=True)
class Encoded:
    """A source sentence as the decoder sees it."""

    states: Tensor  # [B, T, n]
    mask: Tensor  # [B, T]
    start: State | None  # the decoder's initial state: the encoder's last; None without recurrence
    keys: Tensor | None = None  # [B, T, n]; None without attention
    values: Tensor | None = None  # [B, T, n]; None without attention

    def detach(self) -> Encoded:
        """The same numbers without their gradients, for the choice of words."""
        detached = (None if part is None else part.detach() for part in (self.states, self.keys, self.values))
        states, keys, values = detached
        return Encoded(states, self.mask, None, keys, values)

    def repeat(self, times: int) -> Encoded:
        """Every sentence ``times`` times, side by side."""

        def repeated(part: Tensor | None) -> Tensor | None:
            return None if part is None else part.repeat_interleave(times, 0)

        start = None if self.start is None else tuple(map(repeated, self.start))
        return Encoded(repeated(self.states), repeated(self.mask), start, repeated(self.keys), repeated(self.values))


class EncoderDecoder(nn.Module):
    """An encoder–decoder network for one task.

    Parameters are drawn from ``seed``; the task gives the vocabularies and the default decoder input. The number of
    steps is bounded by nothing but the task for recurrent networks and for AO, whose positions are computed.
    """

    def __init__(self, config: ModelConfig, task: Task, seed: int = 0) -> None:
        super().__init__()
        random = generator("weights", seed)
        self.seed = int(seed)
        self.config = config = config.resolve(task.default_decoder_input)
        n = config.hidden_size
        self.source_words, self.target_words = len(task.source_vocabulary), len(task.target_vocabulary)
        self.source_embedding = nn.Parameter(torch.empty(self.source_words, n).normal_(generator=random))
        self.target_embedding = nn.Parameter(torch.empty(self.target_words, n).normal_(generator=random))
        self.encoder: Cell = CELL_CLASSES[config.cell](n, n, random)
        self.decoder: Cell = CELL_CLASSES[config.cell](n, n, random)
        if not config.is_recurrent:  # every step begins from the zero state: never used, never trained
            for cell in (self.encoder, self.decoder):
                cell.weight_hh.requires_grad_(False)
        self.attention: DotAttention | None = (
            make_attention(config.attention, n, random) if config.has_attention else None
        )
        bound = n**-0.5
        for side in ("context", "state"):
            used = config.readout in (side, "both")
            weight = torch.empty(self.target_words, n).uniform_(-bound, bound, generator=random) if used else None
            # The vectors that a word's logit is read out with, [V, n]: from the context and from the decoder state.
            self.register_parameter(f"{side}_readout", None if weight is None else nn.Parameter(weight))
        self.readout_bias = nn.Parameter(torch.zeros(self.target_words))

    # ---- the stages -------------------------------------------------------------------------------------------

    def encode(self, source: Tensor, source_lengths: Tensor, drop: Drop | None = None) -> Encoded:
        """Source words [B, T] → hidden states [B, T, n]; what stands behind an end of sentence changes none of them."""
        projected = self._project(self.encoder, self.source_embedding, source, drop)
        mask = length_mask(source_lengths, source.shape[1])
        if not self.config.is_recurrent:
            return self._with_keys(Encoded(self.encoder.step(projected, None)[0].transpose(0, 1), mask, None))
        states, state = [], None
        for step in projected.unbind():
            state = self.encoder.step(step, state)
            states.append(state)
        # A sentence's last state is the one at its end of sentence, not at the end of the padded batch.
        last, rows = source_lengths - 1, torch.arange(len(source), device=source.device)
        stacked = [torch.stack(part) for part in zip(*states, strict=True)]  # [T, B, n] each
        return self._with_keys(Encoded(stacked[0].transpose(0, 1), mask, tuple(part[last, rows] for part in stacked)))

    def _with_keys(self, encoded: Encoded) -> Encoded:
        if self.attention is None:
            return encoded
        keys, values = self.attention.keys(encoded.states), self.attention.values(encoded.states)
        return replace(encoded, keys=keys, values=values)

    def readout(self, contexts: Tensor | None, decoder_states: Tensor) -> Tensor:
        """[…, n] contexts and decoder states → [..., V] logits."""
        logits = self.readout_bias
        if self.context_readout is not None:
            logits = logits + contexts @ self.context_readout.t()
        if self.state_readout is not None:
            logits = logits + decoder_states @ self.state_readout.t()
        return logits

    def _attend(self, encoded: Encoded, decoder_states: Tensor) -> tuple[Tensor, ...]:
        """Queries, scores, weights and contexts of decoder states [B, S, n]."""
        queries = self.attention.queries(decoder_states)
        scores = self.attention.scores(queries, encoded.keys)
        weights = attend(scores, encoded.mask)
        return queries, scores, weights, weights @ encoded.values

    def _logits(self, encoded: Encoded, decoder_states: Tensor) -> Tensor:
        contexts = self._attend(encoded, decoder_states)[-1] if self.attention is not None else None
        return self.readout(contexts, decoder_states)

    def _decode_words(self, encoded: Encoded, words: Tensor, drop: Drop | None = None) -> Tensor:
        """Decoder states [B, S, n] when the words [B, S] are fed."""
        projected = self._project(self.decoder, self.target_embedding, words, drop)
        if not self.config.is_recurrent:
            return self.decoder.step(projected, None)[0].transpose(0, 1)
        states, state = [], encoded.start
        for step in projected.unbind():
            state = self.decoder.step(step, state)
            states.append(state[0])
        return torch.stack(states, 1)

    def _decode_predictions(
        self, encoded: Encoded, steps: int, until_end: bool = False, constant: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Greedy decoding: states [B, S, n], the words fed [B, S] and the words predicted [B, S].

        The choice of a word passes no gradient, the states do. ``until_end`` stops once every sentence has ended;
        ``constant`` feeds the start of sentence at every step, whatever was predicted.
        """
        tables = self._projections(self.decoder, self.target_embedding, steps)
        word = torch.full(encoded.mask.shape[:1], BOS, device=encoded.mask.device)
        ended, state = torch.zeros_like(word, dtype=torch.bool), encoded.start
        frozen = encoded.detach()
        states, fed, predicted = [], [], []
        for step in range(steps):
            state = self._next_state(tables, step, word, state)
            states.append(state[0])
            fed.append(word)
            with torch.no_grad():
                choice = self._logits(frozen, state[0].detach()[:, None])[:, 0].argmax(-1)
            predicted.append(choice)
            word = word if constant else choice
            ended |= choice == EOS
            if until_end and bool(ended.all()):
                break
        return torch.stack(states, 1), torch.stack(fed, 1), torch.stack(predicted, 1)

    def _next_state(self, tables: tuple[Tensor, Tensor | None], step: int, words: Tensor, state: State | None) -> State:
        """The decoder's state once the words [B] are fed at a step, with the :meth:`_projections` of its words."""
        table, positions = tables
        projected = nn.functional.embedding(words, table)
        if positions is not None:
            projected = projected + positions[step]
        return self.decoder.step(projected, state if self.config.is_recurrent else None)

    def _projections(self, cell: Cell, embedding: Tensor, steps: int) -> tuple[Tensor, Tensor | None]:
        """What each word, and each position, adds to the pre-activations: [V, g] and [steps, g] (None if recurrent)."""
        if self.config.is_recurrent:
            return cell.project(embedding), None
        positions = positional_encoding(steps, self.config.hidden_size).to(embedding)
        return cell.project(embedding), positions @ cell.weight_ih.t()

    def _project(self, cell: Cell, embedding: Tensor, words: Tensor, drop: Drop | None = None) -> Tensor:
        """[B, steps] words → [steps, B, gates·n], step by step in memory as the recurrence reads it."""
        words, n = words.t(), self.config.hidden_size
        # A large vocabulary: project the words that occur, not all there are. Dropout is each occurrence's own.
        if drop is not None or len(embedding) > words.numel():
            inputs = nn.functional.embedding(words, embedding)
            if drop is not None:
                inputs = drop(inputs)
            if not self.config.is_recurrent:
                inputs = inputs + positional_encoding(len(words), n).to(inputs)[:, None]
            return cell.project(inputs)
        table, positions = self._projections(cell, embedding, len(words))
        projected = nn.functional.embedding(words, table)
        return projected if positions is None else projected + positions[:, None]

    # ---- what users call --------------------------------------------------------------------------------------

    def forward(self, batch: Batch, decoder_input: str | None = None) -> Tensor:
        """Logits [B, S, V] at the batch's target steps, with the decoder fed as configured or as told."""
        return self.readout(*self.decode(batch, decoder_input))

    def decode(
        self,
        batch: Batch,
        decoder_input: str | None = None,
        *,
        mask: Tensor | None = None,
        dropout: torch.Generator | None = None,
    ) -> tuple[Tensor | None, Tensor]:
        """What the readout reads: contexts (None without attention) and decoder states, [B, S, n] each.

        Args:
            batch: B pairs.
            decoder_input: "predicted", "teacher" or "constant"; as configured if None.
            mask: [B, S] bool; the P steps that are wanted, which are then [P, n].
            dropout: where dropout's zeros are drawn from, on any device; without it none are drawn.
        """
        self._check_batch(batch)
        drop = self._dropout(dropout)
        encoded = self.encode(batch.source, batch.source_lengths, drop)
        states = self._decode(encoded, batch, decoder_input, drop)[0]
        contexts = self._attend(encoded, states)[-1] if self.attention is not None else None
        if mask is not None:
            contexts, states = None if contexts is None else contexts[mask], states[mask]
        if drop is not None:
            contexts, states = None if contexts is None else drop(contexts), drop(states)
        return contexts, states

    def _dropout(self, random: torch.Generator | None) -> Drop | None:
        """Sets a share of the units to zero and scales up the others, so that the mean stays."""
        share = self.config.dropout
        if random is None or share == 0:
            return None
        own = torch.Generator(self.readout_bias.device).manual_seed(random.initial_seed())

        def drop(values: Tensor) -> Tensor:
            kept = torch.empty_like(values, requires_grad=False).bernoulli_(1 - share, generator=own)
            return values * kept / (1 - share)

        return drop

    def _decode(
        self, encoded: Encoded, batch: Batch, decoder_input: str | None, drop: Drop | None = None
    ) -> tuple[Tensor, Tensor]:
        """Decoder states [B, S, n] and the words fed [B, S]."""
        decoder_input = self.config.decoder_input if decoder_input is None else decoder_input
        if decoder_input not in DECODER_INPUTS:
            raise ValueError(f"decoder_input must be one of {', '.join(DECODER_INPUTS)}, got {decoder_input!r}")
        if decoder_input == "predicted":
            return self._decode_predictions(encoded, batch.target.shape[1])[:2]
        words = torch.full_like(batch.target, BOS)
        if decoder_input == "teacher":
            words[:, 1:] = batch.target[:, :-1]
        return self._decode_words(encoded, words, drop), words

    @torch.no_grad()
    def trace(
        self,
        batch: Batch,
        decoder_input: str | None = None,
        chunk: int = 1024,
        *,
        edit: Edit | None = None,
        edit_start: bool = False,
    ) -> Trace:
        """Every hidden state, score and logit of a batch, computed ``chunk`` samples at a time.

        ``edit`` changes the encoder states before the decoder sees them: (states [b, T, n], the slice of the batch's
        samples that they are of) → states [b, T, n]. Attention and all that follows are of the changed states. The
        decoder still starts from the state that the encoder left, unless ``edit_start``: then from the changed one
        (its h; an LSTM's memory stays). See :mod:`howattend.interventions`.
        """
        if not isinstance(chunk, int) or chunk < 1:
            raise ValueError(f"chunk must be an integer ≥ 1, got {chunk!r}")
        self._check_batch(batch)
        parts = [slice(start, min(start + chunk, len(batch))) for start in range(0, len(batch), chunk)]
        traces = [self._trace(batch[part], decoder_input, part, edit, edit_start) for part in parts]
        return traces[0] if len(traces) == 1 else Trace.concatenate(traces)

    def _trace(
        self, batch: Batch, decoder_input: str | None, part: slice, edit: Edit | None, edit_start: bool
    ) -> Trace:
        encoded = self.encode(batch.source, batch.source_lengths)
        if edit is not None:
            encoded = self._with_keys(replace(encoded, states=edit(encoded.states, part)))
            if edit_start and encoded.start is not None:
                last = encoded.states[torch.arange(len(batch), device=batch.source.device), batch.source_lengths - 1]
                encoded = replace(encoded, start=(last, *encoded.start[1:]))
        states, words = self._decode(encoded, batch, decoder_input)
        source, target = batch.source_mask, batch.target_mask
        # With zeros on padding from here on, what is linear in the states is zero there too.
        encoded, states = self._with_keys(replace(encoded, states=_zero(encoded.states, source))), _zero(states, target)
        queries = scores = weights = contexts = None
        if self.attention is not None:
            queries, scores, weights, _ = self._attend(encoded, states)
            scores, weights = (_zero(x, target[:, :, None] & source[:, None]) for x in (scores, weights))
            contexts = weights @ encoded.values
        return Trace(
            encoder_states=encoded.states,
            decoder_states=states,
            scores=scores,
            attention=weights,
            logits=_zero(self.readout(contexts, states), target),
            encoder_tokens=batch.source,
            decoder_tokens=torch.where(target, words, PAD),
            encoder_mask=source,
            decoder_mask=target,
            queries=queries,
            keys=encoded.keys,
            values=encoded.values,
            score_scale=self.attention.score_scale if self.attention is not None else None,
        )

    @torch.no_grad()
    def generate(self, source: Tensor, source_lengths: Tensor, max_length: int) -> Tensor:
        """Greedy translation [B, ≤ max_length], end of sentence included, padded behind it.

        The decoder is fed its own predictions, whatever it was trained with, unless it was trained on a constant.
        """
        if not isinstance(max_length, int | np.integer) or isinstance(max_length, bool) or max_length < 1:
            raise ValueError(f"max_length must be an integer ≥ 1, got {max_length!r}")
        self._check(source, source_lengths)
        constant = self.config.decoder_input == "constant"
        encoded = self.encode(source, source_lengths)
        words = self._decode_predictions(encoded, max_length, until_end=True, constant=constant)[2]
        ended_before = (words == EOS).cumsum(1) - (words == EOS).long() > 0
        return words.masked_fill(ended_before, PAD)

    def _check_batch(self, batch: Batch) -> None:
        self._check(batch.source, batch.source_lengths)
        _check_words(batch.target, self.target_words, "target")

    def _check(self, source: Tensor, source_lengths: Tensor) -> None:
        check_tokens(source, source_lengths, "source")
        _check_words(source, self.source_words, "source")


def positional_encoding(steps: int, size: int) -> Tensor:
    """[steps, size] sines (even dimensions) and cosines (odd) of wavelengths from 2π to 2π · 10 000, in float64."""
    frequencies = torch.exp(-math.log(TIMESCALE) * torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(steps)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def _check_words(words: Tensor, count: int, name: str) -> None:
    if int(words.min()) < 0 or int(words.max()) >= count:
        raise ValueError(
            f"{name} must hold word ids in 0 … {count - 1}, got {int(words.min())} … {int(words.max())}; "
            "is this batch of another task?"
        )


def _zero(values: Tensor, mask: Tensor) -> Tensor:
    return values.masked_fill(~mask.reshape(*mask.shape, *(1,) * (values.ndim - mask.ndim)), 0.0)
