"""The criteria, read from claims.toml, and what a measurement against one looks like."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Literal

from howattend.analysis import Run
from howattend.tasks import Translation

NOT_COMPARABLE = "not comparable"
#: What the verdict column holds, and how a chapter says it.
VERDICTS = {
    "True": "reproduced",
    "False": "not reproduced",
    "": "reported",
    NOT_COMPARABLE: "not comparable (a quick training, or below its accuracy bar)",
}
_OWN = {"True": "holds", "False": "does not hold"}
#: About accuracy itself: a run that misses its bar is not left out of these, it is what refutes them.
ABOUT_ACCURACY = ("O1", "E1")


@dataclass(frozen=True)
class Criterion:
    """One row of claims.toml, fixed before any result: a claim of the paper, or this project's own prediction."""

    id: str
    figure: str
    claim: str
    statistic: str
    reproduced_if: str
    paper: str = ""  # what the paper has found; nothing where the project predicts
    origin: Literal["paper", "ours"] = "paper"
    limits: Mapping[str, float] = field(default_factory=dict)

    def say(self, verdict: str) -> str:
        """The words of a verdict, as the tidy table has it: the paper's claims are reproduced, ours hold, or not."""
        return (VERDICTS | _OWN if self.origin == "ours" else VERDICTS)[verdict]


def _read() -> dict[str, Criterion]:
    content = tomllib.loads((files("howattend.claims") / "claims.toml").read_text(encoding="utf-8"))
    return {name: Criterion(name, **row) for name, row in content["claims"].items()}


CRITERIA: dict[str, Criterion] = _read()


def address(claim: str) -> str:
    """Where a claim stands in the ledger, from any page of the book."""
    return f"ledger.html#claim-{claim}"


def accuracy_of(run: Run) -> float:
    """Word accuracy on the test set; translation's is :mod:`howattend.measured`'s, which needs no corpus."""
    return run.measured.accuracy if isinstance(run.task, Translation) else run.accuracy


def is_comparable(claim: str, run: Run) -> bool:
    """Whether a claim's verdict can be over this run: trained in full, and to its accuracy bar, says the protocol."""
    return run.comparable and (claim in ABOUT_ACCURACY or accuracy_of(run) >= run.config.accuracy_bar)


@dataclass(frozen=True)
class Measurement:
    """A claim measured on a run. It keeps none of the run's states, so that many can be held."""

    claim: str
    run: str
    seed: int
    quantities: Mapping[str, float]  # the first is the one that the claim is named after
    verdict: bool | None  # None where the criterion only asks for a report
    accuracy: float
    config_hash: str
    comparable: bool

    @classmethod
    def of(cls, claim: str, run: Run, verdict: bool | None, quantities: Mapping[str, float]) -> Measurement:
        """What was measured on a run."""
        verdict = None if verdict is None else bool(verdict)
        plain = {quantity: float(value) for quantity, value in quantities.items()}
        origin = accuracy_of(run), run.config.hash, is_comparable(claim, run)
        return cls(claim, run.name, run.seed, plain, verdict, *origin)
