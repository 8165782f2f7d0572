"""What is measured of a translation run: equal to what the whole trace gives, stored and found again, never half."""

import weakref
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from tiny_translation import built, make_run

from howattend import __main__, alignment, decomposition, measured, runs, statistics, training
from howattend.analysis import Run
from howattend.decomposition import Components
from howattend.measured.dictionary import aligned_steps
from howattend.measured.results import WEIGHTS, common_steps
from howattend.measured.store import differences
from howattend.tasks import UNK, Batch, OneToOne, Translation
from howattend.tasks.batch import pad_rows


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return built(tmp_path_factory)


@pytest.fixture(autouse=True)
def folders(cache, monkeypatch, tmp_path):
    """The tiny corpus is built, and no results are recorded."""
    monkeypatch.setenv("HOWATTEND_CACHE", str(cache))
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))


@pytest.fixture
def no_corpus(monkeypatch, tmp_path):
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "empty"))


@pytest.fixture(scope="module", params=["AED", "AO"])
def run(request, cache):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOWATTEND_CACHE", str(cache))
        made = make_run(f"translation-{request.param.lower()}-gru", request.param)
        _ = made.test, made.task.split("train"), made.task.source_vocabulary, made.task.target_vocabulary
    return made


@pytest.fixture(scope="module")
def found(run, cache):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOWATTEND_CACHE", str(cache))
        return measured.measure(run, progress=False)


def assert_same(one, other):
    for field in fields(measured.Measured):
        mine, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(mine, Components):
            assert mine.delta is None and theirs.delta is None
            for part in ("temporal", "input", "step_counts", "word_counts"):
                np.testing.assert_array_equal(getattr(mine, part), getattr(theirs, part))
        else:
            np.testing.assert_array_equal(mine, theirs)


# ---- what is measured --------------------------------------------------------------------------------------------


def test_all_is_what_the_whole_trace_gives(run, found):
    test, trace = run.test, run.model.trace(run.test, "teacher")
    words = len(run.task.source_vocabulary), len(run.task.target_vocabulary)
    encoder = decomposition.decompose(trace.encoder_states, trace.encoder_tokens, trace.encoder_mask, words[0])
    decoder = decomposition.decompose(trace.decoder_states, trace.decoder_tokens, trace.decoder_mask, words[1])
    for mine, whole in ((found.encoder, encoder), (found.decoder, decoder)):
        np.testing.assert_allclose(mine.temporal, whole.temporal.numpy(), atol=1e-6)
        np.testing.assert_allclose(mine.input, whole.input.numpy(), atol=2e-3)  # half precision
        np.testing.assert_array_equal(mine.word_counts, whole.word_counts.numpy())
        np.testing.assert_array_equal(mine.step_counts, whole.step_counts.numpy())
    for mine, states, lengths in (
        (found.encoder_words, trace.encoder_states, test.source_lengths),
        (found.decoder_words, trace.decoder_states, test.target_lengths),
    ):
        for step in range(16):
            reached = states[lengths - 1 > step, step]
            expected = reached.mean(0).numpy() if len(reached) else np.full(8, np.nan)
            np.testing.assert_allclose(mine[step], expected, atol=1e-5)
    assert found.word_scores.shape == found.common_scores.shape
    assert np.isnan(found.encoder.input[0]).all()  # padding is no word
    np.testing.assert_array_equal(found.encoder_counts.sum(1), found.encoder.word_counts)
    np.testing.assert_array_equal(found.decoder_counts.sum(0), found.decoder.step_counts)
    assert found.decoder_counts[1, 0] == len(test)  # the start of sentence is the first word fed
    assert found.pairs == len(test)
    assert found.length_counts[test.source_lengths[0], test.target_lengths[0]] >= 1
    assert found.accuracy == pytest.approx(training.word_accuracy(run.model, test, teacher_forced=True))

    step = torch.arange(16)
    is_word = step < test.target_lengths[:, None] - 1
    common = is_word & (step < found.decoder_steps)
    for mine, mask in ((found.shares, common), (found.shares_all_steps, trace.decoder_mask)):
        for kind, whole in vars(alignment.shares(decoder, encoder, trace, mask)).items():
            np.testing.assert_allclose(getattr(mine, kind), whole, atol=1e-5)
    by_step = alignment.shares_by_step(decoder, encoder, trace, is_word)
    np.testing.assert_allclose(found.shares_by_step.centred, by_step.centred, atol=1e-5)

    lengths = test.source_lengths, test.target_lengths
    temporal = alignment.attention_from(
        alignment.temporal_scores(decoder, encoder).expand(trace.scores.shape), trace.encoder_mask
    )
    equal = (trace.encoder_mask / trace.encoder_mask.sum(1, keepdim=True))[:, None].expand(trace.scores.shape)
    for name, weights in zip(WEIGHTS, (trace.attention, temporal, equal), strict=True):
        of_words = statistics.diagonal_distance(weights, *lengths, is_word)
        assert found.distance(name) == pytest.approx(np.nanmean(of_words[:, : found.decoder_steps]), abs=1e-6)
        every = statistics.diagonal_distance(weights, *lengths, trace.decoder_mask)
        assert found.distance(name, all_steps=True) == pytest.approx(np.nanmean(every), abs=1e-6)
        occurs = found.length_counts.sum(0).nonzero()[0].max() - 1
        by_step = found.distances_by_step(name)
        np.testing.assert_allclose(by_step[:occurs], np.nanmean(of_words[:, :occurs], 0), atol=1e-6)
        assert np.isnan(by_step[occurs:]).all()

    read = (step < test.source_lengths[:, None] - 1) & (step < found.encoder_steps)
    chosen = np.flatnonzero(found.encoder.word_counts)
    for mask, all_steps in ((read, False), (trace.encoder_mask, True)):
        drops = statistics.variance_drop(
            trace.encoder_states, encoder.temporal, trace.encoder_tokens, mask, torch.tensor(chosen)
        )
        np.testing.assert_allclose(found.variance_drops(chosen, all_steps=all_steps), drops, atol=1e-4)
        share = statistics.energy_share(encoder.delta, trace.encoder_states, mask)
        assert found.delta_shares[int(all_steps)] == pytest.approx(share, abs=1e-5)


def test_the_distance_to_the_mean_attention_is_the_statistics(run, found):
    """Streamed or not, and however the pairs are dealt to batches."""
    test, trace = run.test, run.model.trace(run.test, "teacher")
    step = torch.arange(trace.scores.shape[1])
    words = (step < test.target_lengths[:, None] - 1) & (step < found.decoder_steps)
    expected = statistics.distance_to_mean_attention(
        trace.attention.numpy(), test.source_lengths.numpy(), words.numpy()
    )
    assert 0.01 < expected < 0.9
    assert measured.mean_attention_distance(run, progress=False) == pytest.approx(expected, abs=1e-5)
    batches = [test[row : row + 7] for row in range(0, len(test), 7)]
    assert measured.mean_attention_distance(run, batches, progress=False) == pytest.approx(expected, abs=1e-5)


def test_the_number_of_batches_changes_nothing(run):
    test = run.test
    for size in (1, 5, len(test)):
        split = measured.measure_batches(run, [test[i : i + size] for i in range(0, len(test), size)], progress=False)
        whole = measured.measure_batches(run, [test], progress=False)
        assert differences(split, whole) == []
        np.testing.assert_allclose(split.term_sums, whole.term_sums, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(split.variances, whole.variances, rtol=1e-3, atol=1e-6)


def test_one_batch_at_a_time_is_held(run):
    """What makes memory independent of the number of pairs: when a batch is asked for, those before it are gone."""
    held = []

    class Batches:
        def __iter__(self):
            earlier = []
            for _ in range(6):
                batch = run.test[torch.arange(8)]
                held.append(sum(tensor() is not None for tensor in earlier))
                earlier.append(weakref.ref(batch.source))
                yield batch
                del batch

    measured.measure_batches(run, Batches(), progress=False)
    assert len(held) == 12 and max(held) <= 1


def test_batches_that_cannot_be_gone_through_twice_are_refused(run):
    with pytest.raises(ValueError, match=r"got 8 and then 0: pass a list"):
        measured.measure_batches(run, iter([run.test[:8]]), progress=False)


def test_runs_that_have_no_nine_terms_are_refused():
    for refused in (make_run("ved", "VED"), make_run("scaled", attention="scaled_dot")):
        assert not measured.is_measured(refused.config)
        why = "ved is a VED, which has no attention" if refused.name == "ved" else "scaled has attention 'scaled_dot'"
        with pytest.raises(ValueError, match=f"translation with dot-product attention, but {why}"):
            measured.measure(refused)
    other = runs.RunConfig(
        "one", OneToOne(), runs.ModelConfig("AED", hidden_size=8), training.TrainConfig(1), accuracy_bar=0.9
    )
    for ask in (measured.measure, measured.of, measured.obtain, lambda run: run.measured):
        with pytest.raises(ValueError, match="but one is of one_to_one"):
            ask(Run(other, other.new_model(0), 0))


def test_common_steps_are_those_of_a_quarter_of_the_sentences():
    lengths = np.zeros(17, int)
    lengths[3], lengths[5], lengths[9] = 60, 15, 25  # 2, 4 and 8 words, and an end
    assert common_steps(lengths) == 8
    lengths[3] += 1
    assert common_steps(lengths) == 4


def test_weights_of_another_name_are_answered_with_those_there_are(found):
    with pytest.raises(ValueError, match="weights must be one of 'attention', 'temporal', 'shuffled', got 'mean'"):
        found.distance("mean")


def test_the_training_split_gives_ratio_and_alignment(run, found):
    train = run.task.split("train")
    ratio = (train.target_lengths - 1).sum() / (train.source_lengths - 1).sum()
    assert found.length_ratio == pytest.approx(float(ratio))
    assert found.aligned_counts.sum() > len(train)
    np.testing.assert_array_equal(np.isnan(found.aligned), found.aligned_counts == 0)
    assert np.nanmin(found.aligned) >= 1 and np.nanmax(found.aligned) <= 15


# ---- the terms of any sentences ----------------------------------------------------------------------------------


def test_terms_of_the_test_split_are_those_of_its_own_components(run, found):
    trace = run.model.trace(run.test[:6], "teacher")
    terms = found.terms(trace)
    assert terms.shape == (3, 3, *trace.scores.shape)
    pairs = trace.decoder_mask[:, :, None] & trace.encoder_mask[:, None, :]
    np.testing.assert_allclose(terms.sum((0, 1))[pairs], trace.scores[pairs], atol=1e-4)
    expected = torch.from_numpy(found.temporal_scores).float().expand(trace.scores.shape)
    np.testing.assert_allclose(terms[0, 0][pairs], expected[pairs], atol=1e-4)


def test_a_word_that_the_split_lacks_is_all_delta(run, found):
    word = int(run.test.source[0, 0])
    lacking = found.encoder.input.copy()
    lacking[word] = np.nan
    trace = run.model.trace(run.test[:1], "teacher")
    changed = replace(found, encoder=replace(found.encoder, input=lacking)).terms(trace)
    whole, there = found.terms(trace), trace.encoder_tokens[0] == word
    assert (changed[:, 1, :, :, there] == 0).all()
    sums = whole[:, 1:, :, :, there].sum(1)
    np.testing.assert_allclose(changed[:, 2, :, :, there], sums, atol=1e-4)
    np.testing.assert_allclose(changed[..., ~there], whole[..., ~there], atol=1e-5)


def test_a_trace_that_does_not_fit_is_refused(run, found):
    trace = run.model.trace(run.test[:2], "teacher")
    with pytest.raises(ValueError, match="at most 3 decoder steps"):
        short = replace(found.decoder, temporal=found.decoder.temporal[:3])
        replace(found, decoder=short).terms(trace)
    with pytest.raises(ValueError, match="words below 4, got"):
        replace(found, encoder=replace(found.encoder, input=found.encoder.input[:4])).terms(trace)
    other = make_run(run.name, run.architecture, size=6)
    with pytest.raises(ValueError, match="dec must have temporal"):
        found.terms(other.model.trace(run.test[:2], "teacher"))


# ---- alignment and dictionary ------------------------------------------------------------------------------------


def test_words_are_aligned_with_their_translations_across_a_flip():
    """A corpus in which word k translates k, in another order in every sentence."""
    random = np.random.default_rng(0)
    rows = [random.permutation(np.arange(4, 12))[: random.integers(3, 7)] for _ in range(300)]
    orders = [random.permutation(len(row)) for row in rows]
    source = pad_rows([[*row.tolist(), 2] for row in rows], 8)
    target = pad_rows([[*(row[order] + 20).tolist(), 2] for row, order in zip(rows, orders, strict=True)], 8)
    found = aligned_steps(Batch(*source, *target, torch.full_like(target[0], -1)))
    for row, order in zip(found, orders, strict=True):
        assert row[: len(order)].tolist() == order.tolist()
        assert (row[len(order) :] == -1).all()  # ends of sentence and padding


def test_a_word_that_stands_twice_is_aligned_with_none():
    rows = [[4, 5, 4, 2], [5, 6, 2], [4, 6, 2], [6, 5, 2]] * 5
    source = pad_rows(rows, 4)
    found = aligned_steps(Batch(*source, *source, torch.full_like(source[0], -1)))
    assert found[0].tolist() == [-1, 1, -1, -1]
    assert found[1].tolist() == [0, 1, -1, -1]


def test_the_dictionary_has_the_most_common_words_and_what_they_translate(monkeypatch):
    monkeypatch.setattr("howattend.measured.dictionary.WORDS", 24)
    task = Translation(num_words=None, min_count=1)
    found = measured.lexicon(task)
    assert list(found.columns) == ["french", "rank", "english", "probability"]
    vocabulary = task.target_vocabulary
    assert list(dict.fromkeys(found["french"])) == [vocabulary.words[word] for word in vocabulary.content_ids[:24]]
    assert found.groupby("french")["rank"].apply(list).map(lambda ranks: ranks == list(range(1, len(ranks) + 1))).all()
    assert found.groupby("french")["probability"].apply(lambda values: (values.diff().dropna() <= 0).all()).all()
    first = found[found["rank"] == 1].set_index("french")["english"]
    assert {first["la"], first["le"], first["les"]} == {"the"}
    assert first["rouge"] == "red" and first["jaune"] == "yellow"
    cut = Translation(num_words=12, min_count=1)  # most words are <unk>, which translates nothing
    assert (cut.split("train").source == UNK).sum() > 100
    assert cut.source_vocabulary.words[UNK] not in set(measured.lexicon(cut)["english"])


def test_the_dictionary_survives_writing_and_reading(run):
    with pytest.raises(FileNotFoundError, match="howattend measure"):
        measured.read_lexicon()
    path = measured.write_lexicon(run.task)
    expected = measured.lexicon(run.task)
    assert measured.read_lexicon().equals(expected)
    path.write_text("french,english\nla,the\n", encoding="utf-8")
    with pytest.raises(ValueError, match="is damaged: its columns must be french, rank"):
        measured.read_lexicon()


# ---- files -------------------------------------------------------------------------------------------------------


def test_a_measurement_survives_writing_and_reading(run, found):
    path = measured.path(run.name)
    assert path.as_posix().endswith(f"data/results/components/{run.name}.npz")
    measured.save(found, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert_same(measured.load(path), found)
    before = path.read_bytes()
    measured.save(found, path)
    assert path.read_bytes() == before


def test_words_that_do_not_occur_take_no_room(found, tmp_path):
    measured.save(found, tmp_path / "small.npz")
    words, counts = 5000, np.zeros((5000, 16), np.int64)
    pad = ((0, words), (0, 0))
    encoder = found.encoder
    larger = replace(
        found,
        encoder=Components(
            encoder.temporal,
            np.pad(encoder.input, pad, constant_values=np.nan),
            None,
            encoder.step_counts,
            np.pad(encoder.word_counts, (0, words)),
        ),
        encoder_counts=np.concatenate([found.encoder_counts, counts]),
        variances=np.pad(found.variances, ((0, 0), (0, 0), (0, words)), constant_values=np.nan),
    )
    measured.save(larger, tmp_path / "large.npz")
    assert_same(measured.load(tmp_path / "large.npz"), larger)
    assert (tmp_path / "large.npz").stat().st_size < (tmp_path / "small.npz").stat().st_size + 100


def _truncate(path):
    path.write_bytes(path.read_bytes()[:-200])


def _flip(path):
    with zipfile.ZipFile(path) as file:
        member = file.getinfo("encoder_input.npy")
    content = bytearray(path.read_bytes())
    content[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 255
    path.write_bytes(content)


def _array(path):
    with path.open("wb") as stream:
        np.save(stream, np.arange(3))


def _without(name):
    def change(path):
        with np.load(path) as content:
            kept = {key: content[key] for key in content.files if key != name}
        np.savez(path, **kept)

    return change


def _with(**changed):
    def change(path):
        with np.load(path) as content:
            arrays = {key: content[key] for key in content.files}
        np.savez(path, **arrays | {key: value(arrays[key]) for key, value in changed.items()})

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _truncate,
        _flip,
        lambda path: path.write_bytes(b"nothing of the kind"),
        lambda path: path.write_bytes(b""),
        lambda path: np.savez(path, a=np.arange(3)),
        _array,
        _without("decoder_input"),
        _without("plain"),
        _with(encoder_ids=lambda words: words + 1000),
        _with(plain=lambda plain: np.array("{}")),
        _with(plain=lambda plain: np.array(str(plain).replace('"format": 1', '"format": 99'))),
        _with(encoder_input=lambda inputs: inputs[:-1]),
    ],
    ids=[
        *("truncated", "a bit", "text", "empty", "another npz", "an npy", "no input", "no plain", "word out of range"),
        *("nothing in plain", "another version", "a word less"),
    ],
)
def test_a_damaged_file_is_told(run, found, damage):
    path = measured.path(run.name)
    measured.save(found, path)
    damage(path)
    with pytest.raises(ValueError, match=f"is damaged or no measurement .*python -m howattend measure {run.name}"):
        measured.load(path)


def test_a_full_disk_leaves_what_was_there(run, found, monkeypatch):
    path = measured.path(run.name)
    measured.save(found, path)

    def fail(stream, **arrays):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(OSError, match="No space left"):
        measured.save(replace(found, accuracy=0.0), path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert measured.load(path).accuracy == found.accuracy


# ---- stored or recomputed ----------------------------------------------------------------------------------------


def test_without_corpus_the_stored_measurement_is_loaded(run, found, no_corpus):
    with pytest.raises(FileNotFoundError, match=f"restore it with git checkout.*howattend measure {run.name}"):
        measured.obtain(run)
    measured.save(found, measured.path(run.name))
    loaded, recomputed = measured.obtain(run)
    assert not recomputed
    assert_same(loaded, found)
    assert_same(measured.of(run), found)


def test_with_the_corpus_all_is_recomputed_and_compared(run, found):
    assert measured.obtain(run, progress=False)[1]  # nothing to compare with
    measured.save(found, measured.path(run.name))
    again, recomputed = measured.obtain(run, progress=False)
    assert recomputed
    assert differences(again, found) == []
    measured.save(replace(found, accuracy=found.accuracy + 0.01), measured.path(run.name))
    with pytest.raises(ValueError, match=r"is not what .* holds: accuracy 0\.\d{4}, not 0\.\d{4}\. If the corpus"):
        measured.obtain(run, progress=False)


def _changed(found, name):
    if "." in name:
        side, part = name.split(".")
        components = getattr(found, side)
        return replace(found, **{side: replace(components, **{part: getattr(components, part) * 1.03})})
    value = getattr(found, name)
    return replace(found, **{name: value + 1 if np.asarray(value).dtype.kind == "i" else value * 1.03})


@pytest.mark.parametrize(
    "name",
    [
        *(
            "encoder.temporal",
            "decoder.input",
            "encoder_counts",
            "decoder_words",
            "length_counts",
            "term_sums",
            "distance_sums",
        ),
        *("variances", "delta_shares", "length_ratio", "aligned", "aligned_counts"),
    ],
)
def test_what_differs_is_named(found, name):
    assert [text.split(" ")[0] for text in differences(_changed(found, name), found)] == [name]


def test_what_another_processor_changes_does_not_count(found):
    random = np.random.default_rng(0)
    noisy = replace(
        found,
        accuracy=found.accuracy + 5e-4,
        term_sums=found.term_sums * (1 + 1e-3 * random.standard_normal(found.term_sums.shape)),
        encoder=replace(found.encoder, temporal=found.encoder.temporal + 1e-4),
    )
    assert differences(noisy, found) == []


def test_the_stored_measurement_of_other_weights_is_not_taken_for_this_runs(run, found, monkeypatch, tmp_path):
    other = make_run(run.name, run.architecture, seed=1)
    changed = make_run(run.name, run.architecture, size=6)
    _ = other.task.source_vocabulary, other.task.target_vocabulary, changed.task.source_vocabulary
    measured.save(found, measured.path(run.name))
    assert measured.of(other).weights_hash not in (found.weights_hash, "")  # the corpus is here: measured anew
    assert measured.obtain(other, progress=False)[1]
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "empty"))
    with pytest.raises(ValueError, match=r"is of other weights than this run of .* \(seed 0, here 1\)"):
        measured.of(other)
    with pytest.raises(ValueError, match="is of another configuration than this run"):
        measured.obtain(changed)


# ---- command -----------------------------------------------------------------------------------------------------


def test_the_command_measures_shipped_runs_and_writes_the_dictionary(run, found, monkeypatch, capsys):
    ved = make_run("translation-ved-gru", "VED").config
    shipped = {run.name: run.config, ved.name: ved, measured.LEXICON_OF: run.config}
    monkeypatch.setattr(runs, "manifest", lambda: dict.fromkeys([run.name, ved.name]))
    monkeypatch.setattr(runs, "config", shipped.__getitem__)
    monkeypatch.setattr(runs, "load_run", lambda name, device: run)
    assert __main__.main(["measure"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2 and f"{run.name}.npz: {found.pairs} pairs, word accuracy" in shown[0]
    assert_same(measured.load(measured.path(run.name)), found)
    assert measured.lexicon_path().exists()


def test_the_command_refuses_a_run_before_it_measures_another(run, monkeypatch, capsys):
    ved = make_run("translation-ved-gru", "VED").config
    monkeypatch.setattr(runs, "config", {run.name: run.config, ved.name: ved}.__getitem__)
    monkeypatch.setattr(runs, "load_run", lambda *_: pytest.fail("measured"))
    assert __main__.main(["measure", run.name, ved.name]) == 1
    assert "translation-ved-gru is a VED, which has no attention" in capsys.readouterr().err


def test_the_command_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(runs, "manifest", dict)
    assert __main__.main(["measure"]) == 1
    assert "no translation run is shipped; train one" in capsys.readouterr().err


# ---- what is shipped ---------------------------------------------------------------------------------------------


def _shipped():
    return [name for name in runs.manifest() if measured.is_measured(runs.config(name))]


@pytest.mark.parametrize("name", _shipped())
def test_every_shipped_run_has_a_measurement_of_its_weights(name, root, monkeypatch, no_corpus):
    monkeypatch.setenv("HOWATTEND_DATA", str(root / "data"))
    found = measured.load(measured.path(name))
    assert found.run == name
    assert measured.stored(runs.load_run(name)).pairs == found.pairs
    assert found.accuracy == pytest.approx(runs.manifest()[name]["accuracy"], abs=1e-3)
    assert measured.path(name).stat().st_size <= 3e6


def test_the_shipped_dictionary_is_of_the_shipped_vocabulary(root, monkeypatch, no_corpus):
    monkeypatch.setenv("HOWATTEND_DATA", str(root / "data"))
    if measured.LEXICON_OF not in runs.manifest():
        pytest.skip(f"{measured.LEXICON_OF} is not shipped yet")
    vocabulary = runs.config(measured.LEXICON_OF).task.target_vocabulary
    words = [vocabulary.words[index] for index in vocabulary.content_ids[: measured.dictionary.WORDS]]
    assert list(dict.fromkeys(measured.read_lexicon()["french"])) == words
