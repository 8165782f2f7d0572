"""Corpora from data sets in the hub's layout and from files of one's own, each in its real format, and the command."""

import gc
import gzip
import sys

import pandas as pd
import pytest

from howattend.__main__ import main
from howattend.models import EncoderDecoder, ModelConfig
from howattend.tasks import Translation, corpora
from howattend.tasks.corpora import HubDataset, LocalFiles
from howattend.training import TrainConfig, train

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")

README = """---
configs:
- config_name: en-fr
  data_files:
  - split: train
    path: en-fr/train-*
  - split: test
    path: en-fr/test-*
- config_name: other
  data_files: other.parquet
---
# A data set for tests
"""


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    """No test looks for the network; what datasets writes lands in a folder of the test's own."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield
    gc.collect()  # closes the files that datasets leaves open, while that is ignored


@pytest.fixture
def expected(sentence_pairs):
    """The pairs as words."""
    return [
        (" ".join(corpora.tokenise(source, "en")), " ".join(corpora.tokenise(target, "fr")))
        for source, target in sentence_pairs
    ]


def read(source):
    return [(pair.source, pair.target) for pair in source.read(progress=False)]


def write_tsv(path, pairs, header=""):
    text = header + "".join(f"{source}\t{target}\n" for source, target in pairs)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


# ---- the hub's layout --------------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, sentence_pairs):
    """A local folder laid out like OPUS-100: a README with configurations, and parquet with a nested column."""
    folder = tmp_path / "opus"
    (folder / "en-fr").mkdir(parents=True)
    (folder / "README.md").write_text(README, encoding="utf-8")
    for split, part in (("train", sentence_pairs[:200]), ("test", sentence_pairs[200:])):
        rows = [{"translation": {"en": source, "fr": target}} for source, target in part]
        pd.DataFrame(rows).to_parquet(folder / "en-fr" / f"{split}-00000-of-00001.parquet")
    pd.DataFrame({"english": ["Go away"], "french": ["Va-t-en"]}).to_parquet(folder / "other.parquet")
    return folder


def test_opus_100_is_the_ready_made_choice():
    assert HubDataset() == HubDataset(
        repository="Helsinki-NLP/opus-100",
        config="en-fr",
        revision="main",
        columns=("translation.en", "translation.fr"),
        max_pairs=None,
    )


def test_all_splits_of_a_data_set_are_read(hub, expected):
    assert read(HubDataset(repository=str(hub))) == expected
    corpus = corpora.build(HubDataset(repository=str(hub)), progress=False)
    assert (len(corpus), corpus.registers, corpus.origins) == (360, ("text",), (str(hub),))


def test_another_configuration_and_columns(hub):
    assert read(HubDataset(repository=str(hub), config="other", columns=["english", "french"])) == [
        ("go away", "va -t-en")
    ]


def test_reading_stops_at_max_pairs(hub, expected):
    assert read(HubDataset(repository=str(hub), max_pairs=7)) == expected[:7]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("translation.en", "translation.de"), r"has 'translation\.en', 'translation\.fr', got 'translation\.de'$"),
        (("en", "fr"), r"which has 'translation\.en', 'translation\.fr', got 'en'$"),
        (("translation", "translation.fr.x"), "got 'translation.fr.x'"),
    ],
)
def test_unknown_columns_are_answered_with_those_there_are(hub, columns, message):
    with pytest.raises(ValueError, match=message):
        read(HubDataset(repository=str(hub), columns=columns))


@pytest.mark.parametrize("columns", ["en", ("en",), None, ("a", "b", "c")])
def test_columns_must_be_two_names(columns):
    with pytest.raises(ValueError, match="columns must be two names"):
        HubDataset(columns=columns)


def test_without_network_the_message_says_what_to_do():
    with pytest.raises(
        ConnectionError, match=r"opus-100 \(configuration en-fr, revision main\).*local copy.*a file of"
    ):
        read(HubDataset())


def test_an_unknown_configuration_is_answered_with_those_there_are(hub):
    with pytest.raises(ConnectionError, match=r"'en-de' not found. Available: \['en-fr', 'other'\]"):
        read(HubDataset(repository=str(hub), config="en-de"))


def test_a_data_set_that_is_a_script_is_explained(tmp_path):
    (tmp_path / "script").mkdir()
    (tmp_path / "script" / "script.py").write_text("import datasets", encoding="utf-8")
    with pytest.raises(ConnectionError, match="come as a script are no longer run by datasets"):
        read(HubDataset(repository=str(tmp_path / "script")))


# ---- files of one's own ------------------------------------------------------------------------------------------


def test_paracrawls_two_columns_are_read(tmp_path, sentence_pairs, expected):
    with gzip.open(tmp_path / "en-fr.txt.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"{source}\t{target}\n" for source, target in sentence_pairs)
    assert read(LocalFiles(paths=tmp_path / "en-fr.txt.gz")) == expected
    corpus = corpora.build(LocalFiles(paths=[tmp_path / "en-fr.txt.gz"]), progress=False)
    assert (len(corpus), corpus.origins) == (360, ("en-fr.txt.gz",))


def test_quotation_marks_and_words_that_look_like_nothing_are_text(tmp_path):
    pairs = [
        ('The "red house', 'La "maison rouge'),
        ("NA", "Néant"),
        ("null", "Nul"),
        ("Go now", ""),
        ("It\u2028is", "Il est"),
    ]
    found = read(LocalFiles(paths=[write_tsv(tmp_path / "a.tsv", pairs)]))
    assert found == [('the " red house', 'la " maison rouge'), ("na", "néant"), ("null", "nul"), ("it is", "il est")]


def test_other_columns_by_number_or_by_name(tmp_path):
    rows = [("7", "rouge", "x", "red"), ("8", "vert", "y", "green")]
    path = tmp_path / "a.tsv"
    text = "".join("\t".join(row) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    assert read(LocalFiles(paths=[path], columns=(3, 1))) == [("red", "rouge"), ("green", "vert")]
    path.write_text("id\tfr\tnote\ten\n" + text, encoding="utf-8")
    assert read(LocalFiles(paths=[path], columns=("en", "fr"))) == [("red", "rouge"), ("green", "vert")]
    with pytest.raises(ValueError, match=r"a\.tsv, which has 'id', 'fr', 'note', 'en', got 'de'; that is its first"):
        read(LocalFiles(paths=[path], columns=("en", "de")))


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        (
            "I see\tJe vois\n",
            ("en", "fr"),
            r"has 'I see', 'Je vois', got 'en'; .* without a line of names, give numbers",
        ),
        ("word " * 20 + "\tmot\n", ("en", "fr"), r"has 'word word word word word word …', 'mot', got"),
        ("en\tfr\nI see\tJe vois\n", ("en", "1"), "has 'en', 'fr', got '1'; that is its first line"),
        ("en,fr\nI see,Je vois\n", ("en", "fr"), r"has 'en,fr', got 'en'; .* cut at the tabs"),
        ("I see,Je vois\n", None, "has '0', got '1'; columns are numbered from 0 and have tabs between them"),
    ],
)
def test_a_column_that_a_text_file_lacks_is_explained(tmp_path, text, columns, message):
    (tmp_path / "a.tsv").write_text(text * 3, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read(LocalFiles(paths=[tmp_path / "a.tsv"], columns=columns))


def test_text_of_another_encoding_is_named_with_what_converts_it(tmp_path):
    text = "Le café est fermé\n" * 3
    (tmp_path / "a.en").write_text("The café is closed\n" * 3, encoding="utf-8")
    (tmp_path / "a.fr").write_text(text, encoding="latin-1")
    (tmp_path / "a.tsv").write_text(text.replace(" est", "\test"), encoding="latin-1")
    for names in (["a.en", "a.fr"], ["a.tsv"]):
        with pytest.raises(
            ValueError, match=rf"{names[-1]} is not encoded in UTF-8: .*\. Save it .*iconv -f ISO-8859-1"
        ):
            read(LocalFiles(paths=[tmp_path / name for name in names]))


def test_a_moses_pair_is_read_line_by_line(tmp_path, sentence_pairs, expected):
    for side, name in enumerate(("corpus.en", "corpus.fr")):
        text = "\n".join(pair[side] for pair in sentence_pairs[:3]) + "\n\n" + sentence_pairs[3][side] + "\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    source = LocalFiles(paths=[tmp_path / "corpus.en", tmp_path / "corpus.fr"])
    assert read(source) == expected[:4]
    assert [row["file"] for row in source.provenance()] == ["corpus.en", "corpus.fr"]


def test_parquet_is_read_by_column_names(tmp_path, sentence_pairs, expected):
    path = tmp_path / "pairs.parquet"
    pd.DataFrame(sentence_pairs, columns=["english", "french"]).to_parquet(path)
    assert read(LocalFiles(paths=[path], columns=("english", "french"))) == expected
    with pytest.raises(ValueError, match=r"which has 'english', 'french', got 'en'$"):
        read(LocalFiles(paths=[path], columns=("en", "fr")))
    with pytest.raises(ValueError, match="columns must name the English and the French column of a parquet file"):
        LocalFiles(paths=[path])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"", r"a\.tsv is empty"),
        (
            "a.tsv",
            b"one column only\nand again\n",
            r"columns must be columns of .*a\.tsv, which has '0', got '1'",
        ),
        ("a.tsv", b"a\tb\nc\td\te\tf\n", r"a\.tsv could not be read as tab-separated columns: .*line 2, saw 4"),
        ("a.txt.gz", b"no gzip", r"a\.txt\.gz could not be read as tab-separated columns"),
        ("a.tsv", "caf\u00e9\tcaf\u00e9\n".encode("latin-1"), r"a\.tsv is not encoded in UTF-8: .*codec can't decode"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    source = LocalFiles(paths=[tmp_path / name])
    with pytest.raises(ValueError, match=message):
        corpora.build(source, progress=False)
    assert not corpora.folder(source).exists()


def test_a_truncated_file_is_named(tmp_path, sentence_pairs):
    path = tmp_path / "a.parquet"
    pd.DataFrame(sentence_pairs, columns=["en", "fr"]).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(
        ValueError, match=r"a\.parquet could not be read as parquet: .* Check that the file is complete"
    ):
        read(LocalFiles(paths=[path], columns=("en", "fr")))
    packed = gzip.compress(write_tsv(tmp_path / "a.tsv", sentence_pairs).read_bytes())
    (tmp_path / "a.txt.gz").write_bytes(packed[:-40])
    with pytest.raises(ValueError, match=r"a\.txt\.gz could not be read"):
        read(LocalFiles(paths=[tmp_path / "a.txt.gz"]))


def test_moses_files_of_unequal_length_are_refused(tmp_path):
    (tmp_path / "a.en").write_text("One\nTwo\nThree\n", encoding="utf-8")
    (tmp_path / "a.fr").write_text("Un\nDeux\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"equally many lines.*they have 3 and 2"):
        read(LocalFiles(paths=[tmp_path / "a.en", tmp_path / "a.fr"]))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*lost\.tsv"):
        corpora.build(LocalFiles(paths=[tmp_path / "lost.tsv"]), progress=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"paths": []}, "paths must be one file of two columns, or an English and a French file, got 0"),
        ({"paths": ["a", "b", "c"]}, "got 3"),
        ({"paths": ["a", "b"], "columns": (0, 1)}, "of two files every whole line is read"),
        ({"paths": ["x/a.parquet", "b.parquet"]}, r"one parquet file with .*, got a\.parquet and b\.parquet$"),
        ({"paths": ["a.parquet", "b.tsv"], "columns": ("en", "fr")}, r"one parquet file .*got a\.parquet and b\.tsv$"),
        ({"paths": ["a"], "columns": "en"}, "columns must be two names"),
        ({"paths": ["a"], "max_pairs": 0}, "max_pairs must be an integer ≥ 1, or None"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        LocalFiles(**settings)


def test_a_file_that_changed_since_is_noticed(tmp_path, sentence_pairs):
    path = write_tsv(tmp_path / "a.tsv", sentence_pairs)
    source = LocalFiles(paths=[path])
    assert len(corpora.build(source, progress=False)) == 360
    write_tsv(path, sentence_pairs[:300])
    with pytest.raises(
        ValueError, match=r"a\.tsv changed since the corpus was built; build it anew: python -m howattend "
    ):
        corpora.load(source)
    assert len(corpora.build(source, progress=False)) == 300
    path.unlink()  # a corpus does not need what it was made from
    assert len(corpora.load(source)) == 300


def test_a_rebuilt_corpus_of_other_sentences_is_another_training(tmp_path, sentence_pairs):
    path, checkpoint = tmp_path / "a.tsv", tmp_path / "training.ckpt"

    def fit(pairs):
        write_tsv(path, pairs)
        task = Translation(LocalFiles(paths=[path]), num_words=None, min_count=1)
        corpora.build(task.corpus, progress=False)
        model = EncoderDecoder(ModelConfig("AED", hidden_size=4), task, seed=0)
        return train(model, task, TrainConfig(steps=2, batch_size=8), checkpoint=checkpoint, progress=False)

    first = fit(sentence_pairs)
    assert fit(sentence_pairs[::-1]).log == first.log  # the same pairs, built anew: the training is resumed
    with pytest.raises(
        ValueError,
        match=r"checkpoint of another training \(task has {'corpus_sha256': '\w{64}'}, not {'corpus_sha256': ",
    ):
        fit([*sentence_pairs[:-1], ("We buy the red chair!", "Nous achetons la chaise rouge !")])


def test_a_corpus_whose_settings_pin_it_needs_not_be_there_for_its_tasks_settings(tmp_path, hub):
    commit = "0123456789abcdef" * 2 + "01234567"
    assert "corpus_sha256" not in Translation().settings()
    assert "corpus_sha256" not in Translation(HubDataset(revision=commit)).settings()
    for source in (HubDataset(), HubDataset(repository=str(hub), revision=commit), LocalFiles(paths=["a.tsv"])):
        with pytest.raises(FileNotFoundError, match="has not been built here"):
            Translation(source).settings()


def test_without_the_package_the_message_says_what_to_do(tmp_path, sentence_pairs, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "datasets", None)
    path = write_tsv(tmp_path / "a.tsv", sentence_pairs)
    assert main(["corpus", "--files", str(path)]) == 1
    assert "pip install datasets" in capsys.readouterr().err


# ---- the command -------------------------------------------------------------------------------------------------


def test_the_command_builds_what_its_options_say(tmp_path, hub, sentence_pairs, capsys):
    header = write_tsv(tmp_path / "a.tsv", sentence_pairs, "en\tfr\n")
    for options, source in (
        (["--files", str(header), "--columns", "en", "fr", "--tokeniser", "plain"],
         LocalFiles(paths=[header], columns=("en", "fr"), tokeniser="plain")),
        (["--hub", str(hub), "--config", "en-fr", "--max-pairs", "300"],
         HubDataset(repository=str(hub), max_pairs=300)),
    ):  # fmt: skip
        assert main(["corpus", *options]) == 0
        printed = capsys.readouterr()
        corpus = corpora.load(source)
        assert str(corpora.path(source)) in printed.out
        assert f"{len(corpus)} pairs" in printed.out
        assert printed.err == ""
        assert main(source.command.split()[3:]) == 0  # and what a message tells to do is the same
        assert capsys.readouterr() == printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--columns", "en", "fr"], "--columns cannot be used here"),
        (["--files", "a.tsv", "--config", "x", "--revision", "y"], "--config, --revision cannot be used here"),
        (["--hub", "--max-pairs", "-1"], "max_pairs must be an integer ≥ 1"),
        (["--hub"], "could not be read"),
        (["--hub", "nobody/nothing"], "nobody/nothing (configuration None, revision main) could not be read"),
        (["--packages", "numpy"], "packages must be of"),
        (["--files", "lost.tsv"], "there is no file"),
    ],
)
def test_what_cannot_be_done_exits_1_and_says_why(capsys, options, message):
    assert main(["corpus", *options]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_sources_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        main(["corpus", "--hub", "--files", "a.tsv"])
    assert "not allowed with argument" in capsys.readouterr().err
