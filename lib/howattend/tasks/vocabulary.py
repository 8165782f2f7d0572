"""Words and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

PAD, BOS, EOS = 0, 1, 2  # the same ids in every vocabulary, so that no code has to look them up
SPECIAL_WORDS = ("<pad>", "<bos>", "<eos>")
UNK, UNKNOWN_WORD = 3, "<unk>"  # only where a vocabulary has it: then every word that is not listed


@dataclass(frozen=True)
class Vocabulary:
    """The words of one language; ids are positions in ``words``.

    The first three are padding, start and end of sentence; the content words follow. Build one with
    :meth:`of_words`, which puts the special words first. With ``<unk>`` behind those three, which is no content word,
    every word has an id.
    """

    words: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if tuple(self.words[:3]) != SPECIAL_WORDS:
            raise ValueError(
                f"words must begin with {SPECIAL_WORDS}, got {tuple(self.words[:3])}; use Vocabulary.of_words"
            )
        ids = {word: index for index, word in enumerate(self.words)}
        if len(ids) != len(self.words):
            twice = sorted({word for word in self.words if self.words.count(word) > 1})
            raise ValueError(f"words must be distinct, but these occur more than once: {twice}")
        if ids.get(UNKNOWN_WORD, UNK) != UNK:
            raise ValueError(f"{UNKNOWN_WORD} must be word {UNK}, got {ids[UNKNOWN_WORD]}; use Vocabulary.of_words")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def of_words(cls, content_words: Iterable[str], unknown: bool = False) -> Vocabulary:
        """The vocabulary of the special words, with ``unknown`` of ``<unk>`` too, followed by these content words."""
        return cls((*SPECIAL_WORDS, *([UNKNOWN_WORD] if unknown else []), *content_words))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    @property
    def content_ids(self) -> range:
        """The ids of the words that are not padding, start or end of sentence, or ``<unk>``."""
        return range(len(SPECIAL_WORDS) + (UNKNOWN_WORD in self), len(self.words))

    def id(self, word: str) -> int:
        """The id of one word; one that is not listed has that of ``<unk>``, or ValueError names the valid words."""
        try:
            return self._ids[word]
        except KeyError:
            if UNKNOWN_WORD in self:
                return UNK
            content = self.words[len(SPECIAL_WORDS) :]
            shown = ", ".join(content[:20]) + (f", … ({len(content)} in all)" if len(content) > 20 else "")
            raise ValueError(f"unknown word {word!r}; the vocabulary's words are {shown}") from None

    def encode(self, sentence: str | Sequence[str]) -> list[int]:
        """Ids of the words of a sentence (a string is split at white space), without end of sentence."""
        words = sentence.split() if isinstance(sentence, str) else sentence
        return [self.id(word) for word in words]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Words up to, but without, the end of sentence; padding and start of sentence are left out."""
        sentence = []
        for index in ids:
            index = int(index)
            if not 0 <= index < len(self.words):
                raise ValueError(f"ids must lie in 0 … {len(self.words) - 1}, got {index}")
            if index == EOS:
                break
            if index not in (PAD, BOS):
                sentence.append(self.words[index])
        return sentence
