"""The statistics of the sort and SCAN claims, each on planted arrays with a known answer and on a counter-example."""

import numpy as np
import pytest
from scipy import stats

from howattend import statistics as st


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def one_hot(columns, width):
    return np.eye(width)[np.asarray(columns)]


class TestDistanceToAttention:
    def test_the_scores_themselves_are_at_no_distance_and_others_are(self, rng):
        scores = rng.standard_normal((20, 4, 6))
        source, target = np.arange(6) < rng.integers(3, 7, (20, 1)), np.arange(4) < rng.integers(1, 5, (20, 1))
        attention = st.softmax(scores, source[:, None])
        assert st.distance_to_attention(scores, attention, source, target) == pytest.approx(0, abs=1e-12)
        assert st.distance_to_attention(scores + 7.0, attention, source, target) == pytest.approx(0, abs=1e-12)
        assert st.distance_to_attention(-scores, attention, source, target) > 0.2

    def test_uniform_weights_against_sharp_ones(self):
        attention = one_hot([[0, 1], [1, 3]], 4)
        everywhere = np.ones((2, 4), bool), np.ones((2, 2), bool)
        assert st.distance_to_attention(np.zeros((2, 2, 4)), attention, *everywhere) == pytest.approx(0.75)
        assert st.distance_to_attention(np.zeros((2, 4)), attention, *everywhere) == pytest.approx(0.75)

    def test_padding_is_not_read(self):
        attention, scores = one_hot([[0, 1]], 3), np.zeros((1, 2, 3))
        attention[0, :, 2], scores[0, :, 2] = np.nan, np.nan
        attention[0, 1], scores[0, 1] = np.nan, np.nan
        source, target = np.array([[True, True, False]]), np.array([[True, False]])
        assert st.distance_to_attention(scores, attention, source, target) == pytest.approx(0.5)


class TestTopWeights:
    def test_planted(self):
        attention = one_hot([[0, 1, 1], [2, 2, 0]], 4) * 0.6 + 0.1
        steps, mask = np.array([[0, 0, 1], [2, 3, -1]]), np.array([[True, True, True], [True, True, False]])
        assert st.top_weights_on(attention, steps, mask) == pytest.approx(3 / 5)
        assert st.top_weights_on(attention, attention.argmax(-1), np.ones_like(mask)) == 1
        assert st.top_weights_on(attention, (attention.argmax(-1) + 1) % 4, np.ones_like(mask)) == 0

    def test_steps_must_exist_where_they_count(self):
        with pytest.raises(ValueError, match="steps must be between 0 and 3"):
            st.top_weights_on(one_hot([[0, 1]], 4), [[-1, 0]], [[True, True]])


class TestPeaks:
    def test_a_parabola_is_found_where_it_peaks(self):
        peaks = np.array([1.2, 2.0, 3.49, 4.8])
        scores = -((np.arange(8) - peaks[:, None]) ** 2) * 3 + 5
        np.testing.assert_allclose(st.peak_steps(scores), peaks)

    def test_a_smooth_bump_is_found_to_a_tenth_of_a_step(self):
        peaks = np.linspace(1.6, 5.4, 20)
        np.testing.assert_allclose(st.peak_steps(np.exp(-((np.arange(8) - peaks[:, None]) ** 2) / 4)), peaks, atol=0.1)

    def test_a_largest_score_without_two_neighbours_is_its_own_peak(self):
        rows = [[3.0, 2.0, 0.0], [0.0, 2.0, 3.0], [np.nan, 3.0, 2.0], [1.0, 1.0, 1.0], [0.0, 3.0, np.nan]]
        np.testing.assert_array_equal(st.peak_steps(rows), [0, 2, 1, 0, 1])

    def test_ranks(self):
        scores = [[0.1, 0.7, 0.4, np.nan], [5.0, -np.inf, 5.0, 6.0]]
        assert [st.ranked_steps(scores, rank).tolist() for rank in range(4)] == [[1, 3], [2, 0], [0, 2], [3, 1]]
        with pytest.raises(ValueError, match="rank must be between 0 and 3"):
            st.ranked_steps(scores, 4)

    def test_a_row_of_nothing_is_refused(self):
        with pytest.raises(ValueError, match="peaks nowhere"):
            st.peak_steps([[np.nan, np.nan]])


class TestLine:
    def test_it_is_what_scipy_fits(self, rng):
        x = rng.standard_normal(12)
        y = 0.8 * x - 0.3 + 0.2 * rng.standard_normal(12)
        line, expected = st.fit_line(x, y), stats.linregress(x, y)
        half = stats.t.ppf(0.975, 10) * expected.stderr
        np.testing.assert_allclose([line.slope, line.intercept], [expected.slope, expected.intercept])
        np.testing.assert_allclose([line.low, line.high], [expected.slope - half, expected.slope + half])
        assert line.n == 12

    def test_its_interval_covers_the_true_slope_as_often_as_it_says(self, rng):
        x, hits = np.arange(10.0), 0
        for _ in range(1000):
            line = st.fit_line(x, 0.5 * x + rng.standard_normal(10))
            hits += line.low <= 0.5 <= line.high
        assert hits / 1000 == pytest.approx(0.95, abs=0.025)

    def test_points_on_a_line_leave_no_doubt(self):
        line = st.fit_line([0, 1, 2, 3], [1.0, 3.0, 5.0, 7.0])
        np.testing.assert_allclose([line.slope, line.low, line.high, line.intercept], [2, 2, 2, 1])

    @pytest.mark.parametrize(
        ("x", "y", "confidence", "message"),
        [
            ([1.0, 2.0], [1.0, 2.0], 0.95, "x has 2 values"),
            ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], 0.95, "x is constant"),
            ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1.0, "confidence must lie between 0 and 1"),
        ],
    )
    def test_bad_input(self, x, y, confidence, message):
        with pytest.raises(ValueError, match=message):
            st.fit_line(x, y, confidence)


class TestClusters:
    def planted(self, rng, distance, count=150):
        labels = rng.integers(0, 3, count)
        return 5.0 + rng.standard_normal((count, 6)) + distance * np.eye(3, 6)[labels], labels

    def test_clusters_far_apart_have_a_large_silhouette_and_labels_at_random_none(self, rng):
        points, labels = self.planted(rng, 30.0)
        assert st.silhouette(points, labels) > 0.85
        assert abs(st.silhouette(points, rng.permutation(labels))) < 0.05
        assert abs(st.silhouette(*self.planted(rng, 0.0))) < 0.05

    def test_more_points_than_the_limit_are_a_sample_of_them(self, rng):
        points, labels = self.planted(rng, 4.0, 3000)
        whole = st.silhouette(points, labels, limit=3000)
        assert st.silhouette(points, labels, limit=600) == pytest.approx(whole, abs=0.03)
        assert st.silhouette(points, labels, limit=600) == st.silhouette(points, labels, limit=600)
        assert st.silhouette(points, labels, limit=600, seed=1) != st.silhouette(points, labels, limit=600)

    def test_a_rare_label_is_not_lost_in_the_sample(self, rng):
        points, labels = self.planted(rng, 30.0, 3000)
        labels = np.where(np.arange(3000) < 3, 7, labels)
        assert np.isfinite(st.silhouette(points, labels, limit=100))

    def test_nearest_centres(self, rng):
        points, labels = self.planted(rng, 40.0)
        centres = 5.0 + 40.0 * np.eye(3, 6)
        assert st.nearest_centre_share(points, labels, centres) == 1
        assert st.nearest_centre_share(points, labels, centres[[1, 2, 0]]) == 0
        assert st.nearest_centre_share([[0.1], [0.9], [0.8]], [0, 1, 0], [[0.0], [1.0]]) == pytest.approx(2 / 3)
        nearest = np.linalg.norm(points[:, None] - points[:5], axis=2).argmin(1)
        assert st.nearest_centre_share(points, nearest, points[:5]) == 1

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"at least two labels, each at least twice, got 0 \(2 ×\), 1 \(1 ×\)"):
            st.silhouette(np.eye(3), [0, 0, 1])
        with pytest.raises(ValueError, match=r"got 0 \(3 ×\)"):
            st.silhouette(np.eye(3), [0, 0, 0])
        with pytest.raises(ValueError, match="limit must be at least 4"):
            st.silhouette(np.eye(4), [0, 0, 1, 1], limit=3)
        with pytest.raises(ValueError, match="labels must be between 0 and 1"):
            st.nearest_centre_share(np.eye(3), [0, 1, 2], np.eye(3)[:2])
        with pytest.raises(ValueError, match="centres has K = 1"):
            st.nearest_centre_share(np.eye(3), [0, 0, 0], np.eye(3)[:1])


class TestOffsets:
    def test_a_function_of_the_offset_is_found_again(self):
        distance = np.arange(7) - np.arange(5)[:, None]
        values = np.broadcast_to(distance**2.0, (3, 5, 7))
        offsets = np.array([-4, -1, 0, 2, 6])
        np.testing.assert_allclose(st.mean_by_offset(values, np.ones((3, 5, 7), bool), offsets), offsets**2)

    def test_only_the_mask_counts(self):
        values = np.full((2, 3, 4), np.nan)
        mask = np.zeros((2, 3, 4), bool)
        for sample, s, t, value in ((0, 0, 1, 2.0), (1, 2, 3, 4.0), (1, 1, 1, -3.0)):
            values[sample, s, t], mask[sample, s, t] = value, True
        np.testing.assert_equal(st.mean_by_offset(values, mask, [0, 1, 2]), [-3.0, 3.0, np.nan])

    def test_a_mask_of_source_steps_broadcasts(self, rng):
        values, word = rng.standard_normal((4, 3, 5)), rng.random((4, 5)) < 0.5
        whole = np.broadcast_to(word[:, None], values.shape)
        np.testing.assert_array_equal(
            st.mean_by_offset(values, word[:, None], [0, 1]), st.mean_by_offset(values, whole, [0, 1])
        )

    def test_signs(self):
        assert st.negative_share([-1.0, 0.0, 2.0, -3.0], [True, True, True, True]) == 0.5
        assert st.negative_share([[-1.0, np.nan]], [[True, False]]) == 1
