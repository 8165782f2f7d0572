"""Extended SCAN: phrases of SCAN, restricted to chosen words, concatenated at random to sentences (Fig. 3, 5, 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from howattend.tasks import scan
from howattend.tasks.base import Task, check_size, generator
from howattend.tasks.batch import Batch
from howattend.tasks.concatenation import Concatenation, MeanOffsets, Segment, Shifts
from howattend.tasks.phrases import Kind, Phrases, Role, parse
from howattend.tasks.vocabulary import EOS, PAD, Vocabulary

PHRASES = ("verb", "direction", "twice")
_MOST_DRAWS = 1_000_000  # after so many pairs :meth:`ExtendedSCAN.sample_where` gives up


@dataclass(frozen=True)
class ExtendedSCAN(Task):
    """Phrases of SCAN concatenated to sentences of 15 to 20 words; the outputs are SCAN's actions, phrase by phrase.

    Phrases are "run" → RUN, "run left" → LTURN RUN and "run twice" → RUN RUN; each that the words allow is equally
    likely, unless ``phrases`` says otherwise. "and" may stand between two of them and has no output: every output
    behind it is one step further from its word. A sentence's length counts words, "and" included, and is uniform over
    the lengths that a concatenation can have; at its length a sentence is as likely as its phrases and its "and"s make
    it (:mod:`~.concatenation`).

    True alignment: a verb's actions come from the verb (both of them in "run twice"), a turn from the direction.

    verbs
        Any of walk, run, jump, look. The default has three, as Fig. 6a has three clusters.
    directions
        Any of left, right.
    phrases
        The kinds that occur: any of "verb", "direction" and "twice". Phrases of a kind that is named k times are k
        times as likely as those of one that is named once.
    repeat_directions
        Whether "run left twice" → LTURN RUN LTURN RUN is a phrase too: three words with four outputs.
    and_rate
        p, the probability of an "and" before a phrase that is not the first. AO sees positions and cannot count the
        "and"s before a word, so its accuracy falls as p rises. The default is the highest rate of 0.005, 0.01, 0.02 at
        which a trained AO still had the paper's 98 % of the words right (data/README.md).
    min_length, max_length
        In words, "and" included, end of sentence not.
    """

    name: ClassVar[str] = "escan"
    verbs: tuple[str, ...] = ("walk", "run", "jump")
    directions: tuple[str, ...] = ("left", "right")
    phrases: tuple[str, ...] = PHRASES
    repeat_directions: bool = False
    and_rate: float = 0.005
    min_length: int = 15
    max_length: int = 20

    def __post_init__(self) -> None:
        for name, valid in (
            ("verbs", tuple(scan.VERBS)),
            ("directions", tuple(scan.DIRECTIONS)),
            ("phrases", PHRASES),
        ):
            _check_choice(name, getattr(self, name), valid, repeated=name == "phrases")
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.verbs:
            raise ValueError(f"verbs must hold at least one of {', '.join(scan.VERBS)}: every phrase begins with one")
        if not self.phrases:
            raise ValueError(f"phrases must hold at least one of {', '.join(PHRASES)}")
        if "direction" in self.phrases and not self.directions:
            raise ValueError('directions is empty, but phrases has "direction": name left or right, or leave it out')
        if not isinstance(self.repeat_directions, bool):
            raise ValueError(f"repeat_directions must be True or False, got {self.repeat_directions!r}")
        if self.repeat_directions and "direction" not in self.phrases:
            raise ValueError('repeat_directions repeats phrases with a direction, but phrases has no "direction"')
        rate = self.and_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or math.isnan(rate) or not 0 <= rate <= 1:
            raise ValueError(f"and_rate must be a probability from 0 to 1, got {rate!r}")
        for name in ("min_length", "max_length"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length must not exceed max_length, got {self.min_length} > {self.max_length}")
        if not self.lengths:
            near = Concatenation(self._chain.segments, 1, self.max_length + 6).reachable
            raise ValueError(
                f"no concatenation of these phrases has {self.min_length} … {self.max_length} words; lengths that one "
                f"can have are {', '.join(str(words) for words in near)}: change min_length or max_length, or phrases"
            )

    # ---- words and phrases ------------------------------------------------------------------------------------------

    @cached_property
    def _roles(self) -> dict[str, Role]:
        """The words that can occur, in the order of their ids."""
        roles = {verb: Role.VERB for verb in self.verbs}
        if "direction" in self.phrases:
            roles |= {direction: Role.DIRECTION for direction in self.directions}
        if "twice" in self.phrases or self.repeat_directions:
            roles["twice"] = Role.TWICE
        if self.and_rate > 0:
            roles["and"] = Role.AND
        return roles

    @cached_property
    def source_vocabulary(self) -> Vocabulary:
        """The words that can occur: verbs, directions, "twice", "and"."""
        return Vocabulary.of_words(self._roles)

    @cached_property
    def target_vocabulary(self) -> Vocabulary:
        """The actions of these words, in the same order; "twice" and "and" have none."""
        return Vocabulary.of_words(self.actions.values())

    @cached_property
    def actions(self) -> dict[str, str]:
        """Each word that has an action of its own, and that action: what the readouts should tell apart (Fig. 5d)."""
        known = scan.VERBS | scan.DIRECTIONS
        return {word: known[word] for word in self._roles if word in known}

    @cached_property
    def all_phrases(self) -> tuple[tuple[str, ...], ...]:
        """Every phrase as its words."""
        return tuple(self._weights)

    @cached_property
    def _weights(self) -> dict[tuple[str, ...], int]:
        """How likely each phrase is, compared with the others: as often as its kind is named."""
        verbs, turns, twice = (self.phrases.count(kind) for kind in PHRASES)
        directions = [(verb, direction) for verb in self.verbs for direction in self.directions]
        weights = {
            **{(verb,): verbs for verb in self.verbs},
            **dict.fromkeys(directions, turns),
            **{(verb, "twice"): twice for verb in self.verbs},
            **{(*phrase, "twice"): turns for phrase in directions if self.repeat_directions},
        }
        return {phrase: weight for phrase, weight in weights.items() if weight}

    @cached_property
    def _chain(self) -> Concatenation:
        source, target, segments = self.source_vocabulary, self.target_vocabulary, []
        for phrase, weight in self._weights.items():
            share = weight / sum(self._weights.values())
            # The source of each output, by its place in the phrase: a turn comes before the verb that it belongs to.
            places = ([1, 0] if phrase[1:2] and phrase[1] != "twice" else [0]) * (2 if phrase[-1] == "twice" else 1)
            outputs = tuple(target.id(self.actions[phrase[place]]) for place in places)
            words = tuple(source.encode(phrase))
            segments.append(Segment(words, outputs, tuple(places), share, share * (1 - self.and_rate)))
            if self.and_rate > 0:
                behind = tuple(place + 1 for place in places)
                segments.append(Segment((source.id("and"), *words), outputs, behind, 0.0, share * self.and_rate))
        return Concatenation(tuple(segments), self.min_length, self.max_length)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sentence lengths that occur, equally often: of min_length … max_length, what a concatenation can have."""
        return self._chain.lengths

    @property
    def source_steps(self) -> int:
        return max(self.lengths) + 1

    @property
    def target_steps(self) -> int:
        return self._chain.most_outputs + 1

    # ---- pairs ------------------------------------------------------------------------------------------------------

    def _draw(self, size: int, random: torch.Generator) -> Batch:
        return self._pairs(self._chain.draw(size, random))

    def _pairs(self, chosen: Tensor) -> Batch:
        """The pairs of rows of segments [B, G]."""
        source, words = self._chain.lay_out(chosen, "words", self.source_steps, PAD)
        target, made = self._chain.lay_out(chosen, "outputs", self.target_steps, PAD)
        alignment, _ = self._chain.lay_out(chosen, "alignment", self.target_steps, -1)
        rows = torch.arange(len(chosen))
        source[rows, words] = EOS
        target[rows, made] = EOS
        alignment[rows, made] = words
        return Batch(source, words + 1, target, made + 1, alignment)

    def pairs(self, sentences: str | Sequence[str]) -> Batch:
        """Sentences of one's own with their outputs and true alignment, such as "run twice walk left and jump".

        ValueError where a sentence has no word or an unknown one, is longer than the task's, or is no concatenation of
        its phrases.
        """
        numbers = {segment.words: index for index, segment in enumerate(self._chain.segments)}
        rows = []
        for sentence in [sentences] if isinstance(sentences, str) else sentences:
            if not isinstance(sentence, str):
                raise ValueError(f"sentences must be strings, with spaces between the words, got {sentence!r}")
            ids, _ = self.encode(sentence)
            row: list[int] = []
            for segment in self._split(ids[0, :-1].tolist()):
                if segment not in numbers or (not row and self._role(segment[0]) is Role.AND):
                    said = " ".join(self.source_vocabulary.words[word] for word in segment)
                    raise ValueError(
                        f"{said!r} in {sentence!r} is no phrase of this task; a sentence is a chain of the phrases "
                        f"{', '.join(' '.join(phrase) for phrase in self.all_phrases)}"
                        + (', with at most one "and" between two of them' if self.and_rate > 0 else "")
                    )
                row.append(numbers[segment])
            made = sum(len(self._chain.segments[index].outputs) for index in row)
            if made >= self.target_steps:
                raise ValueError(
                    f"a sentence must have at most {self.target_steps - 1} outputs, got {made}: {sentence!r}"
                )
            rows.append([*row, *[len(numbers)] * (self.max_length - len(row))])
        if not rows:
            raise ValueError("sentences must hold at least one sentence")
        return self._pairs(torch.tensor(rows))

    def _role(self, word: int) -> Role:
        return self._roles[self.source_vocabulary.words[word]]

    def _split(self, ids: list[int]) -> list[tuple[int, ...]]:
        """A segment begins at "and", and at a verb that has no "and" before it."""
        segments: list[list[int]] = []
        for index, word in enumerate(ids):
            role, after = self._role(word), index and self._role(ids[index - 1]) is Role.AND
            if not segments or role is Role.AND or (role is Role.VERB and not after):
                segments.append([])
            segments[-1].append(word)
        return [tuple(segment) for segment in segments]

    # ---- what the alignment says ------------------------------------------------------------------------------------

    def mean_offsets(self, end_of_sentence: bool = False) -> MeanOffsets:
        """The exact mean offset t − s between an output and its word, by decoder step, over all sentences there are.

        The probability that a sentence reaches a step comes with it. The mean at a step is over the sentences that
        have an output there, as ``alignment.offsets(batch.alignment)`` estimates it from a batch. With
        ``end_of_sentence`` its place counts as an output, aligned with the source's end.

        Returns:
            mean [S], NaN at steps without output, and reached [S].
        """
        return self._chain.mean_offsets(self.target_steps, end_of_sentence)

    def shifts(self) -> Shifts:
        """The exact distribution, by decoder step, of how far the output's phrase is shifted against its outputs.

        The shift is the number of words before the phrase minus the number of outputs before it: the "and"s up to
        there, unless directions repeat. A network that knows the step and not what came before cannot know it.

        Returns:
            values [K] and probability [S, K], whose sum over K is the probability that a sentence has an output at s.
        """
        return self._chain.shifts(self.target_steps)

    def parse(self, batch: Batch) -> Phrases:
        """The subphrase of every source step of a batch of this task."""
        return parse(batch, self.source_vocabulary, self._roles)

    def second_outputs(self, batch: Batch) -> Tensor:
        """[B, S] True at the second output of a phrase such as "run twice"."""
        again = torch.zeros_like(batch.alignment, dtype=torch.bool)
        again[:, 1:] = (batch.alignment[:, 1:] == batch.alignment[:, :-1]) & (batch.alignment[:, 1:] >= 0)
        return again & (self.parse(batch).at(batch.alignment).kind == Kind.TWICE)

    def twice_on_diagonal(self, batch: Batch) -> Tensor:
        """[B, T] True where "twice" stands at the source step t = s of its phrase's second output (Fig. 6b).

        The word to attend to then stands at s − 1. Phrases with a direction, such as "run left twice", do not count.
        """
        phrases = self.parse(batch)
        found = torch.zeros_like(batch.source, dtype=torch.bool)
        steps = min(batch.source.shape[1], batch.target.shape[1])
        own = phrases.start[:, :steps] == batch.alignment[:, :steps]
        found[:, :steps] = own & self.second_outputs(batch)[:, :steps] & (phrases.role[:, :steps] == Role.TWICE)
        return found

    @staticmethod
    def same_length(batch: Batch) -> Tensor:
        """[B] True for pairs with T = S, as many outputs as words: those without "and", by default (Fig. 6b)."""
        return batch.source_lengths == batch.target_lengths

    def sample_where(self, size: int, seed: int | torch.Generator, condition: Callable[[Batch], Tensor]) -> Batch:
        """``size`` pairs for which the condition holds, drawn independently of each other.

        Args:
            size: number of pairs.
            seed: as for :meth:`sample`.
            condition: Batch → bool [B], such as ``task.same_length`` or ``lambda b: task.twice_on_diagonal(b).any(1)``.

        Raises:
            ValueError: if too few of a million pairs fulfil it, or the condition is no mask [B].
        """
        size = check_size(size)
        random = seed if isinstance(seed, torch.Generator) else generator("sample", seed)
        kept: list[Batch] = []
        found = drawn = 0
        while found < size:
            if drawn >= max(_MOST_DRAWS, 100 * size):
                raise ValueError(
                    f"condition must hold for some pairs, but of {drawn} drawn it held for {found} where {size} are "
                    "wanted: relax it, or change the task (an and_rate near 1 leaves no pair with T = S)"
                )
            batch = self.sample(min(max(2 * size, 256), 10_000), random)
            drawn += len(batch)
            holds = condition(batch)
            if not isinstance(holds, Tensor) or holds.dtype != torch.bool or holds.shape != (len(batch),):
                shape = f"{list(holds.shape)} of {holds.dtype}" if isinstance(holds, Tensor) else repr(holds)
                raise ValueError(f"condition must give one bool a pair, [{len(batch)}], got {shape}")
            chosen = holds.nonzero()[:, 0]
            if len(chosen):
                kept.append(batch[chosen])
                found += len(chosen)
        joined = {field.name: torch.cat([getattr(batch, field.name) for batch in kept]) for field in fields(Batch)}
        return Batch(**joined)[:size]


def _check_choice(name: str, values: object, valid: tuple[str, ...], *, repeated: bool) -> None:
    """ValueError unless the values are words of ``valid``, each once where they may not be repeated."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ValueError(f"{name} must be a tuple of words out of {', '.join(valid)}, got {values!r}")
    for value in values:
        if value not in valid:
            raise ValueError(f"{name} must be out of {', '.join(valid)}, got {value!r}")
    if not repeated and len(set(values)) != len(values):
        raise ValueError(f"{name} must be distinct, got {', '.join(values)}")
