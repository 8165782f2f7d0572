"""What every source of sentence pairs offers."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import ClassVar

from howattend.tasks.corpora.pairs import Pair
from howattend.tasks.corpora.tokens import TOKENISERS

RECIPE = 1  # raised whenever cleaning, tokenisers, filters or splits change, so that no corpus of older ones is taken


@dataclass(frozen=True, kw_only=True)
class Source(ABC):
    """Where the pairs of a corpus come from; subclasses are frozen dataclasses of settings.

    tokeniser
        "words" or "plain": see :mod:`~howattend.tasks.corpora.tokens`.
    """

    kind: ClassVar[str]
    tokeniser: str = "words"

    def __post_init__(self) -> None:
        if self.tokeniser not in TOKENISERS:
            raise ValueError(f"tokeniser must be one of {', '.join(map(repr, TOKENISERS))}, got {self.tokeniser!r}")

    @property
    def command(self) -> str:
        """What builds this corpus at the command line."""
        tokeniser = [] if self.tokeniser == "words" else ["--tokeniser", self.tokeniser]
        return shlex.join(["python", "-m", "howattend", "corpus", *self._options(), *tokeniser])

    @abstractmethod
    def _options(self) -> list[str]:
        """The options of that command."""

    @abstractmethod
    def read(self, progress: bool) -> list[Pair]:
        """Every sentence pair, in a fixed order; nothing is dealt to splits yet."""

    @abstractmethod
    def provenance(self) -> list[dict[str, str]]:
        """A row for each origin of pairs: "origin", and as far as there are "version", "licence", "file", "sha256"."""

    def fingerprint(self) -> dict[str, list[int]]:
        """What tells that the source itself has changed since a corpus was built from it."""
        return {}

    @property
    def pinned(self) -> bool:
        """Whether the settings alone say what the corpus holds, now and for good."""
        return False

    def settings(self) -> dict[str, object]:
        """All that decides the corpus, as plain data."""
        return {"kind": self.kind, "recipe": RECIPE, **asdict(self)}


def check_columns(columns: object) -> tuple[str, str]:
    """The two names as a tuple; ValueError where they are anything else."""
    if isinstance(columns, str) or not hasattr(columns, "__len__") or len(columns) != 2:
        raise ValueError(f"columns must be two names, of the English column and of the French one, got {columns!r}")
    return tuple(map(str, columns))


def check_most(max_pairs: int | None) -> None:
    """ValueError unless max_pairs is None or a positive integer."""
    if max_pairs is not None and (not isinstance(max_pairs, int) or isinstance(max_pairs, bool) or max_pairs < 1):
        raise ValueError(f"max_pairs must be an integer ≥ 1, or None for all of them, got {max_pairs!r}")
