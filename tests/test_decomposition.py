"""The decomposition against a double loop written from Eq. 1, hand-computed values, and bad input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from howattend.decomposition import Components, StreamingDecomposition, decompose

PROPERTY = settings(derandomize=True, deadline=None, max_examples=40, database=None)
seeds = st.integers(0, 10**6)


def draw(seed: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, tokens and mask of random sizes; the padding holds NaN and impossible words."""
    rng = np.random.default_rng(seed)
    samples, steps, units, words = rng.integers(1, [9, 6, 5, 6])
    states = rng.normal(size=(samples, steps, units)).astype(dtype) + rng.normal(size=(steps, 1)).astype(dtype)
    tokens = rng.integers(0, words, (samples, steps))
    mask = rng.random((samples, steps)) < 0.7
    mask[rng.integers(samples), rng.integers(steps)] = True
    states[~mask] = np.nan
    tokens[~mask] = rng.choice([-1, 10**6], (~mask).sum())
    return states, tokens, mask


def by_loops(states: np.ndarray, tokens: np.ndarray, mask: np.ndarray, num_words: int) -> tuple[np.ndarray, ...]:
    """Eq. 1, word for word: μ, χ, Δ and the counts."""
    samples, steps, units = states.shape
    temporal, inputs = np.full((steps, units), np.nan), np.full((num_words, units), np.nan)
    for t in range(steps):
        reached = [states[m, t].astype(float) for m in range(samples) if mask[m, t]]
        if reached:
            temporal[t] = np.mean(reached, axis=0)
    occurrences = [[] for _ in range(num_words)]
    for m in range(samples):
        for t in range(steps):
            if mask[m, t]:
                occurrences[tokens[m, t]].append(states[m, t] - temporal[t])
    for x, found in enumerate(occurrences):
        if found:
            inputs[x] = np.mean(found, axis=0)
    delta = np.zeros(states.shape)
    for m in range(samples):
        for t in range(steps):
            if mask[m, t]:
                delta[m, t] = states[m, t] - temporal[t] - inputs[tokens[m, t]]
    return temporal, inputs, delta, mask.sum(0), np.array([len(found) for found in occurrences])


@PROPERTY
@given(seed=seeds, dtype=st.sampled_from([np.float32, np.float64]), kind=st.sampled_from([np.asarray, torch.as_tensor]))
def test_equals_the_double_loop(seed, dtype, kind):
    states, tokens, mask = draw(seed, dtype)
    got = decompose(kind(states), kind(tokens), kind(mask), num_words=7)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    parts = (got.temporal, got.input, got.delta, got.step_counts, got.word_counts)
    for part, expected in zip(parts, by_loops(states, tokens, mask, 7), strict=True):
        assert type(part) is type(kind(states))
        np.testing.assert_allclose(np.asarray(part), expected, rtol=tolerance, atol=tolerance)
    assert got.temporal.dtype == got.input.dtype == got.delta.dtype == kind(states).dtype
    assert got.step_counts.dtype == got.word_counts.dtype == kind(np.zeros(1, np.int64)).dtype


@PROPERTY
@given(seed=seeds)
def test_parts_sum_to_the_states_and_input_components_average_to_zero(seed):
    states, tokens, mask = draw(seed)
    got = decompose(states, tokens, mask)
    words = np.where(mask, tokens, 0)
    rebuilt = (got.temporal[None] + got.input[words] + got.delta)[mask]
    np.testing.assert_allclose(rebuilt, states[mask], atol=1e-12)
    np.testing.assert_allclose(got.reconstruct(tokens, mask), np.where(mask[..., None], states, 0), atol=1e-12)
    input_delta = np.where(mask[..., None], states - got.temporal, 0)
    np.testing.assert_allclose(got.input_delta(tokens, mask), input_delta, atol=1e-12)
    weighted = np.nansum(got.word_counts[:, None] * got.input, axis=0)
    np.testing.assert_allclose(weighted, 0, atol=1e-11)


@PROPERTY
@given(seed=seeds)
def test_order_of_samples_does_not_matter(seed):
    states, tokens, mask = draw(seed)
    order = np.random.default_rng(seed).permutation(len(states))
    one, other = decompose(states, tokens, mask), decompose(states[order], tokens[order], mask[order])
    np.testing.assert_allclose(other.temporal, one.temporal, atol=1e-12)
    np.testing.assert_allclose(other.input, one.input, atol=1e-12)
    np.testing.assert_allclose(other.delta, one.delta[order], atol=1e-12)


@PROPERTY
@given(seed=seeds, kind=st.sampled_from([np.asarray, torch.as_tensor]))
def test_streaming_equals_the_whole_for_any_split(seed, kind):
    states, tokens, mask = draw(seed)
    mask[:, 0], states[:, 0], tokens[:, 0] = True, 1.5, 0  # no batch without a word
    whole = decompose(kind(states), kind(tokens), kind(mask), num_words=6)
    streaming = StreamingDecomposition(states.shape[1], 6, states.shape[2])
    rng = np.random.default_rng(seed)
    cuts = np.unique(np.r_[0, rng.integers(0, len(states), 3), len(states)])
    for start, stop in pairwise(cuts):
        streaming.update(*(kind(part[start:stop]) for part in (states, tokens, mask)))
    got = streaming.components()
    assert got.delta is None
    for name in ("temporal", "input", "step_counts", "word_counts"):
        one, other = getattr(got, name), getattr(whole, name)
        assert type(one) is type(other)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), atol=1e-12)
    delta = got.delta_of(kind(states), kind(tokens), kind(mask))
    np.testing.assert_allclose(np.asarray(delta), np.asarray(whole.delta), atol=1e-12)
    pair = (kind(tokens), kind(mask))
    np.testing.assert_allclose(got.reconstruct(*pair, delta), whole.reconstruct(*pair), atol=1e-12)


def golden() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two words, three steps, one unit, the last step reached by one sample only."""
    states = np.array([[[1.0], [4.0], [6.0]], [[3.0], [8.0], [99.0]]])
    tokens = np.array([[0, 1, 1], [1, 1, 0]])
    mask = np.array([[True, True, True], [True, True, False]])
    return states, tokens, mask


def test_values_computed_by_hand():
    # μ = (1+3)/2, (4+8)/2, 6; h − μ = −1, −2, 0 and 1, 2: χ_0 = −1, χ_1 = (−2 + 0 + 1 + 2) / 4 = 0.25.
    got = decompose(*golden())
    np.testing.assert_array_equal(got.temporal, [[2], [6], [6]])
    np.testing.assert_array_equal(got.input, [[-1], [0.25]])
    np.testing.assert_array_equal(got.delta[..., 0], [[0, -2.25, -0.25], [0.75, 1.75, 0]])
    np.testing.assert_array_equal(got.step_counts, [2, 2, 1])
    np.testing.assert_array_equal(got.word_counts, [1, 4])
    np.testing.assert_array_equal(got.input_at(*golden()[1:])[..., 0], [[-1, 0.25, 0.25], [0.25, 0.25, 0]])


@pytest.mark.parametrize("num_words", [5, 4000])  # sums by pair of word and step, and by each
def test_many_blocks_and_vocabularies_agree_with_plain_means(num_words):
    rng = np.random.default_rng(0)
    states = rng.normal(3, 1, (700, 9, 64)).astype(np.float32)
    tokens, mask = rng.integers(0, num_words, (700, 9)), rng.random((700, 9)) < 0.8
    got = decompose(states, tokens, mask, num_words)
    temporal = np.stack([states[mask[:, t], t].mean(0, dtype=np.float64) for t in range(9)])
    np.testing.assert_allclose(got.temporal, temporal, rtol=1e-6)
    x = tokens[0, mask[0]][0]
    residual = (states - temporal)[mask & (tokens == x)].mean(0)
    np.testing.assert_allclose(got.input[x], residual, atol=1e-6)
    np.testing.assert_allclose(got.reconstruct(tokens, mask)[mask], states[mask], atol=1e-5)


def test_words_and_steps_that_never_occur_are_nan_with_count_zero():
    states, tokens, mask = golden()
    mask[:, 2] = False
    got = decompose(states, tokens, mask, num_words=4)
    assert np.isnan(got.temporal[2]).all() and np.isfinite(got.temporal[:2]).all()
    assert np.isnan(got.input[2:]).all() and np.isfinite(got.input[:2]).all()
    assert got.step_counts.tolist() == [2, 2, 0]
    assert got.word_counts.tolist() == [1, 3, 0, 0]
    assert np.isfinite(got.delta).all()
    assert (got.delta[:, 2] == 0).all()
    new = got.delta_of(states[:1], np.array([[0, 3, 0]]), mask[:1])
    assert np.isnan(new[0, 1]).all(), "a word without a component has no delta"


def test_sums_run_in_float64():
    # In float32, 16777216 + 1 is 16777216: the mean would lose every one of the ones.
    states = np.ones((3001, 1, 1), np.float32)
    states[0] = 2**24
    got = decompose(states, np.zeros((3001, 1), np.int64), np.ones((3001, 1), bool))
    assert got.temporal[0, 0] == np.float32((2**24 + 3000) / 3001)


@pytest.mark.parametrize("width", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">i4"])
def test_any_integers_are_tokens(width):
    states, tokens, mask = golden()
    np.testing.assert_array_equal(decompose(states, tokens.astype(width), mask).input, [[-1], [0.25]])


def test_arrays_from_anywhere():
    states, tokens, mask = golden()
    frozen = states.copy()
    frozen.flags.writeable = False
    turned = np.ascontiguousarray(states[::-1, :, ::-1])[::-1, :, ::-1]
    for one in (frozen, turned, states.astype(">f8"), np.asfortranarray(states)):
        np.testing.assert_array_equal(decompose(one, tokens, mask).temporal, [[2], [6], [6]])
    tensor = torch.from_numpy(states).transpose(0, 1).contiguous().transpose(0, 1).requires_grad_()
    got = decompose(tensor, tokens, mask)
    assert not got.temporal.requires_grad
    np.testing.assert_array_equal(got.temporal, [[2], [6], [6]])
    assert got.delta.is_contiguous()
    np.testing.assert_array_equal(states, golden()[0], "arguments are left as they were")


BAD = [
    (
        "states",
        lambda s, t, m: (s.tolist(), t, m),
        TypeError,
        "states must be a torch tensor or a numpy array, got list",
    ),
    ("half", lambda s, t, m: (s.astype(np.float16), t, m), TypeError, "states must be float32 or float64, got float16"),
    ("long", lambda s, t, m: (s.astype(np.longdouble), t, m), TypeError, "states has numpy dtype"),
    ("integers", lambda s, t, m: (s.astype(int), t, m), TypeError, "states must be float32 or float64, got int64"),
    ("masked", lambda s, t, m: (np.ma.array(s), t, m), TypeError, "states must not be a numpy masked array"),
    ("sparse", lambda s, t, m: (torch.eye(3).to_sparse(), t, m), TypeError, "states must be a dense tensor"),
    ("ndim", lambda s, t, m: (s[0], t, m), ValueError, r"states must have shape \[M, T, n\].* got \[3, 1\]"),
    (
        "empty",
        lambda s, t, m: (s[:0], t[:0], m[:0]),
        ValueError,
        r"states must have shape .* got \[0, 3, 1\]: M must be at",
    ),
    ("tokens", lambda s, t, m: (s, t[:, :2], m), ValueError, r"tokens must have shape \[M, T\] with M = 2, T = 3, got"),
    ("float", lambda s, t, m: (s, t.astype(float), m), TypeError, "tokens must be integers .* got float64"),
    (
        "mask",
        lambda s, t, m: (s, t, m[:1]),
        ValueError,
        r"mask must have shape \[M, T\] with M = 2, T = 3, got \[1, 3\]",
    ),
    ("int mask", lambda s, t, m: (s, t, m.astype(int)), TypeError, "mask must be bool, True on words, got int64"),
    ("no word", lambda s, t, m: (s, t, m & False), ValueError, "mask must be True somewhere"),
    ("high", lambda s, t, m: (s, t + 2, m), ValueError, r"tokens must be in 0 … 1 \(num_words = 2\) .* got 3"),
    ("low", lambda s, t, m: (s, t - 1, m), ValueError, "tokens must be in 0 … 1 .* got -1"),
    (
        "nan",
        lambda s, t, m: (s * np.where(s == 8, np.nan, 1), t, m),
        ValueError,
        "states must be finite .* sample 1 at step 1",
    ),
    (
        "inf",
        lambda s, t, m: (s * np.where(s == 6, np.inf, 1), t, m),
        ValueError,
        "states must be finite .* sample 0 at step 2",
    ),
    ("sum", lambda s, t, m: (s * 0 + 1.7e308, t, m), ValueError, "states must have finite sums"),
]


@pytest.mark.parametrize(("change", "error", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_is_named(change, error, message):
    arguments = change(*golden())
    with pytest.raises(error, match=message):
        decompose(*arguments, num_words=2)
    streaming = StreamingDecomposition(3, 2, 1)
    streaming.update(*golden())
    before = streaming.components()
    with pytest.raises(error, match=message.split(" ")[0]):
        streaming.update(*arguments)
    after = streaming.components()
    np.testing.assert_array_equal(after.input, before.input, "a refused batch must change nothing")
    np.testing.assert_array_equal(after.word_counts, before.word_counts)


def test_negative_tokens_without_num_words():
    states, tokens, mask = golden()
    with pytest.raises(ValueError, match="tokens must be 0 or more where mask is True, got -1"):
        decompose(states, tokens - 1, mask)


@pytest.mark.parametrize("name", ["num_steps", "num_words", "hidden_size"])
def test_bad_sizes(name):
    sizes = {"num_steps": 3, "num_words": 2, "hidden_size": 1}
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got 0"):
        StreamingDecomposition(**{**sizes, name: 0})
    for value in (2.0, None, True):
        with pytest.raises(TypeError, match=f"{name} must be an integer of at least 1"):
            StreamingDecomposition(**{**sizes, name: value})
    with pytest.raises(ValueError, match="num_words must be an integer"):
        decompose(*golden(), num_words=-1)


def test_streaming_wants_batches_alike():
    states, tokens, mask = golden()
    streaming = StreamingDecomposition(3, 2, 1)
    with pytest.raises(ValueError, match="call update"):
        streaming.components()
    with pytest.raises(ValueError, match="mask must be True"):
        streaming.update(states, tokens, mask & False)
    with pytest.raises(ValueError, match="call update"):
        streaming.components()
    streaming.update(torch.from_numpy(states), tokens, mask)
    for other in (states, torch.from_numpy(states).float()):
        with pytest.raises(TypeError, match=r"states must be a torch tensor of torch\.float64 on cpu as in the first"):
            streaming.update(other, tokens, mask)
    with pytest.raises(ValueError, match=r"states must have shape \[M, T, n\] with T = 3, n = 1"):
        streaming.update(torch.from_numpy(states[:, :2]), tokens[:, :2], mask[:, :2])
    assert streaming.components().word_counts.tolist() == [1, 4]
    streaming.update(torch.from_numpy(states), tokens, mask)
    assert streaming.components().word_counts.tolist() == [2, 8]


def test_components_want_what_was_decomposed():
    states, tokens, mask = golden()
    got = decompose(states, tokens, mask)
    with pytest.raises(ValueError, match=r"tokens must have shape \[M, T\] with M, T = \[2, 3\] as delta does"):
        got.input_delta(tokens[:1], mask[:1])
    with pytest.raises(ValueError, match=r"tokens must be in 0 … 1"):
        got.input_at(tokens + 1, mask)
    with pytest.raises(TypeError, match="mask must be bool"):
        got.input_at(tokens, tokens)
    streamed = Components(got.temporal, got.input, None, got.step_counts, got.word_counts)
    for method in (streamed.input_delta, streamed.reconstruct):
        with pytest.raises(ValueError, match=r"delta must be given.*delta_of"):
            method(tokens, mask)
