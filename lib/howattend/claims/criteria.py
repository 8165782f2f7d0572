"""The criteria, read from claims.toml, and what a measurement against one looks like."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from howattend.analysis import Run
from howattend.tasks import Translation


@dataclass(frozen=True)
class Criterion:
    """One row of claims.toml, fixed before any result."""

    id: str
    figure: str
    claim: str
    statistic: str
    paper: str
    reproduced_if: str
    limits: Mapping[str, float]


def _read() -> dict[str, Criterion]:
    content = tomllib.loads((files("howattend.claims") / "claims.toml").read_text(encoding="utf-8"))
    return {name: Criterion(name, **{"limits": {}, **row}) for name, row in content["claims"].items()}


CRITERIA: dict[str, Criterion] = _read()


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
        """What was measured on a run. Translation's accuracy is :mod:`howattend.measured`'s, which needs no corpus."""
        verdict = None if verdict is None else bool(verdict)
        plain = {quantity: float(value) for quantity, value in quantities.items()}
        accuracy = run.measured.accuracy if isinstance(run.task, Translation) else run.accuracy
        origin = accuracy, run.config.hash, run.comparable
        return cls(claim, run.name, run.seed, plain, verdict, *origin)
