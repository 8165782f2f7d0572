"""Where measurements are kept, and whether a stored one is of the run at hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from howattend import files
from howattend.measured.results import Measured

if TYPE_CHECKING:
    from howattend.analysis import Run


def path(name: str) -> Path:
    """Where the measurement of a run is kept: data/results/components/NAME.npz."""
    return files.data_folder() / "results" / "components" / f"{name}.npz"


def load(path: Path) -> Measured:
    """Read a measurement; ValueError where the file is damaged, FileNotFoundError, with what to do, where none is."""
    raise NotImplementedError


def stored(run: Run) -> Measured:
    """The stored measurement of a run. Raises as :func:`load`, and ValueError where it is of other weights."""
    raise NotImplementedError


def of(run: Run) -> Measured:
    """The stored measurement where it is of this run's very weights; else it is measured here, which needs the corpus.

    ``run.measured`` is this, computed once.
    """
    raise NotImplementedError


def obtain(run: Run, *, progress: bool = True) -> tuple[Measured, bool]:
    """The measurement of a run, and whether it was recomputed.

    With the corpus at hand all is computed anew, and compared with what is stored of the same weights: ValueError names
    what differs. Without it the stored one is loaded; FileNotFoundError says what to do where there is none.
    """
    raise NotImplementedError
