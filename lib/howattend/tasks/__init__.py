"""Sequence-to-sequence tasks: synthetic ones, whose true alignment is known, and translation."""

from howattend.tasks import corpora, scan
from howattend.tasks.base import TEST_SAMPLES, Task, generator
from howattend.tasks.batch import Batch, length_mask
from howattend.tasks.extended_scan import ExtendedSCAN
from howattend.tasks.phrases import Kind, Phrases, Role
from howattend.tasks.sequences import OneToOne, Reversed, Sorted
from howattend.tasks.translation import Translation
from howattend.tasks.vocabulary import BOS, EOS, PAD, SPECIAL_WORDS, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIAL_WORDS",
    "TEST_SAMPLES",
    "UNK",
    "Batch",
    "ExtendedSCAN",
    "Kind",
    "OneToOne",
    "Phrases",
    "Reversed",
    "Role",
    "Sorted",
    "Task",
    "Translation",
    "Vocabulary",
    "corpora",
    "generator",
    "length_mask",
    "scan",
]
