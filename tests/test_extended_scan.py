"""Extended SCAN: sentences, true alignment and exact offsets, against rules and enumerations written out here."""

import itertools
import math
import re
import time
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from howattend import alignment
from howattend.tasks import BOS, EOS, PAD, TEST_SAMPLES, Batch, ExtendedSCAN, Kind, OneToOne, Role, scan

SMALL = [
    {"and_rate": 0.3},
    {"and_rate": 0.0, "verbs": ("run", "look"), "directions": ("right",)},
    {"and_rate": 0.25, "repeat_directions": True, "verbs": ("jump",)},
    {"and_rate": 0.25, "phrases": ("verb", "twice", "verb", "direction", "verb"), "verbs": ("jump",)},
    {"and_rate": 1.0, "phrases": ("direction", "twice"), "verbs": ("walk",)},
    {"and_rate": 0.5, "phrases": ("verb",)},
]
VARIED = [*SMALL, {}, {"and_rate": 0.2, "repeat_directions": True}, {"phrases": ("twice",), "and_rate": 0}]
FIELDS = ("source", "source_lengths", "target", "target_lengths", "alignment")


@pytest.fixture(params=VARIED, ids=str)
def task(request):
    return ExtendedSCAN(**request.param)


def equal(first, second):
    return all(torch.equal(getattr(first, name), getattr(second, name)) for name in FIELDS)


def phrases_of(words):
    """A sentence's phrases as lists of (step, word), found with nothing from the library."""
    found = []
    for step, word in enumerate(words):
        if word in scan.VERBS:
            found.append([])
        if word != "and":
            found[-1].append((step, word))
    return found


def outputs_of(phrase):
    """(action, source step) of each output of a phrase, by rule."""
    turns = [(scan.DIRECTIONS[word], step) for step, word in phrase if word in scan.DIRECTIONS]
    acts = [(scan.VERBS[word], step) for step, word in phrase if word in scan.VERBS]
    return (turns + acts) * (2 if phrase[-1][1] == "twice" else 1)


def kind_of(phrase):
    """What a task's ``phrases`` calls it; "run left twice" is as likely as "run left"."""
    directions = set(phrase) & set(scan.DIRECTIONS)
    return "direction" if directions else "twice" if "twice" in phrase else "verb"


def enumerate_sentences(task):
    """{words: probability}, by walking through every chain of phrases and conditioning each length on being hit."""
    # Of each phrase: as often as its kind is named.
    named = [task.phrases.count(kind_of(phrase)) for phrase in task.all_phrases]
    shares, chains = [times / sum(named) for times in named], defaultdict(float)

    def grow(words, probability):
        if words:
            chains[words] += probability
        for phrase, share in zip(task.all_phrases, shares, strict=True):
            joints = [((), 1.0)] if not words else [((), 1 - task.and_rate), (("and",), task.and_rate)]
            for joint, chance in joints:
                longer = (*words, *joint, *phrase)
                if chance > 0 and len(longer) <= task.max_length:
                    grow(longer, probability * share * chance)

    grow((), 1.0)
    by_length = defaultdict(float)
    for words, probability in chains.items():
        by_length[len(words)] += probability
    lengths = [length for length in by_length if length >= task.min_length]
    return {
        words: probability / by_length[len(words)] / len(lengths)
        for words, probability in chains.items()
        if len(words) >= task.min_length
    }


class TestSentences:
    def test_they_are_words_then_an_end_then_padding(self, task):
        batch = task.sample(300, seed=1)
        assert batch.source.shape == (300, task.source_steps)
        assert batch.target.shape == batch.alignment.shape == (300, task.target_steps)
        assert all(getattr(batch, name).dtype == torch.int64 for name in FIELDS)
        for tokens, lengths in ((batch.source, batch.source_lengths), (batch.target, batch.target_lengths)):
            for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True):
                assert all(word > EOS for word in row[: length - 1])
                assert row[length - 1] == EOS
                assert all(word == PAD for word in row[length:])

    def test_the_alignment_replays_the_outputs_from_the_aligned_words_by_rule(self, task):
        batch = task.sample(300, seed=2)
        for row in range(300):
            words = task.source_vocabulary.decode(batch.source[row])
            expected = [output for phrase in phrases_of(words) for output in outputs_of(phrase)]
            steps = batch.alignment[row, : len(expected)].tolist()
            assert task.target_vocabulary.decode(batch.target[row]) == [action for action, _ in expected]
            assert steps == [step for _, step in expected]
            known = scan.VERBS | scan.DIRECTIONS
            assert [known[words[step]] for step in steps] == [action for action, _ in expected]
            assert batch.alignment[row, len(expected)] == len(words)  # the end translates the end
            assert (batch.alignment[row, len(expected) + 1 :] == -1).all()

    def test_phrase_by_phrase_the_outputs_are_scans(self, task):
        batch = task.sample(100, seed=3)
        for source, target in zip(batch.source, batch.target, strict=True):
            phrases = phrases_of(task.source_vocabulary.decode(source))
            said = [scan.interpret([word for _, word in phrase]) for phrase in phrases]
            assert " ".join(task.target_vocabulary.decode(target)) == " ".join(said)

    def test_only_phrases_of_the_task_occur_and_all_of_them(self, task):
        seen = set()
        for source in task.sample(3000, seed=4).source:
            words = task.source_vocabulary.decode(source)
            assert "and and" not in " ".join(words) and words[0] != "and" and words[-1] != "and"
            seen |= {tuple(word for _, word in phrase) for phrase in phrases_of(words)}
        assert seen == set(task.all_phrases)

    def test_every_length_that_can_occur_is_equally_likely(self, task):
        lengths = Counter((task.sample(20_000, seed=5).source_lengths - 1).tolist())
        assert sorted(lengths) == list(task.lengths)
        share = 1 / len(task.lengths)
        deviation = 5 * (share * (1 - share) / 20_000) ** 0.5
        assert all(abs(count / 20_000 - share) <= deviation for count in lengths.values())

    def test_lengths_that_no_concatenation_reaches_do_not_occur(self):
        assert ExtendedSCAN(phrases=("direction", "twice"), and_rate=0).lengths == (16, 18, 20)
        assert ExtendedSCAN(phrases=("verb",), and_rate=1.0, min_length=2, max_length=6).lengths == (3, 5)

    def test_the_longest_sentences_and_outputs_set_the_steps(self):
        assert (ExtendedSCAN().source_steps, ExtendedSCAN().target_steps) == (21, 21)
        repeated = ExtendedSCAN(repeat_directions=True, and_rate=0)
        assert repeated.target_steps == 6 * 4 + 2 + 1  # six times three words → four outputs, two words more, the end
        assert ExtendedSCAN(phrases=("verb",), and_rate=1.0).target_steps == 10 + 1  # 19 words, every second an "and"

    @pytest.mark.parametrize("settings", SMALL, ids=str)
    def test_sentences_are_as_likely_as_their_phrases_make_them(self, settings):
        task = ExtendedSCAN(**settings, min_length=2, max_length=4)
        exact, size = enumerate_sentences(task), 40_000
        batch = task.sample(size, seed=6)
        seen = Counter(tuple(task.source_vocabulary.decode(source)) for source in batch.source)
        assert set(seen) <= set(exact)
        for words, probability in exact.items():
            deviation = (probability * (1 - probability) / size) ** 0.5
            assert abs(seen[words] / size - probability) <= 5 * deviation + 1e-4

    def test_and_stands_before_a_share_of_phrases(self):
        for rate in (0.0, 0.1, 0.5):
            task = ExtendedSCAN(and_rate=rate, min_length=20)
            batch = task.sample(4000, seed=7)
            phrases = task.parse(batch)
            joints = int((phrases.index.max(1).values).sum())
            assert int((phrases.role == Role.AND).sum()) / joints == pytest.approx(rate, abs=0.02)


class TestOffsets:
    @pytest.mark.parametrize("settings", SMALL, ids=str)
    @pytest.mark.parametrize("end", [False, True])
    def test_they_are_those_of_all_sentences_enumerated(self, settings, end):
        task = ExtendedSCAN(**settings, min_length=2, max_length=5)
        reached, total = np.zeros(task.target_steps), np.zeros(task.target_steps)
        sentences = enumerate_sentences(task)
        assert sum(sentences.values()) == pytest.approx(1)
        for words, probability in sentences.items():
            outputs = [output for phrase in phrases_of(words) for output in outputs_of(phrase)]
            for step, (_, source) in enumerate([*outputs, *([("", len(words))] if end else [])]):
                reached[step] += probability
                total[step] += probability * (source - step)
        found = task.mean_offsets(end_of_sentence=end)
        np.testing.assert_allclose(found.reached, reached, atol=1e-12)
        np.testing.assert_allclose(found.mean[reached > 0], (total / np.maximum(reached, 1e-300))[reached > 0])
        assert np.isnan(found.mean[reached == 0]).all()

    def test_they_are_what_a_sample_tends_to(self, task):
        batch = task.sample(20_000, seed=8)
        content = batch.target_mask & (batch.target != EOS)
        for found, mask in ((task.mean_offsets(), content), (task.mean_offsets(True), batch.target_mask)):
            mean, counts = (np.asarray(part) for part in alignment.offsets(batch.alignment, mask))
            np.testing.assert_allclose(found.reached, counts / 20_000, atol=0.02)
            often = counts > 2000
            np.testing.assert_allclose(found.mean[often], mean[often], atol=0.12)

    def test_each_and_pushes_later_words_one_step_on(self):
        """At rate p, on phrases of one word, the s-th output has s "and"s before it with probability p each."""
        task = ExtendedSCAN(phrases=("verb",), and_rate=0.25, min_length=200, max_length=200)
        assert np.allclose(task.mean_offsets().mean[:60], 0.25 * np.arange(60), rtol=0.02, atol=0.05)

    def test_without_and_single_words_are_never_offset(self):
        task = ExtendedSCAN(phrases=("verb",), and_rate=0)
        assert (task.mean_offsets().mean[:20] == 0).all()
        assert np.allclose(task.mean_offsets().reached[:15], 1)


class TestShifts:
    @pytest.mark.parametrize("settings", SMALL, ids=str)
    def test_they_are_those_of_all_sentences_enumerated(self, settings):
        task = ExtendedSCAN(**settings, min_length=2, max_length=5)
        expected = defaultdict(float)
        for words, probability in enumerate_sentences(task).items():
            step = 0
            for phrase in phrases_of(words):
                made = len(outputs_of(phrase))
                for output in range(made):
                    expected[step + output, phrase[0][0] - step] += probability
                step += made
        found = task.shifts()
        assert set(found.values.tolist()) == {shift for _, shift in expected}
        for step in range(task.target_steps):
            for shift, probability in zip(found.values.tolist(), found.probability[step], strict=True):
                assert probability == pytest.approx(expected.get((step, shift), 0), abs=1e-12)
        np.testing.assert_allclose(found.probability.sum(1), task.mean_offsets().reached, atol=1e-12)

    def test_they_count_the_ands(self):
        """Behind s phrases of one word, each with an "and" at rate p: a binomial."""
        task = ExtendedSCAN(phrases=("verb",), and_rate=0.25, min_length=200, max_length=200)
        found = task.shifts()
        for step in (1, 5, 20):
            counts = [math.comb(step, k) * 0.25**k * 0.75 ** (step - k) for k in range(step + 1)]
            there = {k: found.probability[step, found.values == k].item() for k in range(step + 1)}
            np.testing.assert_allclose(list(there.values()), counts, atol=0.02)

    def test_without_and_there_is_none(self):
        found = ExtendedSCAN(and_rate=0).shifts()
        assert found.values.tolist() == [0]


class TestPhrases:
    def test_a_sentence_by_hand(self):
        task = ExtendedSCAN(repeat_directions=True)
        sentence = "run twice walk and jump left look"
        task = ExtendedSCAN(verbs=("walk", "run", "jump", "look"), repeat_directions=True)
        batch = task.pairs([sentence, "jump right twice run"])
        phrases = task.parse(batch)
        words = task.source_vocabulary
        assert phrases.role[0, :9].tolist() == [
            Role.VERB, Role.TWICE, Role.VERB, Role.AND, Role.VERB, Role.DIRECTION, Role.VERB, Role.END, -1,
        ]  # fmt: skip
        assert phrases.kind[0, :8].tolist() == [
            Kind.TWICE, Kind.TWICE, Kind.VERB, -1, Kind.DIRECTION, Kind.DIRECTION, Kind.VERB, -1,
        ]  # fmt: skip
        assert phrases.index[0, :8].tolist() == [0, 0, 1, -1, 2, 2, 3, -1]
        assert phrases.start[0, :8].tolist() == [0, 0, 2, -1, 4, 4, 6, -1]
        assert phrases.end[0, :8].tolist() == [1, 1, 2, -1, 5, 5, 6, -1]
        assert phrases.words[0, :8].tolist() == [2, 2, 1, 0, 2, 2, 1, 0]
        run, walk, jump, look = (words.id(word) for word in ("run", "walk", "jump", "look"))
        assert phrases.verb[0, :8].tolist() == [run, run, walk, -1, jump, jump, look, -1]
        assert phrases.kind[1, :5].tolist() == [Kind.DIRECTION_TWICE] * 3 + [Kind.VERB, -1]
        assert phrases.end[1, :5].tolist() == [2, 2, 2, 3, -1]
        for values in vars(phrases).values():
            assert values.shape == batch.source.shape
            assert (values[0, 8:] == -1).all() and (values[1, 5:] == -1).all()

    def test_they_are_those_of_a_plain_reading(self, task):
        batch = task.sample(100, seed=9)
        phrases = task.parse(batch)
        for row in range(100):
            words = task.source_vocabulary.decode(batch.source[row])
            expected = {
                step: (number, phrase[0][0], phrase[-1][0], task.source_vocabulary.id(phrase[0][1]))
                for number, phrase in enumerate(phrases_of(words))
                for step, _ in phrase
            }
            for step in range(task.source_steps):
                found = (getattr(phrases, name)[row, step] for name in ("index", "start", "end", "verb"))
                assert tuple(map(int, found)) == expected.get(step, (-1,) * 4)

    def test_outputs_have_the_phrase_of_their_word(self):
        task = ExtendedSCAN()
        batch = task.pairs("run left jump twice walk")
        of_outputs = task.parse(batch).at(batch.alignment)
        assert of_outputs.index[0, :7].tolist() == [0, 0, 1, 1, 2, -1, -1]
        assert of_outputs.end[0, :7].tolist() == [1, 1, 3, 3, 4, -1, -1]
        assert of_outputs.role[0, :7].tolist() == [
            Role.DIRECTION, Role.VERB, Role.VERB, Role.VERB, Role.VERB, Role.END, -1,
        ]  # fmt: skip

    def test_another_tasks_batch_is_refused(self):
        with pytest.raises(ValueError, match="is this batch of another task"):
            ExtendedSCAN().parse(OneToOne(num_words=20).sample(8, 0))
        task = ExtendedSCAN()
        left = task.source_vocabulary.id("left")
        words, lengths = torch.tensor([[left, left, EOS]]), torch.tensor([3])
        with pytest.raises(ValueError, match="begin with a verb, but pair 0 is 'left left'"):
            task.parse(Batch(words, lengths, words, lengths, words))

    def test_reading_leaves_the_batch_as_it_is(self):
        task = ExtendedSCAN()
        batch = task.sample(20, 0)
        task.parse(batch), task.twice_on_diagonal(batch), task.second_outputs(batch)
        assert equal(batch, task.sample(20, 0))


class TestSubsets:
    def test_second_outputs_and_the_diagonal_by_hand(self):
        task = ExtendedSCAN(repeat_directions=True)
        batch = task.pairs(["run twice walk twice", "run and walk twice jump", "run left twice walk"])
        #            run run walk walk                run walk walk jump       LTURN RUN LTURN RUN WALK
        assert task.second_outputs(batch)[:, :5].tolist() == [
            [False, True, False, True, False],
            [False, False, True, False, False],
            [False] * 5,
        ]
        assert task.twice_on_diagonal(batch)[:, :5].tolist() == [
            [False, True, False, True, False],
            [False] * 5,  # "and" has moved "twice" to t = s + 1
            [False] * 5,
        ]

    def test_the_word_to_attend_to_is_the_one_before(self):
        task = ExtendedSCAN(and_rate=0.1)
        batch = task.sample(500, seed=10)
        rows, steps = task.twice_on_diagonal(batch).nonzero(as_tuple=True)
        assert len(rows) > 100
        assert (batch.source[rows, steps] == task.source_vocabulary.id("twice")).all()
        assert torch.equal(batch.alignment[rows, steps], steps - 1)
        assert torch.equal(batch.alignment[rows, steps - 1], steps - 1)
        where_no_and = task.same_length(batch)[:, None] & (task.parse(batch).role == Role.TWICE)
        assert torch.equal(task.twice_on_diagonal(batch) & task.same_length(batch)[:, None], where_no_and)

    def test_equal_lengths_are_the_sentences_without_and(self):
        task = ExtendedSCAN(and_rate=0.1)
        batch = task.sample(500, seed=11)
        without = ~(batch.source == task.source_vocabulary.id("and")).any(1)
        assert torch.equal(task.same_length(batch), without)
        assert 0 < int(without.sum()) < 500

    def test_a_subset_can_be_drawn(self):
        task = ExtendedSCAN(and_rate=0.2)
        batch = task.sample_where(300, 0, task.same_length)
        assert len(batch) == 300
        assert task.same_length(batch).all()
        assert equal(batch, task.sample_where(300, 0, task.same_length))
        assert not equal(batch, task.sample_where(300, 1, task.same_length))
        both = task.sample_where(50, 0, lambda pairs: task.twice_on_diagonal(pairs).any(1) & task.same_length(pairs))
        assert task.twice_on_diagonal(both).any(1).all() and task.same_length(both).all()

    def test_an_empty_subset_is_given_up(self, monkeypatch):
        monkeypatch.setattr("howattend.tasks.extended_scan._MOST_DRAWS", 2000)
        task = ExtendedSCAN(and_rate=1.0)
        with pytest.raises(ValueError, match=r"held for 0 where 4 are wanted.*relax it"):
            task.sample_where(4, 0, task.same_length)


class TestOnesOwnSentences:
    def test_they_are_paired_with_their_outputs(self):
        task = ExtendedSCAN()
        batch = task.pairs("run twice walk left and jump")
        assert task.target_vocabulary.decode(batch.target[0]) == ["RUN", "RUN", "LTURN", "WALK", "JUMP"]
        assert batch.alignment[0, :7].tolist() == [0, 0, 3, 2, 5, 6, -1]
        assert batch.source_lengths.tolist() == [7] and batch.target_lengths.tolist() == [6]

    def test_drawn_pairs_are_found_again(self, task):
        batch = task.sample(50, seed=12)
        said = [" ".join(task.source_vocabulary.decode(source)) for source in batch.source]
        assert equal(batch, task.pairs(said))

    @pytest.mark.parametrize(
        ("sentence", "message"),
        [
            ("run hop", "unknown word 'hop'; the vocabulary's words are walk, run, jump, left, right, twice, and"),
            ("", "1 … 20 words, got 0"),
            ("run " * 21, "1 … 20 words, got 21"),
            ("and run", "'and run' in 'and run' is no phrase of this task; a sentence is a chain of the phrases walk,"),
            ("run and", "'and' in 'run and' is no phrase of this task"),
            ("run and and walk", "'and' in"),
            ("twice run", "'twice' in"),
            ("run left twice", "'run left twice' in"),
            ("run twice twice", "'run twice twice' in"),
            ([], "at least one sentence"),
        ],
    )
    def test_what_is_no_sentence_is_refused(self, sentence, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            ExtendedSCAN().pairs(sentence)

    def test_more_outputs_than_steps_are_refused(self):
        task = ExtendedSCAN(verbs=("run",), phrases=("verb",), and_rate=1.0)
        with pytest.raises(ValueError, match="at most 10 outputs, got 11"):
            task.pairs("run " * 11)


class TestSeeds:
    def test_the_same_seed_gives_the_same_batch_and_another_another(self, task):
        assert equal(task.sample(40, seed=5), task.sample(40, seed=5))
        assert not equal(task.sample(40, seed=5), task.sample(40, seed=6))
        assert not equal(task.sample(40, seed=0), task.training_batch(40, seed=0, step=0))

    def test_held_out_sets_are_fixed(self):
        task = ExtendedSCAN()
        assert len(task.test_set()) == TEST_SAMPLES
        assert equal(task.test_set(), task.test_set())

    def test_sampling_leaves_the_global_random_state_alone(self):
        before = torch.get_rng_state()
        ExtendedSCAN().sample(20, seed=5)
        assert torch.equal(torch.get_rng_state(), before)

    def test_a_training_batch_is_quick(self):
        task, seconds = ExtendedSCAN(), []
        for step in range(20):
            begun = time.perf_counter()
            task.training_batch(128, 0, step)
            seconds.append(time.perf_counter() - begun)
        assert min(seconds) < 0.005


class TestParameters:
    def test_vocabularies_hold_the_words_that_can_occur(self):
        task = ExtendedSCAN()
        assert task.source_vocabulary.words[3:] == ("walk", "run", "jump", "left", "right", "twice", "and")
        assert task.target_vocabulary.words[3:] == ("WALK", "RUN", "JUMP", "LTURN", "RTURN")
        assert task.actions == {"walk": "WALK", "run": "RUN", "jump": "JUMP", "left": "LTURN", "right": "RTURN"}
        few = ExtendedSCAN(verbs=("look",), directions=("right",), phrases=("verb", "direction"), and_rate=0)
        assert few.source_vocabulary.words[3:] == ("look", "right")
        assert "twice" in ExtendedSCAN(phrases=("direction",), repeat_directions=True).source_vocabulary
        assert "left" not in ExtendedSCAN(phrases=("verb", "twice")).source_vocabulary
        assert BOS not in task.sample(8, 0).source

    def test_phrases_of_the_words_that_are_chosen(self):
        task = ExtendedSCAN(verbs=("run",), directions=("left",), repeat_directions=True)
        assert task.all_phrases == (("run",), ("run", "left"), ("run", "twice"), ("run", "left", "twice"))
        assert len(ExtendedSCAN().all_phrases) == 3 + 6 + 3

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"verbs": ()}, "verbs must hold at least one of walk, run, jump, look"),
            ({"verbs": ("hop",)}, "verbs must be out of walk, run, jump, look, got 'hop'"),
            ({"verbs": ("turn",)}, "verbs must be out of walk, run, jump, look, got 'turn'"),
            ({"verbs": "run"}, "verbs must be a tuple of words out of walk, run, jump, look, got 'run'"),
            ({"verbs": ("run", "run")}, "verbs must be distinct, got run, run"),
            ({"directions": ("up",)}, "directions must be out of left, right, got 'up'"),
            ({"directions": ()}, 'directions is empty, but phrases has "direction"'),
            ({"phrases": ()}, "phrases must hold at least one of verb, direction, twice"),
            ({"phrases": ("thrice",)}, "phrases must be out of verb, direction, twice, got 'thrice'"),
            ({"repeat_directions": 1}, "repeat_directions must be True or False, got 1"),
            ({"repeat_directions": True, "phrases": ("verb",)}, 'but phrases has no "direction"'),
            ({"and_rate": -0.1}, "and_rate must be a probability from 0 to 1, got -0.1"),
            ({"and_rate": 1.5}, "and_rate must be a probability from 0 to 1, got 1.5"),
            ({"and_rate": float("nan")}, "and_rate must be a probability from 0 to 1, got nan"),
            ({"and_rate": True}, "and_rate must be a probability from 0 to 1, got True"),
            ({"and_rate": "0.1"}, "and_rate must be a probability from 0 to 1, got '0.1'"),
            ({"min_length": 0}, "min_length must be an integer ≥ 1, got 0"),
            ({"max_length": 20.0}, "max_length must be an integer ≥ 1, got 20.0"),
            ({"min_length": 21}, "min_length must not exceed max_length, got 21 > 20"),
            (
                {"phrases": ("twice",), "and_rate": 0, "min_length": 15, "max_length": 15},
                "no concatenation of these phrases has 15 … 15 words; lengths that one can have are 2, 4, 6",
            ),
        ],
    )
    def test_bad_ones_are_named(self, settings, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            ExtendedSCAN(**settings)

    def test_settings_are_the_name_and_every_parameter(self):
        assert ExtendedSCAN(verbs=["run"]).settings() == {
            "name": "escan",
            "verbs": ("run",),
            "directions": ("left", "right"),
            "phrases": ("verb", "direction", "twice"),
            "repeat_directions": False,
            "and_rate": 0.005,
            "min_length": 15,
            "max_length": 20,
        }

    def test_tasks_are_values(self):
        assert ExtendedSCAN(verbs=["run"]) == ExtendedSCAN(verbs=("run",))
        assert len({ExtendedSCAN(), ExtendedSCAN(), ExtendedSCAN(and_rate=0.1)}) == 2

    def test_the_grammar_of_the_small_tasks_is_not_trivial(self):
        """The enumerations above see sentences with and without "and", and more than one phrase."""
        task = ExtendedSCAN(**SMALL[0], min_length=2, max_length=4)
        words = list(itertools.chain(*enumerate_sentences(task)))
        assert {"and", "twice", "left"} <= set(words)


@pytest.mark.parametrize(
    ("size", "condition", "message"),
    [
        (
            5,
            lambda batch: ExtendedSCAN().twice_on_diagonal(batch),
            r"one bool a pair, \[256\], got \[256, 21\] of torch",
        ),
        (5, lambda batch: batch.source_lengths, r"got \[256\] of torch.int64"),
        (5, lambda batch: True, "one bool a pair, .* got True"),
        (0, ExtendedSCAN.same_length, "size must be an integer ≥ 1, got 0"),
        (-3, ExtendedSCAN.same_length, "size must be an integer ≥ 1, got -3"),
    ],
)
def test_a_condition_is_a_mask_and_a_size_a_number(size, condition, message):
    with pytest.raises(ValueError, match=message):
        ExtendedSCAN().sample_where(size, 0, condition)


def test_a_list_of_words_is_no_sentence():
    with pytest.raises(ValueError, match=r"sentences must be strings, .*\['walk', 'left'\]"):
        ExtendedSCAN().pairs([["walk", "left"]])
