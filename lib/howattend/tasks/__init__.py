"""Sequence-to-sequence tasks whose true alignment is known."""

from howattend.tasks.base import TEST_SAMPLES, Task, generator
from howattend.tasks.batch import Batch, length_mask
from howattend.tasks.sequences import OneToOne, Reversed, Sorted
from howattend.tasks.vocabulary import BOS, EOS, PAD, SPECIAL_WORDS, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIAL_WORDS",
    "TEST_SAMPLES",
    "Batch",
    "OneToOne",
    "Reversed",
    "Sorted",
    "Task",
    "Vocabulary",
    "generator",
    "length_mask",
]
