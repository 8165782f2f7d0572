"""Sequence-to-sequence tasks whose true alignment is known."""

from howattend.tasks import scan
from howattend.tasks.base import TEST_SAMPLES, Task, generator
from howattend.tasks.batch import Batch, length_mask
from howattend.tasks.extended_scan import ExtendedSCAN
from howattend.tasks.phrases import Kind, Phrases, Role
from howattend.tasks.sequences import OneToOne, Reversed, Sorted
from howattend.tasks.vocabulary import BOS, EOS, PAD, SPECIAL_WORDS, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIAL_WORDS",
    "TEST_SAMPLES",
    "Batch",
    "ExtendedSCAN",
    "Kind",
    "OneToOne",
    "Phrases",
    "Reversed",
    "Role",
    "Sorted",
    "Task",
    "Vocabulary",
    "generator",
    "length_mask",
    "scan",
]
