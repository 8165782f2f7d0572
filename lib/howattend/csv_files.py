"""Records in csv files: written in one move; read whole and checked cell by cell, or refused with the wrong line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from howattend import files
from howattend._validation import cut

_MERGE = ("<<<<<<<", "=======", ">>>>>>>")  # what git leaves of a merge with conflicts


@dataclass(frozen=True)
class Kind:
    """What the cells of a column hold."""

    dtype: type
    must: str  # for the message
    read: Callable[[str], object]  # a cell; ValueError where it holds something else


def text(*, empty: bool = False) -> Kind:
    """Any text."""
    return Kind(str, "not be empty", str) if empty else _matching(".+", "not be empty")


def one_of(*values: str) -> Kind:
    """One of a few words, of which one may be none at all."""
    said = " or ".join([", ".join(value or "empty" for value in values[:-1]), values[-1] or "empty"])
    return _matching("|".join(map(re.escape, values)), f"be {said}")


def hexadecimal(digits: int, *, empty: bool = False) -> Kind:
    """A hash of so many digits."""
    said = f"be {digits} hexadecimal digits{' or empty' if empty else ''}"
    return _matching(f"[0-9a-f]{{{digits}}}{'|' if empty else ''}", said)


def truth() -> Kind:
    """True or False."""
    words = one_of("True", "False")
    return Kind(bool, words.must, lambda cell: words.read(cell) == "True")


def whole(least: int = 0) -> Kind:
    """A whole number of at least so much."""

    def read(cell: str) -> int:
        if not re.fullmatch("[0-9]{1,18}", cell) or int(cell) < least:
            raise ValueError(cell)
        return int(cell)

    return Kind(int, f"be a whole number of at least {least}", read)


def number(least: float = -math.inf, most: float = math.inf, *, empty: bool = False) -> Kind:
    """A number within bounds, both included; where a cell may be empty, that is NaN."""

    def read(cell: str) -> float:
        if empty and not cell:
            return math.nan
        if not least <= float(cell) <= most:  # NaN is not
            raise ValueError(cell)
        return float(cell)

    bounds = "" if least == -math.inf else f" of at least {least:g}" if most == math.inf else f" in {least:g}..{most:g}"
    return Kind(float, f"be a number{bounds}{' or empty' if empty else ''}", read)


def _matching(pattern: str, must: str) -> Kind:
    def read(cell: str) -> str:
        if not re.fullmatch(pattern, cell):
            raise ValueError(cell)
        return cell

    return Kind(str, must, read)


def empty(columns: Mapping[str, Kind]) -> pd.DataFrame:
    """A table of these columns without rows."""
    return pd.DataFrame({name: pd.Series(dtype=kind.dtype) for name, kind in columns.items()})


def read(
    path: Path,
    columns: Mapping[str, Kind],
    check: Callable[[dict], str | None] = lambda row: None,
    *,
    missing_ok: bool = False,
    advice: str = "restore it with git checkout",
) -> pd.DataFrame:
    """A file's rows, one or more, with exactly these columns.

    Args:
        path: of the file.
        columns: what each of its columns holds.
        check: of a row by itself, as a dictionary: what is wrong with it, if anything.
        missing_ok: without the file there are no rows.
        advice: what to do where the file is missing.

    Raises ValueError where anything else is in it, with the line; FileNotFoundError where it is missing.
    """
    if not path.exists():
        if missing_ok:
            return empty(columns)
        raise FileNotFoundError(f"{path} is missing; {advice}")
    try:
        return _table(path.read_text(encoding="utf-8"), columns, check)
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); restore it with git checkout") from None


def write(path: Path, table: pd.DataFrame) -> None:
    """Record a table in one move, numbers to six significant digits, the same bytes on every system."""
    text = io.StringIO()
    table.to_csv(text, index=False, float_format="%.6g", lineterminator="\n")
    files.write_text(path, text.getvalue())


def _lines(content: str) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, with its number."""
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as error:
        raise ValueError(f"{error} in line {reader.line_num}") from None


def _table(content: str, columns: Mapping[str, Kind], check: Callable[[dict], str | None]) -> pd.DataFrame:
    for line, here in enumerate(content.split("\n"), 1):
        if here.startswith(_MERGE):
            raise ValueError(f"a merge is not finished: line {line} is {cut(here, 40)}")
    lines = _lines(content)
    _, header = next(lines, (0, []))
    if not header:
        raise ValueError("it is empty")
    if missing := [name for name in columns if name not in header]:
        raise ValueError(f"it has no {', '.join(missing)}")
    if header != list(columns):
        raise ValueError(f"its columns must be {', '.join(columns)}")
    rows = []
    for line, cells in lines:
        if len(cells) != len(header):
            raise ValueError(f"line {line} has {len(cells)} values and not {len(header)}")
        row = {}
        for (name, kind), cell in zip(columns.items(), cells, strict=True):
            try:
                row[name] = kind.read(cell)
            except ValueError:
                raise ValueError(f"{name} must {kind.must}, got {cut(cell)!r} in line {line}") from None
        if problem := check(row):
            raise ValueError(f"{problem} in line {line}")
        rows.append(row)
    if not rows:
        raise ValueError("it has no rows")
    return pd.DataFrame(rows).astype({name: kind.dtype for name, kind in columns.items()})
