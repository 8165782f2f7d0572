"""What every task offers: two vocabularies, samples from an explicit seed, and fixed held-out sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from howattend.tasks.batch import Batch, pad_rows
from howattend.tasks.vocabulary import EOS, Vocabulary

# Every use of randomness has a stream of its own: a training set shares its seeds with none of the sets that it is
# judged on. (torch's CPU generator keeps 32 bits of a seed, so two meet by chance once in four billion pairs.)
_STREAMS = {"sample": 0, "training": 1, "validation": 2, "test": 3, "weights": 4, "dropout": 5}
TEST_SAMPLES = 10_000


def generator(stream: str, *seeds: int) -> torch.Generator:
    """A generator for one use of randomness, at one seed (or several: seed and step)."""
    for seed in seeds:
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
            raise ValueError(f"seed must be an integer ≥ 0, got {seed!r}")
    mixed = np.random.SeedSequence([_STREAMS[stream], *(int(seed) for seed in seeds)]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(mixed[0] >> np.uint64(1)))


def check_size(size: object) -> int:
    """The number of pairs that is asked for; ValueError unless it is an integer of at least 1."""
    if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size must be an integer ≥ 1, got {size!r}")
    return int(size)


class Task(ABC):
    """Pairs of source and target sentences with a known alignment. Subclasses are frozen dataclasses of parameters."""

    name: ClassVar[str]
    default_decoder_input: ClassVar[str] = "predicted"
    #: Whether word accuracy is that of the next word after the true ones, and not of free-running decoding: where a
    #: target can be said in several ways, a sentence that differs by one word is not wrong from there on.
    teacher_forced_accuracy: ClassVar[bool] = False
    max_length: int  # words of the longest source; of the longest target, too, unless target_steps says otherwise

    @property
    @abstractmethod
    def source_vocabulary(self) -> Vocabulary: ...

    @property
    @abstractmethod
    def target_vocabulary(self) -> Vocabulary: ...

    @property
    def source_steps(self) -> int:
        """T: steps of the longest source, end of sentence included."""
        return self.max_length + 1

    @property
    def target_steps(self) -> int:
        """S: steps of the longest target, end of sentence included."""
        return self.max_length + 1

    @abstractmethod
    def _draw(self, size: int, random: torch.Generator) -> Batch: ...

    def sample(self, size: int, seed: int | torch.Generator) -> Batch:
        """``size`` sentence pairs, drawn independently; the same seed gives the same pairs."""
        return self._draw(check_size(size), seed if isinstance(seed, torch.Generator) else generator("sample", seed))

    def training_batch(self, size: int, seed: int, step: int) -> Batch:
        """The batch of one training step. It depends on seed and step alone, so an interrupted training can resume."""
        return self.sample(size, generator("training", seed, step))

    def validation_set(self, size: int = 512) -> Batch:
        """The fixed pairs that a training watches."""
        return self.sample(size, generator("validation"))

    def test_set(self, size: int = TEST_SAMPLES) -> Batch:
        """The fixed held-out pairs that every result is measured on."""
        return self.sample(size, generator("test"))

    def encode(self, sentences: str | Sequence[str]) -> tuple[Tensor, Tensor]:
        """Source sentences of one's own as ids [B, T] and lengths [B], for :meth:`EncoderDecoder.generate`.

        ValueError where a sentence is empty, longer than the task's or has an unknown or special word.
        """
        rows = []
        for sentence in [sentences] if isinstance(sentences, str) else sentences:
            ids = self.source_vocabulary.encode(sentence)
            if not 1 <= len(ids) < self.source_steps:
                raise ValueError(
                    f"a source sentence must have 1 … {self.source_steps - 1} words, got {len(ids)}: {sentence!r}"
                )
            if min(ids) <= EOS:
                raise ValueError(f"a source sentence must hold words only, its end is added here; got {sentence!r}")
            rows.append([*ids, EOS])
        if not rows:
            raise ValueError("sentences must hold at least one sentence")
        return pad_rows(rows)

    def settings(self) -> dict[str, object]:
        """The task's name and parameters, as they enter a run's configuration."""
        return {"name": self.name, **asdict(self)}
