"""Vocabularies, batches and the one-to-one family."""

from dataclasses import FrozenInstanceError

import pytest
import torch

from howattend.tasks import BOS, EOS, PAD, TEST_SAMPLES, Batch, OneToOne, Reversed, Sorted, Vocabulary, length_mask
from howattend.tasks.base import generator
from howattend.tasks.sequences import letters

FAMILY = [OneToOne, Reversed, Sorted]
FIELDS = ("source", "source_lengths", "target", "target_lengths", "alignment")


@pytest.fixture(params=FAMILY, ids=lambda kind: kind.name)
def family_task(request):
    return request.param(num_words=4, min_length=3, max_length=6)


def equal(first, second):
    return all(torch.equal(getattr(first, name), getattr(second, name)) for name in FIELDS)


def sentences(task, batch):
    """Source words, target words and true source steps of each pair, as plain lists without end of sentence."""
    for source, target, alignment, length in zip(
        batch.source, batch.target, batch.alignment.tolist(), batch.source_lengths, strict=True
    ):
        yield (
            task.source_vocabulary.decode(source),
            task.target_vocabulary.decode(target),
            alignment[: length - 1],
        )


class TestVocabulary:
    def test_special_words_come_first(self):
        vocabulary = Vocabulary.of_words(["A", "B"])
        assert vocabulary.words == ("<pad>", "<bos>", "<eos>", "A", "B")
        assert [vocabulary.id(word) for word in ("<pad>", "<bos>", "<eos>")] == [PAD, BOS, EOS]
        assert list(vocabulary.content_ids) == [3, 4]
        assert len(vocabulary) == 5
        assert "A" in vocabulary
        assert "C" not in vocabulary

    @pytest.mark.parametrize("sentence", ["A B B A", ["A", "B", "B", "A"]])
    def test_a_sentence_survives_encoding_and_decoding(self, sentence):
        vocabulary = Vocabulary.of_words(["A", "B"])
        ids = vocabulary.encode(sentence)
        assert ids == [3, 4, 4, 3]
        assert vocabulary.decode(ids) == ["A", "B", "B", "A"]

    def test_decoding_stops_at_the_end_of_sentence(self):
        vocabulary = Vocabulary.of_words(["A", "B"])
        assert vocabulary.decode([BOS, 3, PAD, 4, EOS, 3, 99]) == ["A", "B"]
        assert vocabulary.decode(torch.tensor([3, EOS, PAD])) == ["A"]

    def test_an_unknown_word_is_answered_with_the_valid_ones(self):
        with pytest.raises(ValueError, match=r"unknown word 'C'; the vocabulary's words are A, B$"):
            Vocabulary.of_words(["A", "B"]).encode("A C")

    def test_a_large_vocabulary_is_not_listed_in_full(self):
        with pytest.raises(ValueError, match=r"w0, .*w19, … \(500 in all\)$"):
            Vocabulary.of_words(f"w{i}" for i in range(500)).id("x")

    @pytest.mark.parametrize("index", [-1, 5])
    def test_an_id_outside_the_vocabulary_is_refused(self, index):
        with pytest.raises(ValueError, match=rf"0 … 4, got {index}"):
            Vocabulary.of_words(["A", "B"]).decode([3, index])

    def test_words_must_be_distinct_and_begin_with_the_special_ones(self):
        with pytest.raises(ValueError, match=r"occur more than once: \['B'\]"):
            Vocabulary.of_words(["A", "B", "B"])
        with pytest.raises(ValueError, match=r"use Vocabulary\.of_words"):
            Vocabulary(("A", "B", "C"))

    def test_letters_never_run_out(self):
        names = letters(703)
        assert names[:2] == ["A", "B"]
        assert names[25:28] == ["Z", "AA", "AB"]
        assert names[701:] == ["ZZ", "AAA"]
        assert len(set(names)) == 703


class TestSampling:
    def test_every_sentence_is_words_then_its_end_then_padding(self, family_task):
        batch = family_task.sample(200, seed=1)
        for tokens, lengths in ((batch.source, batch.source_lengths), (batch.target, batch.target_lengths)):
            for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
                assert all(3 <= word < 7 for word in row[: length - 1])
                assert row[length - 1] == EOS
                assert all(word == PAD for word in row[length:])

    def test_lengths_count_words_and_all_of_them_occur(self, family_task):
        batch = family_task.sample(200, seed=1)
        assert set(batch.source_lengths.tolist()) == {4, 5, 6, 7}  # 3 … 6 words and the end of sentence
        assert torch.equal(batch.source_lengths, batch.target_lengths)
        assert batch.source.shape == batch.target.shape == batch.alignment.shape == (200, 7)
        assert (family_task.source_steps, family_task.target_steps) == (7, 7)
        assert all(getattr(batch, name).dtype == torch.int64 for name in FIELDS)

    def test_words_and_lengths_are_equally_likely(self):
        batch = OneToOne(num_words=4, min_length=3, max_length=6).sample(20_000, seed=0)
        words = torch.bincount(batch.source[batch.source_mask])[3:].double()
        lengths = torch.bincount(batch.source_lengths)[4:].double()
        assert (words / words.sum() - 0.25).abs().max() < 0.01  # six standard deviations
        assert (lengths / lengths.sum() - 0.25).abs().max() < 0.02

    def test_the_alignment_replays_the_target_from_the_source(self, family_task):
        batch = family_task.sample(200, seed=2)
        for source, target, alignment in sentences(family_task, batch):
            assert sorted(alignment) == list(range(len(source)))
            translated = [family_task.source_vocabulary.id(source[step]) for step in alignment]
            assert [family_task.target_vocabulary.id(word) for word in target] == translated

    def test_the_end_translates_the_end_and_padding_nothing(self, family_task):
        batch = family_task.sample(50, seed=2)
        rows = torch.arange(50)
        assert torch.equal(batch.alignment[rows, batch.target_lengths - 1], batch.source_lengths - 1)
        assert torch.equal(batch.alignment == -1, ~batch.target_mask)

    def test_one_to_one_keeps_the_order(self):
        task = OneToOne(num_words=3, min_length=4, max_length=6)
        number = {"A": "1", "B": "2", "C": "3"}
        for source, target, alignment in sentences(task, task.sample(50, seed=0)):
            assert target == [number[word] for word in source]
            assert alignment == list(range(len(source)))

    def test_reversed_turns_it_round(self):
        task = Reversed(num_words=3, min_length=4, max_length=6)
        number = {"A": "1", "B": "2", "C": "3"}
        for source, target, alignment in sentences(task, task.sample(50, seed=0)):
            assert target == [number[word] for word in reversed(source)]
            assert alignment == list(reversed(range(len(source))))

    def test_sort_is_alphabetic_and_stable(self):
        task = Sorted(num_words=3, min_length=4, max_length=9)  # so few words that equal ones are sure to occur
        for source, target, alignment in sentences(task, task.sample(50, seed=0)):
            assert target == sorted(source)
            assert alignment == sorted(range(len(source)), key=lambda step: source[step])  # Python's sort is stable

    def test_sort_with_more_than_26_words_follows_the_order_of_the_vocabulary(self):
        task = Sorted(num_words=30, min_length=5, max_length=5)
        order = letters(30)
        for source, target, _ in sentences(task, task.sample(50, seed=0)):
            assert target == sorted(source, key=order.index)


class TestSeeds:
    def test_the_same_seed_gives_the_same_batch_and_another_another(self, family_task):
        assert equal(family_task.sample(20, seed=5), family_task.sample(20, seed=5))
        assert not equal(family_task.sample(20, seed=5), family_task.sample(20, seed=6))

    def test_the_streams_of_equal_seeds_differ(self, family_task):
        batches = [
            family_task.sample(64, seed=0),
            family_task.training_batch(64, seed=0, step=0),
            family_task.training_batch(64, seed=0, step=1),
            family_task.training_batch(64, seed=1, step=0),
            family_task.validation_set(64),
            family_task.test_set(64),
        ]
        for index, first in enumerate(batches):
            assert not any(equal(first, second) for second in batches[index + 1 :])

    def test_held_out_sets_are_fixed(self, family_task):
        assert len(family_task.test_set()) == TEST_SAMPLES
        assert equal(family_task.test_set(), family_task.test_set())
        assert equal(family_task.validation_set(), family_task.validation_set())
        assert equal(family_task.training_batch(8, 3, 14), family_task.training_batch(8, 3, 14))

    def test_a_generator_is_used_as_it_stands(self, family_task):
        random = torch.Generator().manual_seed(1)
        first, second = family_task.sample(20, random), family_task.sample(20, random)
        assert not equal(first, second)
        assert equal(first, family_task.sample(20, torch.Generator().manual_seed(1)))

    def test_sampling_leaves_the_global_random_state_alone(self, family_task):
        before = torch.get_rng_state()
        family_task.sample(20, seed=5)
        family_task.test_set(20)
        assert torch.equal(torch.get_rng_state(), before)

    @pytest.mark.parametrize("seed", [-1, 1.5, True, None, "0"])
    def test_a_bad_seed_is_refused(self, task, seed):
        with pytest.raises(ValueError, match="seed must be an integer ≥ 0"):
            task.sample(4, seed=seed)
        with pytest.raises(ValueError, match="seed must be an integer ≥ 0"):
            generator("weights", seed)


class TestEncode:
    def test_sentences_of_ones_own(self, task):
        source, lengths = task.encode(["A B C", "C"])
        assert source.tolist() == [[3, 4, 5, EOS], [5, EOS, PAD, PAD]]
        assert lengths.tolist() == [4, 2]
        assert torch.equal(task.encode("A B C")[0], source[:1])

    @pytest.mark.parametrize(
        ("sentences", "message"),
        [
            ("", r"1 … 5 words, got 0"),
            ("A B C A B C", r"1 … 5 words, got 6"),
            ("A D", r"unknown word 'D'; the vocabulary's words are A, B, C"),
            ("A <eos> B", "words only"),
            ([], "at least one sentence"),
        ],
    )
    def test_what_is_no_sentence_of_the_task_is_refused(self, task, sentences, message):
        with pytest.raises(ValueError, match=message):
            task.encode(sentences)


class TestParameters:
    @pytest.mark.parametrize("kind", FAMILY)
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"num_words": 1}, "num_words must be an integer ≥ 2, got 1"),
            ({"num_words": 2.0}, "num_words must be an integer ≥ 2, got 2.0"),
            ({"min_length": 0}, "min_length must be an integer ≥ 1, got 0"),
            ({"max_length": True}, "max_length must be an integer ≥ 1, got True"),
            ({"min_length": 9, "max_length": 8}, "min_length must not exceed max_length, got 9 > 8"),
        ],
    )
    def test_bad_ones_are_named(self, kind, settings, message):
        with pytest.raises(ValueError, match=message):
            kind(**settings)

    @pytest.mark.parametrize("size", [0, -3, 2.0, True])
    def test_a_bad_size_is_refused(self, task, size):
        with pytest.raises(ValueError, match="size must be an integer ≥ 1"):
            task.sample(size, seed=0)

    def test_the_papers_settings_are_the_defaults(self):
        assert OneToOne() == OneToOne(num_words=3, min_length=15, max_length=20)

    def test_settings_are_the_name_and_every_parameter(self):
        assert Reversed(4, 5, 6).settings() == {"name": "reversed", "num_words": 4, "min_length": 5, "max_length": 6}

    def test_tasks_are_values(self):
        assert OneToOne(3, 4, 5) == OneToOne(3, 4, 5)
        assert OneToOne(3, 4, 5) != Reversed(3, 4, 5)
        with pytest.raises(FrozenInstanceError):
            OneToOne().num_words = 4


class TestBatch:
    def test_masks_are_true_on_words_and_ends(self, batch):
        assert torch.equal(batch.source_mask, batch.source != PAD)
        assert torch.equal(batch.target_mask, batch.target != PAD)
        assert length_mask(torch.tensor([1, 3]), 4).tolist() == [[True, False, False, False], [True, True, True, False]]

    def test_pairs_are_picked_by_slice_and_by_index(self, batch):
        assert len(batch) == 7
        assert equal(batch[2:4], batch[torch.tensor([2, 3])])
        assert torch.equal(batch[2:4].source, batch.source[2:4])
        assert equal(batch.to("cpu"), batch)

    @pytest.mark.parametrize(
        ("field", "value", "message"),
        [
            ("source", torch.ones(2, 3), r"source must be integer word ids \[B, steps\].*\(2, 3\) of torch.float32"),
            ("source", torch.ones(3, dtype=torch.int64), r"source must be integer word ids \[B, steps\]"),
            ("target", torch.ones(0, 3, dtype=torch.int64), r"target must be .* B ≥ 1, got \(0, 3\)"),
            ("source_lengths", torch.tensor([0, 3]), r"source_lengths must lie in 1 … 3, got 0 … 3"),
            ("target_lengths", torch.tensor([1, 4]), r"target_lengths must lie in 1 … 3, got 1 … 4"),
            ("target_lengths", torch.tensor([1]), r"target_lengths must be integers \[2\]"),
            ("source_lengths", torch.tensor([1.0, 2.0]), r"source_lengths must be integers \[2\].*float32"),
            ("alignment", torch.zeros(2, 2, dtype=torch.int64), r"alignment must have the target's shape \(2, 3\)"),
        ],
    )
    def test_what_does_not_fit_is_named(self, field, value, message):
        words, lengths = torch.full((2, 3), EOS), torch.tensor([3, 3])
        valid = {"source": words, "source_lengths": lengths, "target": words, "target_lengths": lengths}
        valid["alignment"] = torch.zeros(2, 3, dtype=torch.int64)
        Batch(**valid)
        with pytest.raises(ValueError, match=message):
            Batch(**{**valid, field: value})

    def test_source_and_target_must_pair_up(self):
        words = torch.full((2, 3), EOS)
        three = torch.full((3, 3), EOS)
        with pytest.raises(ValueError, match="pair up, got 2 and 3"):
            Batch(words, torch.tensor([3, 3]), three, torch.tensor([3, 3, 3]), three)

    def test_an_empty_pick_is_refused(self, batch):
        with pytest.raises(ValueError, match="B ≥ 1"):
            batch[7:]
