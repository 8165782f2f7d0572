"""Parallel text from a data set on the Hugging Face hub, or from a local folder laid out like one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from howattend.tasks.corpora import rows
from howattend.tasks.corpora.pairs import Pair
from howattend.tasks.corpora.source import Source, check_columns, check_most


@dataclass(frozen=True, kw_only=True)
class HubDataset(Source):
    """A data set that ``datasets`` can stream; by default OPUS-100's million English–French pairs.

    All of its splits are read, in their order, and dealt anew: most published ones leak.

    repository
        Its name on the hub, or a local folder of the same layout.
    config
        One of its configurations; None where it has only one.
    revision
        Branch, tag or commit. A commit makes the corpus the same for good; ignored for a local folder.
    columns
        The English and the French one; "translation.en" is the field "en" of the column "translation".
    max_pairs
        Stop after so many sentence pairs; None reads all of them.
    """

    kind: ClassVar[str] = "hub"
    repository: str = "Helsinki-NLP/opus-100"
    config: str | None = "en-fr"
    revision: str = "main"
    columns: tuple[str, str] = ("translation.en", "translation.fr")
    max_pairs: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", check_columns(self.columns))
        check_most(self.max_pairs)

    @property
    def pinned(self) -> bool:
        """Whether the revision is a commit of the hub's: branches, tags and local folders may change."""
        return re.fullmatch("[0-9a-f]{40}", self.revision) is not None and not Path(self.repository).is_dir()

    def _options(self) -> list[str]:
        options = ["--hub", self.repository, "--columns", *self.columns, "--revision", self.revision]
        for name, value in (("--config", self.config), ("--max-pairs", self.max_pairs)):
            options += [] if value is None else [name, str(value)]
        return options

    def read(self, progress: bool) -> list[Pair]:
        """ConnectionError where the data set cannot be read, ValueError where it lacks a column."""
        datasets = rows.import_datasets()
        revision = None if Path(self.repository).is_dir() else self.revision

        def open_splits():
            return datasets.load_dataset(self.repository, self.config, revision=revision, streaming=True).values()

        def failure(reason: str) -> Exception:
            return ConnectionError(
                f"{self.repository} (configuration {self.config}, revision {revision}) could not be read: {reason} "
                "Check the names and the connection to the hub. Data sets that come as a script are no longer run by "
                "datasets; their revision refs/convert/parquet often holds the data. Without a connection, use a local "
                "copy as repository, or a file of your own: python -m howattend corpus --help"
            )

        stream = rows.cells(rows.stream(open_splits, failure), self.columns, self.repository)
        return rows.to_pairs(stream, self.repository, self.tokeniser, self.max_pairs, progress)

    def provenance(self) -> list[dict[str, str]]:
        return [
            {
                "origin": self.repository,
                "version": f"{self.config or 'default'}, {self.revision}",
                "licence": "see the data set's page",
            }
        ]
