"""Each statistic on planted arrays with a known answer, on a counter-example it must tell apart, and on bad input."""

import dataclasses
import inspect
import time
from itertools import pairwise

import numpy as np
import pytest
import torch

from howattend import statistics as st

# ---------------------------------------------------------------------------------------------------------- planting


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def frame(k, n, seed=0):
    """k orthonormal rows in R^n, in general position."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, k)))[0].T


def arc(steps, turn, n=16, radius=3.0, stretch=1.0):
    """A path on a circle (or, stretched, an ellipse) embedded in R^n, off the origin, without noise."""
    angle = np.linspace(0, turn, steps)
    plane = np.column_stack([radius * stretch * np.cos(angle), radius * np.sin(angle)])
    return plane @ frame(2, n) + 5.0


def simplex(corners, n=12):
    """A regular simplex embedded in R^n, its centre off the origin."""
    return 2.0 * frame(corners, n) + 1.5


def one_hot(columns, width):
    return np.eye(width)[np.asarray(columns)]


# --------------------------------------------------------------------------------------------------------- attention


def test_accuracy_counts_masked_positions_only():
    target = [[4, 5, 1], [6, 1, 0]]
    mask = [[True, True, True], [True, True, False]]
    assert st.accuracy([[4, 5, 1], [6, 1, 9]], target, mask) == 1.0
    assert st.accuracy([[4, 9, 1], [6, 1, 0]], target, mask) == pytest.approx(4 / 5)


def test_accuracy_of_another_width():
    target, mask = [[4, 5, 1], [6, 1, 0]], [[True, True, True], [True, True, False]]
    assert st.accuracy([[4, 5], [6, 1]], target, mask) == pytest.approx(4 / 5)  # the third word was never produced
    assert st.accuracy([[4, 5, 1, 8], [6, 1, 0, 8]], target, mask) == 1.0


def test_softmax_masks_and_sums_to_one():
    weights = st.softmax([[0.0, np.log(3), np.nan], [1000.0, 1000.0, 1000.0]], [[True, True, False], [True] * 3])
    np.testing.assert_allclose(weights, [[0.25, 0.75, 0.0], [1 / 3] * 3])
    np.testing.assert_allclose(st.softmax([0.0, 0.0]), [0.5, 0.5])


def test_softmax_broadcasts_its_mask(rng):
    weights = st.softmax(rng.standard_normal((4, 3, 5)), np.array([True, True, True, False, False]))
    assert (weights[..., 3:] == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_total_variation():
    p = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]
    q = [[0.0, 0.4, 0.6], [0.5, 0.0, 0.5], [0.2, 0.3, 0.5]]
    np.testing.assert_allclose(st.total_variation(p, q), [1.0, 0.5, 0.0])


def test_mean_attention_by_length():
    attention = one_hot([[0, 0], [1, 1], [0, 2]], 3)
    means = st.mean_attention(attention, [2, 2, 3])
    assert list(means) == [2, 3]
    np.testing.assert_allclose(means[2], [[0.5, 0.5, 0], [0.5, 0.5, 0]])
    np.testing.assert_allclose(means[3], attention[2])


def test_mean_attention_leaves_unreached_steps_out():
    attention = one_hot([[0, 0], [1, 1]], 3)
    attention[1, 1] = np.nan
    means = st.mean_attention(attention, [2, 2], [[True, True], [True, False]])
    np.testing.assert_allclose(means[2], [[0.5, 0.5, 0], [1, 0, 0]])
    means = st.mean_attention(attention, [2, 2], [[True, False], [True, False]])
    assert np.isnan(means[2][1]).all() and np.isfinite(means[2][0]).all()


def test_distance_to_mean_attention_is_zero_if_length_decides():
    diagonal = one_hot([[0, 1, 2], [0, 1, 2], [2, 1, 0], [2, 1, 0]], 3)
    mask = np.ones((4, 3), bool)
    assert st.distance_to_mean_attention(diagonal, [3, 3, 2, 2], mask) == 0
    assert st.distance_to_mean_attention(diagonal, [3, 3, 3, 3], mask) == pytest.approx((0.5 + 0 + 0.5) / 3)


def test_distance_to_mean_attention_reads_masked_steps_only():
    attention = one_hot([[0, 1, 2], [0, 2, 2]], 3)
    attention[1, 2] = np.nan
    mask = np.array([[True, True, True], [True, True, False]])
    assert st.distance_to_mean_attention(attention, [3, 3], mask) == pytest.approx((0 + 0 + 0.5 + 0.5 + 0) / 5)


def test_argmax_agreement():
    scores = -np.abs(np.arange(6)[:, None] - np.arange(6)).astype(float)
    assert st.argmax_agreement(scores, np.arange(6)) == 1.0
    assert st.argmax_agreement(scores, np.arange(6)[::-1]) == 0.0
    assert st.argmax_agreement(scores[:5], np.arange(1, 6)) == 0.0
    assert st.argmax_agreement(scores[:5], np.arange(1, 6), within=1) == 1.0


def test_argmax_agreement_passes_over_steps_without_component():
    scores = np.array([[np.nan, 2.0, 1.0], [np.nan, 0.0, 1.0], [-np.inf, -5.0, -4.0]])
    assert st.argmax_agreement(scores, [1, 2, 2]) == 1.0


# ---------------------------------------------------------------------------------------------------------- geometry


def test_principal_components_find_planted_axes(rng):
    axes = frame(3, 20)
    coordinates = rng.standard_normal((4, 500, 3)) * [5.0, 2.0, 0.5]
    found = st.principal_components(coordinates @ axes + 7.0, count=3)
    assert (np.abs((found.axes * axes).sum(1)) > 0.99).all()
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.variance_ratio.sum(), 1)
    expected = coordinates.reshape(-1, 3).var(0)
    np.testing.assert_allclose(found.variance_ratio, expected / expected.sum(), rtol=0.02)


def test_principal_components_project_and_restore(rng):
    points = rng.standard_normal((30, 4))
    found = st.principal_components(points[:10], points[10:].reshape(4, 5, 4), count=4)
    np.testing.assert_allclose(found.project(points) @ found.axes + found.mean, points, atol=1e-12)
    np.testing.assert_allclose(found.mean, points.mean(0))
    assert found.project(points.reshape(5, 6, 4)).shape == (5, 6, 4)
    np.testing.assert_allclose(found.project(points).var(0) / points.var(0).sum(), found.variance_ratio)


def test_principal_components_have_a_fixed_sign(rng):
    points = rng.standard_normal((50, 6)) * np.arange(1, 7)
    axes = st.principal_components(points, count=6).axes
    np.testing.assert_allclose(axes, st.principal_components(-points, count=6).axes, atol=1e-12)
    assert (axes[np.arange(6), np.abs(axes).argmax(1)] > 0).all()


def test_explained_variance(rng):
    flat = rng.standard_normal((200, 3)) @ frame(3, 30)
    assert st.explained_variance(flat[:50], flat[50:]) == pytest.approx(1)
    assert st.explained_variance(flat, count=2) < 0.95
    assert st.explained_variance(rng.standard_normal((2000, 30))) < 0.2


@pytest.mark.parametrize("turn", [2 * np.pi, 1.5 * np.pi, -np.pi, 5 * np.pi])
def test_circle(turn):
    found = st.circle(arc(31, turn))
    assert found.angle_swept == pytest.approx(abs(turn))
    assert found.radius_mean == pytest.approx(3)
    assert found.radius_variation == pytest.approx(0, abs=1e-9)


def test_circle_is_free_of_scale():
    path = arc(20, 4.0) - 5.0
    small, large = st.circle(path * 1e-8), st.circle(path * 1e8)
    assert small.angle_swept == pytest.approx(large.angle_swept)
    assert small.radius_mean * 1e16 == pytest.approx(large.radius_mean)


def test_what_is_no_circle(rng):
    assert st.circle(arc(60, 2 * np.pi, stretch=2.0)).radius_variation > 0.2
    line = st.circle(np.linspace(-1, 1, 20)[:, None] * frame(1, 16))
    assert line.radius_variation > 0.4
    back_and_forth = np.concatenate([arc(20, 3.0), arc(20, 3.0)[::-1]])
    assert st.circle(back_and_forth).angle_swept == pytest.approx(0, abs=1e-6)
    assert st.circle(rng.standard_normal((50, 16))).radius_variation > 0.2


def test_path_similarity(rng):
    path = arc(20, 5.0)
    assert st.path_similarity(path, path) == pytest.approx(1)
    assert st.path_similarity(3 * path + 2, path) == pytest.approx(1)
    assert st.path_similarity(-path, path) == pytest.approx(-1)
    assert st.path_similarity(arc(20, 2 * np.pi)[::-1], arc(20, 2 * np.pi)) < 0.2
    assert abs(st.path_similarity(rng.standard_normal((20, 16)), path)) < 0.3


def test_path_similarity_of_different_lengths():
    path = arc(41, 4 * np.pi)  # two turns, so that one has nearly the mean of both
    assert st.path_similarity(path[:21], path) > 0.99


def test_adjacent_neighbours(rng):
    path = arc(20, 5.0)
    assert st.adjacent_neighbours(path) == 1.0
    assert st.adjacent_neighbours(arc(21, 2 * np.pi)[:20]) == 1.0  # closed: ties between the two neighbours
    assert st.adjacent_neighbours(rng.permutation(path)) < 0.4
    assert st.adjacent_neighbours(rng.standard_normal((40, 16))) < 0.3
    walk = np.cumsum(rng.standard_normal((40, 64)), axis=0)
    assert st.adjacent_neighbours(walk) > 0.9


def test_adjacent_neighbours_counts():
    # Steps 0 and 2 are nearest to one another, step 1 to step 3; the last two are neighbours.
    assert st.adjacent_neighbours([[0.0], [5.0], [0.1], [9.0], [10.0]]) == pytest.approx(2 / 5)


def test_join_distance():
    path = np.arange(5.0)[:, None] * [2.0, 0.0]
    ends = np.array([[8.0, 3.0], [8.0, -1.0]])
    assert st.join_distance(ends, [8.0, 1.0], path) == 0
    assert st.join_distance(ends, [10.0, 1.0], path) == pytest.approx(1)
    assert st.join_distance(ends, [8.0, 41.0], path) == pytest.approx(20)


@pytest.mark.parametrize("corners", [2, 3, 8])
def test_simplex(corners):
    points = simplex(corners)
    expected = np.full((corners, corners), -1 / (corners - 1))
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(st.simplex_cosines(points), expected, atol=1e-12)
    assert st.simplex_deviation(points) == pytest.approx(0, abs=1e-12)


def test_what_is_no_simplex(rng):
    assert st.simplex_deviation(simplex(8)[[0, 1, 2, 3, 4, 5, 6, 6]] + 0.01 * rng.standard_normal((8, 12))) > 0.5
    assert st.simplex_deviation(np.arange(3.0)[:, None] * frame(1, 12) + [[0.01], [0], [0.01]] * frame(1, 12, 1)) > 0.4
    # Eight random points in few dimensions: findings on three random points are why N = 8 is asked for.
    assert st.simplex_deviation(rng.standard_normal((8, 6))) > 0.1


# -------------------------------------------------------------------------------------------------------- components


def test_energy_share_of_planted_parts(rng):
    axes = frame(4, 10)
    time_part = np.tile(np.array([3.0, -3.0])[:, None] * axes[0], (50, 1, 1))
    delta = np.tile(np.repeat([1.0, -1.0], 25)[:, None, None] * axes[1], (1, 2, 1))
    states, mask = time_part + delta + 100.0, np.ones((50, 2), bool)
    assert st.energy_share(delta, states, mask) == pytest.approx(1 / 10)
    assert st.energy_share(time_part, states, mask) == pytest.approx(9 / 10)
    assert st.energy_share(states, states, mask) > 100


def test_energy_share_reads_masked_positions_only(rng):
    states, part = rng.standard_normal((2, 20, 3, 5))
    mask = rng.random((20, 3)) < 0.5
    expected = (part[mask] ** 2).sum() / ((states[mask] - states[mask].mean(0)) ** 2).sum()
    states[~mask] = part[~mask] = np.nan
    assert st.energy_share(part, states, mask) == pytest.approx(expected)


def test_energy_ratio_is_over_the_same_pairs():
    part = np.ones((2, 3, 4))
    reference = np.array([1.0, 2.0, np.nan])[:, None] * np.ones(4)
    mask = np.array([[True, True, False], [True, False, False]])
    assert st.energy_ratio(part, reference, mask) == pytest.approx(3 / (1 + 4 + 1))
    assert st.energy_ratio(part, 2 * part, mask) == pytest.approx(1 / 4)


def test_variance_drop_of_planted_words(rng):
    samples, steps, n = 400, 6, 10
    temporal = rng.standard_normal((steps, n))
    tokens = rng.integers(0, 3, (samples, steps))
    noise = rng.standard_normal((samples, steps, n))
    # Word 0: its step and nothing else. Word 1: noise that knows no step. Word 2: both.
    states = np.where((tokens != 1)[..., None], temporal, 0) + np.where((tokens != 0)[..., None], noise, 0)
    drops = st.variance_drop(states, temporal, tokens, np.ones((samples, steps), bool), [2, 0, 1])
    assert drops[1] == pytest.approx(1)
    assert drops[2] < -0.5
    assert 0.2 < drops[0] < 0.8


def test_variance_drop_exactly():
    states = np.array([[[0.0], [3.0]], [[2.0], [5.0]]])
    drops = st.variance_drop(states, [[1.0], [4.0]], [[5, 5], [5, 5]], np.ones((2, 2), bool), [5])
    np.testing.assert_allclose(drops, [1 - 1.0 / np.var([0, 3, 2, 5])])


def test_variance_drop_of_words_that_have_none():
    states = np.array([[[0.1], [1.0], [7.0]], [[0.1], [2.0], [np.nan]]])
    mask = np.array([[True, True, True], [True, True, False]])
    tokens = [[1, 2, 3], [1, 2, 2]]
    drops = st.variance_drop(states, [[0.1], [1.5], [7.0]], tokens, mask, [1, 2, 3, 9])
    assert np.isnan(drops[[0, 2, 3]]).all()  # all equal, one occurrence, no occurrence
    assert drops[1] == pytest.approx(0)
    unreached = st.variance_drop(states[:, :2], [[0.1], [1.5]], [[1, 2]] * 2, mask[:, :2], [2])
    np.testing.assert_allclose(unreached, drops[1:2])


# -------------------------------------------------------------------------------------------------------- directions


def test_mean_absolute_cosine():
    assert st.mean_absolute_cosine([1.0, 0.0], [0.0, 2.0]) == 0
    assert st.mean_absolute_cosine([[1.0, 0.0], [1.0, 0.0]], [[-3.0, 0.0], [1.0, 1.0]]) == pytest.approx(0.853553)
    assert st.mean_absolute_cosine(np.ones((5, 2, 3)), -np.ones((2, 3))) == pytest.approx(1)


@pytest.fixture
def planted(rng):
    """Temporal directions [T, n] in one 3-plane, vectors [M, T, n] in the 3-plane orthogonal to it, and states."""
    axes = frame(6, 40)
    directions = rng.standard_normal((5, 3)) @ axes[:3]
    vectors = rng.standard_normal((300, 5, 3)) @ axes[3:]
    return directions, vectors, directions + vectors


@pytest.mark.parametrize("pairing", ["step", "all"])
@pytest.mark.parametrize("with_states", [True, False])
def test_orthogonal_construction(planted, pairing, with_states):
    directions, vectors, states = planted
    mask = np.ones((300, 5), bool)
    found = st.orthogonality(directions, vectors, mask, states if with_states else None, pairing=pairing)
    assert found.value == pytest.approx(0, abs=1e-12)
    assert found.per_step.shape == (5,)
    assert 0 < found.null_low < found.null_mean < found.null_high


@pytest.mark.parametrize("pairing", ["step", "all"])
def test_parallel_directions_exceed_the_null(planted, pairing):
    _, vectors, states = planted
    vectors = vectors + 4 * np.ones(40)
    found = st.orthogonality(np.ones((5, 40)), vectors, np.ones((300, 5), bool), states, pairing=pairing)
    assert found.value > found.null_high


def test_one_bad_step_decides(planted):
    directions, vectors, states = planted
    directions = directions.copy()
    directions[3] = vectors[:, 3][np.argmax(np.linalg.norm(vectors[:, 3], axis=1))]
    found = st.orthogonality(directions, vectors, np.ones((300, 5), bool), states)
    assert found.value == found.per_step.max() == found.per_step[3] > 0.3
    np.testing.assert_allclose(found.per_step[[0, 1, 2, 4]], 0, atol=1e-12)


def test_null_is_drawn_in_the_states_span(planted):
    directions, vectors, states = planted
    mask = np.ones((300, 5), bool)
    spanned = st.orthogonality(directions, vectors, mask, states)
    everywhere = st.orthogonality(directions, vectors, mask)
    # In 6 dimensions two directions are further from orthogonal than in 40.
    assert spanned.null_mean > 2 * everywhere.null_mean
    # Traces of noise in the other 34 dimensions carry less than 1 % of the variance and leave the null alone.
    traces = states + 0.005 * np.random.default_rng(1).standard_normal(states.shape)
    noisy = st.orthogonality(directions, vectors, mask, traces)
    assert noisy.null_mean == pytest.approx(spanned.null_mean, rel=0.05)


def test_null_contains_random_directions(rng):
    vectors = rng.standard_normal((200, 4, 10)) * np.linspace(1, 3, 10)
    mask = np.ones((200, 4), bool)
    below = [
        (found := st.orthogonality(rng.standard_normal((4, 10)), vectors, mask, seed=seed)).value < found.null_high
        for seed in range(60)
    ]
    assert 0.85 <= np.mean(below) < 1  # 0.95 by construction


def test_orthogonality_leaves_masked_steps_out(planted):
    directions, vectors, states = (array.copy() for array in planted)
    mask = np.ones((300, 5), bool)
    mask[:, 4] = mask[0] = False
    directions[4] = vectors[:, 4] = vectors[0] = states[0] = np.nan
    found = st.orthogonality(directions, vectors, mask, states)
    assert found.value == pytest.approx(0, abs=1e-12)
    assert np.isnan(found.per_step[4]) and np.isfinite(found.per_step[:4]).all()


def test_orthogonality_pairs_steps(rng):
    axes = frame(4, 12)
    vectors = np.tile(np.roll(axes, 1, axis=0), (10, 1, 1))
    mask = np.ones((10, 4), bool)
    assert st.orthogonality(axes, vectors, mask).value == pytest.approx(0, abs=1e-12)
    assert st.orthogonality(axes, vectors, mask, pairing="all").value == pytest.approx(1 / 4)
    assert st.orthogonality(axes[:2], vectors, mask, pairing="all").per_step.shape == (2,)


def test_orthogonality_is_deterministic(planted):
    directions, vectors, _ = planted
    many = np.tile(vectors, (100, 1, 1))  # more than the null takes, so that it draws some
    mask = np.ones((30_000, 5), bool)
    first, again, other = (st.orthogonality(directions, many, mask, seed=seed, draws=20) for seed in (0, 0, 1))
    assert first.null_high == again.null_high != other.null_high
    whole = st.orthogonality(directions, vectors, np.ones((300, 5), bool))
    assert first.null_mean == pytest.approx(whole.null_mean, rel=0.1)


def test_orthogonality_at_full_size_is_quick():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((10_000, 21, 128), dtype=np.float32)
    began = time.process_time()
    found = st.orthogonality(rng.standard_normal((21, 128)), vectors, np.ones((10_000, 21), bool), vectors)
    assert time.process_time() - began < 10
    assert found.value == pytest.approx(np.sqrt(2 / np.pi / 128), rel=0.05)  # |cos| 0.07 at n = 128


def test_readout_orthogonality(rng):
    axes = frame(20, 64)
    found = st.readout_orthogonality(axes[:10], axes[10:])
    assert found.value == pytest.approx(0, abs=1e-12) and found.per_step.shape == (10,)
    assert found.value < found.null_low < found.null_mean < found.null_high
    aligned = st.readout_orthogonality(axes[:10], axes[10:] - axes[:10])
    assert aligned.value == pytest.approx(np.sqrt(0.5)) and aligned.value > aligned.null_high


def test_readout_null_is_that_of_random_directions(rng):
    context, state = rng.standard_normal((2, 3000, 7))
    found = st.readout_orthogonality(context, state)
    assert found.value == pytest.approx(found.null_mean, rel=0.05)
    drawn = [
        st.mean_absolute_cosine(context[:50], rng.standard_normal((50, 7))) for _ in range(2000)
    ]  # the same null, by vectors
    by_beta = st.readout_orthogonality(context[:50], state[:50], draws=2000)
    np.testing.assert_allclose(
        [by_beta.null_low, by_beta.null_mean, by_beta.null_high],
        [np.quantile(drawn, 0.05), np.mean(drawn), np.quantile(drawn, 0.95)],
        rtol=0.02,
    )


# ---------------------------------------------------------------------------------------------------------- readouts


def test_dictionary_of_a_planted_code(rng):
    inputs = frame(6, 20)
    translation = rng.permutation(6)
    readouts = 3 * inputs[translation] + 0.1 * rng.standard_normal((6, 20))
    np.testing.assert_array_equal(st.dictionary(readouts, inputs), translation)
    assert st.dictionary_agreement(readouts, inputs, translation) == 1.0
    assert st.dictionary_agreement(readouts, inputs, np.roll(translation, 1)) == 0.0
    readouts[0] = inputs[translation[1]]
    assert st.dictionary_agreement(readouts, inputs, translation) == pytest.approx(5 / 6)


def test_dictionary_keeps_word_ids_when_words_never_occur():
    inputs = np.vstack([np.full((2, 20), np.nan), frame(3, 20)])
    np.testing.assert_array_equal(st.dictionary(inputs[[4, 2]], inputs), [4, 2])
    assert st.dictionary_agreement(inputs[[4, 2]], inputs, [4, 2]) == 1.0


def test_logit_difference_shares_of_planted_logits():
    context = np.array([[[6.0, 0.0, -9.0], [0.0, 6.0, -9.0]]])
    state = np.array([[[1.5, 0.0, -9.0], [0.0, 1.5, -9.0]]])
    shares = st.logit_difference_shares(context, state, None, [[0, 1]])
    assert shares == pytest.approx({"context": 0.8, "state": 0.2, "bias": 0})
    shares = st.logit_difference_shares(context, state, [2.5, 0.0, 0.0], [[0, 1]], [[True, False]])
    assert shares == pytest.approx({"context": 0.6, "state": 0.15, "bias": 0.25})


def test_runner_up_is_by_the_full_logits():
    # The context alone would call word 1 the runner-up, the state makes it word 2.
    shares = st.logit_difference_shares([4.0, 3.0, 2.0], [0.0, 0.0, 1.5], None, 0)
    assert shares == pytest.approx({"context": 2 / 0.5, "state": -1.5 / 0.5, "bias": 0})


def test_state_readout_that_decides_is_seen(rng):
    target = rng.integers(0, 5, (8, 6))
    decisive, noise = 10 * one_hot(target, 5), 0.01 * rng.standard_normal((8, 6, 5))
    assert st.logit_difference_shares(decisive, noise, None, target)["context"] > 0.99
    assert st.logit_difference_shares(noise, decisive, None, target)["context"] < 0.01


def test_logit_difference_shares_read_masked_positions_only(rng):
    context, state = rng.standard_normal((2, 4, 3, 5))
    target, mask = rng.integers(0, 5, (4, 3)), rng.random((4, 3)) < 0.5
    expected = st.logit_difference_shares(context[mask], state[mask], None, target[mask])
    context[~mask], target[~mask] = np.nan, -1
    assert st.logit_difference_shares(context, state, None, target, mask) == expected


# --------------------------------------------------------------------------------------------------------- inference


def test_spearman(rng):
    x = rng.standard_normal(30)
    assert st.spearman(x, np.exp(x)) == pytest.approx(1)
    assert st.spearman(x, -(x**3)) == pytest.approx(-1)
    assert st.spearman([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(0.8)
    assert st.spearman([1, 1, 2, 3], [1, 2, 3, 3]) == pytest.approx(8 / 9)  # ties
    assert abs(st.spearman(rng.standard_normal(2000), rng.standard_normal(2000))) < 0.1


def test_t_interval():
    found = st.t_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (found.mean, found.n) == (3.0, 5)
    assert found.high - 3 == pytest.approx(2.7764451 * np.sqrt(2.5 / 5)) == pytest.approx(3 - found.low)
    narrower = st.t_interval([1.0, 2.0, 3.0, 4.0, 5.0], confidence=0.5)
    assert found.low < narrower.low < 3 < narrower.high < found.high
    equal = st.t_interval([2.0, 2.0])
    assert (equal.low, equal.high) == (2.0, 2.0)


def test_t_interval_of_one_value():
    found = st.t_interval([0.7])
    assert found.mean == 0.7 and found.n == 1 and np.isnan(found.low) and np.isnan(found.high)


def test_t_interval_covers(rng):
    covers = [(i := st.t_interval(rng.standard_normal(5))).low < 0 < i.high for _ in range(2000)]
    assert np.mean(covers) == pytest.approx(0.95, abs=0.02)


# ------------------------------------------------------------------------------------------------- what all have alike

M, S, T, N, V = 6, 4, 5, 3, 7


def arguments():
    """Valid arguments of every public function, by name: what the bad-input tests damage one at a time."""
    rng = np.random.default_rng(3)
    source, target = np.ones((M, T), bool), np.ones((M, S), bool)
    encoder, decoder = rng.standard_normal((M, T, N)), rng.standard_normal((M, S, N))
    attention = st.softmax(rng.standard_normal((M, S, T)))
    path, words = rng.standard_normal((T, N)), rng.standard_normal((V, N))
    lengths = np.full(M, T)
    target_words = rng.integers(0, V, (M, S))
    return {
        "accuracy": dict(predicted=target_words, target=target_words, mask=target),
        "softmax": dict(scores=rng.standard_normal((M, S, T)), mask=np.ones((M, S, T), bool)),
        "total_variation": dict(p=attention, q=attention[::-1]),
        "mean_attention": dict(attention=attention, lengths=lengths, decoder_mask=target),
        "distance_to_mean_attention": dict(attention=attention, lengths=lengths, decoder_mask=target),
        "argmax_agreement": dict(scores=rng.standard_normal((S, T)), expected=np.arange(S)),
        "distance_to_attention": dict(
            scores=rng.standard_normal((M, S, T)), attention=attention, encoder_mask=source, decoder_mask=target
        ),
        "top_weights_on": dict(attention=attention, steps=rng.integers(0, T, (M, S)), mask=target),
        "ranked_steps": dict(scores=rng.standard_normal((S, T)), rank=1),
        "peak_steps": dict(scores=rng.standard_normal((S, T))),
        "entropy": dict(weights=attention),
        "diagonal_distance": dict(weights=attention, source_lengths=lengths, target_lengths=np.full(M, S), mask=target),
        "peak_drops": dict(scores=rng.standard_normal((S, T)), offsets=(1, 2)),
        "silhouette": dict(points=words, labels=np.arange(V) % 2),
        "nearest_centre_share": dict(points=words, labels=np.arange(V) % 2, centres=path),
        "mean_by_offset": dict(
            values=rng.standard_normal((M, S, T)), mask=np.ones((M, S, T), bool), offsets=np.arange(-2, 3)
        ),
        "negative_share": dict(values=rng.standard_normal((M, S)), mask=target),
        "principal_components": dict(point_sets=encoder, count=2),
        "explained_variance": dict(point_sets=encoder, count=2),
        "circle": dict(path=path),
        "path_similarity": dict(decoder_path=path[:S], encoder_path=path),
        "adjacent_neighbours": dict(path=path),
        "join_distance": dict(last_encoder_states=encoder[:, -1], decoder_start=path[0], path=path),
        "simplex_cosines": dict(points=words),
        "simplex_deviation": dict(points=words),
        "energy_share": dict(part=encoder, states=encoder, mask=source),
        "energy_ratio": dict(part=decoder, reference=decoder, mask=target),
        "variance_drop": dict(
            states=encoder, temporal=path, tokens=rng.integers(0, V, (M, T)), mask=source, words=np.arange(V)
        ),
        "mean_absolute_cosine": dict(a=encoder, b=encoder[::-1]),
        "orthogonality": dict(directions=path, vectors=encoder, mask=source, states=encoder),
        "readout_orthogonality": dict(context_readout=words, state_readout=words[::-1]),
        "dictionary": dict(readouts=words, inputs=words),
        "dictionary_agreement": dict(readouts=words, inputs=words, translation=np.arange(V)),
        "logit_difference_shares": dict(
            context_logits=rng.standard_normal((M, S, V)),
            state_logits=rng.standard_normal((M, S, V)),
            bias=rng.standard_normal(V),
            target=target_words,
            mask=target,
        ),
        "prefix_purity": dict(
            states=rng.standard_normal((12, N)), words=rng.permutation(np.arange(24) % 2).reshape(12, 2)
        ),
        "spearman": dict(x=np.arange(V), y=np.arange(V)),
        "t_interval": dict(values=rng.standard_normal(V)),
        "fit_line": dict(x=np.arange(V), y=rng.standard_normal(V)),
    }


VALID = arguments()
ARRAYS = [(f, a) for f, given in VALID.items() for a, value in given.items() if isinstance(value, np.ndarray)]


def call(function, given):
    given = dict(given)
    sets = [given.pop("point_sets")] if "point_sets" in given else []
    return getattr(st, function)(*sets, **given)


def damaged(function, **changes):
    return call(function, {**VALID[function], **changes})


def test_every_public_function_is_covered():
    assert set(VALID) == {name for name in st.__all__ if inspect.isfunction(getattr(st, name))}
    assert st.__all__ == sorted(st.__all__)


def as_plain(result):
    return dataclasses.asdict(result) if dataclasses.is_dataclass(result) else result


@pytest.mark.parametrize("function", VALID)
def test_tensors_and_lists_give_what_arrays_give(function):
    expected = as_plain(call(function, VALID[function]))
    for convert in (lambda v: torch.tensor(np.ascontiguousarray(v)), lambda v: v.tolist()):
        given = {a: convert(v) if isinstance(v, np.ndarray) else v for a, v in VALID[function].items()}
        np.testing.assert_equal(as_plain(call(function, given)), expected)


@pytest.mark.parametrize("function", VALID)
def test_arguments_are_left_as_they_were(function):
    given = {a: np.array(v) for a, v in VALID[function].items()}
    for array in given.values():
        array.setflags(write=False)
    call(function, given)


@pytest.mark.parametrize("function", VALID)
def test_float32_is_computed_in_float64(function):
    given = {
        a: v.astype(np.float32) if getattr(v, "dtype", None) == np.float64 else v for a, v in VALID[function].items()
    }
    widened = {a: v.astype(np.float64) if getattr(v, "dtype", None) == np.float32 else v for a, v in given.items()}
    np.testing.assert_equal(as_plain(call(function, given)), as_plain(call(function, widened)))


@pytest.mark.parametrize(("function", "argument"), ARRAYS)
def test_empty_input(function, argument):
    with pytest.raises(ValueError, match=rf"{argument}.* is empty"):
        damaged(function, **{argument: np.zeros(0, VALID[function][argument].dtype)})


@pytest.mark.parametrize(("function", "argument"), ARRAYS)
def test_wrong_kind(function, argument):
    with pytest.raises(ValueError, match=rf"{argument}.* must hold"):
        damaged(function, **{argument: VALID[function][argument].astype(str)})
    with pytest.raises(ValueError, match=rf"{argument}.* must be a rectangular array"):
        damaged(function, **{argument: [[1, 2], [3]]})


# Where one axis fewer is allowed, or broadcasts.
FREE = {("softmax", "mask"), ("energy_ratio", "reference"), ("entropy", "weights")}
FREE |= {("distance_to_attention", "scores"), ("mean_by_offset", "mask")}
FREE |= {("mean_absolute_cosine", "a"), ("mean_absolute_cosine", "b")}
FREE |= {("principal_components", "point_sets"), ("explained_variance", "point_sets")}


@pytest.mark.parametrize(("function", "argument"), [pair for pair in ARRAYS if pair not in FREE])
def test_wrong_number_of_axes(function, argument):
    value = VALID[function][argument]
    with pytest.raises(ValueError, match=r"has shape .*expected"):
        damaged(function, **{argument: value[0] if value.ndim > 1 else value[None]})


# Scores may hold NaN: a step without a component has no score.
GAPS = {(function, "scores") for function in ("argmax_agreement", "peak_steps", "ranked_steps")}
REAL = [(f, a) for f, a in ARRAYS if VALID[f][a].dtype == np.float64 and (f, a) not in GAPS]


@pytest.mark.parametrize(("function", "argument"), REAL)
def test_nan(function, argument):
    value = VALID[function][argument].copy()
    value.flat[1] = np.nan
    with pytest.raises(ValueError, match=rf"{argument}.* holds NaN or infinity"):
        damaged(function, **{argument: value})


MASKS = [(f, a) for f, a in ARRAYS if "mask" in a]


@pytest.mark.parametrize(("function", "argument"), MASKS)
def test_bad_masks(function, argument):
    mask = VALID[function][argument]
    with pytest.raises(ValueError, match=f"{argument} has no True entry"):
        damaged(function, **{argument: np.zeros_like(mask)})
    with pytest.raises(ValueError, match=f"{argument} must hold True or False"):
        damaged(function, **{argument: mask.astype(float)})
    with pytest.raises(ValueError, match="has shape"):
        damaged(function, **{argument: np.repeat(mask, 2, axis=0)})


# Sizes that must agree with another argument's.
LONGER = [
    ("accuracy", "target", 0),
    ("accuracy", "predicted", 0),
    ("total_variation", "q", 0),
    ("total_variation", "q", 2),
    ("mean_attention", "lengths", 0),
    ("distance_to_mean_attention", "lengths", 0),
    ("argmax_agreement", "expected", 0),
    ("distance_to_attention", "attention", 2),
    ("distance_to_attention", "encoder_mask", 0),
    ("top_weights_on", "steps", 1),
    ("silhouette", "labels", 0),
    ("nearest_centre_share", "centres", 1),
    ("nearest_centre_share", "labels", 0),
    ("mean_by_offset", "mask", 2),
    ("negative_share", "values", 1),
    ("fit_line", "y", 0),
    ("path_similarity", "encoder_path", 1),
    ("join_distance", "decoder_start", 0),
    ("join_distance", "path", 1),
    ("energy_share", "part", 1),
    ("energy_share", "states", 2),
    ("energy_ratio", "reference", 1),
    ("energy_ratio", "part", 0),
    ("variance_drop", "temporal", 0),
    ("variance_drop", "temporal", 1),
    ("variance_drop", "tokens", 1),
    ("mean_absolute_cosine", "b", 2),
    ("mean_absolute_cosine", "b", 1),
    ("orthogonality", "directions", 0),
    ("orthogonality", "directions", 1),
    ("orthogonality", "vectors", 1),
    ("orthogonality", "states", 0),
    ("readout_orthogonality", "state_readout", 0),
    ("dictionary", "inputs", 1),
    ("dictionary_agreement", "translation", 0),
    ("logit_difference_shares", "state_logits", 2),
    ("logit_difference_shares", "target", 1),
    ("logit_difference_shares", "bias", 0),
    ("spearman", "y", 0),
]


@pytest.mark.parametrize(("function", "argument", "axis"), LONGER)
def test_sizes_that_disagree(function, argument, axis):
    value = VALID[function][argument]
    longer = np.concatenate([value, np.take(value, [0], axis=axis)], axis=axis)
    with pytest.raises(ValueError, match=r"has shape \("):
        damaged(function, **{argument: longer})


POINT = np.full((T, N), 0.1)
BAD = [
    ("softmax", dict(mask=np.arange(T) > np.arange(M * S).reshape(M, S, 1)), "mask has a row with no True"),
    ("softmax", dict(scores=np.full((M, S, T), -np.inf)), "scores holds NaN or infinity"),
    ("total_variation", dict(p=-VALID["total_variation"]["p"]), "p holds -.*not negative"),
    ("mean_attention", dict(attention=VALID["mean_attention"]["attention"] * 2), "attention must hold weights"),
    ("mean_attention", dict(lengths=np.full(M, T + 1)), f"lengths must be between 1 and {T}, got"),
    ("mean_attention", dict(lengths=np.zeros(M, int)), "lengths must be between 1"),
    ("argmax_agreement", dict(expected=[-1, 0, 1, 2]), "expected must lie between 0 and T - 1 = 4"),
    ("argmax_agreement", dict(expected=[0, 1, 2, T]), "expected must lie between 0 and T - 1 = 4"),
    ("argmax_agreement", dict(within=-1), "within must be at least 0"),
    ("argmax_agreement", dict(within=[0, 1]), "within has shape .*expected a single value"),
    ("argmax_agreement", dict(scores=np.full((S, T), np.nan)), "scores has a row without a finite number"),
    ("argmax_agreement", dict(scores=np.full((S, T), np.inf)), r"scores holds \+infinity"),
    ("principal_components", dict(count=0), "count must be between 1 and 3, got"),
    ("principal_components", dict(count=N + 1), "count must be between 1 and 3, got"),
    ("principal_components", dict(count=2.0), "count must hold whole numbers"),
    ("principal_components", dict(point_sets=POINT), "point_sets holds one point only"),
    ("explained_variance", dict(count=N + 1), "count must be between 1 and 3, got"),
    ("explained_variance", dict(point_sets=POINT[:2]), "point_sets holds one point only"),
    ("circle", dict(path=np.eye(3)[:2]), "path has shape .* at least 3 steps"),
    ("circle", dict(path=np.arange(5.0)[:, None]), "path has shape .* at least 2 dimensions"),
    ("circle", dict(path=POINT), "one point only"),
    ("path_similarity", dict(decoder_path=POINT), "decoder_path holds one point only"),
    ("path_similarity", dict(encoder_path=np.arange(-1.0, 2)[:, None] * np.ones(N)), "encoder_path, .*no direction"),
    ("adjacent_neighbours", dict(path=np.eye(2)), "path has 2 steps"),
    ("adjacent_neighbours", dict(path=POINT), "path holds one point only"),
    ("join_distance", dict(path=np.ones((1, N))), "path has 1 step"),
    ("join_distance", dict(path=POINT), "distance between adjacent steps of path is 0"),
    ("simplex_cosines", dict(points=np.ones((1, N))), "points holds 1 point"),
    ("simplex_cosines", dict(points=POINT), "points holds one point only"),
    ("simplex_deviation", dict(points=np.arange(-1.0, 2)[:, None] * np.ones(N)), "points, .*no direction"),
    ("energy_share", dict(states=np.full((M, T, N), 0.1)), "states holds one point only"),
    ("energy_ratio", dict(reference=np.zeros((S, N))), "energy of reference is 0"),
    ("energy_ratio", dict(reference=np.zeros((S, N + 1))), "reference has shape"),
    ("mean_absolute_cosine", dict(b=np.zeros((M, T, N))), "b holds a vector of length 0"),
    ("mean_absolute_cosine", dict(a=np.array([[1.0, 1, 1], [1e-9, 0, 0]]), b=np.ones(N)), "a holds .*rounding noise"),
    ("orthogonality", dict(directions=np.zeros((T, N))), "directions holds a vector of length 0"),
    ("orthogonality", dict(vectors=np.zeros((M, T, N))), "vectors holds a vector of length 0"),
    ("orthogonality", dict(pairing="steps"), 'pairing must be "step" or "all", got'),
    ("orthogonality", dict(draws=0), "draws must be at least 1"),
    ("orthogonality", dict(seed=-1), "seed must be at least 0"),
    ("readout_orthogonality", dict(draws=0), "draws must be at least 1"),
    ("readout_orthogonality", dict(seed=0.5), "seed must hold whole numbers"),
    ("readout_orthogonality", dict(context_readout=np.zeros((V, N))), "context_readout holds a vector of length 0"),
    ("readout_orthogonality", dict(context_readout=np.ones((V, 1)), state_readout=np.ones((V, 1))), "at least 2 dim"),
    ("dictionary", dict(inputs=np.full((V, N), np.nan)), "inputs is NaN throughout"),
    ("dictionary_agreement", dict(translation=np.full(V, V)), "translation must be between 0 and 6"),
    ("dictionary_agreement", dict(translation=np.full(V, -1)), "translation must be between 0 and 6"),
    (
        "dictionary_agreement",
        dict(inputs=np.where(np.arange(V)[:, None] == 2, np.nan, np.ones((V, N)))),
        r"translation names words without an input component: \[2\]",
    ),
    ("logit_difference_shares", dict(target=np.full((M, S), V)), "target must be between 0 and 6"),
    ("logit_difference_shares", dict(bias=np.zeros(V), context_logits=np.zeros((M, S, V)),
                                     state_logits=np.zeros((M, S, V))), "logit difference is 0"),
    ("logit_difference_shares", dict(context_logits=np.zeros((M, S, 1)), state_logits=np.zeros((M, S, 1)),
                                     bias=None), "at least 2 words"),
    ("spearman", dict(x=[1, 2], y=[1, 2]), "x has 2 values"),
    ("spearman", dict(y=np.ones(V)), "y is constant"),
    ("t_interval", dict(confidence=1.0), "confidence must lie between 0 and 1"),
    ("t_interval", dict(confidence=[0.9, 0.95]), "confidence has shape"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "changes", "message"), BAD)
def test_bad_input(function, changes, message):
    with pytest.raises(ValueError, match=message):
        damaged(function, **changes)


def test_bad_point_sets():
    with pytest.raises(ValueError, match="point_sets is empty"):
        st.principal_components(count=1)
    with pytest.raises(ValueError, match=r"point_sets\[1\] has shape"):
        st.explained_variance(np.eye(3), np.eye(4), count=2)
    with pytest.raises(ValueError, match=r"x has shape \(2,\).*n = 3"):
        st.principal_components(np.eye(3), count=2).project([1.0, 2.0])
    with pytest.raises(ValueError, match="x holds NaN"):
        st.principal_components(np.eye(3), count=2).project([1.0, np.nan, 2.0])


def test_results_cannot_be_changed():
    for result in (st.t_interval([1.0]), st.circle(arc(5, 3.0)), st.principal_components(np.eye(3), count=1)):
        field = dataclasses.fields(result)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, field, 0)


def test_shuffling_a_path_undoes_what_holds_along_it(rng):
    path, shuffled = arc(24, 5.5), rng.permutation(arc(24, 5.5))
    gaps = [np.linalg.norm(b - a) for a, b in pairwise(path)]
    assert np.ptp(gaps) < 1e-9
    assert st.circle(shuffled).radius_variation == pytest.approx(0, abs=1e-9)  # the same points,
    assert st.circle(shuffled).angle_swept != pytest.approx(5.5, abs=0.5)  # another path
