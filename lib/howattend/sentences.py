"""Sentence pairs of our own: what a translation network can be tried on where the corpus is not at hand."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from howattend import files
from howattend.analysis import Run
from howattend.models import EncoderDecoder
from howattend.tasks import UNK, Batch

COLUMNS = ("english", "french", "register", "shows")


def path() -> Path:
    """Where the pairs are kept."""
    return files.data_folder() / "sentences" / "pairs.tsv"


def read() -> pd.DataFrame:
    """The pairs: english, french, register ("interface", "everyday", "narrative") and what each shows ("flip", …).

    Raises FileNotFoundError where the file is missing, ValueError where it is damaged.
    """
    if not path().exists():
        raise FileNotFoundError(f"{path()} is missing; restore it with git checkout")
    rows = [line.split("\t") for line in path().read_text(encoding="utf-8").splitlines()]
    if rows[:1] != [list(COLUMNS)] or len(rows) < 2 or not all(len(row) == len(COLUMNS) and all(row) for row in rows):
        raise ValueError(
            f"{path()} is damaged: it must have a header and rows of {', '.join(COLUMNS)}; restore it with git checkout"
        )
    return pd.DataFrame(rows[1:], columns=list(COLUMNS))


@torch.no_grad()
def right_words(model: EncoderDecoder, batch: Batch, chunk: int = 256) -> Tensor:
    """[B, S] bool, True where the next word after the true ones (teacher forcing) is the target's; False on padding.

    On the CPU, whatever device the batch is on.
    """
    right = torch.zeros(batch.target.shape, dtype=torch.bool)
    for start in range(0, len(batch), chunk):
        part = batch[start : start + chunk].trimmed()
        words = model(part, "teacher").argmax(-1)
        right[start : start + len(part), : words.shape[1]] = ((words == part.target) & part.target_mask).cpu()
    return right


def accuracies(right: Tensor, batch: Batch) -> tuple[float, float]:
    """Word accuracy of all target words, and of those that are not ``<unk>``; ends of sentence count in both.

    The first is what a training watches, in which an ``<unk>`` foretold where the target has one is right. That is
    easier than the word itself, so the second stands beside it.

    Args:
        right: [B, S] as :func:`right_words` returns it.
        batch: on the CPU.
    """
    words, known = batch.target_mask, batch.target_mask & (batch.target != UNK)
    return float(right[words].double().mean()), float(right[known].double().mean())


def measure(run: Run) -> dict[str, object]:
    """The manifest's record of a translation run on these pairs: teacher-forced word accuracy of all target words and
    of the known ones, their number, the number of pairs, and the sha256 of the file that they are in."""
    pairs = read()
    batch = run.task.pairs(list(zip(pairs["english"], pairs["french"], strict=True)))
    accuracy, known = accuracies(right_words(run.model, batch.to(run.device)), batch)
    return {
        "accuracy": round(accuracy, 6),
        "known_accuracy": round(known, 6),
        "words": int(batch.target_mask.sum()),
        "pairs": len(pairs),
        "sha256": files.file_hash(path()),
    }
