"""Parallel text in files of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar

from howattend import files
from howattend.tasks.corpora import rows
from howattend.tasks.corpora.pairs import Pair
from howattend.tasks.corpora.source import Source, check_columns, check_most


@dataclass(frozen=True, kw_only=True)
class LocalFiles(Source):
    """One file of two columns, or two files whose lines are each other's translations, compressed or not.

    paths
        ``*.parquet``; two text files, English and French (as Moses has them); or any other single file, which is read
        as columns with tabs between them and no quotation marks. ParaCrawl's ``en-fr.txt.gz`` is one of these.
    columns
        The English and the French column of a single file, by name (a text file then begins with a line of names) or,
        in a text file without such a line, by number from 0. None: the first two, which a parquet file must name.
    max_pairs
        Stop after so many sentence pairs; None reads all of them.
    """

    kind: ClassVar[str] = "files"
    paths: tuple[str, ...]
    columns: tuple[str, str] | None = None
    max_pairs: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        paths = [self.paths] if isinstance(self.paths, str | Path) else self.paths
        paths = tuple(str(Path(path).expanduser().resolve()) for path in paths)
        object.__setattr__(self, "paths", paths)
        if len(paths) not in (1, 2):
            raise ValueError(
                f"paths must be one file of two columns, or an English and a French file, got {len(paths)}"
            )
        parquet = [path for path in paths if path.endswith(".parquet")]
        if len(paths) == 2 and parquet:
            raise ValueError(
                f"paths must be one parquet file with a column for each language, or two text files whose lines are "
                f"each other's translations, got {' and '.join(Path(path).name for path in paths)}"
            )
        if self.columns is not None:
            if len(paths) == 2:
                raise ValueError("columns are those of a single file; of two files every whole line is read")
            object.__setattr__(self, "columns", check_columns(self.columns))
        elif parquet:
            raise ValueError("columns must name the English and the French column of a parquet file")
        check_most(self.max_pairs)

    def _options(self) -> list[str]:
        columns = [] if self.columns is None else ["--columns", *self.columns]
        return [
            "--files",
            *self.paths,
            *columns,
            *([] if self.max_pairs is None else ["--max-pairs", str(self.max_pairs)]),
        ]

    def read(self, progress: bool) -> list[Pair]:
        """FileNotFoundError or ValueError where a file is missing, damaged, empty, or lacks a column or a line."""
        for path in self.paths:
            if not Path(path).is_file():
                raise FileNotFoundError(f"there is no file {path}; check its path")
            if not Path(path).stat().st_size:
                raise ValueError(f"{path} is empty")
        pairs = self._lines() if len(self.paths) == 2 else self._cells()
        return rows.to_pairs(pairs, Path(self.paths[0]).name, self.tokeniser, self.max_pairs, progress)

    def _cells(self) -> Iterator[tuple[str, str]]:
        columns, path = self.columns or ("0", "1"), self.paths[0]
        if path.endswith(".parquet"):
            return rows.cells(self._stream("parquet", path), columns, path)
        numbered = all(column.isdecimal() for column in columns)
        keys = map(int, columns) if numbered else columns
        options = {"sep": "\t", "quoting": 3, "keep_default_na": False, "converters": dict.fromkeys(keys, str)}
        hint = "; columns are numbered from 0 and have tabs between them"
        if not numbered:
            hint = "; that is its first line, cut at the tabs. Of a file without a line of names, give numbers, from 0"
        stream = self._stream("csv", path, header=None if numbered else 0, **options)
        return rows.cells(stream, columns, path, hint)

    def _lines(self) -> Iterator[tuple[str, str]]:
        counts = [0, 0]
        for pair in zip_longest(*(self._stream("text", path) for path in self.paths)):
            counts = [count + (row is not None) for count, row in zip(counts, pair, strict=True)]
            if None not in pair:
                yield tuple(row["text"] for row in pair)
        if counts[0] != counts[1]:
            raise ValueError(
                f"{' and '.join(self.paths)} must have equally many lines, for line by line they are each other's "
                f"translations, but they have {counts[0]} and {counts[1]}"
            )

    def _stream(self, builder: str, path: str, **options: object) -> Iterator:
        datasets = rows.import_datasets()

        def open_splits():
            return datasets.load_dataset(builder, data_files=path, streaming=True, **options).values()

        def failure(reason: str) -> Exception:
            if "codec can't decode" in reason:
                return ValueError(
                    f"{path} is not encoded in UTF-8: {reason} Save it anew in UTF-8; if it is in Latin-1, with: "
                    "iconv -f ISO-8859-1 -t UTF-8 OLD > NEW"
                )
            kind = "tab-separated columns" if builder == "csv" else builder
            return ValueError(
                f"{path} could not be read as {kind}: {reason} Check that the file is complete and of the format that "
                "its name says: *.parquet, two text files, or one of tab-separated columns"
            )

        return rows.stream(open_splits, failure)

    def provenance(self) -> list[dict[str, str]]:
        return [
            {
                "origin": Path(self.paths[0]).name,
                "licence": "the user's own file",
                "file": Path(path).name,
                "sha256": files.file_hash(Path(path)),
            }
            for path in self.paths
        ]

    def fingerprint(self) -> dict[str, list[int]]:
        stats = {path: Path(path).stat() for path in self.paths if Path(path).exists()}
        return {path: [stat.st_size, stat.st_mtime_ns] for path, stat in stats.items()}
