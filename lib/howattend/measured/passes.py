"""Two passes over the test split: components, then all that needs them; memory does not grow with the pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from howattend.measured.results import Measured
from howattend.tasks import Batch

if TYPE_CHECKING:
    from howattend.analysis import Run


def measure(run: Run, *, progress: bool = True) -> Measured:
    """Measure a translation run on its test split; its corpus must have been built (FileNotFoundError says how).

    ValueError for a run of another task, or without dot-product attention (VED).
    """
    raise NotImplementedError


def measure_batches(run: Run, batches: Iterable[Batch], *, progress: bool = True) -> Measured:
    """The same on any batches of pairs, all padded to the task's steps; they are gone through twice."""
    raise NotImplementedError
