"""Splits that do not leak, the corpus and its file, and a build that leaves nothing half-written."""

import errno
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from howattend import files
from howattend.tasks import corpora
from howattend.tasks.corpora.pairs import SPLITS, Pair, deal, make_pair, split_of, word_key
from howattend.tasks.corpora.source import Source


@dataclass(frozen=True, kw_only=True)
class Planted(Source):
    """Pairs that a test has made."""

    kind: ClassVar[str] = "planted"
    pairs: tuple[Pair, ...] = ()

    def read(self, progress):
        return list(self.pairs)

    def provenance(self):
        return [{"origin": origin, "licence": "ours"} for origin in sorted({pair.origin for pair in self.pairs})]

    def _options(self):
        return []


@pytest.fixture(scope="module")
def planted(sentence_pairs):
    """360 pairs, every third of the verses' register."""
    return Planted(
        pairs=tuple(
            make_pair(source, target, *(("verses", "bible") if index % 3 == 0 else ("catalogues", "app")), "words")
            for index, (source, target) in enumerate(sentence_pairs)
        )
    )


# ---- pairs -------------------------------------------------------------------------------------------------------


def test_a_pair_is_cleaned_and_cut_to_words():
    assert make_pair("The cat’s bed.", "Le lit du chat.", "text", "mine", "words") == Pair(
        "the cat 's bed .", "le lit du chat .", "text", "mine", "the cat s bed"
    )
    assert make_pair("The cat’s bed.", "Le lit du chat.", "text", "mine", "plain").source == "the cat's bed ."
    assert make_pair("The bed.", "Le lit.", "verses", "bible", "words", "verse 1:2:3").group == "verse 1:2:3"


def test_sentences_have_up_to_fifteen_words():
    words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    mots = "un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
    for count in (1, 15, 16):
        pair = make_pair(" ".join(words.split()[:count]), " ".join(mots.split()[:count]), "text", "mine", "words")
        assert (pair is None) == (count == 16)
    assert make_pair("", "", "text", "mine", "words") is None


# ---- splits ------------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(["a", "b", "c", "d"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
MARKS = st.sampled_from(["", " .", " !"])


@st.composite
def pair_lists(draw):
    pairs = []
    for _ in range(draw(st.integers(0, 30))):
        source, target = draw(SENTENCES) + draw(MARKS), draw(SENTENCES).upper() + draw(MARKS)
        if draw(st.booleans()):
            verse = f"verse {draw(st.integers(1, 40))}"
            pairs.append(Pair(source, target, "verses", "bible", verse))
        else:
            pairs.append(Pair(source, target, "catalogues", "app", word_key(source)))
    return pairs


@given(pair_lists())
def test_no_sentence_and_no_verse_is_in_two_splits(pairs):
    dealt = deal(pairs)
    for key in (
        lambda pair: word_key(pair.source),
        lambda pair: pair.group,
        lambda pair: word_key(pair.target) if pair.register == "verses" else pair.group,
    ):
        splits = {}
        for pair, split in dealt:
            splits.setdefault(key(pair), set()).add(split)
        assert all(len(found) == 1 for found in splits.values())
    assert len({pair.source for pair, _ in dealt}) == len(dealt)  # one translation a source
    assert {pair for pair, _ in dealt} <= set(pairs)


@given(pair_lists(), pair_lists())
def test_another_source_of_pairs_moves_none_between_splits(pairs, more):
    before, after = dict(deal(pairs)), dict(deal(pairs + more))
    splits = {pair.source: split for pair, split in after.items()}
    assert all(splits.get(pair.source, split) == split for pair, split in before.items())


def test_only_what_is_in_two_splits_is_left_out():
    verses = {split: next(f"verse {n}" for n in range(999) if split_of(f"verse {n}") == split) for split in SPLITS}
    same = [Pair("go away", f"va-t-en {split}", "verses", "bible", verse) for split, verse in verses.items()]
    french = [Pair(f"leave {split}", "va -t-en", "verses", "bible", verse) for split, verse in verses.items()]
    free = [Pair(f"stay {split}", f"reste {split}", "verses", "bible", verse) for split, verse in verses.items()]
    assert {(pair.source, split) for pair, split in deal(same + french + free)} == {(f"stay {s}", s) for s in SPLITS}
    assert len(deal(same[:1] + french[:1] + free)) == 5
    message = next(f"word{n}" for n in range(999) if split_of(f"word{n}") == "test")
    read_in_training = Pair(f"{message} !", "x", "verses", "bible", verses["train"])
    assert deal([Pair(message, "y", "catalogues", "app", message), read_in_training]) == []


def test_punctuation_does_not_make_another_sentence_of_it():
    pairs = [
        Pair(f"w{n}{mark}", f"m{n}", "text", "x", word_key(f"w{n}{mark}")) for n in range(99) for mark in ("", " !")
    ]
    splits = {}
    for pair, split in deal(pairs):
        splits.setdefault(word_key(pair.source), []).append(split)
    assert all(len(found) == 2 and len(set(found)) == 1 for found in splits.values())


def test_the_most_frequent_translation_stays_and_of_equals_the_first():
    def pair(target, origin="x"):
        return Pair("undo", target, "catalogues", origin, "undo")

    assert deal([pair("annuler"), pair("défaire", "y"), pair("défaire", "z")])[0][0] == pair("défaire", "y")
    assert deal([pair("annuler"), pair("défaire")])[0][0] == pair("annuler")


def test_the_splits_have_their_shares_and_an_order_that_looks_random():
    pairs = [Pair(f"w{n}", f"m{n}", "text", "x", f"w{n}") for n in range(20_000)]
    dealt = deal(pairs)
    counts = Counter(split for _, split in dealt)
    for split, share in (("train", 0.88), ("validation", 0.04), ("test", 0.08)):
        assert counts[split] / 20_000 == pytest.approx(share, abs=5 * (share * (1 - share) / 20_000) ** 0.5)
    numbers = np.array([int(pair.source[1:]) for pair, _ in dealt])
    assert abs(np.corrcoef(numbers, np.arange(20_000))[0, 1]) < 0.04
    assert deal(pairs[::-1]) == dealt


# ---- the corpus --------------------------------------------------------------------------------------------------


def test_a_corpus_holds_its_pairs_and_survives_its_file(planted, tmp_path):
    dealt = deal(planted.pairs)
    corpus = corpora.Corpus.of(dealt, {"settings": {}})
    corpus.save(tmp_path / "c")
    for found in (corpus, corpora.Corpus.load(tmp_path / "c")):
        assert len(found) == 360
        for index, (pair, split) in enumerate(dealt):
            for side in ("source", "target"):
                words = [getattr(found, f"{side}_words")[n] for n in getattr(found, side)[index] if n >= 0]
                assert " ".join(words) == getattr(pair, side)
            assert SPLITS[found.split[index]] == split
            assert found.registers[found.register[index]] == pair.register
            assert found.origins[found.origin[index]] == pair.origin
        assert found.source.shape == (360, 15)
        assert found.record == {"settings": {}}


def test_words_are_numbered_from_the_most_common_one(planted):
    corpus = corpora.Corpus.of(deal(planted.pairs), {})
    assert corpus.source_words[:2] == (".", "the")  # 360 each, by spelling
    counts = torch.bincount(corpus.target[corpus.target >= 0])
    assert (counts[:-1] >= counts[1:]).all()


def test_the_summary_is_over_all_and_by_register(planted):
    summary = corpora.Corpus.of(deal(planted.pairs), {}).summary()
    assert list(summary) == ["all", "catalogues", "verses"]
    for split in SPLITS:
        assert summary["all"][split] == summary["catalogues"][split] + summary["verses"][split]
    assert summary["all"]["train"] + summary["all"]["validation"] + summary["all"]["test"] == 360
    lengths = [(len(pair.source.split()), len(pair.target.split())) for pair in planted.pairs if pair.origin == "bible"]
    english, french = np.mean(lengths, axis=0)
    assert summary["verses"]["English words"] == pytest.approx(english)
    assert summary["verses"]["French words"] == pytest.approx(french)
    assert summary["verses"]["French/English"] == pytest.approx(french / english)


# ---- building ----------------------------------------------------------------------------------------------------


def test_a_corpus_is_built_once_with_its_provenance_beside_it(planted, monkeypatch):
    built = corpora.build(planted, progress=False)
    assert sorted(path.name for path in corpora.folder(planted).iterdir()) == ["corpus.safetensors", "provenance.md"]
    table = (corpora.folder(planted) / "provenance.md").read_text(encoding="utf-8").splitlines()
    assert table[0] == "| origin | version | licence | file | sha256 | pairs |"
    assert table[2:] == ["| app |  | ours |  |  | 240 |", "| bible |  | ours |  |  | 120 |"]
    assert built.record["settings"] == {**planted.settings(), "pairs": [list(pair) for pair in planted.pairs]}
    monkeypatch.setattr(Planted, "read", lambda *_: pytest.fail("read again"))
    assert torch.equal(corpora.build(planted).source, built.source)
    assert torch.equal(corpora.load(planted).source, built.source)


def test_the_same_pairs_are_the_same_file(planted):
    corpora.build(planted, progress=False)
    first = files.file_hash(corpora.path(planted))
    corpora.path(planted).unlink()
    corpora.build(planted, progress=False)
    assert files.file_hash(corpora.path(planted)) == first


def test_other_settings_are_another_corpus(planted):
    assert corpora.path(planted) != corpora.path(Planted(pairs=planted.pairs, tokeniser="plain"))


def test_a_corpus_that_was_not_built_says_how_to(planted):
    with pytest.raises(FileNotFoundError, match=r"has not been built here .*: python -m howattend corpus$"):
        corpora.load(planted)


def test_a_damaged_corpus_is_refused_and_built_anew(planted):
    built = corpora.build(planted, progress=False)
    content = bytearray(corpora.path(planted).read_bytes())
    content[-9] ^= 1
    for damaged in (content, content[:5000], b""):
        corpora.path(planted).write_bytes(damaged)
        with pytest.raises(ValueError, match="is damaged"):
            corpora.load(planted)
        assert torch.equal(corpora.build(planted, progress=False).source, built.source)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_build_leaves_no_corpus_and_starts_again(planted, monkeypatch, error):
    def fail(tensors, target, metadata):
        target.write_bytes(b"half of it")
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(files, "save_file", fail)
        with pytest.raises(type(error)):
            corpora.build(planted, progress=False)
    assert [path.name for path in corpora.folder(planted).iterdir()] == ["provenance.md"]
    with pytest.raises(FileNotFoundError):
        corpora.load(planted)
    assert len(corpora.build(planted, progress=False)) == 360


def test_too_few_pairs_are_no_corpus(planted):
    few = Planted(pairs=planted.pairs[:2])
    with pytest.raises(
        ValueError, match=r"too few sentence pairs for a corpus: 2 pairs .* none of them for validation"
    ):
        corpora.build(few, progress=False)
    assert not corpora.folder(few).exists()


def test_an_unknown_tokeniser_is_refused():
    with pytest.raises(ValueError, match="tokeniser must be one of 'words', 'plain', got 'bpe'"):
        Planted(tokeniser="bpe")


# ---- IBM model 1 -------------------------------------------------------------------------------------------------


def numbers(rows):
    padded = np.full((len(rows), max(map(len, rows))), -1)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded


def test_ibm1_agrees_with_its_definition_written_out():
    source, target = [[0, 1], [1, 2, 0], [2]], [[5, 4], [3, 4, 4], [3, 5]]
    probability = Counter({(e, f): 1.0 for e in (-1, 0, 1, 2) for f in (3, 4, 5)})
    for _ in range(3):
        expected = Counter()
        for english, french in zip(source, target, strict=True):
            for f in french:
                total = sum(probability[e, f] for e in [-1, *english])
                for e in [-1, *english]:
                    expected[e, f] += probability[e, f] / total
        mass = Counter()
        for (e, _), count in expected.items():
            mass[e] += count
        probability = Counter({key: count / mass[key[0]] for key, count in expected.items()})
    found = corpora.ibm1(numbers(source), numbers(target), iterations=3)
    fitted = {(e, f): p for e, f, p in zip(found.source, found.target, found.probability, strict=True)}
    assert fitted == pytest.approx(dict(probability))
    best = [
        [max(probability[e, f] for e in [-1, *english]) for f in french]
        for english, french in zip(source, target, strict=True)
    ]
    np.testing.assert_allclose(found.scores, [np.mean(np.log(row)) for row in best])


def test_ibm1_reads_a_dictionary_from_sentences():
    random = np.random.default_rng(0)
    source = random.integers(0, 20, (300, 6))
    target = np.array([random.permutation(row) for row in source])
    found = corpora.ibm1(source, target, iterations=8)
    for word in range(20):
        own = found.source == word
        assert found.target[own][found.probability[own].argmax()] == word
    wrong = np.concatenate([target[:1] + 0, target[1:2]])[::-1]
    mixed = corpora.ibm1(np.concatenate([source, source[:2]]), np.concatenate([target, wrong]))
    assert mixed.scores[-2:].max() < mixed.scores[:-2].mean()
