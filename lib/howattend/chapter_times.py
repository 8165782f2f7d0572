"""How long each chapter took when it was last timed, by ``python -m howattend chapters --times``.

The file lies beside the results and not among them: a new time makes no chapter stale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from howattend import csv_files, files

#: Of a row a chapter. ``machine`` is in general words; the cores' seconds are empty where the system does not tell.
COLUMNS = {
    "chapter": csv_files.text(),
    "seconds": csv_files.number(0),
    "core_seconds": csv_files.number(0, empty=True),
    "machine": csv_files.text(),
}


def path(data: Path | None = None) -> Path:
    """Where times are kept, in a folder of data; None is the book's."""
    return (files.data_folder() if data is None else data) / "chapter_seconds.csv"


def read(file: Path | None = None, *, missing_ok: bool = False) -> pd.DataFrame:
    """The recorded times, with the columns of :data:`COLUMNS`.

    ValueError where the file is damaged; FileNotFoundError where there is none, or no rows with ``missing_ok``.
    """
    advice = "write it with: python -m howattend chapters --times"
    return csv_files.read(path() if file is None else file, COLUMNS, missing_ok=missing_ok, advice=advice)


def record(file: Path, spent: Mapping[str, tuple[float, float]], machine: str, order: Iterable[str]) -> None:
    """Put times into a file, in the place of older ones of the same chapters.

    Args:
        file: to write, or to add to.
        spent: by chapter, the seconds of the wall clock and of the cores (0: unknown).
        machine: in general words.
        order: the book's chapters; others leave the file.
    """
    new = [(name, round(wall, 1), round(cores, 1) or math.nan, machine) for name, (wall, cores) in spent.items()]
    table = pd.DataFrame(new, columns=list(COLUMNS))
    old = read(file, missing_ok=True)
    if len(old):  # pandas warns of tables without rows
        table = pd.concat([old[~old["chapter"].isin(list(spent))], table])
    order = {name: place for place, name in enumerate(order)}
    table = table[table["chapter"].isin(list(order))]
    csv_files.write(file, table.sort_values("chapter", key=lambda column: column.map(order)))
