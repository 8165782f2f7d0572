"""Rows of data sets and files, read by the package ``datasets`` as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType

from tqdm import tqdm

from howattend._progress import bar_options
from howattend.tasks.corpora.pairs import Pair, make_pair

REGISTER = "text"  # of pairs whose register is not known


def import_datasets() -> ModuleType:
    """The package; ModuleNotFoundError says how to get it."""
    try:
        import datasets
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "this corpus is read by the package datasets: pip install datasets; the default corpus does not need it"
        ) from None
    return datasets


def stream(open_splits: Callable[[], Iterable[Iterable[Mapping]]], failure: Callable[[str], Exception]) -> Iterator:
    """The rows of all splits that the call opens.

    Whatever ``datasets``, and the packages under it, raise on the way becomes one error, made from its message.
    """
    try:
        for split in open_splits():
            yield from split
    except Exception as error:  # of a dozen types: HTTP, file systems, parsers, the package's own
        reason = str(error).strip() or type(error).__name__
        raise failure(reason if reason.endswith((".", "!", "?")) else f"{reason}.") from error


def cells(rows: Iterable[Mapping], columns: tuple[str, str], what: str, hint: str = "") -> Iterator[tuple[str, str]]:
    """The two columns of each row; "translation.en" is the field "en" of a column "translation".

    ValueError where there is no such column; ``hint`` ends its message.
    """
    for row in rows:
        yield tuple(_cell(row, column, what, hint) for column in columns)


def _cell(row: Mapping, column: str, what: str, hint: str) -> str:
    value: object = row
    for part in [column] if column in row else column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            names = [name if len(name) <= 30 else f"{name[:30]}…" for name in _names(row)]
            raise ValueError(
                f"columns must be columns of {what}, which has {', '.join(map(repr, names))}, got {column!r}{hint}"
            )
        value = value[part]
    return "" if value is None else str(value)


def _names(row: Mapping) -> Iterator[str]:
    for name, value in row.items():
        yield from (f"{name}.{inner}" for inner in value) if isinstance(value, Mapping) else (str(name),)


def to_pairs(
    rows: Iterable[tuple[str, str]], origin: str, tokeniser: str, most: int | None, progress: bool
) -> list[Pair]:
    """The rows that are a sentence and its translation; the first ``most`` of them."""
    pairs: list[Pair] = []
    with tqdm(rows, desc=f"reading {origin}", unit="row", **bar_options(progress)) as bar:
        for source, target in bar:
            pair = make_pair(source, target, REGISTER, origin, tokeniser)
            if pair is not None:
                pairs.append(pair)
                if len(pairs) == most:
                    break
    return pairs
