"""English to French on human translations (Fig. 4, 5): a task whose sentences come from a corpus."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from howattend import files
from howattend._validation import cut, shortened
from howattend.tasks import corpora
from howattend.tasks.base import Task, check_size, generator
from howattend.tasks.batch import Batch, pad_rows
from howattend.tasks.vocabulary import EOS, PAD, UNK, Vocabulary


@dataclass(frozen=True)
class Translation(Task):
    """Pairs of an English sentence and its French translation, word by word, in lower case.

    The corpus is built once, with ``python -m howattend corpus``; FileNotFoundError says so where it is not there.

    corpus
        Where the pairs come from: :class:`corpora.OpenDefault`, :class:`corpora.HubDataset` or
        :class:`corpora.LocalFiles`.
    register
        Only the pairs of one register, "catalogues" or "verses" of the open default; None: all. The vocabularies are
        then those of that register.
    num_words
        Words a language has: the most common ones of the training split. All others are ``<unk>``. None: all that occur
        ``min_count`` times.
    min_count
        How often a word must occur in the training split.
    min_length, max_length
        In words, of either sentence; the end of sentence does not count.
    """

    name: ClassVar[str] = "translation"
    default_decoder_input: ClassVar[str] = "teacher"
    teacher_forced_accuracy: ClassVar[bool] = True
    corpus: corpora.Source = field(default_factory=corpora.OpenDefault)
    register: str | None = None
    num_words: int | None = 8000
    min_count: int = 2
    min_length: int = 1
    max_length: int = corpora.MAX_LENGTH

    def __post_init__(self) -> None:
        if not isinstance(self.corpus, corpora.Source):
            raise ValueError(
                "corpus must be an OpenDefault, a HubDataset or LocalFiles of howattend.tasks.corpora, "
                f"got {self.corpus!r}"
            )
        for name in ("num_words", "min_count", "min_length", "max_length"):
            value = getattr(self, name)
            if value is None and name == "num_words":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be an integer ≥ 1, got {value!r}")
        if self.min_length > self.max_length:
            raise ValueError(f"min_length must not exceed max_length, got {self.min_length} > {self.max_length}")
        if self.max_length > corpora.MAX_LENGTH:
            raise ValueError(f"max_length must be at most {corpora.MAX_LENGTH}, got {self.max_length}")

    def settings(self) -> dict[str, object]:
        """The task's name and parameters and the corpus's own; where these do not pin its content, a hash of that, too.

        Raises FileNotFoundError where such a corpus has not been built.
        """
        own = ("register", "num_words", "min_count", "min_length", "max_length")
        content = {} if self.corpus.pinned else {"corpus_sha256": self._corpus.content_hash}
        settings = {name: getattr(self, name) for name in own}
        return {"name": self.name, "corpus": self.corpus.settings(), **content, **settings}

    # ---- words ------------------------------------------------------------------------------------------------------

    @cached_property
    def _corpus(self) -> corpora.Corpus:
        corpus = corpora.load(self.corpus)
        if self.register not in (None, *corpus.registers):
            raise ValueError(
                f"register must be None or one of this corpus's, {', '.join(map(repr, corpus.registers))}, got "
                f"{self.register!r}"
            )
        return corpus

    @property
    def source_vocabulary(self) -> Vocabulary:
        """The most common English words of the training split, most common first."""
        return self._vocabularies[0]

    @property
    def target_vocabulary(self) -> Vocabulary:
        """The most common French words of the training split, most common first."""
        return self._vocabularies[1]

    @cached_property
    def _vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """English and French: shipped, so that a shipped network needs no corpus, or else cut from the corpus."""
        path = self.vocabularies_path
        if path.exists():
            return _read_vocabularies(path, self.settings())
        try:
            return self.cut_vocabularies()
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{path} is missing. If this is the task of a shipped network, restore it with git checkout; else its "
                f"vocabularies are cut from the corpus, and {error}"
            ) from None

    @property
    def vocabularies_path(self) -> Path:
        """Where the vocabularies of shipped networks of this task are."""
        return files.data_folder() / "vocabularies" / f"{self.name}-{files.canonical_hash(self.settings())[:12]}.json"

    def ship_vocabularies(self) -> Path:
        """Store the vocabularies, for machines without the corpus."""
        words = [list(vocabulary.words) for vocabulary in self.cut_vocabularies()]
        content = {"task": self.settings(), "source": words[0], "target": words[1]}
        files.write_json(self.vocabularies_path, {**content, "sha256": files.canonical_hash(content)})
        return self.vocabularies_path

    def cut_vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """English and French, from the corpus, whatever is shipped."""
        return self._cut("source"), self._cut("target")

    def _cut(self, side: str) -> Vocabulary:
        words = getattr(self._corpus, f"{side}_words")
        sentences = getattr(self._corpus, side)[self._rows("train")]
        counts = torch.bincount(sentences[sentences >= 0], minlength=len(words)).tolist()
        often = [number for number, count in enumerate(counts) if count >= self.min_count]
        if not often:
            raise ValueError(
                f"min_count must be at most {max(counts)}, got {self.min_count}: no {side} word occurs more often in "
                "the training split; lower it, or use a larger corpus"
            )
        if len(often) < (self.num_words or 1):
            raise ValueError(
                f"num_words must be at most {len(often)}, got {self.num_words}: no more {side} words occur at least "
                f"{self.min_count} times (min_count) in the training split; lower either, pass None for all these "
                "words, or use a larger corpus"
            )
        often.sort(key=lambda number: (-counts[number], words[number]))
        return Vocabulary.of_words((words[number] for number in often[: self.num_words]), unknown=True)

    def words(self, sentence: str, language: str = "en") -> list[str]:
        """The words of a sentence of one's own, written as usual, made as the corpus's were."""
        if not isinstance(sentence, str):
            raise TypeError(f"a sentence must be a string, got {shortened(sentence)}")
        return corpora.tokenise(corpora.clean(sentence), language, self.corpus.tokeniser)

    def unknown_words(self, sentence: str) -> list[str]:
        """The words of an English sentence that the vocabulary lacks, in order."""
        return [word for word in self.words(sentence) if word not in self.source_vocabulary]

    # ---- pairs ------------------------------------------------------------------------------------------------------

    def _rows(self, split: str) -> Tensor:
        """[M] bool, True on the corpus's pairs that this task has in a split."""
        if split not in corpora.SPLITS:
            raise ValueError(f"split must be one of {', '.join(map(repr, corpora.SPLITS))}, got {split!r}")
        rows = self._corpus.rows(split, self.register)
        for sentences in (self._corpus.source, self._corpus.target):
            lengths = (sentences >= 0).sum(1)
            rows &= (lengths >= self.min_length) & (lengths <= self.max_length)
        if not rows.any():
            raise ValueError(
                f"the {split} split has no pair of sentences of {self.min_length} … {self.max_length} words; change "
                "min_length or max_length"
            )
        return rows

    def split(self, name: str) -> Batch:
        """All pairs of "train", "validation" or "test", in the corpus's order, padded to max_length + 1 steps.

        Alignments are not known (−1) but for the ends of sentence, which translate each other. The batch is made once
        and shared: index it, and leave its tensors as they are.
        """
        if name not in self._splits:
            rows = self._rows(name)
            source, source_lengths = self._encode(self._corpus.source[rows], "source")
            target, target_lengths = self._encode(self._corpus.target[rows], "target")
            self._splits[name] = _batch(source, source_lengths, target, target_lengths)
        return self._splits[name]

    @cached_property
    def _splits(self) -> dict[str, Batch]:
        return {}

    def split_words(self, name: str) -> tuple[list[list[str]], list[list[str]], list[str]]:
        """English words, French words and register of each pair of a split, in the order of :meth:`split`.

        They are the corpus's own: those that the vocabulary lacks are here too.
        """
        rows, corpus, sides = self._rows(name), self._corpus, []
        for side in ("source", "target"):
            words = getattr(corpus, f"{side}_words")
            numbers = getattr(corpus, side)[rows].tolist()
            sides.append([[words[number] for number in row if number >= 0] for row in numbers])
        return *sides, [corpus.registers[number] for number in corpus.register[rows].tolist()]

    def _encode(self, numbers: Tensor, side: str) -> tuple[Tensor, Tensor]:
        """Ids [B, max_length + 1] and lengths [B], ends of sentence included, of the corpus's word numbers."""
        vocabulary, words = getattr(self, f"{side}_vocabulary"), getattr(self._corpus, f"{side}_words")
        known = torch.tensor([vocabulary.id(word) for word in words] + [PAD])  # number −1 is the last entry
        ids = torch.nn.functional.pad(known[numbers[:, : self.max_length].long()], (0, 1), value=PAD)
        lengths = (numbers >= 0).sum(1)
        ids[torch.arange(len(ids)), lengths] = EOS
        return ids, lengths + 1

    def _draw(self, size: int, random: torch.Generator) -> Batch:
        """Pairs of the training split, each as likely as any other at every draw."""
        train = self.split("train")
        return train[torch.randint(len(train), (size,), generator=random)]

    def training_batch(self, size: int, seed: int, step: int) -> Batch:
        """The batch of one training step: every pair once an epoch, in an order that depends on seed and epoch alone.

        A batch holds pairs of like lengths and is cut to the longest, so that little of it is padding. What an epoch's
        last full batch leaves over is another share of the pairs in each epoch.
        """
        train = self.split("train")
        size = min(size, len(train))
        epoch, place = divmod(step, len(train) // size)
        key = (size, int(seed), epoch)
        if self._epoch.get("key") != key:
            self._epoch.update(key=key, rows=_buckets(train, size, generator("training", seed, epoch)))
        return train[self._epoch["rows"][place]].trimmed()

    @cached_property
    def _epoch(self) -> dict[str, object]:
        """The order of the pairs in the epoch that is under way."""
        return {}

    def validation_set(self, size: int = 512) -> Batch:
        """Pairs of the validation split, drawn once and for all: the split's own order is no random one."""
        pairs = self.split("validation")
        return pairs[torch.randperm(len(pairs), generator=generator("validation"))[: check_size(size)]]

    def test_set(self, size: int | None = None) -> Batch:
        """The whole test split, or its first ``size`` pairs, which are no random sample of it."""
        return self.split("test")[: None if size is None else check_size(size)]

    def unknown_share(self, split: str) -> tuple[float, float]:
        """The shares of the English and of the French words of a split that are ``<unk>``; ends do not count."""
        batch, shares = self.split(split), []
        for ids in (batch.source, batch.target):
            words = int((ids > EOS).sum())
            shares.append(int((ids == UNK).sum()) / words)
        return tuple(shares)

    # ---- sentences of one's own -------------------------------------------------------------------------------------

    def encode(self, sentences: str | Sequence[str]) -> tuple[Tensor, Tensor]:
        """English sentences of one's own as ids [B, T] and lengths [B], for :meth:`EncoderDecoder.generate`.

        They may be written as usual: they are cleaned and cut to words as the corpus was. A word that the vocabulary
        lacks becomes ``<unk>``; :meth:`unknown_words` names them.

        ValueError where a sentence is empty, longer than the task's, or has no known word at all; TypeError for what is
        no string.
        """
        if not isinstance(sentences, Iterable) or isinstance(sentences, bytes):
            raise TypeError(f"sentences must be a string or a list of strings, got {shortened(sentences)}")
        rows = [self._own(sentence, "en") for sentence in ([sentences] if isinstance(sentences, str) else sentences)]
        if not rows:
            raise ValueError("sentences must hold at least one sentence")
        return pad_rows(rows)

    def pairs(self, pairs: Sequence[tuple[str, str]]) -> Batch:
        """English sentences of one's own with their French translations, both written as usual.

        ValueError and TypeError as for :meth:`encode`.
        """
        if not pairs:
            raise ValueError("pairs must hold at least one pair of sentences")
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise TypeError(
                    f"pairs must be a list of pairs, [(English, French), …], got one that is none: {shortened(pair)}"
                )
        source = pad_rows([self._own(english, "en") for english, _ in pairs])
        return _batch(*source, *pad_rows([self._own(french, "fr") for _, french in pairs]))

    def _own(self, sentence: str, language: str) -> list[int]:
        vocabulary = self.source_vocabulary if language == "en" else self.target_vocabulary
        words = self.words(sentence, language)
        ids = vocabulary.encode(words)
        if not 1 <= len(ids) <= self.max_length:
            raise ValueError(f"a sentence must have 1 … {self.max_length} words, got {len(ids)}: {shortened(sentence)}")
        if set(ids) == {UNK}:
            raise ValueError(
                f"no word of {shortened(sentence)} is in the vocabulary ({cut(', '.join(words))}: all unknown), whose "
                f"most common words are {', '.join(vocabulary.words[index] for index in vocabulary.content_ids[:20])}"
            )
        return [*ids, EOS]


def _read_vocabularies(path: Path, settings: dict[str, object]) -> tuple[Vocabulary, Vocabulary]:
    """The two vocabularies of a file; ValueError where it is not as it was written, or another task's."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        checksum = content.pop("sha256")
        if checksum != files.canonical_hash(content) or content["task"] != json.loads(json.dumps(settings)):
            raise ValueError("its content does not match its checksum or its name")
        return Vocabulary(tuple(content["source"])), Vocabulary(tuple(content["target"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it with git checkout") from None


_POOL = 32  # batches that are sorted by length together: enough for little padding, few enough for varied batches


def _buckets(pairs: Batch, size: int, random: torch.Generator) -> Tensor:
    """Rows of pairs [batches, size]: shuffled, sorted by length pool by pool, and the batches shuffled."""
    order = torch.randperm(len(pairs), generator=random)[: len(pairs) // size * size]
    keys = pairs.target_lengths * (int(pairs.source_lengths.max()) + 1) + pairs.source_lengths
    order = torch.cat([pool[keys[pool].argsort(stable=True)] for pool in order.split(_POOL * size)]).view(-1, size)
    return order[torch.randperm(len(order), generator=random)]


def _batch(source: Tensor, source_lengths: Tensor, target: Tensor, target_lengths: Tensor) -> Batch:
    alignment = torch.full_like(target, -1)
    alignment[torch.arange(len(target)), target_lengths - 1] = source_lengths - 1
    return Batch(source, source_lengths, target, target_lengths, alignment)
