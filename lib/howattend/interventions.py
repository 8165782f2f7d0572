"""Change one component of the encoder states before attention, and decode on: causal checks of what components do.

A hidden state is h_t = μ_t + χ_x + Δh_t. An edit adds to the states at chosen source steps: minus one of the three to
remove it, χ_y − χ_x to give a word another word's input component, or any vector. Attention, contexts and the decoder's
words then follow from the edited states; the encoder itself is not run again, so what a recurrent encoder carried from
an edited word to later steps stays. States at steps that are not chosen stay bit for bit what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from howattend._validation import require_mask, require_shape, to_tensor
from howattend.decomposition import Components
from howattend.models import EncoderDecoder, Trace
from howattend.tasks import PAD, Batch

PARTS = ("temporal", "input", "delta")


@dataclass(frozen=True, eq=False)
class Edit:
    """What to add to encoder states, and where. Edits add up: each sees the states as the encoder left them."""

    addend: Callable[[Tensor, Tensor, Tensor], Tensor]  # states [B, T, n], tokens [B, T], chosen [B, T] → [B, T, n]
    where: Tensor | None  # [B, T] bool, the source steps it applies to; None: every word
    word: int | None = None  # applies to this word only; None: to all


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a network does with edited states."""

    trace: Trace  # encoder_states are the edited ones
    words: Tensor  # [B, S] the predicted words at the target's steps, 0 (padding) behind it

    @property
    def attention(self) -> Tensor | None:
        """[B, S, T] attention weights."""
        return self.trace.attention

    def word_accuracy(self, batch: Batch) -> float:
        """The share of the batch's target words, ends of sentence included, that are predicted."""
        mask = batch.target_mask
        return float((self.words[mask] == batch.target[mask]).double().mean())


def remove(components: Components, part: str, where: Tensor | None = None) -> Edit:
    """Take one component out of the encoder states.

    Args:
        components: of this network's encoder states (``decomposition.decompose(trace.encoder_states, …)``), of any
            batch with the same number of steps; a delta is that of the batch that is decoded.
        part: "temporal" (μ_t), "input" (χ_x) or "delta" (Δh_t).
        where: [B, T] bool, the source steps; None: every word, ends of sentence included. Padding never changes.

    Raises:
        ValueError: for another part.
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}")

    def addend(states: Tensor, tokens: Tensor, chosen: Tensor) -> Tensor:
        _check_size(components, states)
        if part == "temporal":
            return -_of(components.temporal, states).expand_as(states)
        known = len(components.input)
        if part != "temporal" and bool(chosen.any()) and int(tokens[chosen].max()) >= known:
            raise ValueError(
                f"components must have a row for every edited word, but have {known} and the batch has word "
                f"{int(tokens[chosen].max())}: decompose with num_words=len(task.source_vocabulary)"
            )
        if part == "input":
            return -_of(components.input, states)[torch.where(chosen, tokens, 0)]
        if not bool(chosen.any()):
            return torch.zeros_like(states)
        return -to_tensor(components.delta_of(states, tokens, chosen), "delta")

    return Edit(addend, where)


def swap_word(components: Components, word: int, by: int, where: Tensor | None = None) -> Edit:
    """Give one word the input component of another: h_t − χ_word + χ_by, wherever the word stands.

    Args:
        components: as for ``remove``.
        word: id of the word whose states change: ``task.source_vocabulary.id("twice")``.
        by: id of the word whose input component they get.
        where: [B, T] bool, the source steps that may change; None: all of the word's.

    Raises:
        ValueError: if the components have no row for one of the words.
    """
    inputs = to_tensor(components.input, "components.input")
    for name, value in (("word", word), ("by", by)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < len(inputs):
            raise ValueError(f"{name} must be a word id in 0 … {len(inputs) - 1}, got {value!r}")
        if not bool(inputs[value].isfinite().all()):
            raise ValueError(f"{name} must be a word that has an input component, but word {value} never occurred")

    def addend(states: Tensor, tokens: Tensor, chosen: Tensor) -> Tensor:
        _check_size(components, states)
        rows = _of(inputs, states)
        return (rows[by] - rows[word]).expand_as(states)

    return Edit(addend, where, int(word))


def shift(by: Tensor, where: Tensor | None = None) -> Edit:
    """Add one vector to the states: the way from one cluster's centre to another's, say.

    Args:
        by: [n], finite.
        where: [B, T] bool, the source steps; None: every word.

    Raises:
        ValueError: if ``by`` is no vector, not finite, or (on decoding) not of the states' size.
    """
    vector = to_tensor(by, "by")
    if vector.ndim != 1 or not bool(vector.isfinite().all()):
        what = (
            f"shape {list(vector.shape)}: pass one edit a vector" if vector.ndim != 1 else "a NaN or an infinity in it"
        )
        raise ValueError(f"by must be a finite vector [n], got {what}")

    def addend(states: Tensor, tokens: Tensor, chosen: Tensor) -> Tensor:
        if len(vector) != states.shape[2]:
            raise ValueError(f"by must have the {states.shape[2]} units of the states, got {len(vector)}")
        return vector.to(states).expand_as(states)

    return Edit(addend, where)


@torch.no_grad()
def decode_with(
    model: EncoderDecoder,
    batch: Batch,
    edits: Edit | Sequence[Edit],
    *,
    decoder_input: str | None = None,
    edit_start: bool = False,
    chunk: int = 1024,
) -> Outcome:
    """Encode a batch, edit the encoder states, and decode from them.

    Without edits, or where they choose no step, the trace is ``model.trace(batch)``, bit for bit.

    Args:
        model: a network with attention; or any recurrent one with ``edit_start``.
        batch: the pairs, on the model's device.
        edits: one or several, which add up whatever their order.
        decoder_input: "predicted", "teacher" or "constant"; as the network was trained if None.
        edit_start: whether the decoder of a recurrent network starts from the edited last state, too. By default it
            starts from the one that the encoder left, so that an edit acts through attention alone. Without attention
            (VED) that state is all that the decoder sees: what edits change at a sentence's other steps has no effect.
        chunk: samples computed at a time.

    Raises:
        ValueError: if a mask or the components do not fit the batch, or an edit's states would never be read: those of
            a network without attention where it changes no sentence's last step, the end of sentence.
    """
    edits = [edits] if isinstance(edits, Edit) else list(edits)
    if edit_start and not model.config.is_recurrent:
        raise ValueError("edit_start needs a recurrent network: AO's decoder starts from nothing; leave it out")
    if not edit_start and not model.config.has_attention:
        raise ValueError(
            "model must have attention for edits to be seen: VED's decoder reads the last encoder state only; "
            "pass edit_start=True to edit that one"
        )
    choices = [_choice(edit, batch) for edit in edits]
    if not model.config.has_attention:
        last = torch.nn.functional.one_hot(batch.source_lengths - 1, batch.source.shape[1]).bool()
        for chosen in choices:
            if bool(chosen.any()) and not bool((chosen & last).any()):
                raise ValueError(
                    "edits must change a sentence's last step, its end of sentence, for a network without attention to "
                    "read them: VED's decoder starts from that state and sees no other; one of these changes "
                    f"{int(chosen.sum())} states, all of them at earlier steps"
                )

    def apply(states: Tensor, part: slice) -> Tensor:
        tokens, total, anywhere = (
            batch.source[part],
            torch.zeros_like(states),
            torch.zeros_like(batch.source_mask[part]),
        )
        for edit, chosen in zip(edits, choices, strict=True):
            chosen = chosen[part]
            added = edit.addend(states, tokens, chosen)
            if not bool(added[chosen].isfinite().all()):
                raise ValueError(
                    "components must have a row for every edited step and word, but lack some: decompose a larger "
                    "batch, or choose other steps"
                )
            total = torch.where(chosen[..., None], total + added, total)
            anywhere = anywhere | chosen
        return torch.where(anywhere[..., None], states + total, states)

    trace = model.trace(batch, decoder_input, chunk, edit=apply if edits else None, edit_start=edit_start)
    return Outcome(trace, trace.logits.argmax(-1).masked_fill(~trace.decoder_mask, PAD))


def _choice(edit: Edit, batch: Batch) -> Tensor:
    """[B, T] the steps that an edit changes."""
    chosen = batch.source_mask
    if edit.where is not None:
        where = require_mask(to_tensor(edit.where, "where"), "where").to(chosen.device)
        require_shape(where, "where", "B T", dict(zip("BT", chosen.shape, strict=True)))
        chosen = chosen & where
    return chosen if edit.word is None else chosen & (batch.source == edit.word)


def _of(part: object, states: Tensor) -> Tensor:
    return to_tensor(part, "components").to(states)


def _check_size(components: Components, states: Tensor) -> None:
    steps, units = components.temporal.shape
    if (steps, units) != tuple(states.shape[1:]):
        raise ValueError(
            f"components must be of encoder states with {states.shape[1]} steps and {states.shape[2]} units, got "
            f"{steps} and {units}: decompose trace.encoder_states of this network and task"
        )
