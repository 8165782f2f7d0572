"""T1–T10 on planted measurements: what was planted is found, and the opposite is not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_translation import built, make_run

from howattend import claims, files, measured, runs, statistics
from howattend.analysis import Run
from howattend.claims import CRITERIA, Measurement, translation
from howattend.decomposition import Components
from howattend.models import ModelConfig
from howattend.tasks import ExtendedSCAN, OneToOne
from howattend.training import TrainConfig

STEPS = 16
POSITIONS = np.arange(1, STEPS + 1)


# ---- statistics --------------------------------------------------------------------------------------------------


def test_entropy_is_that_of_equal_weights_over_as_many_steps():
    weights = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25] * 4])
    np.testing.assert_allclose(statistics.entropy(weights), np.log([1, 2, 4]), atol=1e-12)


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [3.0, 2.0]])
def test_entropy_of_what_are_no_weights_is_refused(weights):
    with pytest.raises(ValueError, match="must not be negative and must sum to 1"):
        statistics.entropy(weights)


def test_the_diagonal_is_at_distance_0_whatever_the_lengths():
    weights = np.zeros((3, 4, 8))
    weights[0, range(4), [1, 3, 5, 7]] = 1  # T = 8, S = 4: s/S = t/T at every other step
    weights[1, range(4), range(4)] = 1  # T = S = 4, padded
    weights[2, 0, 0] = weights[2, 1, 2] = 1  # T = S = 2, but the second output looks behind the end
    weights[2, 1, 1] = 1
    mask = np.array([[True] * 4, [True] * 4, [True, True, False, False]])
    found = statistics.diagonal_distance(weights, [8, 4, 2], [4, 4, 2], mask)
    np.testing.assert_allclose(found[mask], 0, atol=1e-12)
    assert np.isnan(found[~mask]).all()


def test_the_distance_to_the_diagonal_is_in_shares_of_the_sentence():
    weights = np.zeros((1, 2, 4))
    weights[0, 0, 3] = 1  # |4/4 − 1/2|
    weights[0, 1, 0], weights[0, 1, 3] = 0.25, 0.75  # 0.25 · |1/4 − 2/2|
    found = statistics.diagonal_distance(weights, [4], [2], np.ones((1, 2), bool))
    np.testing.assert_allclose(found, [[0.5, 0.1875]])


def test_equal_weights_are_as_far_as_permuted_ones_on_average():
    random = np.random.default_rng(0)
    row = random.dirichlet(np.full(5, 0.3))
    permuted = np.stack([random.permutation(row) for _ in range(20_000)])[:, None, :]
    ones = np.ones(len(permuted), int)
    rows = np.ones((len(permuted), 1), bool)
    shuffled = statistics.diagonal_distance(permuted, 5 * ones, ones, rows).mean()
    equal = statistics.diagonal_distance(np.full((1, 1, 5), 0.2), [5], [1], rows[:1])[0, 0]
    assert shuffled == pytest.approx(equal, abs=5e-3)


def test_distances_of_what_are_no_weights_or_no_steps_are_refused():
    weights, mask = np.full((1, 2, 4), 0.25), np.ones((1, 2), bool)
    with pytest.raises(ValueError, match="sum to 1 over a sample's source steps"):
        statistics.diagonal_distance(weights, [3], [2], mask)  # a quarter of the weight is on padding
    with pytest.raises(ValueError, match="mask is True behind a target's length"):
        statistics.diagonal_distance(weights, [4], [1], mask)


def test_a_peak_drops_by_what_its_neighbours_are_below_it():
    found = statistics.peak_drops([[0, 1, 3, 10, 7, 5, 4], [10, 8, 5, 0, 0, 0, 0], [0, 0, 0, 0, 7, 9, 10]])
    first = np.mean([10 - (3 + 7) / 2, 10 - (1 + 5) / 2, 10 - (0 + 4) / 2])
    np.testing.assert_allclose(found, [first, np.mean([2, 5, 10]), np.mean([1, 3, 10])])
    assert statistics.peak_drops([[0, 2, 1]], (1,)) == pytest.approx([1.5])


@pytest.mark.parametrize("offsets", [(0, 1), (1, 2, 3)])
def test_offsets_that_no_step_is_at_are_refused(offsets):
    with pytest.raises(ValueError, match="offsets must"):
        statistics.peak_drops([[1, 2, 1]], offsets)


# ---- planted measurements ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny corpus, for vocabularies."""
    return built(tmp_path_factory)


@pytest.fixture(autouse=True)
def _folders(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("HOWATTEND_CACHE", str(folder))
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path))


@pytest.fixture
def planted():
    """planted(scores=…, architecture="AED", **fields of Measured): a run with this measurement.

    ``scores`` [16, 16] are what μ^D·μ^E is to be. Every step but the last is reached by every sentence.
    """

    def make(scores=None, architecture="AED", name="planted", **changed):
        run = make_run(name, architecture)
        words = [len(vocabulary) for vocabulary in (run.task.source_vocabulary, run.task.target_vocabulary)]
        scores = np.eye(STEPS) if scores is None else scores
        counts = [np.full((count, STEPS), 10) for count in words]
        sides = [
            Components(temporal, np.zeros((count, STEPS)), None, of.sum(0), of.sum(1))
            for temporal, count, of in zip((np.eye(STEPS), scores), words, counts, strict=True)
        ]
        lengths = np.zeros((STEPS + 1, STEPS + 1), int)
        lengths[STEPS, STEPS] = 100
        values = {
            **{"run": name, "seed": 0, "config_hash": run.config.hash, "weights_hash": "", "accuracy": 0.6},
            **{"encoder": sides[0], "decoder": sides[1], "encoder_counts": counts[0], "decoder_counts": counts[1]},
            **{"encoder_words": np.eye(STEPS), "decoder_words": scores},
            **{"length_counts": lengths, "term_sums": np.ones((2, 3, STEPS, 3, 3))},
            **{"distance_sums": np.ones((2, 3, STEPS)), "variances": np.ones((2, 2, words[0]))},
            **{"delta_shares": np.zeros(2), "length_ratio": 1.0, "aligned": POSITIONS.astype(float)},
            **{"aligned_counts": np.full(STEPS, 50)},
        }
        run.__dict__["measured"] = measured.Measured(**values | changed)
        return run

    return make


def ridge(centres, width=2.0):
    """Scores whose rows are parabolas about these source positions."""
    return -(((POSITIONS - np.asarray(centres, float)[:, None]) / width) ** 2)


@pytest.fixture(scope="module")
def escan():
    """An untrained network on a few phrases, for the claims that compare with extended SCAN."""

    def make(architecture="AED"):
        task = ExtendedSCAN()
        config = runs.RunConfig("escan", task, ModelConfig(architecture, hidden_size=8), TrainConfig(1), 0.9)
        run = Run(config, config.new_model(0).eval(), 0)
        run.__dict__["test"] = task.test_set(200)
        return run

    return {architecture: make(architecture) for architecture in ("AED", "AO")}


def measure(claim, **parts):
    return claims.measure(claim, parts)


# ---- T1, T8 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("attention", "verdict"), [(0.49, True), (0.51, False), (1.0, False)])
def test_t1_compares_with_the_shuffled_null(planted, escan, attention, verdict):
    sums = np.ones((2, 3, STEPS)) * np.array([attention, 0.3, 1.0])[:, None]
    found = measure("T1", run=planted(distance_sums=sums), escan=escan["AED"])
    assert found.quantities["distance / shuffled"] == pytest.approx(attention)
    assert found.verdict is verdict
    assert found.accuracy == 0.6  # the stored one: no sentence was read
    assert 0 < found.quantities["extended SCAN's"] < 0.5


def test_t1_is_over_words_at_common_steps(planted, escan):
    """100 outputs a step; the last is an end of sentence, which counts among all steps only."""
    sums = np.zeros((2, 3, STEPS))
    sums[:, :, :15], sums[1, :, 15] = 10, 90
    found = measure("T1", run=planted(distance_sums=sums), escan=escan["AED"]).quantities
    assert found["distance"] == pytest.approx(0.1)
    assert found["distance, all steps"] == pytest.approx((15 * 10 + 90) / 1600)


def test_t1s_measure_of_a_synthetic_run_is_the_statistic_on_its_trace(escan):
    run = escan["AO"]
    mask = run.common_decoder_mask
    lengths = run.test.source_lengths, run.test.target_lengths
    expected = statistics.diagonal_distance(run.trace.attention, *lengths, mask)
    assert translation.diagonal_distances(run)["attention"] == pytest.approx(np.nanmean(expected))


@pytest.mark.parametrize("larger", [True, False])
def test_t8_compares_the_temporal_attention_with_extended_scans(planted, escan, larger):
    of_escan = translation.diagonal_distances(escan["AED"])["temporal"]
    sums = np.full((2, 3, STEPS), 100 * of_escan * (1.1 if larger else 0.9))
    found = measure("T8", run=planted(distance_sums=sums), escan=escan["AED"])
    assert found.verdict is larger
    assert found.quantities["extended SCAN's"] == pytest.approx(of_escan)


# ---- T2, T7 ------------------------------------------------------------------------------------------------------


def test_t2_and_t7_find_an_alignment_that_blurs(planted):
    blurring = ridge(POSITIONS, width=np.linspace(0.5, 4, STEPS)[:, None])
    run = planted(blurring)
    assert measure("T2", run=run).verdict is True
    assert measure("T7", run=run).verdict is True


def test_t2_and_t7_do_not_find_one_that_sharpens_or_stays(planted):
    sharpening = planted(ridge(POSITIONS, width=np.linspace(4, 0.5, STEPS)[:, None]))
    random = np.random.default_rng(0)
    steady = planted(ridge(POSITIONS, width=random.permutation(np.linspace(1, 1.2, STEPS))[:, None]))
    for run in (sharpening, steady):
        assert measure("T2", run=run).verdict is False
        assert measure("T7", run=run).verdict is False


# ---- T3 ----------------------------------------------------------------------------------------------------------


def _terms(first, second=1.0, others=1.0):
    """Sums in which μ^D·μ^E has ``first`` at the first steps and ``second`` later, all others ``others``."""
    sums = np.full((2, 3, STEPS, 3, 3), others)
    sums[:, :, :, 0, 0] = second
    sums[:, :, :2, 0, 0] = first
    return sums


@pytest.mark.parametrize(
    ("architecture", "sums", "verdict"),
    [
        ("AED", _terms(2.0), True),
        ("AED", _terms(0.5), False),  # μ^D·μ^E is not the largest early
        ("AO", _terms(0.5), True),  # of AO this is not claimed
        ("AED", _terms(20.0, 20.0), False),  # one term dominates
        ("AO", _terms(20.0, 20.0), False),
    ],
)
def test_t3_is_about_dominance_and_about_early_steps_in_aed(planted, escan, architecture, sums, verdict):
    run = planted(architecture=architecture, term_sums=sums)
    found = measure("T3", run=run, escan=escan[architecture])
    assert found.verdict is verdict
    assert found.quantities["μD·μE at s = 1"] == pytest.approx(sums[0, 0, 0, 0, 0] / sums[0, 0, 0].sum())
    assert found.quantities["extended SCAN's, signed"] == pytest.approx(escan[architecture].shares.signed[0, 0])


# ---- T4 ----------------------------------------------------------------------------------------------------------


def _variances(run, drop):
    """Planted: content words' variance falls by ``drop``, special words' by all."""
    variances = np.ones((2, 2, len(run.task.source_vocabulary)))
    variances[:, 1] = 0
    variances[:, 1, list(run.task.source_vocabulary.content_ids)] = 1 - drop
    return variances


def test_t4_compares_with_half_of_extended_scans(planted, escan, monkeypatch):
    monkeypatch.setattr(translation, "mean_variance_drop", lambda run, mask: {"AED": 0.8, "AO": 0.9}[run.architecture])
    others = {"escan": escan["AED"], "escan_ao": escan["AO"]}

    def verdict(aed, ao):
        run, of_ao = (planted(variances=_variances(planted(), drop)) for drop in (aed, ao))
        found = measure("T4", run=run, ao=of_ao, **others)
        assert (found.quantities["variance drop"], found.quantities["AO's"]) == pytest.approx((aed, ao))
        return found.verdict

    assert verdict(0.1, 0.3) is True
    assert verdict(0.3, 0.1) is False  # AED above AO
    assert verdict(0.41, 0.42) is False  # above half of AED's 0.8
    assert verdict(0.1, 0.46) is False  # above half of AO's 0.9


def test_t4_takes_the_most_common_words_that_occur_often_enough(planted):
    run = planted()
    content = list(run.task.source_vocabulary.content_ids)
    counts = np.zeros((len(run.task.source_vocabulary), STEPS), int)
    counts[content, 0] = 200 + np.arange(len(content))
    counts[content[-1], 0] = 49  # rare
    counts[content[-2]] = 0
    counts[content[-2], 15] = 900  # often, but not at the common steps, which are 15
    counts[2] = 500  # ends of sentence are no word
    encoder = replace(run.measured.encoder, word_counts=counts.sum(1))
    run.__dict__["measured"] = replace(run.measured, encoder=encoder, encoder_counts=counts)
    assert translation.common_words(run).tolist() == content[:-2][::-1]
    run.__dict__["measured"] = replace(run.measured, encoder_counts=counts // 100)
    with pytest.raises(ValueError, match="no word occurs 50 times at the common steps of planted"):
        translation.common_words(run)


def test_t4_stops_at_fifty_words(planted, monkeypatch):
    row = replace(CRITERIA["T4"], limits={**CRITERIA["T4"].limits, "words": 3})
    monkeypatch.setitem(CRITERIA, "T4", row)
    assert len(translation.common_words(planted())) == 3


# ---- T5, T9, T10 -------------------------------------------------------------------------------------------------


def drifting(ratio, noise=0.05):
    """Scores that peak at s / ratio, give or take; French is ``ratio`` times as long."""
    return ridge(POSITIONS / ratio + noise * np.cos(3.0 * POSITIONS))


@pytest.mark.parametrize(("drift", "ratio", "verdict"), [(1.2, 1.2, True), (1.0, 1.0, True), (1.0, 1.2, False)])
def test_t5_finds_the_drift_that_was_planted(planted, drift, ratio, verdict):
    found = measure("T5", run=planted(drifting(drift), length_ratio=ratio))
    assert found.quantities["slope"] == pytest.approx(1 / drift, abs=0.01)
    assert found.quantities["predicted slope"] == 1 / ratio
    assert found.quantities["slope, low"] < 1 / drift < found.quantities["slope, high"]
    assert found.verdict is verdict


def test_t5_leaves_out_steps_whose_predicted_peak_is_not_common(planted):
    """Sources end early: μ^E is common for six steps. A peak predicted behind these could only be found at the last."""
    lengths = np.zeros((STEPS + 1, STEPS + 1), int)
    lengths[7, 16] = 100
    run = planted(drifting(1.2, noise=0), length_counts=lengths, length_ratio=1.2)
    positions, peaks = translation.drift(run.measured)
    assert positions.tolist() == list(range(1, 8))
    np.testing.assert_allclose(peaks[1:-1], positions[1:-1] / 1.2)


def test_t5_shows_what_ends_of_sentence_do_to_the_drift(planted):
    """Means with ends in them peak at the last step whatever s is; words alone drift as predicted."""
    to_the_end = ridge(np.full(STEPS, 15.0) + 0.2 * np.cos(3.0 * POSITIONS))
    run = planted(to_the_end, decoder_words=drifting(1.2), length_ratio=1.2)
    found = measure("T5", run=run)
    assert found.verdict is False
    assert abs(found.quantities["slope"]) < 0.1
    assert found.quantities["slope, ends left out"] == pytest.approx(1 / 1.2, abs=0.01)


def test_t9_needs_a_drift_that_follows_the_register(planted):
    catalogues, verses = (planted(drifting(ratio), length_ratio=ratio) for ratio in (1.2, 1.0))
    found = measure("T9", run=catalogues, verses=verses)
    assert found.verdict is True
    assert found.quantities["slope, verses − catalogues"] == pytest.approx(1 - 1 / 1.2, abs=0.02)
    assert found.quantities["predicted"] == pytest.approx(1 - 1 / 1.2)
    assert measure("T9", run=verses, verses=catalogues).verdict is False
    same = planted(drifting(1.0), length_ratio=1.2)  # drifts as the other register does
    assert measure("T9", run=same, verses=verses).verdict is False


def test_t10_asks_whether_the_peak_lies_where_words_are_aligned(planted):
    aligned = np.linspace(1.5, 12.5, STEPS)
    there = planted(ridge(aligned), aligned=aligned)
    assert measure("T10", run=there).verdict is True
    assert measure("T10", run=there).quantities["mean error"] < 0.1
    diagonal = planted(ridge(POSITIONS), aligned=aligned)
    assert measure("T10", run=diagonal).verdict is False
    assert measure("T10", run=diagonal).quantities["mean error of the diagonal"] < 0.1
    near = planted(ridge(POSITIONS), aligned=POSITIONS + 0.3)  # within half a step, but the diagonal is nearer
    assert measure("T10", run=near).verdict is False


# ---- T6 ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def dictionary(planted, monkeypatch):
    """A run with as many directions as words, whose readouts are each on the word of a dictionary, which is stored."""
    run = planted()
    source, target = run.task.source_vocabulary, run.task.target_vocabulary
    french = [target.words[index] for index in target.content_ids]
    english = [source.words[index] for index in source.content_ids]
    inputs = np.full((len(source), len(source)), np.nan)
    inputs[: len(source)] = np.eye(len(source))
    counts = np.full(len(source), 10)
    encoder = Components(np.zeros((STEPS, len(source))), inputs, None, np.full(STEPS, 1), counts)
    run.__dict__["measured"] = replace(run.measured, encoder=encoder)
    translations = dict(zip(french, english, strict=True)) | dict.fromkeys(translation.ARTICLES, "the")
    monkeypatch.setattr(translation, "ARTICLES", tuple(word for word in translation.ARTICLES if word in french))
    assert translation.ARTICLES
    rows = [(word, rank, translations[word] if rank == 1 else "other", 0.5) for word in french for rank in (1, 2)]
    table = pd.DataFrame(rows, columns=["french", "rank", "english", "probability"])
    files.write_text(measured.lexicon_path(), table.to_csv(index=False))
    readouts = torch.zeros(len(target), len(source))
    for word, known in translations.items():
        if word in target:
            readouts[target.id(word), source.id(known)] = 1
    run.model.context_readout = torch.nn.Parameter(readouts)
    return run


def test_t6_finds_a_planted_dictionary(dictionary):
    found = measure("T6", run=dictionary)
    assert found.verdict is True
    assert found.quantities["agreement"] == found.quantities["whose translation is a candidate"] == 1


def test_t6_does_not_find_a_shuffled_one(dictionary):
    with torch.no_grad():
        dictionary.model.context_readout[4:] = dictionary.model.context_readout[4:].roll(1, 0)
    found = measure("T6", run=dictionary)
    assert found.quantities["agreement"] < 0.2
    assert found.verdict is False


def test_t6_needs_all_the_articles(dictionary):
    target, source = dictionary.task.target_vocabulary, dictionary.task.source_vocabulary
    with torch.no_grad():
        dictionary.model.context_readout[target.id(translation.ARTICLES[0])] = torch.eye(len(source))[5]
    found = measure("T6", run=dictionary)
    assert found.quantities["agreement"] >= CRITERIA["T6"].limits["agreement"]
    assert found.verdict is False


def test_t6_looks_among_words_that_occur_often_enough_and_counts_the_others_wrong(dictionary):
    source = dictionary.task.source_vocabulary
    rare = source.content_ids[-1]
    components = dictionary.measured.encoder
    counts = components.word_counts.copy()
    counts[rare] = 9
    dictionary.__dict__["measured"] = replace(dictionary.measured, encoder=replace(components, word_counts=counts))
    found = measure("T6", run=dictionary).quantities
    words = len(dictionary.task.target_vocabulary.content_ids)
    assert found["whose translation is a candidate"] == pytest.approx(1 - 1 / words)
    assert found["agreement"] == pytest.approx(1 - 1 / words)
    assert np.isnan(translation.candidates(dictionary)[[0, 1, 2, 3, rare]]).all()


def test_t6_refuses_a_dictionary_of_other_words(dictionary):
    table = measured.read_lexicon()
    files.write_text(measured.lexicon_path(), table[table["french"] != "la"].iloc[2:].to_csv(index=False))
    with pytest.raises(ValueError, match=r"the dictionary has no .*: it is of other vocabularies than planted's"):
        measure("T6", run=dictionary)


# ---- all ---------------------------------------------------------------------------------------------------------


def test_a_run_of_another_task_is_refused():
    config = runs.RunConfig("one", OneToOne(), ModelConfig("AED", hidden_size=8), TrainConfig(1), 0.9)
    with pytest.raises(ValueError, match="run must be one of translation, but one is of the task 'one_to_one'"):
        measure("T2", run=Run(config, config.new_model(0), 0))


def test_accuracy_of_translation_is_the_measured_one(planted):
    found = Measurement.of("T2", planted(accuracy=0.123), True, {"a": 1.0})
    assert found.accuracy == 0.123


def test_every_row_of_the_plan_is_measured_on_a_real_measurement(escan):
    """Untrained networks go through all the claims, from a measurement of their own on the tiny corpus."""
    parts = {
        **{
            "run": make_run(num_words=20),
            "ao": make_run("ao", "AO", num_words=20),
            "verses": make_run("verses", seed=1),
        },
        **{"escan": escan["AED"], "escan_ao": escan["AO"]},
    }
    limits = {**CRITERIA["T4"].limits, "occurrences": 2}, {**CRITERIA["T6"].limits, "occurrences": 2}
    with pytest.MonkeyPatch.context() as patched:
        for claim, limit in zip(("T4", "T6"), limits, strict=True):
            patched.setitem(CRITERIA, claim, replace(CRITERIA[claim], limits=limit))
        measured.write_lexicon(parts["run"].task)
        for claim in translation.CLAIMS:
            needed = {part for row, names in translation.PLAN if row == claim for part in names}
            found = claims.measure(claim, {part: parts[part] for part in needed})
            assert np.isfinite(list(found.quantities.values())).all(), claim
            assert found.verdict in (True, False)
