"""Attention scores as sums of nine terms (Eq. 3 of the paper), what each contributes, and where attention should be.

With the components of ``decomposition`` a score is

    a_st = (μ^D_s + χ^D_y + Δh^D_s) · (μ^E_t + χ^E_x + Δh^E_t),

y the word fed to the decoder at step s and x the source word at step t: nine terms, each a matrix over s and t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from howattend._validation import (
    Array,
    like,
    require_floats,
    require_integers,
    require_mask,
    require_shape,
    to_tensor,
)
from howattend.decomposition import Components
from howattend.models.trace import Trace

TERM_NAMES: tuple[tuple[str, ...], ...] = tuple(
    tuple(f"{decoder}D·{encoder}E" for encoder in ("μ", "χ", "Δ")) for decoder in ("μ", "χ", "Δ")
)
"""Names of the terms [3, 3] as ``terms`` orders them: decoder by row, encoder by column."""


@torch.no_grad()
def terms(dec: Components, enc: Components, trace: Trace) -> Tensor:
    """The nine terms of every score (Eq. 3), [3, 3, B, S, T]: decoder (temporal, input, delta) × encoder (same).

    Terms carry the scale of the scores, are 0 where either step is padded, and sum to ``trace.scores`` elsewhere.

    Args:
        dec: components of ``trace.queries`` and ``trace.decoder_tokens``: the decoder states for "dot" attention.
        enc: components of ``trace.keys`` and ``trace.encoder_tokens``: the encoder states for "dot" attention.
            Deltas of streamed components are computed from the trace.
        trace: of a network with dot-product attention.

    Raises:
        TypeError: if the components are not torch tensors like those of the trace.
        ValueError: if the network has no attention (VED) or no dot product (additive attention), if shapes do not
            match, or if the terms do not sum to the scores, because something else was decomposed.
    """
    _check(dec, enc, trace)
    return _terms(dec, enc, trace)


def attention_from(scores: Array, encoder_mask: Array | None = None) -> Array:
    """Attention weights α_st [..., S, T] = softmax over t of any scores, such as one term or a sum of terms.

    Args:
        scores: [..., S, T] float32 or float64.
        encoder_mask: [..., T] bool, True on words; the weight elsewhere is 0. Leading axes broadcast: scores [S, T]
            with a mask [B, T] give [B, S, T]. None if all steps are words.

    Raises:
        ValueError: if the mask does not fit the scores, or leaves a sample without words.
    """
    values, mask = _scores_and_mask(scores, encoder_mask)
    if not mask.any(-1).all():
        raise ValueError(
            "encoder_mask must be True somewhere for every sample, got a sample without words: leave that sample out"
        )
    masked = values.masked_fill(~mask.unsqueeze(-2), -torch.inf)
    return like(masked.softmax(-1), scores)


def argmax_steps(scores: Array, encoder_mask: Array | None = None) -> Array:
    """The source step with the largest score, t* = argmax_t a_st [..., S] int64; the first of equals.

    Steps outside the mask and NaN scores do not count; −1 where nothing is left.

    Args:
        scores: [..., S, T] float32 or float64: scores, terms or attention weights.
        encoder_mask: [..., T] bool, True on words; None if all steps are words. Leading axes broadcast.
    """
    values, mask = _scores_and_mask(scores, encoder_mask)
    valid = mask.unsqueeze(-2) & ~values.isnan()
    # −inf is a possible score, and still beats a step that does not count: hence the pick among the valid ones only.
    best = values.masked_fill(~valid, -torch.inf).max(-1, keepdim=True).values
    first = (valid & (values == best)).to(torch.int8).argmax(-1)
    return like(first.masked_fill(~valid.any(-1), -1), scores)


def temporal_scores(dec: Components, enc: Components, scale: float = 1.0) -> Array:
    """The scores of the temporal components alone, scale · μ^D_s · μ^E_t [S, T] (insets of Fig. 2 and 3).

    NaN where a step never occurs; mask those steps by ``enc.step_counts > 0`` in ``attention_from``.

    Args:
        dec, enc: components of decoder and encoder, of one kind, dtype and device.
        scale: ``trace.score_scale``, 1 for "dot" attention.
    """
    _check_components(dec, "dec")
    _check_components(enc, "enc")
    if isinstance(scale, bool) or not isinstance(scale, int | float):
        raise TypeError(
            f"scale must be a number, got {scale!r}: pass trace.score_scale of dot-product attention, 1.0 for unscaled"
        )
    queries, keys = to_tensor(dec.temporal, "dec.temporal"), to_tensor(enc.temporal, "enc.temporal")
    require_shape(keys, "enc.temporal", "T n", {"n": queries.shape[-1]})
    return like(scale * queries @ keys.to(queries).T, dec.temporal)


class Offsets(NamedTuple):
    """The mean of the true offset t − s by decoder step."""

    mean: Array  # [S] float64, NaN where no word is aligned
    counts: Array  # [S] int64, aligned words


def offsets(alignment: Array, mask: Array | None = None) -> Offsets:
    """The mean offset t − s between an output word and its source word, by decoder step (dotted in Fig. 5b).

    Args:
        alignment: [B, S] integers, the true source step of each target step, −1 for none: ``Batch.alignment``.
        mask: [B, S] bool, the target steps that count; all that are aligned if None.

    Raises:
        ValueError: if shapes differ or an entry is below −1.
    """
    steps = require_integers(to_tensor(alignment, "alignment"), "alignment")
    sizes: dict[str, int] = {}
    require_shape(steps, "alignment", "B S", sizes)
    if (low := int(steps.min())) < -1:
        raise ValueError(f"alignment must be a source step from 0, or -1 for none, got {low}: pass Batch.alignment")
    aligned = steps >= 0
    if mask is not None:
        chosen = require_mask(to_tensor(mask, "mask"), "mask").to(steps.device)
        require_shape(chosen, "mask", "B S", sizes)
        aligned = aligned & chosen
    counts = aligned.sum(0)
    distance = (steps - torch.arange(sizes["S"], device=steps.device)).masked_fill(~aligned, 0)
    return Offsets(like(distance.sum(0).double() / counts, alignment), like(counts, alignment))


@dataclass(frozen=True)
class Shares:
    """What each of the nine terms contributes to the largest score of a decoder step, in float64 numpy arrays.

    Over the counted samples and decoder steps s, with t* = argmax_t a_st over the sample's counted source steps:

    - signed: Σ term_{s,t*} / Σ a_{s,t*}.
    - centred: the same, after subtracting from each term, and from a, its mean over the sample's counted t: the
      softmax ignores what is equal for all t.
    - absolute: Σ |term_{s,t*}| / Σ Σ_nine |term_{s,t*}|.

    Each is a ratio of sums, not a mean of ratios, and sums to 1 over the nine terms. Signed and centred shares may be
    negative or above 1. NaN where nothing was counted, or where the denominator is 0.
    """

    signed: np.ndarray  # [3, 3], decoder (temporal, input, delta) × encoder (same); [S, 3, 3] by step
    centred: np.ndarray  # the same shape
    absolute: np.ndarray  # the same shape


def shares(
    dec: Components,
    enc: Components,
    trace: Trace,
    decoder_mask: Tensor | None = None,
    encoder_mask: Tensor | None = None,
) -> Shares:
    """The shares [3, 3] of the nine terms in the largest score of each decoder step (Fig. 5a).

    Runs over chunks of samples, so that memory does not grow with their number.

    Args:
        dec, enc, trace: as for ``terms``.
        decoder_mask: [B, S] bool, the decoder steps that count; ``trace.decoder_mask`` if None.
        encoder_mask: [B, T] bool, the source steps among which the largest score is sought and over which terms are
            centred; ``trace.encoder_mask`` if None. Samples without any count for nothing.

    Raises:
        TypeError, ValueError: as for ``terms``, and if a mask counts padded steps or nothing at all.
    """
    return shares_of(share_sums(dec, enc, trace, decoder_mask, encoder_mask).sum(1))


def shares_by_step(
    dec: Components,
    enc: Components,
    trace: Trace,
    decoder_mask: Tensor | None = None,
    encoder_mask: Tensor | None = None,
) -> Shares:
    """The shares of ``shares`` by decoder step [S, 3, 3], NaN at steps that no sample counts. Arguments as there."""
    return shares_of(share_sums(dec, enc, trace, decoder_mask, encoder_mask))


def shares_of(sums: Tensor) -> Shares:
    """Shares from the sums [3, ..., 3, 3] of ``share_sums``: every denominator is the sum over the nine terms."""
    total = sums.sum((-2, -1), keepdim=True)
    ratios = torch.where(total == 0, torch.nan, sums / total)
    return Shares(*ratios.cpu().numpy())


@torch.no_grad()
def share_sums(
    dec: Components,
    enc: Components,
    trace: Trace,
    decoder_mask: Tensor | None = None,
    encoder_mask: Tensor | None = None,
) -> Tensor:
    """What shares are the ratios of: sums over samples of signed, centred and absolute terms [3, S, 3, 3] in float64.

    Those of several batches add up, so shares of any number of samples need one batch in memory: ``shares_of`` has the
    shares by step of a total, and over steps of a total over its second axis. Arguments as for ``shares``.
    """
    _check(dec, enc, trace)
    rows = _counted(decoder_mask, "decoder_mask", trace.decoder_mask, "B S")
    columns = _counted(encoder_mask, "encoder_mask", trace.encoder_mask, "B T")
    rows = rows & columns.any(1, keepdim=True)
    if not rows.any():
        raise ValueError(
            "decoder_mask must be True somewhere in a sample whose encoder_mask is, got nothing to count: widen a mask"
        )
    sums = torch.zeros(3, rows.shape[1], 3, 3, dtype=torch.float64, device=rows.device)
    for part in _chunks(trace):
        nine = _terms(_samples(dec, part), _samples(enc, part), trace[part])
        valid = columns[part, None, :]
        best = trace.scores[part].masked_fill(~valid, -torch.inf).argmax(-1, keepdim=True)
        top = nine.gather(-1, best.expand(3, 3, -1, -1, -1)).squeeze(-1).double()
        weights = valid.to(nine.dtype) / valid.sum(-1, keepdim=True).clamp(min=1)
        mean = (nine * weights).sum(-1).double()
        for kind, value in enumerate((top, top - mean, top.abs())):
            sums[kind] += (value * rows[part]).sum(2).permute(2, 0, 1)
    return sums


def _chunks(trace: Trace) -> Iterator[slice]:
    """Slices of samples whose terms take some 4 MB; what leads to them takes a dozen times that."""
    samples, rows, columns = trace.scores.shape
    count = max(1, 2**22 // (9 * rows * columns * trace.scores.element_size()))
    return (slice(start, min(start + count, samples)) for start in range(0, samples, count))


def _samples(components: Components, part: slice) -> Components:
    delta = None if components.delta is None else components.delta[part]
    return Components(components.temporal, components.input, delta, components.step_counts, components.word_counts)


def _counted(mask: Tensor | None, name: str, words: Tensor, axes: str) -> Tensor:
    """The steps that count: those of the mask, which must be words, or all words."""
    if mask is None:
        return words
    chosen = require_mask(to_tensor(mask, name), name).to(words.device)
    require_shape(chosen, name, axes, dict(zip(axes.split(), words.shape, strict=True)))
    if (chosen & ~words).any():
        raise ValueError(f"{name} must be False on padding, got True there: combine it, {name} & trace.{name}")
    return chosen


def _terms(dec: Components, enc: Components, trace: Trace) -> Tensor:
    """The nine terms of checked arguments; that they sum to the scores is checked here, chunk by chunk if need be."""
    dtype = torch.promote_types(dec.temporal.dtype, enc.temporal.dtype)
    queries = _parts(dec, trace.queries, trace.decoder_tokens, trace.decoder_mask, dtype)
    keys = _parts(enc, trace.keys, trace.encoder_tokens, trace.encoder_mask, dtype)
    nine = trace.score_scale * torch.einsum("ibsn,jbtn->ijbst", queries, keys)
    pairs = trace.decoder_mask[:, :, None] & trace.encoder_mask[:, None, :]
    error = (nine.sum((0, 1)) - trace.scores).masked_fill(~pairs, 0).abs().max()
    # What rounding can do: a few thousand times the last bit of the coarser dtype, relative to the longest vectors.
    longest = [side.norm(dim=-1).amax((1, 2)).sum() for side in (queries, keys)]
    eps = max(torch.finfo(dtype).eps, torch.finfo(trace.scores.dtype).eps)
    allowed = eps**0.5 * abs(trace.score_scale) * longest[0] * longest[1]
    if not error <= allowed:  # also if it is NaN, where components lack a word or step of the trace
        raise ValueError(
            f"dec and enc must be the components of this trace, got terms that differ from its scores by up to "
            f"{float(error):.2g} (nan if they lack a word or step), where rounding explains {float(allowed):.2g}: "
            "decompose trace.queries with trace.decoder_tokens and trace.decoder_mask, and trace.keys with "
            "trace.encoder_tokens and trace.encoder_mask, of this same trace"
        )
    return nine


def _parts(components: Components, states: Tensor, tokens: Tensor, mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Temporal, input and delta components at every step, [3, B, S, n], 0 where masked."""
    parts = torch.zeros(3, *states.shape, dtype=dtype, device=states.device)
    if not mask.any():  # a chunk may hold empty samples only
        return parts
    parts[0] = torch.where(mask[..., None], components.temporal, 0)
    parts[1] = components.input_at(tokens, mask)
    parts[2] = components.delta_of(states, tokens, mask) if components.delta is None else components.delta
    return parts


def _check(dec: Components, enc: Components, trace: Trace) -> None:
    """That the trace has dot-product scores, and components that fit it."""
    if not isinstance(trace, Trace):
        raise TypeError(f"trace must be a Trace, got {type(trace).__name__}: pass model.trace(batch)")
    if len(trace) == 0:
        raise ValueError("trace must hold at least one sample, got none: trace a batch that is not empty")
    if trace.scores is None:
        raise ValueError(
            "trace must have attention scores, got none: a network without attention (VED) has no terms; pass the "
            "trace of an AED or AO"
        )
    if trace.score_scale is None or trace.queries is None or trace.keys is None:
        raise ValueError(
            "trace must have scores that are dot products of queries and keys, got another kind: additive attention "
            'has no nine terms; use attention "dot" or "scaled_dot"'
        )
    for components, states, name, source in (
        (dec, trace.queries, "dec", "trace.queries"),
        (enc, trace.keys, "enc", "trace.keys"),
    ):
        _check_components(components, name)
        temporal, delta = components.temporal, components.delta
        if not isinstance(temporal, Tensor) or temporal.device != states.device:
            got = f"tensors on {temporal.device}" if isinstance(temporal, Tensor) else type(temporal).__name__
            raise TypeError(
                f"{name} must hold tensors on {states.device}, as {source} is, got {got}: decompose {source} itself"
            )
        expected = list(states.shape)
        got = [list(temporal.shape)] + ([] if delta is None else [list(delta.shape)])
        if got != [expected[1:], expected][: len(got)]:
            raise ValueError(
                f"{name} must have temporal {expected[1:]} and delta {expected} (or None), as {source} has, got {got}: "
                f"decompose {source} of this same trace"
            )


def _check_components(components: Components, name: str) -> None:
    if not isinstance(components, Components):
        raise TypeError(
            f"{name} must be Components, got {type(components).__name__}: pass the result of decomposition.decompose"
        )


def _scores_and_mask(scores: Array, encoder_mask: Array | None) -> tuple[Tensor, Tensor]:
    """Scores [..., S, T] and a mask [..., T] that broadcasts against them."""
    values = require_floats(to_tensor(scores, "scores"), "scores")
    if values.ndim < 2 or values.shape[-1] == 0:
        raise ValueError(
            f"scores must have shape [..., S, T] with T at least 1, got {list(values.shape)}: add the missing axes"
        )
    if encoder_mask is None:
        return values, torch.ones(values.shape[-1], dtype=torch.bool, device=values.device)
    mask = require_mask(to_tensor(encoder_mask, "encoder_mask"), "encoder_mask").to(values.device)
    leading = values.shape[:-2]
    try:
        fits = mask.ndim >= 1 and mask.shape[-1] == values.shape[-1]
        torch.broadcast_shapes(leading, mask.shape[:-1])
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"encoder_mask must have shape [..., T] that fits scores [..., S, T] = {list(values.shape)}, got "
            f"{list(mask.shape)}: pass one row of {values.shape[-1]} source steps per sample"
        )
    return values, mask
