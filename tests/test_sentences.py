"""The sentence pairs of our own, and how a shipped translation run is verified with and without the corpus."""

import json
import re
from dataclasses import replace

import pytest

from howattend import files, runs, sentences
from howattend.__main__ import main
from howattend.analysis import Run
from howattend.models import ModelConfig
from howattend.runs import RunConfig
from howattend.tasks import Translation, corpora
from howattend.tasks.corpora import OpenDefault, clean, tokenise
from howattend.tasks.corpora.pairs import deal, make_pair
from howattend.training import TrainConfig, word_accuracy

CACHE = files.cache_folder()  # the user's own: tests have another one
NAME = "translation-aed-gru"


# ---- the pairs -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own():
    """English and French words of each pair."""
    pairs = sentences.read()
    return [
        (tokenise(clean(english), "en"), tokenise(clean(french), "fr"))
        for english, french in zip(pairs["english"], pairs["french"], strict=True)
    ]


def test_the_pairs_are_what_they_claim(own):
    pairs = sentences.read()
    assert len(pairs) >= 80
    assert not pairs["english"].duplicated().any() and not pairs["french"].duplicated().any()
    assert set(pairs["register"]) == {"interface", "everyday", "narrative"}
    kinds = {"flip", "many-to-one", "one-to-many", "negation", "clitic", "number", "plain"}
    assert set(pairs["shows"]) == kinds
    for _, register in pairs.groupby("register"):
        assert set(register["shows"]) == kinds
    for english, french in own:
        assert 1 <= len(english) <= 15 and 1 <= len(french) <= 15
    for side, end in (("english", r"[.?]"), ("french", r"(\.| \?)")):
        for line in pairs[side]:
            assert line == clean(line) and re.fullmatch(rf"[A-ZÊ][\w' ,:-]+{end}", line), line
    negations = [french for (_, french), shows in zip(own, pairs["shows"], strict=True) if shows == "negation"]
    assert all({"n'", "ne", "aucun"} & set(french) for french in negations)


def test_nearly_all_their_words_are_known(own):
    task = runs.config(NAME).task
    if not task.vocabularies_path.exists():
        pytest.skip("no translation run is shipped yet, and without the corpus there is no vocabulary")
    for side, vocabulary in ((0, task.source_vocabulary), (1, task.target_vocabulary)):
        words = [word for pair in own for word in pair[side]]
        assert sum(word in vocabulary for word in words) >= 0.98 * len(words)


def test_none_of_them_is_in_the_training_split(own, monkeypatch):
    monkeypatch.setenv("HOWATTEND_CACHE", str(CACHE))
    if not corpora.path(OpenDefault()).exists():
        pytest.skip("the corpus has not been built here: python -m howattend corpus")
    english, french, _ = Translation(num_words=None).split_words("train")

    def bare(words):
        return [word for word in words if word not in set(".?!,:;")]

    train = ({tuple(bare(words)) for words in side} for side in (english, french))
    for side, known in enumerate(train):
        assert not [pair[side] for pair in own if tuple(bare(pair[side])) in known]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "english\tfrench\n",
        "english\tfrench\tregister\tshows\n",
        "english\tfrench\tregister\tshows\nGo\t\teveryday\tplain\n",
        "english\tfrench\tregister\tshows\nGo\tVa\teveryday\tplain\tmore\teven more\n",
        "french\tenglish\tregister\tshows\nVa\tGo\teveryday\tplain\n",
    ],
)
def test_a_damaged_file_says_so(monkeypatch, tmp_path, text):
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"pairs\.tsv is missing; restore it with git checkout"):
        sentences.read()
    files.write_text(sentences.path(), text)
    with pytest.raises(ValueError, match=r"pairs\.tsv is damaged"):
        sentences.read()


# ---- verification ----------------------------------------------------------------------------------------------------

OWN = "english\tfrench\tregister\tshows\nI see the red house.\tJe vois la maison rouge.\teveryday\tflip\n"
OWN += "We buy the zebra.\tNous achetons le zèbre.\teveryday\tplain\n"


@pytest.fixture
def built(tmp_path, monkeypatch, sentence_pairs):
    """The corpus is built."""
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "built"))
    dealt = deal(make_pair(*pair, "verses", "made", "words") for pair in sentence_pairs)
    corpora.Corpus.of(dealt, {"fingerprint": {}}).save(corpora.path(OpenDefault()))


@pytest.fixture
def shipped(built, tmp_path, monkeypatch):
    """A tiny run shipped with what is recorded of it on two pairs; returns edit(…), which changes that record."""
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    files.write_text(sentences.path(), OWN)
    task, recipe = Translation(num_words=30), TrainConfig(steps=3, batch_size=16)
    config = RunConfig(NAME, task, ModelConfig("AED", hidden_size=8), recipe, 0.0, half_precision=True)
    monkeypatch.setattr(runs, "REGISTRY", {NAME: config})
    entry = runs.train_and_ship(NAME)

    def edit(**changes):
        content = {"runs": {NAME: {**entry, **changes}}}
        files.write_json(files.data_folder() / "weights" / "manifest.json", content)

    entry["own_pairs"] = sentences.measure(runs.load_run(NAME))
    edit()
    return edit


@pytest.fixture
def unbuilt(shipped, monkeypatch, tmp_path):
    """The same on a machine without the corpus. (The task that shipped it has it in memory, so it is another one.)"""
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "elsewhere"))
    config = runs.REGISTRY[NAME]
    monkeypatch.setitem(runs.REGISTRY, NAME, replace(config, task=Translation(num_words=30)))
    return shipped


def test_what_is_measured_on_own_pairs(shipped):
    run, entry = runs.load_run(NAME), runs.manifest()[NAME]["own_pairs"]
    batch = run.task.pairs(
        [("I see the red house.", "Je vois la maison rouge."), ("We buy the zebra", "Nous achetons le zèbre.")]
    )
    assert entry["accuracy"] == pytest.approx(word_accuracy(run.model, batch, teacher_forced=True), abs=1e-6)
    assert (entry["pairs"], entry["words"]) == (2, 7 + 6)
    assert entry["sha256"] == files.file_hash(sentences.path())


def test_with_the_corpus_both_are_verified(shipped, capsys):
    entry, result = runs.manifest()[NAME], runs.verify(NAME)
    assert result.passed
    assert (result.on, result.recorded) == ("test set", entry["accuracy"])
    assert result.measured == pytest.approx(entry["accuracy"], abs=1e-6)
    assert result.own_pairs == (entry["own_pairs"]["accuracy"],) * 2
    assert main(["verify"]) == 0
    assert " on the test set; " in (printed := capsys.readouterr().out)
    assert printed.endswith(" on own sentence pairs\n")
    shipped(accuracy=entry["accuracy"] + 0.01)
    assert not runs.verify(NAME).passed
    shipped(accuracy_bar=1.0)
    assert not runs.verify(NAME).passed
    shipped(own_pairs={**entry["own_pairs"], "accuracy": entry["own_pairs"]["accuracy"] + 0.5})
    assert not runs.verify(NAME).passed


def test_without_the_corpus_own_pairs_are_verified(unbuilt, capsys):
    entry, result = runs.manifest()[NAME], runs.verify(NAME)
    own = entry["own_pairs"]["accuracy"]
    assert result.passed
    assert (result.on, result.recorded, result.measured) == ("own sentence pairs", own, own)
    assert main(["verify"]) == 0
    assert "not on the test set: no corpus (python -m howattend corpus)" in capsys.readouterr().out
    unbuilt(own_pairs={**entry["own_pairs"], "accuracy": own + 4 / 13})
    assert not runs.verify(NAME).passed
    assert main(["verify"]) == 1
    unbuilt(own_pairs={**entry["own_pairs"], "accuracy": own + 3 / 13})  # another processor
    assert runs.verify(NAME).passed


def test_a_record_that_does_not_fit_is_refused(shipped):
    entry = runs.manifest()[NAME]
    files.write_text(sentences.path(), OWN.replace("zebra", "lion"))
    with pytest.raises(ValueError, match=r"pairs\.tsv is not the file that translation-aed-gru was measured on"):
        runs.verify(NAME)
    manifest = files.data_folder() / "weights" / "manifest.json"
    del entry["own_pairs"]
    manifest.write_text(json.dumps({"runs": {NAME: entry}}), encoding="utf-8")
    with pytest.raises(ValueError, match="the manifest has no own_pairs of translation-aed-gru; train it anew"):
        runs.verify(NAME)


def test_runs_of_other_tasks_have_no_own_pairs(task):
    config = RunConfig("one_to_one-ao-ff", task, ModelConfig("AO", "ff", hidden_size=4), TrainConfig(steps=1), 0.0)
    run = Run(config, config.new_model(0), 0)
    result = runs.verification.compare(run, {"accuracy": run.accuracy, "accuracy_bar": 0.0}, 1e-4)
    assert result.passed
    assert result.own_pairs is None
    assert str(result).startswith("recorded ") and "own" not in str(result)
