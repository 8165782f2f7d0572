"""The subphrases of an extended SCAN sentence: what each of its words is, and where its phrase begins and ends."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import torch
from torch import Tensor

from howattend.tasks.batch import Batch
from howattend.tasks.vocabulary import EOS, Vocabulary


class Role(IntEnum):
    """What a word is."""

    VERB = 0
    DIRECTION = 1
    TWICE = 2
    AND = 3
    END = 4  # the end of sentence


class Kind(IntEnum):
    """What a phrase is."""

    VERB = 0  # run → RUN
    DIRECTION = 1  # run left → LTURN RUN
    TWICE = 2  # run twice → RUN RUN
    DIRECTION_TWICE = 3  # run left twice → LTURN RUN LTURN RUN


@dataclass(frozen=True, eq=False)
class Phrases:
    """The subphrase that each source step belongs to, [B, T] int64 each; −1 where there is none.

    "and" and the end of sentence belong to none: they have a role and nothing else. Padding has not even that.
    """

    role: Tensor  # [B, T] the word's Role
    kind: Tensor  # [B, T] the phrase's Kind
    index: Tensor  # [B, T] the phrase's number in the sentence, from 0
    start: Tensor  # [B, T] the phrase's first step, that of its verb
    end: Tensor  # [B, T] the phrase's last step
    verb: Tensor  # [B, T] word id of the phrase's verb

    @property
    def words(self) -> Tensor:
        """[B, T] the phrase's number of words, 0 where there is none."""
        return torch.where(self.start >= 0, self.end - self.start + 1, 0)

    def at(self, steps: Tensor) -> Phrases:
        """The same at source steps [B, S], −1 for none: ``phrases.at(batch.alignment)`` is that of the outputs."""

        def pick(values: Tensor) -> Tensor:
            return torch.where(steps >= 0, values.gather(1, steps.clamp(min=0)), -1)

        return Phrases(**{field.name: pick(getattr(self, field.name)) for field in fields(self)})


def parse(batch: Batch, vocabulary: Vocabulary, roles: dict[str, Role]) -> Phrases:
    """The phrases of a batch whose content words have these roles; every phrase begins with its verb."""
    source = batch.source
    if int(source.min()) < 0 or int(source.max()) >= len(vocabulary):
        raise ValueError(
            f"batch.source must hold word ids in 0 … {len(vocabulary) - 1}, got {int(source.min())} … "
            f"{int(source.max())}; is this batch of another task?"
        )
    table = torch.full((len(vocabulary),), -1, device=source.device)
    table[EOS] = int(Role.END)
    for word, role in roles.items():
        table[vocabulary.id(word)] = int(role)
    role = torch.where(batch.source_mask, table[source], -1)
    steps = torch.arange(source.shape[1], device=source.device).expand_as(source)

    begins = role == Role.VERB
    inside = begins | (role == Role.DIRECTION) | (role == Role.TWICE)
    index = torch.where(inside, begins.cumsum(1) - 1, -1)
    if bool((inside & (index < 0)).any()):
        row = int((inside & (index < 0)).any(1).nonzero()[0])
        raise ValueError(
            f"batch.source must hold phrases that begin with a verb, but pair {row} is "
            f"{' '.join(vocabulary.decode(source[row]))!r}"
        )

    def of_phrase(values: Tensor) -> Tensor:
        """The largest of the values [B, T] in each word's phrase."""
        values, groups = torch.where(inside, values, -1), index.clamp(min=0)
        largest = torch.full_like(source, -1).scatter_reduce(1, groups, values, "amax")
        return torch.where(inside, largest.gather(1, groups), -1)

    start = of_phrase(torch.where(begins, steps, -1))
    turns, repeats = (of_phrase((role == wanted).long()) for wanted in (Role.DIRECTION, Role.TWICE))
    kind = torch.where(inside, turns + 2 * repeats, -1)
    verb = torch.where(inside, source.gather(1, start.clamp(min=0)), -1)
    return Phrases(role, kind, index, start, of_phrase(steps), verb)
