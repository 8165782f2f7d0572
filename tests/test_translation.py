"""The translation task: vocabularies cut by frequency, splits as batches, and sentences of one's own."""

from collections import Counter

import pytest
import torch

from howattend.models import EncoderDecoder, ModelConfig
from howattend.runs import RunConfig
from howattend.tasks import BOS, EOS, PAD, UNK, Translation, Vocabulary, corpora
from howattend.tasks.corpora import SPLITS, LocalFiles, OpenDefault
from howattend.tasks.corpora.pairs import deal, make_pair
from howattend.training import TrainConfig, train

RARE = [("A zebra sleeps here.", "Un zèbre dort ici."), ("Go", "Va"), ("Stop now!", "Arrêtez maintenant !")]


@pytest.fixture(scope="module")
def cache(tmp_path_factory, sentence_pairs):
    """A cache folder with a corpus of two registers: verses are "I see …" and "We buy …"."""
    dealt = deal(
        make_pair(source, target, *(("verses", "bible") if source[0] in "IW" else ("catalogues", "app")), "words")
        for source, target in [*sentence_pairs, *RARE]
    )
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOWATTEND_CACHE", str(folder))
        path = corpora.path(OpenDefault())
    corpora.Corpus.of(dealt, {"fingerprint": {}}).save(path)
    return folder, dealt


@pytest.fixture(autouse=True)
def built(cache, monkeypatch):
    """That cache folder is the tests'."""
    monkeypatch.setenv("HOWATTEND_CACHE", str(cache[0]))


@pytest.fixture(scope="module")
def pairs(cache):
    """pairs(split, register=None): what the splits hold, as words."""

    def chosen(split, register=None):
        return [pair for pair, name in cache[1] if name == split and register in (None, pair.register)]

    return chosen


def sentences(task, batch):
    """Both sides as words, without ends of sentence."""
    return [
        (" ".join(task.source_vocabulary.decode(source)), " ".join(task.target_vocabulary.decode(target)))
        for source, target in zip(batch.source, batch.target, strict=True)
    ]


# ---- words -------------------------------------------------------------------------------------------------------


def test_the_vocabulary_is_the_training_splits_most_common_words(pairs):
    task = Translation(num_words=10)
    for side, vocabulary in (("source", task.source_vocabulary), ("target", task.target_vocabulary)):
        counts = Counter(word for pair in pairs("train") for word in getattr(pair, side).split())
        common = sorted(counts, key=lambda word: (-counts[word], word))[:10]
        assert vocabulary.words == ("<pad>", "<bos>", "<eos>", "<unk>", *common)
        assert list(vocabulary.content_ids) == list(range(4, 14))


def test_words_must_occur_min_count_times(pairs):
    counts = Counter(word for pair in pairs("train") for word in pair.source.split())
    for least in (1, 2, 50):
        words = Translation(num_words=None, min_count=least).source_vocabulary.words[4:]
        assert set(words) == {word for word, count in counts.items() if count >= least}


def test_the_vocabulary_is_that_of_the_register(pairs):
    task = Translation(register="verses", num_words=None, min_count=1)
    counts = Counter(word for pair in pairs("train", "verses") for word in pair.source.split())
    assert set(task.source_vocabulary.words[4:]) == set(counts)
    assert "sell" not in task.source_vocabulary


def test_a_corpus_too_small_for_the_vocabulary_is_named():
    with pytest.raises(
        ValueError, match=r"num_words must be at most \d\d, got 8000: no more source words occur at least 2"
    ):
        _ = Translation().source_vocabulary
    for num_words in (None, 10):
        with pytest.raises(ValueError, match=r"min_count must be at most \d{3}, got 10000: no source word occurs more"):
            _ = Translation(num_words=num_words, min_count=10_000).target_vocabulary


def test_unknown_words_have_an_id_only_where_the_vocabulary_has_one():
    vocabulary = Vocabulary.of_words(["a", "b"], unknown=True)
    assert vocabulary.words == ("<pad>", "<bos>", "<eos>", "<unk>", "a", "b")
    assert vocabulary.encode("a x b") == [4, UNK, 5]
    assert vocabulary.decode([4, UNK, 5, EOS]) == ["a", "<unk>", "b"]
    assert list(vocabulary.content_ids) == [4, 5]
    assert "x" not in vocabulary
    with pytest.raises(ValueError, match="<unk> must be word 3, got 4"):
        Vocabulary.of_words(["a", "<unk>"])


@pytest.fixture
def shipped(monkeypatch, tmp_path):
    """A task whose vocabularies were shipped, on a machine that has no corpus, and their file."""
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    path = Translation(num_words=10).ship_vocabularies()
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "empty"))
    return Translation(num_words=10), path


def test_shipped_vocabularies_serve_without_the_corpus(shipped, cache, monkeypatch):
    task, _ = shipped
    (ids,), _ = task.encode("I see the house.")
    assert task.source_vocabulary.decode(ids)[0] == "i"
    with pytest.raises(FileNotFoundError, match="has not been built here"):
        task.split("test")
    with pytest.raises(FileNotFoundError, match="has not been built here"):
        _ = Translation(num_words=11).source_vocabulary  # another task's are not shipped
    monkeypatch.setenv("HOWATTEND_CACHE", str(cache[0]))
    assert (task.source_vocabulary, task.target_vocabulary) == Translation(num_words=10).cut_vocabularies()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"the"', '"teh"'),
        lambda text: text.replace('"num_words": 10', '"num_words": 9'),
        lambda text: "[]",
        lambda text: "{}",
    ],
    ids=["cut short", "another word", "another task", "a list", "empty"],
)
def test_damaged_vocabularies_are_refused(shipped, damage):
    task, path = shipped
    text = path.read_text(encoding="utf-8")
    assert damage(text) != text
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(ValueError, match=f"{path.name} is damaged .* git checkout"):
        _ = task.source_vocabulary


# ---- splits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("register", [None, "catalogues", "verses"])
@pytest.mark.parametrize("split", SPLITS)
def test_a_split_is_a_batch_of_all_its_pairs(pairs, split, register):
    task = Translation(register=register, num_words=None, min_count=1)
    batch, expected = task.split(split), pairs(split, register)
    assert batch.source.shape == batch.target.shape == batch.alignment.shape == (len(expected), 16)
    assert batch.source.dtype == batch.target.dtype == torch.int64
    known = {*task.source_vocabulary.words, *task.target_vocabulary.words}

    def as_known(text):
        return " ".join(word if word in known else "<unk>" for word in text.split())

    assert sentences(task, batch) == [(as_known(pair.source), as_known(pair.target)) for pair in expected]
    rows = torch.arange(len(batch))
    for ids, lengths, mask in (
        (batch.source, batch.source_lengths, batch.source_mask),
        (batch.target, batch.target_lengths, batch.target_mask),
    ):
        assert (ids[rows, lengths - 1] == EOS).all()
        assert ((ids == PAD) == ~mask).all()
        assert (ids != BOS).all()


def test_only_the_ends_are_aligned():
    batch = Translation(num_words=None).split("test")
    rows, ends = torch.arange(len(batch)), batch.target_lengths - 1
    assert torch.equal(batch.alignment[rows, ends], batch.source_lengths - 1)
    assert (batch.alignment >= 0).sum() == len(batch)


def test_rare_words_are_unknown_and_their_share_is_told(pairs):
    task = Translation(num_words=5)
    kept = set(task.source_vocabulary.words)
    words = [word for pair in pairs("test") for word in pair.source.split()]
    english, french = task.unknown_share("test")
    assert english == pytest.approx(sum(word not in kept for word in words) / len(words))
    assert 0 < french < 1
    assert Translation(num_words=None, min_count=1).unknown_share("train") == (0, 0)


@pytest.mark.parametrize(("shortest", "longest"), [(1, 2), (4, 15), (6, 6)])
def test_sentences_outside_the_lengths_are_left_out(pairs, shortest, longest):
    task = Translation(num_words=None, min_count=1, min_length=shortest, max_length=longest)
    if longest == 2:  # only "go", which is in one split
        (split,) = (split for split in SPLITS if any(pair.source == "go" for pair in pairs(split)))
        assert len(task.split(split)) == 1
        with pytest.raises(ValueError, match=r"split has no pair of sentences of 1 … 2 words; change min_length or"):
            task.split(next(name for name in SPLITS if name != split))
        return
    batch = task.split("train")
    for lengths in (batch.source_lengths, batch.target_lengths):
        assert shortest <= int(lengths.min()) - 1
        assert int(lengths.max()) - 1 <= longest
    assert batch.source.shape[1] == longest + 1 == task.source_steps == task.target_steps
    fit = [p for p in pairs("train") if all(shortest <= len(s.split()) <= longest for s in (p.source, p.target))]
    assert len(batch) == len(fit)


def test_an_unknown_split_or_register_is_refused():
    with pytest.raises(ValueError, match="split must be one of 'train', 'validation', 'test', got 'dev'"):
        Translation(num_words=None).split("dev")
    with pytest.raises(
        ValueError, match="register must be None or one of this corpus's, 'catalogues', 'verses', got 'x'"
    ):
        Translation(num_words=None, register="x").split("test")


def test_held_out_sets_are_the_splits():
    task = Translation(num_words=None)
    assert torch.equal(task.test_set().source, task.split("test").source)
    assert torch.equal(task.test_set(5).source, task.split("test").source[:5])
    split, watched = task.split("validation"), task.validation_set()
    assert sorted(watched.source.tolist()) == sorted(split.source.tolist())
    assert not torch.equal(watched.source, split.source)  # drawn from all of it: a split is in the order of a hash
    assert torch.equal(task.validation_set(3).source, watched.source[:3])
    assert torch.equal(task.validation_set(3).target, watched.target[:3])


@pytest.mark.parametrize("size", [-3, 0, 2.0, True, "5"])
def test_the_size_of_a_held_out_set_is_a_number_of_pairs(size):
    task = Translation(num_words=None)
    for held_out in (task.test_set, task.validation_set):
        with pytest.raises(ValueError, match="size must be an integer ≥ 1, got"):
            held_out(size)


def test_samples_are_of_the_training_split_and_follow_their_seed():
    task = Translation(num_words=None, min_count=1)
    train_pairs = set(sentences(task, task.split("train")))
    batch = task.sample(500, seed=1)
    assert set(sentences(task, batch)) <= train_pairs
    assert len(set(sentences(task, batch))) > 150
    assert torch.equal(task.sample(50, seed=1).source, task.sample(50, seed=1).source)
    assert not torch.equal(task.training_batch(50, 1, 0).source, task.training_batch(50, 1, 1).source)


# ---- sentences of one's own --------------------------------------------------------------------------------------


def test_a_sentence_is_written_as_usual():
    task = Translation(num_words=None)
    source, lengths = task.encode(["I see  the RED house.", "They sell the “rare” book!"])
    assert task.source_vocabulary.decode(source[0]) == ["i", "see", "the", "red", "house", "."]
    assert " ".join(task.source_vocabulary.decode(source[1])) == "they sell the <unk> rare <unk> book <unk>"
    assert lengths.tolist() == [7, 9]
    assert task.unknown_words("They sell the “rare” book!") == ['"', '"', "!"]
    assert task.unknown_words("I see the red house.") == []
    assert torch.equal(task.encode("I see the red house.")[0], source[:1, :7])


def test_pairs_of_ones_own():
    task = Translation(num_words=None)
    batch = task.pairs([("I see the red house.", "Je vois la maison rouge."), ("We buy", "Nous achetons l'arbre")])
    assert sentences(task, batch)[0] == ("i see the red house .", "je vois la maison rouge .")
    assert sentences(task, batch)[1] == ("we buy", "nous achetons l' arbre")
    assert batch.alignment[0].tolist() == [-1] * 6 + [6]


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("", "1 … 15 words, got 0"),
        ("the " * 16, "1 … 15 words, got 16"),
        (
            "Tall ships",
            r"no word of 'Tall ships' is in .* \(tall, ships: all unknown\), whose most common words are \., the",
        ),
    ],
)
def test_what_is_no_sentence_of_the_task_is_refused(sentence, message):
    task = Translation(num_words=None)
    with pytest.raises(ValueError, match=message):
        task.encode(sentence)
    with pytest.raises(ValueError, match=message):
        task.pairs([("I see the red house.", "Je vois la maison rouge."), (sentence, "Je vois")])


def test_no_sentence_at_all_is_refused():
    with pytest.raises(ValueError, match="at least one sentence"):
        Translation(num_words=None).encode([])
    with pytest.raises(ValueError, match="at least one pair"):
        Translation(num_words=None).pairs([])


# ---- settings ----------------------------------------------------------------------------------------------------


def test_settings_are_plain_data_and_need_no_corpus(monkeypatch, tmp_path):
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path))
    task = Translation()
    assert task.settings() == {
        "name": "translation",
        "corpus": OpenDefault().settings(),
        "register": None,
        "num_words": 8000,
        "min_count": 2,
        "min_length": 1,
        "max_length": 15,
    }
    assert task == Translation()
    assert hash(task) == hash(Translation())
    config = RunConfig("t", task, ModelConfig("AED"), TrainConfig(), 0.5)
    assert config.settings()["model"]["decoder_input"] == "teacher"
    assert config.hash != RunConfig("t", Translation(register="verses"), ModelConfig("AED"), TrainConfig(), 0.5).hash
    with pytest.raises(FileNotFoundError, match=r"build it, once, with: python -m howattend corpus$"):
        task.test_set()
    with pytest.raises(FileNotFoundError, match=r"corpus --files .*a\.tsv'?$"):
        _ = Translation(LocalFiles(paths=["a.tsv"])).source_vocabulary


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"corpus": "opus-100"}, "corpus must be an OpenDefault, a HubDataset or LocalFiles .*, got 'opus-100'"),
        ({"num_words": 0}, "num_words must be an integer ≥ 1, got 0"),
        ({"num_words": 1.5}, "num_words must be an integer ≥ 1, got 1.5"),
        ({"min_count": None}, "min_count must be an integer ≥ 1, got None"),
        ({"min_length": True}, "min_length must be an integer ≥ 1, got True"),
        ({"max_length": 16}, "max_length must be at most 15, got 16"),
        ({"min_length": 9, "max_length": 8}, "min_length must not exceed max_length, got 9 > 8"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Translation(**settings)


def test_a_network_learns_from_the_task_as_from_any_other():
    task = Translation(num_words=None)
    model = EncoderDecoder(ModelConfig("AED", hidden_size=16), task, seed=0)
    done = train(model, task, TrainConfig(steps=40, batch_size=32, learning_rate=1e-2, warmup_steps=5), progress=False)
    assert done.log[-1]["loss"] < 2.0  # of 3.6 at first
    words = model.generate(*task.encode("I see the red house."), max_length=15)
    assert task.target_vocabulary.decode(words[0])
