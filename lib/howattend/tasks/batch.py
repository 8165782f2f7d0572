"""Sentence pairs as padded tensors."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from howattend.tasks.vocabulary import PAD


@dataclass(frozen=True, eq=False)
class Batch:
    """B sentence pairs, padded to T source and S target steps; every sentence ends with an end of sentence.

    ``alignment`` gives, for each target word, the source step (from 0) of the word it translates, −1 where there is
    none; the end of a target sentence translates the end of its source.
    """

    source: Tensor  # [B, T] int64 word ids
    source_lengths: Tensor  # [B] int64, end of sentence included
    target: Tensor  # [B, S] int64 word ids
    target_lengths: Tensor  # [B] int64, end of sentence included
    alignment: Tensor  # [B, S] int64

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            check_tokens(getattr(self, side), getattr(self, f"{side}_lengths"), side)
        if self.alignment.shape != self.target.shape:
            raise ValueError(
                f"alignment must have the target's shape {tuple(self.target.shape)}, got {tuple(self.alignment.shape)}"
            )
        if len(self.target) != len(self.source):
            raise ValueError(f"source and target must pair up, got {len(self.source)} and {len(self.target)} sentences")

    @property
    def source_mask(self) -> Tensor:
        """[B, T] bool, True on words and the end of sentence."""
        return length_mask(self.source_lengths, self.source.shape[1])

    @property
    def target_mask(self) -> Tensor:
        """[B, S] bool, True on words and the end of sentence."""
        return length_mask(self.target_lengths, self.target.shape[1])

    def __len__(self) -> int:
        return self.source.shape[0]

    def __getitem__(self, index: slice | Tensor) -> Batch:
        """The sentence pairs picked by a slice or an index tensor."""
        return Batch(**{field.name: getattr(self, field.name)[index] for field in fields(self)})

    def trimmed(self) -> Batch:
        """The same pairs without the steps that are padding in all of them."""
        source, target = int(self.source_lengths.max()), int(self.target_lengths.max())
        return replace(
            self,
            source=self.source[:, :source],
            target=self.target[:, :target],
            alignment=self.alignment[:, :target],
        )

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        return Batch(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def length_mask(lengths: Tensor, steps: int) -> Tensor:
    """[B, steps] bool, True before each length."""
    return torch.arange(steps, device=lengths.device) < lengths[:, None]


def check_tokens(tokens: Tensor, lengths: Tensor, name: str) -> None:
    """ValueError unless tokens are ids [B, steps] and lengths [B] fit them: each from 1 to the number of steps."""
    if tokens.ndim != 2 or tokens.shape[0] == 0 or tokens.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"{name} must be integer word ids [B, steps] with B ≥ 1, got {tuple(tokens.shape)} of {tokens.dtype}"
        )
    if lengths.shape != tokens.shape[:1] or lengths.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"{name}_lengths must be integers [{tokens.shape[0]}], one length a sentence, "
            f"got {tuple(lengths.shape)} of {lengths.dtype}"
        )
    if int(lengths.min()) < 1 or int(lengths.max()) > tokens.shape[1]:
        raise ValueError(
            f"{name}_lengths must lie in 1 … {tokens.shape[1]}, got {int(lengths.min())} … {int(lengths.max())}; "
            "a length counts the end of sentence, so an empty sentence has length 1"
        )


def pad_rows(rows: list[list[int]], steps: int | None = None) -> tuple[Tensor, Tensor]:
    """Rows of ids of unequal length as a padded tensor [B, steps] and its lengths [B]."""
    lengths = torch.tensor([len(row) for row in rows])
    padded = torch.full((len(rows), steps or int(lengths.max())), PAD)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return padded, lengths
