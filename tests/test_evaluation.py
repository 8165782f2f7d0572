"""Word accuracy and BLEU of translation networks, against scores made by hand and planted translations."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from howattend import evaluation, files, runs, sentences
from howattend.__main__ import main
from howattend.analysis import Run
from howattend.models import ModelConfig, beam_search
from howattend.runs import RunConfig
from howattend.tasks import EOS, PAD, UNK, OneToOne, Translation, corpora
from howattend.tasks.corpora import OpenDefault, clean, tokenise
from howattend.tasks.corpora.pairs import deal, make_pair
from howattend.training import TrainConfig, word_accuracy

LIMITED = Translation(num_words=30)
CONFIG = RunConfig("translation-aed-gru", LIMITED, ModelConfig("AED", hidden_size=8), TrainConfig(steps=2), 0.0)


@pytest.fixture(scope="module")
def cache(tmp_path_factory, sentence_pairs):
    """A cache folder with a corpus of two registers, one of which ends its sentences with an exclamation mark."""
    loud = [(source.replace(".", " now!"), target.replace(".", " maintenant !")) for source, target in sentence_pairs]
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOWATTEND_CACHE", str(folder))
        path = corpora.path(OpenDefault())
    dealt = deal(
        make_pair(*pair, register, "made", "words")
        for register, pairs in (("catalogues", sentence_pairs), ("verses", loud))
        for pair in pairs
    )
    corpora.Corpus.of(dealt, {"fingerprint": {}}).save(path)
    return folder


@pytest.fixture(autouse=True)
def built(cache, monkeypatch):
    monkeypatch.setenv("HOWATTEND_CACHE", str(cache))


@pytest.fixture
def run():
    return Run(CONFIG, CONFIG.new_model(0).eval(), 0)


# ---- decoding --------------------------------------------------------------------------------------------------------


def test_many_sentences_decode_as_one_batch_does(run):
    batch, steps = LIMITED.split("test"), LIMITED.target_steps
    assert len(batch) > 20
    for width in (1, 3):
        found = evaluation.decode(run.model, batch.source, batch.source_lengths, steps, width, chunk=7)
        search = run.model.generate if width == 1 else lambda *call: beam_search(run.model, *call, width=3)
        expected = search(batch.source, batch.source_lengths, steps)
        assert found.shape == (len(batch), steps)
        assert torch.equal(found[:, : expected.shape[1]], expected)
        assert (found[:, expected.shape[1] :] == PAD).all()


def test_a_reader_translates_sentences_of_their_own(run):
    english = ["I see the red house.", "We buy the boat!"]
    found = evaluation.translate(run, LIMITED, english, beam=1)
    words = run.model.generate(*LIMITED.encode(english), LIMITED.target_steps)
    assert found == [evaluation.detokenise(LIMITED.target_vocabulary.decode(row)) for row in words]
    assert evaluation.translate(run.model, LIMITED, english[0], beam=1) == found[:1]
    wide = beam_search(run.model, *LIMITED.encode(english), LIMITED.target_steps, evaluation.BEAM)
    assert evaluation.translate(run, LIMITED, english) == [
        evaluation.detokenise(LIMITED.target_vocabulary.decode(row)) for row in wide
    ]
    with pytest.raises(ValueError, match=r"no word of 'Zebras sleep' is in the vocabulary"):
        evaluation.translate(run, LIMITED, "Zebras sleep")
    assert evaluation.translate(run, LIMITED, tuple(english), beam=np.int64(1)) == found


@pytest.mark.parametrize("beam", [0, -1, True, 2.0, "5", None, 101, 10**9, np.float64(3), np.int64(0)])
def test_a_beam_that_is_none_is_told_by_its_name(run, beam):
    with pytest.raises(ValueError, match=r"^beam must be an integer from 1 \(greedy\) to 100, got"):
        evaluation.translate(run, LIMITED, "I see the red house.", beam=beam)
    call = run.model, *LIMITED.encode("I see the red house."), LIMITED.target_steps
    with pytest.raises(ValueError, match=r"^width must be an integer from 1"):
        evaluation.decode(*call, beam)
    with pytest.raises(ValueError, match=r"^widths must be an integer from 1"):
        evaluation.measure(run, widths=(1, beam))
    with pytest.raises((ValueError, TypeError), match="chunk must be an integer of at least 1"):
        evaluation.decode(*call, chunk=0 if beam is None else -1)


def test_nothing_is_translated_as_nothing(run):
    none = torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)
    assert evaluation.decode(run.model, *none, 5).shape == (0, 5)


def test_a_network_of_another_task_is_noticed(run):
    english = "I see the red house."
    other = replace(LIMITED, register="verses")
    with pytest.raises(ValueError, match=r"task must be the one of translation-aed-gru, .*pass run\.task"):
        evaluation.translate(run, other, english)
    small = Translation(num_words=10)
    with pytest.raises(ValueError, match=r"model must have the task's vocabularies of 14 and 14 words, got one of 34"):
        evaluation.translate(run.model, small, english)
    with pytest.raises(TypeError, match="task must be a Translation, such as a translation run's, got OneToOne"):
        evaluation.translate(run, OneToOne(), english)
    for swapped in ((LIMITED, run), (LIMITED, LIMITED), ("translation-aed-gru", LIMITED)):
        with pytest.raises(TypeError, match=r"must be an? "):
            evaluation.translate(*swapped, english)
    config = RunConfig("one", OneToOne(), ModelConfig("AED", hidden_size=8), TrainConfig(1), 0.0)
    with pytest.raises(TypeError, match="task must be a Translation"):
        evaluation.measure(Run(config, config.new_model(0), 0))


@pytest.mark.parametrize("english", [123, None, b"I see", ["I see the house", 5], [["I", "see"]], 2.5])
def test_what_is_no_sentence_is_refused(run, english):
    with pytest.raises(TypeError, match="must be a string"):
        evaluation.translate(run, LIMITED, english)


@pytest.mark.parametrize("pairs", [("I see the house", "Je vois la maison"), [("I see",)], [5], [("a", "b", "c")]])
def test_what_are_no_pairs_is_refused(pairs):
    with pytest.raises(TypeError, match=r"pairs must be a list of pairs, \[\(English, French\), …\]"):
        LIMITED.pairs(pairs)
    with pytest.raises(TypeError, match="a sentence must be a string, got 5"):
        LIMITED.pairs([("I see the house", 5)])
    with pytest.raises(TypeError, match="a sentence must be a string, got 5"):
        LIMITED.unknown_words(5)


def test_a_long_sentence_is_not_echoed_whole(run):
    for english in ("I see the house " * 500, "zebra" * 500, "zebra " * 15, ["house " * 400] * 3):
        with pytest.raises(ValueError, match=r"…'|zebra") as caught:
            evaluation.translate(run, LIMITED, english)
        assert len(str(caught.value)) < 400
    with pytest.raises(TypeError) as caught:
        evaluation.translate(run, LIMITED, {1: "x" * 1000}.items())
    assert len(str(caught.value)) < 150


def test_a_missing_file_of_vocabularies_is_named(monkeypatch, tmp_path):
    """Not the corpus alone, which a shipped network does not need."""
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path))
    task = replace(LIMITED)  # nothing of the corpus is in memory
    with pytest.raises(FileNotFoundError, match=r"\.json is missing\..*git checkout; .*python -m howattend corpus"):
        _ = task.source_vocabulary
    with pytest.raises(FileNotFoundError, match=r"translation-[0-9a-f]{12}\.json is missing"):
        evaluation.translate(CONFIG.new_model(0), task, "I see the red house.")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("l' homme sage n' a pas répondu .", "l'homme sage n'a pas répondu."),
        ("où allez -vous ?", "où allez-vous ?"),
        ("y a -t-il un livre , ou deux ?", "y a-t-il un livre, ou deux ?"),
        ("jusqu' à aujourd'hui : rien", "jusqu'à aujourd'hui : rien"),
        ('il dit : " va " , et partit ...', 'il dit : "va", et partit...'),
        ("le fichier ( vide ) [ 3 ]", "le fichier (vide) [3]"),
        ("donnez -le -moi", "donnez-le-moi"),
        ("qu' <unk> - t' en", "qu'<unk> - t'en"),
        ("peut-être 1,5 <slot>", "peut-être 1,5 <slot>"),
        ("", ""),
    ],
)
def test_words_become_a_line(words, line):
    assert evaluation.detokenise(words.split()) == line


def test_a_line_has_the_words_that_it_was_made_of():
    for line in sentences.read()["french"]:
        words = tokenise(clean(line), "fr")
        assert evaluation.detokenise(words) == clean(line).lower()


# ---- word accuracy ---------------------------------------------------------------------------------------------------


def test_accuracy_with_and_without_unknown_words():
    batch = LIMITED.pairs([("I see the zebra", "Je vois le zèbre"), ("We buy", "Nous achetons")])
    assert (batch.target == UNK).sum() >= 1
    right = torch.zeros_like(batch.target, dtype=torch.bool)
    assert sentences.accuracies(right, batch) == (0.0, 0.0)
    right[batch.target == UNK] = True
    unknown, words = int((batch.target == UNK).sum()), int(batch.target_mask.sum())
    assert sentences.accuracies(right, batch) == (unknown / words, 0.0)
    assert sentences.accuracies(batch.target_mask, batch) == (1.0, 1.0)
    right = batch.target == EOS
    assert sentences.accuracies(right, batch) == (2 / words, 2 / (words - unknown))


def test_right_words_are_those_that_the_trainings_accuracy_counts(run):
    batch = LIMITED.split("test")
    right = sentences.right_words(run.model, batch, chunk=5)
    assert not right[~batch.target_mask].any()
    assert 0 < sentences.accuracies(right, batch)[0] < 1
    assert sentences.accuracies(right, batch)[0] == pytest.approx(word_accuracy(run.model, batch, teacher_forced=True))


# ---- BLEU ------------------------------------------------------------------------------------------------------------


def test_bleu_made_by_hand():
    reference = ["la", "porte", "de", "la", "maison", "rouge"]
    assert evaluation.bleu([reference], [reference]).bleu == pytest.approx(100)
    # 5 of 6 words, 4 of 5 pairs, 3 of 4 triples and 2 of 3 fours: the product is 1/3.
    last = [*reference[:-1], "verte"]
    assert evaluation.bleu([last], [reference]).bleu == pytest.approx(100 * (1 / 3) ** 0.25)
    # All that is said is right, but a word is missing: only the brevity penalty counts.
    assert evaluation.bleu([reference[:-1]], [reference]).bleu == pytest.approx(100 * math.exp(1 - 6 / 5))


def test_bleu_takes_words_as_they_are():
    score = evaluation.bleu(
        [["l'", "homme", "sage", "a", "dit", "."]] * 120, [["l'", "homme", "sage", "a", "dit", "."]] * 120
    )
    assert (score.bleu, score.low, score.high) == pytest.approx((100, 100, 100))
    assert "tok:none" in score.signature
    assert f"bs:{evaluation.BOOTSTRAP}" in score.signature
    assert "version:2." in score.signature
    with pytest.raises(ValueError, match="got 1 and 2"):
        evaluation.bleu([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="at least 1, got 0 and 0"):
        evaluation.bleu([], [])


def test_bleu_has_an_interval_that_more_sentences_narrow():
    right, wrong = ["le", "roi", "sortit", "de", "la", "ville"], ["la", "reine", "sortit", "de", "la", "maison"]
    few = evaluation.bleu([right, wrong] * 10, [right] * 20)
    many = evaluation.bleu([right, wrong] * 160, [right] * 320)
    assert few.bleu == pytest.approx(many.bleu)
    assert few.low < few.bleu < few.high
    assert (many.high - many.low) == pytest.approx((few.high - few.low) / 4, rel=0.15)
    assert evaluation.bleu([["a"]] * 20, [["b"]] * 20).bleu == 0


# ---- the rows of a run -----------------------------------------------------------------------------------------------


def planted(monkeypatch, change=lambda ids: ids):
    """The network says the target of each sentence of the test split, changed."""
    target = LIMITED.split("test").target
    monkeypatch.setattr(evaluation, "decode", lambda *_, **__: change(target.clone()))


def test_what_the_vocabulary_lacks_is_wrong_even_where_the_network_says_it_is_unknown(run, monkeypatch):
    planted(monkeypatch)
    rows = evaluation.measure(run, widths=(1,)).set_index(["register", "lengths"])
    assert rows.loc[("all", "all"), "bleu"] < 99
    exact = replace(run, config=replace(CONFIG, task=Translation(num_words=None, min_count=1)))
    target = exact.task.split("test").target
    monkeypatch.setattr(evaluation, "decode", lambda *_, **__: target)
    monkeypatch.setattr(sentences, "right_words", lambda *_: exact.task.split("test").target_mask)
    assert not (target == UNK).any()
    rows = evaluation.measure(exact, widths=(1,))
    assert rows["bleu"].to_list() == pytest.approx([100] * len(rows))
    assert (rows[["accuracy", "known_accuracy"]] == 1).all(axis=None)


def test_the_rows_of_a_run(run, monkeypatch):
    def spoil_long(ids):
        """Sentences of the louder register, longer by a word, lose their order."""
        lengths = (ids != PAD).sum(1)
        for row in range(len(ids)):
            if lengths[row] > lengths.min():
                ids[row, : lengths[row] - 1] = ids[row, : lengths[row] - 1].flip(0)
        return ids

    planted(monkeypatch, spoil_long)
    rows = evaluation.measure(run, widths=(1, 4))
    assert tuple(rows.columns) == evaluation.COLUMNS
    assert set(rows["run"]) == {CONFIG.name} and set(rows["config_hash"]) == {CONFIG.hash} and set(rows["seed"]) == {0}
    assert list(rows["search"].unique()) == ["greedy", "beam 4"]
    greedy = rows[rows["search"] == "greedy"].set_index(["register", "lengths"])
    assert not greedy.index.duplicated().any()
    batch, registers = LIMITED.split("test"), LIMITED.split_words("test")[2]
    words = batch.source_lengths - 1
    for (register, lengths), row in greedy.iterrows():
        first, last = evaluation.LENGTHS.get(lengths, (1, 99))
        chosen = [
            index
            for index, name in enumerate(registers)
            if register in ("all", name) and first <= int(words[index]) <= last
        ]
        assert row["pairs"] == len(chosen) >= evaluation.LEAST_PAIRS
        assert row["mean_length"] == pytest.approx(float(words[chosen].double().mean()))
        part = batch[torch.tensor(chosen)]
        assert row["accuracy"] == pytest.approx(word_accuracy(run.model, part, teacher_forced=True))
    assert {register for register, _ in greedy.index} == {"all", "catalogues", "verses"}
    assert greedy.loc[("all", "all"), "pairs"] == len(batch)
    by_length = greedy.loc["all"].drop("all")["pairs"]
    assert list(by_length.index) == ["4-6", "7-9"]
    assert by_length.sum() == len(batch)
    assert greedy.loc[("catalogues", "all"), "bleu"] > greedy.loc[("verses", "all"), "bleu"] + 30


def test_a_small_group_has_no_row(run, monkeypatch):
    planted(monkeypatch)
    smallest = evaluation.measure(run, widths=(1,))["pairs"].min()
    monkeypatch.setattr(evaluation, "LEAST_PAIRS", int(smallest) + 1)
    assert evaluation.measure(run, widths=(1,))["pairs"].min() > smallest


def test_a_run_of_one_register_has_the_rows_of_all(run, monkeypatch):
    task = replace(LIMITED, register="verses")
    target = task.split("test").target
    monkeypatch.setattr(evaluation, "decode", lambda *_, **__: target)
    one = Run(replace(CONFIG, task=task), CONFIG.new_model(0).eval(), 0)
    assert set(evaluation.measure(one, widths=(1,))["register"]) == {"all"}


# ---- the record ------------------------------------------------------------------------------------------------------


@pytest.fixture
def shipped(monkeypatch, tmp_path, run):
    """Two translation runs and another one in the registry, and a data folder of its own."""
    other = replace(CONFIG, name="translation-ved-gru", model=ModelConfig("VED", hidden_size=8))
    copy = replace(CONFIG, name="one_to_one-aed-gru", task=OneToOne())
    registry = {config.name: config for config in (CONFIG, copy, other)}
    monkeypatch.setattr(runs, "REGISTRY", registry)
    monkeypatch.setattr(
        runs, "load_run", lambda name, device: Run(registry[name], registry[name].new_model(0).eval(), 0)
    )
    monkeypatch.setattr(runs, "manifest", lambda: dict.fromkeys(registry))
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(evaluation, "BOOTSTRAP", 20)
    planted(monkeypatch)
    return registry


def test_rows_are_recorded_in_place_of_older_ones(shipped, monkeypatch):
    measured = evaluation.record(["translation-ved-gru"])
    assert set(measured["run"]) == {"translation-ved-gru"}
    assert evaluation.record()["run"].unique().tolist() == ["translation-aed-gru", "translation-ved-gru"]
    rows = evaluation.read()
    assert rows["run"].unique().tolist() == ["translation-aed-gru", "translation-ved-gru"]
    pd.testing.assert_frame_equal(
        rows[rows["run"] == "translation-ved-gru"].reset_index(drop=True), measured, rtol=1e-5
    )
    before = evaluation.path().read_bytes()
    evaluation.record(["translation-aed-gru"])
    assert evaluation.path().read_bytes() == before
    del shipped["translation-ved-gru"]
    evaluation.record(["translation-aed-gru"])
    assert set(evaluation.read()["run"]) == {"translation-aed-gru"}
    assert [path.name for path in evaluation.path().parent.iterdir()] == ["bleu.csv"]


def test_the_command_records_and_shows(shipped, capsys):
    assert main(["bleu", "translation-aed-gru"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["run", "search", "pairs", "bleu", "low", "high", "accuracy", "known_accuracy"]
    assert [line.split()[:2] for line in printed[1:]] == [[CONFIG.name, "greedy"], [CONFIG.name, "beam"]]
    assert len(evaluation.read()) > 2
    assert main(["bleu", "one_to_one-aed-gru"]) == 1
    assert "names must be of translation runs (translation-aed-gru, translation-ved-gru)" in capsys.readouterr().err
    assert main(["bleu", "lost"]) == 1
    assert "unknown run 'lost'" in capsys.readouterr().err


def test_a_record_that_cannot_be(shipped, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"bleu\.csv is missing; restore it .* python -m howattend bleu"):
        evaluation.read()
    files.write_text(evaluation.path(), "run,bleu\nx,1\n")
    with pytest.raises(ValueError, match="is damaged: it has no accuracy, config_hash"):
        evaluation.read()
    monkeypatch.setattr(runs, "manifest", dict)
    with pytest.raises(ValueError, match="no translation run is shipped"):
        evaluation.record()
    evaluation.path().unlink()
    monkeypatch.setenv("HOWATTEND_CACHE", str(evaluation.path().parent))
    unbuilt = replace(CONFIG, task=Translation(num_words=30))
    with pytest.raises(FileNotFoundError, match="python -m howattend corpus"):
        evaluation.measure(Run(unbuilt, CONFIG.new_model(0), 0))


# ---- what rows show --------------------------------------------------------------------------------------------------

AED, VED = "translation-aed-gru", "translation-ved-gru"


def table(half=1.0, **scores):
    """Rows of runs: name = (overall, [BLEU at 5, 8, 11 and 14 words])."""
    rows = []
    for name, (overall, by_length) in scores.items():
        for lengths, length, score in zip(
            ("all", "1-3", *evaluation.FALL), (8, 2, 5, 8, 11, 14), (overall, 50, *by_length), strict=True
        ):
            rows.append((name, 0, "greedy", "all", lengths, 100, length, score, score - half, score + half, 0.56, 0.6))
    return pd.DataFrame([(*row, "tok:none", "0" * 64) for row in rows], columns=list(evaluation.COLUMNS))


def test_better_means_beyond_the_intervals():
    rows = table(a=(20.0, [1] * 4), b=(18.0, [1] * 4), c=(19.0, [1] * 4))
    found = evaluation.better(rows, "a", "b")
    assert found.holds
    assert (found.difference, found.high - found.low) == pytest.approx((2, 2 * 2**0.5))
    assert not evaluation.better(rows, "b", "a").holds
    assert not evaluation.better(rows, "a", "c").holds  # above, but by less than chance allows
    assert evaluation.better(rows, "a", "c").difference > 0


def test_falling_faster_is_of_the_share_that_a_word_costs():
    lengths = (5, 8, 11, 14)
    flat, steep = ([start * math.exp(-rate * x) for x in lengths] for start, rate in ((40, 0.05), (20, 0.15)))
    rows = table(half=0.1, flat=(20, flat), steep=(10, steep), same=(5, [score / 4 for score in flat]))
    found = evaluation.falls_faster(rows, "steep", "flat")
    assert found.difference == pytest.approx(0.1)
    assert found.holds
    assert not evaluation.falls_faster(rows, "flat", "steep").holds
    # A quarter of the score that loses the same shares loses fewer points, and falls no slower.
    assert evaluation.falls_faster(rows, "same", "flat").difference == pytest.approx(0)
    assert not evaluation.falls_faster(rows, "same", "flat").holds
    vague = table(half=9.0, flat=(20, flat), steep=(10, steep))
    assert evaluation.falls_faster(vague, "steep", "flat").difference == pytest.approx(0.1)
    assert not evaluation.falls_faster(vague, "steep", "flat").holds


def test_short_sentences_do_not_count_as_a_fall():
    rows = table(half=0.1, a=(20, [30, 20, 15, 10]), b=(20, [30, 25, 20, 18]))
    before = evaluation.falls_faster(rows, "a", "b")
    rows.loc[rows["lengths"] == "1-3", "bleu"] = 90
    assert evaluation.falls_faster(rows, "a", "b") == before


def test_an_interval_of_the_slope_covers_what_chance_does():
    """Scores drawn around a line: the difference of two slopes lies in its interval in 95 of 100 draws."""
    random, inside = torch.Generator().manual_seed(1), 0
    truth = [40 * math.exp(-0.05 * x) for x in (5, 8, 11, 14)]
    for _ in range(120):
        a, b = ([score + float(torch.randn((), generator=random)) for score in truth] for _ in range(2))
        found = evaluation.falls_faster(table(half=1.96, a=(1, a), b=(1, b)), "a", "b")
        inside += found.low <= 0 <= found.high
    assert 0.88 <= inside / 120 <= 0.99


def test_rows_that_are_missing_or_twice():
    rows = table(a=(20, [4, 3, 2, 1]), b=(20, [4, 3, 2, 0]))
    assert evaluation.recorded_accuracy(rows, "a") == 0.56
    with pytest.raises(
        ValueError, match=r"of lost, greedy, register all; not so for all: python -m howattend bleu lost"
    ):
        evaluation.better(rows, "a", "lost")
    with pytest.raises(ValueError, match="beam 5"):
        evaluation.better(rows, "a", "b", "beam 5")
    with pytest.raises(ValueError, match="not so for 10-12"):
        evaluation.falls_faster(rows[rows["lengths"] != "10-12"], "a", "b")
    with pytest.raises(ValueError, match="not so for all"):
        evaluation.recorded_accuracy(pd.concat([rows, rows]), "a")
    with pytest.raises(ValueError, match="b has a BLEU of 0"):
        evaluation.falls_faster(rows, "a", "b")


# ---- what is shipped -------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded():
    """The rows of the repository; a shipped translation run without any fails, none shipped has nothing to check."""
    if not any(evaluation.is_translation(name) for name in runs.manifest()):
        pytest.skip("no translation run is shipped yet")
    return evaluation.read()


def test_every_shipped_translation_run_has_rows_of_its_present_weights(recorded):
    shipped = {name: entry for name, entry in runs.manifest().items() if evaluation.is_translation(name)}
    assert list(recorded["run"].unique()) == [name for name in runs.REGISTRY if name in shipped]
    for name, entry in shipped.items():
        rows = recorded[recorded["run"] == name]
        assert set(rows["search"]) == {"greedy", f"beam {evaluation.BEAM}"}
        assert {*evaluation.FALL, "all"} <= set(rows["lengths"])
        assert set(rows["config_hash"]) == {entry["config_hash"]} == {runs.config(name).hash}
        assert set(rows["seed"]) == {entry["seed"]}
        assert evaluation.recorded_accuracy(rows, name) == pytest.approx(entry["accuracy"], abs=1e-4)
        assert rows["signature"].str.contains("tok:none").all()


def test_the_bars_of_the_translation_networks(recorded):
    assert evaluation.recorded_accuracy(recorded, AED) >= runs.config(AED).accuracy_bar >= 0.55
    for search in ("greedy", f"beam {evaluation.BEAM}"):
        better = evaluation.better(recorded, AED, VED, search)
        assert better.holds, (search, better)
    # What the chapter says: VED's BLEU falls faster than AED's everywhere, and nowhere by more than intervals allow.
    for search in ("greedy", f"beam {evaluation.BEAM}"):
        for register in (evaluation.ALL, "catalogues", "verses"):
            faster = evaluation.falls_faster(recorded, VED, AED, search, register)
            assert faster.difference > 0, (search, register, faster)
            assert not faster.holds, (search, register, faster)
