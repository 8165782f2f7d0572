"""A corpus as word numbers, and its file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from howattend import files
from howattend._progress import bar_options
from howattend.tasks.corpora.pairs import MAX_LENGTH, SPLITS, Pair

_TENSORS = ("source", "target", "split", "register", "origin")
_NAMES = ("source_words", "target_words", "registers", "origins")


@dataclass(frozen=True, eq=False)
class Corpus:
    """M sentence pairs of up to 15 words, none cut from the vocabulary yet: a task decides how many words it keeps.

    Words are numbered from the most common one, of equals by their spelling.
    """

    source: Tensor  # [M, 15] int32 word numbers, −1 behind the end
    target: Tensor  # [M, 15] int32
    split: Tensor  # [M] uint8, index into SPLITS
    register: Tensor  # [M] uint8, index into registers
    origin: Tensor  # [M] uint8, index into origins
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    registers: tuple[str, ...]
    origins: tuple[str, ...]
    record: dict[str, object]  # settings of the source, its fingerprint, and a provenance row an origin

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def of(cls, dealt: Sequence[tuple[Pair, str]], record: dict[str, object], progress: bool = False) -> Corpus:
        """The corpus of pairs with their splits."""
        pairs = [pair for pair, _ in dealt]
        source, source_words = _number([pair.source for pair in pairs], "encoding English", progress)
        target, target_words = _number([pair.target for pair in pairs], "encoding French", progress)
        register, registers = _index([pair.register for pair in pairs])
        origin, origins = _index([pair.origin for pair in pairs])
        split = torch.tensor([SPLITS.index(name) for _, name in dealt], dtype=torch.uint8)
        return cls(source, target, split, register, origin, source_words, target_words, registers, origins, record)

    @cached_property
    def content_hash(self) -> str:
        """sha256 of the pairs and their splits, wherever they come from."""
        return files.content_hash(self._tensors(), {})

    def _tensors(self) -> dict[str, Tensor]:
        """The pairs as they are stored."""
        tensors = {name: getattr(self, name) for name in _TENSORS}
        for name in _NAMES:
            text = "\n".join(getattr(self, name))  # no word holds white space
            tensors[name] = torch.tensor(np.frombuffer(text.encode(), dtype=np.uint8))
        return tensors

    def rows(self, split: str, register: str | None = None) -> Tensor:
        """[M] bool, True on the pairs of a split, and of one register where one is named."""
        chosen = self.split == SPLITS.index(split)
        return chosen if register is None else chosen & (self.register == self.registers.index(register))

    def summary(self) -> dict[str, dict[str, float]]:
        """For all pairs and for each register: pairs a split, mean lengths in words, French words per English one."""
        lengths = {"source": (self.source >= 0).sum(1), "target": (self.target >= 0).sum(1)}
        table = {}
        for name in ("all", *(self.registers if len(self.registers) > 1 else ())):
            chosen = torch.ones_like(self.split, dtype=torch.bool)
            if name != "all":
                chosen = self.register == self.registers.index(name)
            words = {side: int(length[chosen].sum()) for side, length in lengths.items()}
            pairs = int(chosen.sum())
            table[name] = {
                **{split: int((chosen & self.rows(split)).sum()) for split in SPLITS},
                "English words": words["source"] / pairs,
                "French words": words["target"] / pairs,
                "French/English": words["target"] / words["source"],
            }
        return table

    def provenance(self) -> str:
        """The provenance rows with the number of pairs of each, as a table in Markdown."""
        counts = np.bincount(self.origin.numpy(), minlength=len(self.origins))
        kept = dict(zip(self.origins, counts.tolist(), strict=True))
        columns = ("origin", "version", "licence", "file", "sha256")
        lines = [f"| {' | '.join((*columns, 'pairs'))} |", f"|{'---|' * (len(columns) + 1)}"]
        for row in self.record["provenance"]:
            values = [*(row.get(column, "") for column in columns), str(kept.get(row["origin"], 0))]
            lines.append(f"| {' | '.join(values)} |")
        return "\n".join(lines) + "\n"

    def save(self, path: Path) -> None:
        """Write the corpus in one move."""
        files.save_tensors(path, self._tensors(), {"record": json.dumps(self.record, sort_keys=True)})

    @classmethod
    def load(cls, path: Path) -> Corpus:
        """Read a corpus; ValueError where its file is damaged."""
        tensors, metadata = files.load_tensors(path)
        names = {name: tuple(tensors.pop(name).numpy().tobytes().decode().split("\n")) for name in _NAMES}
        return cls(**tensors, **names, record=json.loads(metadata["record"]))


def _number(sentences: list[str], task: str, progress: bool) -> tuple[Tensor, tuple[str, ...]]:
    counts = Counter(word for sentence in sentences for word in sentence.split(" "))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    numbers = {word: number for number, word in enumerate(words)}
    rows = np.full((len(sentences), MAX_LENGTH), -1, dtype=np.int32)
    for row, sentence in zip(rows, tqdm(sentences, desc=task, unit="pair", **bar_options(progress)), strict=True):
        known = [numbers[word] for word in sentence.split(" ")]
        row[: len(known)] = known
    return torch.from_numpy(rows), tuple(words)


def _index(labels: Iterable[str]) -> tuple[Tensor, tuple[str, ...]]:
    names = {name: number for number, name in enumerate(sorted(set(labels)))}
    return torch.tensor([names[label] for label in labels], dtype=torch.uint8), tuple(names)
