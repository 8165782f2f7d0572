"""The nine terms and their shares on planted states whose answers are known."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from howattend import alignment
from howattend.alignment import (
    TERM_NAMES,
    argmax_steps,
    attention_from,
    offsets,
    shares,
    shares_by_step,
    temporal_scores,
)
from howattend.decomposition import Components, StreamingDecomposition, decompose
from howattend.models.trace import Trace

PROPERTY = settings(derandomize=True, deadline=None, max_examples=30, database=None)


def make_trace(
    queries: Tensor, keys: Tensor, outputs: Tensor, inputs: Tensor, rows: Tensor, columns: Tensor, scale=1.0
):
    """The trace of a network with these queries and keys; its states are other vectors unless they are the same."""
    pairs = rows[:, :, None] & columns[:, None, :]
    scores = (scale * queries @ keys.mT).masked_fill(~pairs, 0)
    attention = scores.masked_fill(~columns[:, None], -torch.inf).softmax(-1).masked_fill(~pairs, 0)
    logits = attention @ keys
    return Trace(keys, queries, scores, attention, logits, inputs, outputs, columns, rows, queries, keys, keys, scale)


def random_trace(seed: int, samples: int = 6, dtype: torch.dtype = torch.float64, scale: float = 1.0) -> Trace:
    rng = torch.Generator().manual_seed(seed)
    steps, targets, units, words = 5, 4, 3, 4
    columns = torch.arange(steps) < torch.randint(2, steps + 1, (samples, 1), generator=rng)
    rows = torch.arange(targets) < torch.randint(1, targets + 1, (samples, 1), generator=rng)
    keys = torch.randn(samples, steps, units, generator=rng, dtype=dtype) * columns[..., None]
    queries = torch.randn(samples, targets, units, generator=rng, dtype=dtype) * rows[..., None]
    inputs = torch.randint(0, words, (samples, steps), generator=rng)
    outputs = torch.randint(0, words, (samples, targets), generator=rng)
    return make_trace(queries, keys, outputs, inputs, rows, columns, scale)


def components(trace: Trace) -> tuple[Components, Components]:
    return (
        decompose(trace.queries, trace.decoder_tokens, trace.decoder_mask, 5),
        decompose(trace.keys, trace.encoder_tokens, trace.encoder_mask, 5),
    )


def planted(step: float, word: float, common: float = 0.0, sign: float = 1.0) -> Trace:
    """Every pair of two words, over two steps, copied: a_st = step² [s = t] + word² σ_s σ_t + sign · common².

    Each word is ±1 along a direction of its own, equally often at either step, so that μ and χ are the planted
    vectors and every delta is 0.
    """
    tokens = torch.tensor(list(itertools.product([0, 1], repeat=2)))
    keys = torch.zeros(4, 2, 4, dtype=torch.float64)
    keys[..., :2] = step * torch.eye(2, dtype=torch.float64)
    keys[..., 2] = word * (2 * tokens - 1)
    keys[..., 3] = common
    queries = keys.clone()
    queries[..., 3] *= sign
    mask = torch.ones(4, 2, dtype=torch.bool)
    return make_trace(queries, keys, tokens, tokens, mask, mask)


def corner(top: float, middle: float) -> np.ndarray:
    """Shares with μD·μE, χD·χE and nothing else."""
    return np.diag([top, middle, 0.0])


@PROPERTY
@given(
    seed=st.integers(0, 10**6), dtype=st.sampled_from([torch.float32, torch.float64]), scale=st.sampled_from([1.0, 0.3])
)
def test_nine_terms_sum_to_the_scores(seed, dtype, scale):
    trace = random_trace(seed, dtype=dtype, scale=scale)
    nine = alignment.terms(*components(trace), trace)
    assert nine.shape == (3, 3, 6, 4, 5)
    assert nine.dtype == dtype
    torch.testing.assert_close(nine.sum((0, 1)), trace.scores)
    padded = ~(trace.decoder_mask[:, :, None] & trace.encoder_mask[:, None, :])
    assert (nine[..., padded] == 0).all()


def test_each_term_is_the_product_its_name_says():
    assert TERM_NAMES[0] == ("μD·μE", "μD·χE", "μD·ΔE")
    assert [row[0] for row in TERM_NAMES] == ["μD·μE", "χD·μE", "ΔD·μE"]
    trace = random_trace(1, scale=0.5)
    dec, enc = components(trace)
    nine = alignment.terms(dec, enc, trace)
    y, x = trace.decoder_tokens[2, 0], trace.encoder_tokens[2, 1]
    decoder = [dec.temporal[0], dec.input[y], dec.delta[2, 0]]
    encoder = [enc.temporal[1], enc.input[x], enc.delta[2, 1]]
    for i, j in itertools.product(range(3), repeat=2):
        torch.testing.assert_close(nine[i, j, 2, 0, 1], 0.5 * decoder[i] @ encoder[j])


def test_terms_with_streamed_components():
    trace = random_trace(2)
    sides = []
    for states, tokens, mask in (
        (trace.queries, trace.decoder_tokens, trace.decoder_mask),
        (trace.keys, trace.encoder_tokens, trace.encoder_mask),
    ):
        streaming = StreamingDecomposition(states.shape[1], 5, states.shape[2])
        for half in (slice(0, 3), slice(3, 6)):
            streaming.update(states[half], tokens[half], mask[half])
        sides.append(streaming.components())
    torch.testing.assert_close(alignment.terms(*sides, trace), alignment.terms(*components(trace), trace))
    part = trace[:2]
    torch.testing.assert_close(alignment.terms(*sides, part).sum((0, 1)), part.scores)
    np.testing.assert_allclose(shares(*sides, trace).signed, shares(*components(trace), trace).signed)


@pytest.mark.parametrize(
    ("trace", "signed", "centred", "absolute"),
    [
        # At t* = s: step² + common² from μ·μ and word² from χ·χ; centring takes off half of step² and word² (mean of
        # σ_s σ_t over samples and steps is 1/2) and all that is common.
        (planted(3**0.5, 1), (0.75, 0.25), (0.75, 0.25), (0.75, 0.25)),
        (planted(3**0.5, 1, 2), (0.875, 0.125), (0.75, 0.25), (0.875, 0.125)),
        # A negative common part turns signed shares about: −2 and 1 of −1. Only centring sees what decides.
        (planted(3**0.5, 1, 5**0.5, -1), (2, -1), (0.75, 0.25), (2 / 3, 1 / 3)),
        # Counter-example: attention by word alone leaves nothing to the temporal components.
        (planted(0, 1), (0, 1), (0, 1), (0, 1)),
    ],
)
def test_shares_of_planted_states(trace, signed, centred, absolute):
    got = shares(*components(trace), trace)
    np.testing.assert_allclose(got.signed, corner(*signed), atol=1e-12)
    np.testing.assert_allclose(got.centred, corner(*centred), atol=1e-12)
    np.testing.assert_allclose(got.absolute, corner(*absolute), atol=1e-12)
    if signed != (0, 1):  # by symmetry each step has the shares of both; not so for ties, which go to the first step
        by_step = shares_by_step(*components(trace), trace)
        np.testing.assert_allclose(by_step.signed, np.stack([corner(*signed)] * 2), atol=1e-12)


def shares_by_loops(trace: Trace, rows: Tensor, columns: Tensor) -> tuple[np.ndarray, ...]:
    nine = alignment.terms(*components(trace), trace).numpy()
    signed, centred, absolute = np.zeros((3, 4, 3, 3))
    for b, s in np.argwhere(rows.numpy()):
        valid = np.flatnonzero(columns[b].numpy())
        if len(valid):
            best = valid[np.argmax(trace.scores[b, s].numpy()[valid])]
            signed[s] += nine[:, :, b, s, best]
            centred[s] += nine[:, :, b, s, best] - nine[:, :, b, s][..., valid].mean(-1)
            absolute[s] += np.abs(nine[:, :, b, s, best])
    return signed, centred, absolute


@pytest.mark.parametrize("masked", [False, True])
def test_shares_follow_their_definition_whatever_the_chunks(masked, monkeypatch):
    trace = random_trace(3, samples=23)
    dec, enc = components(trace)
    rows, columns = trace.decoder_mask, trace.encoder_mask
    if masked:
        rows, columns = rows & (trace.decoder_tokens > 0), columns & (trace.encoder_tokens > 1)
    chosen = (rows, columns) if masked else ()
    whole, by_step = shares(dec, enc, trace, *chosen), shares_by_step(dec, enc, trace, *chosen)
    sums = shares_by_loops(trace, rows, columns)
    for name, expected in zip(("signed", "centred", "absolute"), sums, strict=True):
        total = expected.sum(0)
        np.testing.assert_allclose(getattr(whole, name), total / total.sum(), atol=1e-12)
        assert getattr(whole, name).sum() == pytest.approx(1)
        np.testing.assert_allclose(getattr(by_step, name), expected / expected.sum((1, 2), keepdims=True), atol=1e-12)
    monkeypatch.setattr(alignment, "_chunks", lambda trace: (slice(i, i + 2) for i in range(0, 23, 2)))
    chunked = shares(dec, enc, trace, *chosen)
    for name in ("signed", "centred", "absolute"):
        np.testing.assert_allclose(getattr(chunked, name), getattr(whole, name), atol=1e-12)


def test_chunks_cover_every_sample_once():
    trace = replace(random_trace(0), scores=torch.zeros(10_000, 1, 1).expand(-1, 21, 21))
    chunks = list(alignment._chunks(trace))
    assert len(chunks) > 1
    assert [i for part in chunks for i in range(part.start, part.stop)] == list(range(10_000))


def test_steps_that_nothing_counts_are_nan():
    trace = planted(2, 1)
    rows = torch.tensor([True, False]).expand(4, 2)
    got = shares_by_step(*components(trace), trace, decoder_mask=rows)
    assert np.isfinite(got.signed[0]).all()
    assert np.isnan(got.signed[1]).all() and np.isnan(got.centred[1]).all() and np.isnan(got.absolute[1]).all()


def test_padded_nan_does_not_leak():
    trace = random_trace(4)
    clean = alignment.terms(*components(trace), trace)
    keys = trace.keys.masked_fill(~trace.encoder_mask[..., None], torch.nan)
    tokens = trace.encoder_tokens.masked_fill(~trace.encoder_mask, -7)
    dirty = replace(trace, keys=keys, encoder_tokens=tokens)
    torch.testing.assert_close(alignment.terms(*components(dirty), dirty), clean)


@pytest.mark.parametrize("call", [alignment.terms, shares, shares_by_step])
def test_bad_traces_and_components_are_named(call):
    trace = random_trace(5, scale=0.5)
    dec, enc = components(trace)
    nothing = dict.fromkeys(("scores", "attention", "queries", "keys", "values", "score_scale"))
    with pytest.raises(TypeError, match=r"trace must be a Trace, got Tensor: pass model\.trace"):
        call(dec, enc, trace.scores)
    with pytest.raises(ValueError, match=r"trace must have attention scores, got none: .*VED.*AED or AO"):
        call(dec, enc, replace(trace, **nothing))
    with pytest.raises(ValueError, match=r'trace must have scores that are dot products.*additive.*"scaled_dot"'):
        call(dec, enc, replace(trace, score_scale=None))
    with pytest.raises(ValueError, match="trace must hold at least one sample"):
        call(dec, enc, trace[:0])
    with pytest.raises(TypeError, match="dec must be Components, got Tensor: pass the result of decomp"):
        call(dec.temporal, enc, trace)
    with pytest.raises(TypeError, match=r"enc must hold tensors on cpu.* got ndarray: decompose trace\.keys itself"):
        call(dec, decompose(trace.keys.numpy(), trace.encoder_tokens, trace.encoder_mask), trace)
    with pytest.raises(
        ValueError, match=r"dec must have temporal \[4, 3\] and delta \[6, 4, 3\].*decompose trace\.queries"
    ):
        call(enc, dec, trace)
    with pytest.raises(ValueError, match=r"dec must have .*delta \[2, 4, 3\]"):
        call(dec, enc, trace[:2])
    message = r"dec and enc must be the components of this trace, got .*decompose trace\.queries with .*trace\.keys"
    with pytest.raises(ValueError, match=message):  # the states were decomposed, but the scores are of other vectors
        call(dec, enc, replace(trace, queries=trace.queries + 1, scores=trace.scores + 1))
    lacking = decompose(trace.keys, trace.encoder_tokens * 0, trace.encoder_mask, 5)
    with pytest.raises(ValueError, match=message):
        call(dec, replace(lacking, delta=None), trace)


@pytest.mark.parametrize("call", [shares, shares_by_step])
def test_bad_masks_are_named(call):
    trace = random_trace(6)
    dec, enc = components(trace)
    for name, mask in (("decoder_mask", trace.decoder_mask), ("encoder_mask", trace.encoder_mask)):
        with pytest.raises(TypeError, match=f"{name} must be bool, True on words, got int64"):
            call(dec, enc, trace, **{name: mask.long()})
        with pytest.raises(ValueError, match=rf"{name} must have shape \[B, .\] with B = 6"):
            call(dec, enc, trace, **{name: mask[:2]})
        with pytest.raises(ValueError, match=f"{name} must be False on padding.* combine it"):
            call(dec, enc, trace, **{name: torch.ones_like(mask)})
        with pytest.raises(ValueError, match=r"decoder_mask must be True somewhere .* widen a mask"):
            call(dec, enc, trace, **{name: mask & False})


def test_attention_from_is_the_masked_softmax():
    trace = random_trace(7)
    got = attention_from(trace.scores, trace.encoder_mask)
    torch.testing.assert_close(got[trace.decoder_mask], trace.attention[trace.decoder_mask])
    mean = attention_from(trace.scores[0], trace.encoder_mask)
    assert mean.shape == trace.scores.shape
    assert (mean.masked_select(~trace.encoder_mask[:, None].expand_as(mean)) == 0).all()
    scores = np.array([[0.0, np.log(3), np.nan]])
    np.testing.assert_allclose(attention_from(scores, np.array([True, True, False])), [[0.25, 0.75, 0]])
    np.testing.assert_allclose(attention_from(np.zeros((1, 4))), [[0.25] * 4])


def test_argmax_steps():
    scores = torch.tensor([[1.0, 5.0, 5.0], [9.0, 2.0, 3.0], [-torch.inf] * 3, [torch.nan, torch.nan, 0.0]])
    assert argmax_steps(scores).tolist() == [1, 0, 0, 2]
    assert argmax_steps(scores, torch.tensor([False, True, True])).tolist() == [1, 2, 1, 2]
    assert argmax_steps(scores, torch.tensor([True, True, False])).tolist() == [1, 0, 0, -1]
    both = argmax_steps(scores.numpy(), np.array([[True] * 3, [False] * 3]))
    assert both.tolist() == [[1, 0, 0, 2], [-1] * 4]


@pytest.mark.parametrize("call", [attention_from, argmax_steps])
def test_bad_scores_are_named(call):
    scores = torch.zeros(2, 3, 4)
    with pytest.raises(TypeError, match="scores must be a torch tensor or a numpy array, got list"):
        call(scores.tolist())
    with pytest.raises(TypeError, match="scores must be float32 or float64, got float16"):
        call(scores.half())
    with pytest.raises(ValueError, match=r"scores must have shape \[..., S, T\].* got \[4\]"):
        call(scores[0, 0])
    with pytest.raises(TypeError, match="encoder_mask must be bool"):
        call(scores, torch.ones(2, 4))
    for bad in (torch.ones(2, 3).bool(), torch.ones(3, 4).bool(), torch.tensor(True)):
        with pytest.raises(ValueError, match=r"encoder_mask must have shape \[..., T\].*pass one row of 4"):
            call(scores, bad)


def test_attention_needs_a_word_in_every_sample():
    with pytest.raises(ValueError, match="encoder_mask must be True somewhere for every sample"):
        attention_from(torch.zeros(2, 3, 4), torch.tensor([[True] * 4, [False] * 4]))


def test_temporal_scores():
    trace = planted(2, 1, 3, -1)
    dec, enc = components(trace)
    expected = torch.tensor([[4.0, 0.0], [0.0, 4.0]]).double() - 9
    torch.testing.assert_close(temporal_scores(dec, enc), expected)
    torch.testing.assert_close(temporal_scores(dec, enc, scale=0.5), expected / 2)
    short = decompose(trace.keys, trace.encoder_tokens, trace.encoder_mask & torch.tensor([True, False]))
    got = temporal_scores(dec, short)
    assert got[:, 0].isfinite().all() and got[:, 1].isnan().all()
    torch.testing.assert_close(attention_from(got, short.step_counts > 0)[:, 0], torch.ones(2).double())
    with pytest.raises(TypeError, match="enc must be Components, got Trace"):
        temporal_scores(dec, trace)
    with pytest.raises(TypeError, match=r"scale must be a number, got None: pass trace\.score_scale"):
        temporal_scores(dec, enc, scale=None)
    narrow = decompose(trace.keys[..., :2], trace.encoder_tokens, trace.encoder_mask)
    with pytest.raises(ValueError, match=r"enc\.temporal must have shape \[T, n\] with n = 4, got \[2, 2\]"):
        temporal_scores(dec, narrow)


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_offsets(kind):
    steps = kind([[0, 2, -1], [1, 1, -1], [2, 3, -1]])
    mean, counts = offsets(steps)
    np.testing.assert_array_equal(mean, [1, 1, np.nan])
    np.testing.assert_array_equal(counts, [3, 3, 0])
    mean, counts = offsets(steps, kind([[True, True, True], [True, False, True], [False, False, True]]))
    np.testing.assert_array_equal(mean, [0.5, 1, np.nan])
    np.testing.assert_array_equal(counts, [2, 1, 0])
    assert type(mean) is type(steps)


def test_bad_offsets_are_named():
    steps = torch.tensor([[0, 1], [1, -1]])
    with pytest.raises(TypeError, match="alignment must be integers"):
        offsets(steps.float())
    with pytest.raises(ValueError, match=r"alignment must have shape \[B, S\]"):
        offsets(steps[0])
    with pytest.raises(
        ValueError, match=r"alignment must be a source step from 0, or -1 for none, got -2: pass Batch\.al"
    ):
        offsets(steps - 1)
    with pytest.raises(ValueError, match=r"mask must have shape \[B, S\] with B = 2, S = 2"):
        offsets(steps, torch.ones(2, 3).bool())
    with pytest.raises(TypeError, match="mask must be bool"):
        offsets(steps, steps)
