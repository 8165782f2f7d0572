"""The one-to-one family: each source word has one translation; the target keeps, reverses or sorts their order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from howattend.tasks.base import Task
from howattend.tasks.batch import Batch, length_mask
from howattend.tasks.vocabulary import EOS, PAD, SPECIAL_WORDS, Vocabulary


def letters(count: int) -> list[str]:
    """A, B, …, Z, AA, AB, …: names for any number of words."""
    names = []
    for number in range(1, count + 1):
        name = ""
        while number:
            number, digit = divmod(number - 1, 26)
            name = chr(ord("A") + digit) + name
        names.append(name)
    return names


@dataclass(frozen=True)
class _WordByWord(Task):
    """Sources of independent, equally likely words; lengths are uniform and count words, not the end of sentence."""

    num_words: int = 3
    min_length: int = 15
    max_length: int = 20

    def __post_init__(self) -> None:
        for name, lowest in (("num_words", 2), ("min_length", 1), ("max_length", 1)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise ValueError(f"{name} must be an integer ≥ {lowest}, got {value!r}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length must not exceed max_length, got {self.min_length} > {self.max_length}")

    @cached_property
    def source_vocabulary(self) -> Vocabulary:
        return Vocabulary.of_words(letters(self.num_words))

    @cached_property
    def target_vocabulary(self) -> Vocabulary:
        """Word i of the target translates word i of the source."""
        return Vocabulary.of_words(str(number) for number in range(1, self.num_words + 1))

    def _draw(self, size: int, random: torch.Generator) -> Batch:
        lengths = torch.randint(self.min_length, self.max_length + 1, (size,), generator=random)
        first = len(SPECIAL_WORDS)
        words = torch.randint(first, first + self.num_words, (size, self.max_length), generator=random)
        words = torch.where(length_mask(lengths, self.max_length), words, PAD)
        source = torch.nn.functional.pad(words, (0, 1), value=PAD)
        source[torch.arange(size), lengths] = EOS
        alignment = self._align(source, lengths)
        target = torch.where(alignment >= 0, source.gather(1, alignment.clamp(min=0)), PAD)
        return Batch(source, lengths + 1, target, lengths + 1, alignment)

    @abstractmethod
    def _align(self, source: Tensor, lengths: Tensor) -> Tensor:
        """[B, S]: the source step of each target step, −1 on padding. ``lengths`` count words."""


def _in_order(source: Tensor, lengths: Tensor) -> Tensor:
    steps = torch.arange(source.shape[1]).expand_as(source)
    return torch.where(length_mask(lengths + 1, source.shape[1]), steps, -1)


@dataclass(frozen=True)
class OneToOne(_WordByWord):
    """Each word is translated in place: A B C A → 1 2 3 1 (Fig. 2a–f)."""

    name: ClassVar[str] = "one_to_one"

    def _align(self, source: Tensor, lengths: Tensor) -> Tensor:
        return _in_order(source, lengths)


@dataclass(frozen=True)
class Reversed(_WordByWord):
    """Each word is translated, last word first: A B C A → 1 3 2 1 (Fig. 2g). The end of sentence stays at the end."""

    name: ClassVar[str] = "reversed"

    def _align(self, source: Tensor, lengths: Tensor) -> Tensor:
        steps = _in_order(source, lengths)
        is_word = length_mask(lengths, source.shape[1])
        return torch.where(is_word, lengths[:, None] - 1 - steps, steps)


@dataclass(frozen=True)
class Sorted(_WordByWord):
    """The words in alphabetical order: B C A A → A A B C (Fig. 2h). Equal words are aligned in their source order."""

    name: ClassVar[str] = "sort"
    num_words: int = 8
    min_length: int = 8
    max_length: int = 12

    @cached_property
    def target_vocabulary(self) -> Vocabulary:
        return self.source_vocabulary

    def _align(self, source: Tensor, lengths: Tensor) -> Tensor:
        steps = _in_order(source, lengths)
        # What is no word sorts behind every word, in its place: end of sentence first, then padding.
        order = torch.where(length_mask(lengths, source.shape[1]), source, len(self.source_vocabulary))
        return torch.where(steps >= 0, order.argsort(dim=1, stable=True), -1)
