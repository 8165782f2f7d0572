"""The paper's claims as functions of runs: criteria from claims.toml, measurements as a tidy table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from howattend import csv_files, files, runs
from howattend.claims import causal, dynamics, escan, one_to_one, reversed, sort, translation, ved
from howattend.claims.criteria import (
    CRITERIA,
    NOT_COMPARABLE,
    VERDICTS,
    Criterion,
    Measurement,
    address,
    is_comparable,
)
from howattend.tables import Table

Claim = Callable[[Mapping[str, runs.Run]], Measurement]

_MODULES = (one_to_one, reversed, sort, escan, dynamics, causal, translation, ved)

#: Every claim that is measured. A function takes the runs under the names of their parts: "run" is the one that the
#: claim is about, others ("ao", "words8") are what it is compared with.
CLAIMS: dict[str, Claim] = {name: claim for module in _MODULES for name, claim in module.CLAIMS.items()}


@dataclass(frozen=True)
class Planned:
    """One row of the ledger: a claim, and the run that takes each part in it."""

    claim: str
    parts: Mapping[str, str]


PLAN: tuple[Planned, ...] = tuple(Planned(claim, parts) for module in _MODULES for claim, parts in module.PLAN)

#: What rows hold. A value is empty where a claim says nothing about a run.
KINDS = {
    "claim": csv_files.text(),
    "run": csv_files.text(),
    "seed": csv_files.whole(),
    "quantity": csv_files.text(),
    "value": csv_files.number(empty=True),
    "verdict": csv_files.one_of(*VERDICTS),
    "accuracy": csv_files.number(0, 1),
    "config_hash": csv_files.hexadecimal(64),
}
COLUMNS = tuple(KINDS)


def measure(claim: str, parts: Mapping[str, runs.Run]) -> Measurement:
    """One claim on runs given under the names of their parts.

    It is not comparable where one of the runs was trained quickly or is below its accuracy bar.

    Raises ValueError for a claim that is not measured, a missing part, or a run that the claim says nothing about.
    """
    if claim not in CLAIMS:
        raise ValueError(f"claim must be one of {', '.join(CLAIMS)}, got {claim!r}")
    needed = {part for row in PLAN if row.claim == claim for part in row.parts}
    if missing := needed - parts.keys():
        raise ValueError(f"parts must hold a run for each of {sorted(needed)} of {claim}, missing {sorted(missing)}")
    found = CLAIMS[claim](parts)
    name, value = next(iter(found.quantities.items()))
    if math.isnan(value):
        raise ValueError(
            f"{claim} says nothing about {found.run}: its {name!r} is over nothing on this task's test set; choose "
            "other settings of the task"
        )
    return replace(found, comparable=found.comparable and all(is_comparable(claim, parts[part]) for part in needed))


def measure_plan(available: Mapping[str, runs.Run], plan: Iterable[Planned] = PLAN) -> list[Measurement]:
    """All planned rows whose runs are at hand."""
    return [
        measure(row.claim, {part: available[name] for part, name in row.parts.items()})
        for row in plan
        if all(name in available for name in row.parts.values())
    ]


def measure_shipped(device: str = "cpu") -> list[Measurement]:
    """All planned rows on the shipped runs, in the plan's order, with the states of few runs in memory at a time."""
    found: dict[int, Measurement] = {}
    for name in dict.fromkeys(row.parts["run"] for row in PLAN):
        rows = {index: row for index, row in enumerate(PLAN) if row.parts["run"] == name}
        needed = {part for row in rows.values() for part in row.parts.values()}
        available = {part: runs.load_run(part, device) for part in needed}
        found |= dict(zip(rows, measure_plan(available, rows.values()), strict=True))
    return [found[index] for index in sorted(found)]


def tidy(measurements: Iterable[Measurement]) -> pd.DataFrame:
    """One row a quantity. The claim's deciding quantity comes first and carries the verdict: see :data:`VERDICTS`."""
    rows = []
    for found in measurements:
        verdict = "" if found.verdict is None else str(found.verdict)
        verdict = verdict if found.comparable else NOT_COMPARABLE
        for index, (quantity, value) in enumerate(found.quantities.items()):
            shown, origin = "" if index else verdict, (found.accuracy, found.config_hash)
            rows.append((found.claim, found.run, found.seed, quantity, value, shown, *origin))
    return pd.DataFrame(rows, columns=list(COLUMNS))


_GOOD, _BAD = "verdict-yes", "verdict-no"
_MARKS = {"reproduced": _GOOD, "holds": _GOOD, "not reproduced": _BAD, "does not hold": _BAD}


def summary(rows: pd.DataFrame) -> Table:
    """The claims table of a chapter, from the rows of :func:`tidy` or :func:`read_results`: what the paper says, the
    criterion, and what each run measured.
    """
    sections: dict[str, list[tuple[str, str, str]]] = {}
    for (claim, run), found in rows.groupby(["claim", "run"], sort=False):
        criterion = CRITERIA[claim]
        limits = criterion.limits.values()
        heading = f"{claim}. {criterion.claim} (Fig. {criterion.figure}: {criterion.paper}) — reproduced if"
        if criterion.origin == "ours":
            heading = f"{claim}. {criterion.claim} — predicted"
        values = " · ".join(format_quantity(row.quantity, row.value, limits) for row in found.itertuples())
        row = run, values, criterion.say(found["verdict"].iloc[0])
        sections.setdefault(f"{heading}: {criterion.reproduced_if}", []).append(row)
    links = {claim: address(claim) for claim in rows["claim"].unique()}
    return Table(("run", "measured", "verdict"), sections, _MARKS, links)


def format_quantity(quantity: str, value: float, limits: Iterable[float] = ()) -> str:
    """A quantity as text, with two digits behind the point, or two significant: another processor changes nothing.

    Where two digits would make it look like one of the claim's ``limits``, a third tells on which side it is.
    """
    if quantity.startswith("accuracy"):
        return f"{quantity} = {value:.2%}"
    if any(round(value, 2) == limit != value for limit in limits):
        return f"{quantity} = {value:.3f}"
    return f"{quantity} = {value:.2f}" if abs(value) >= 0.0995 or value == 0 else f"{quantity} = {value:.2g}"


def results_path(name: str = "claims") -> Path:
    """Where the rows of the shipped runs are kept."""
    return files.data_folder() / "results" / f"{name}.csv"


def write_results(measurements: Iterable[Measurement]) -> Path:
    """Record measurements of the shipped runs; values are stored to six significant digits."""
    csv_files.write(results_path(), tidy(measurements))
    return results_path()


def read_results(*, missing_ok: bool = False) -> pd.DataFrame:
    """The recorded rows. ValueError where the file is damaged; FileNotFoundError where there is none, or no rows with
    ``missing_ok``.
    """
    advice = "write it with: python -m howattend claims"
    return csv_files.read(results_path(), KINDS, missing_ok=missing_ok, advice=advice)


def compare(measurements: Iterable[Measurement], tolerance: float = 0.02) -> pd.DataFrame:
    """Measured rows that the recorded ones do not confirm: a value off by more than ``tolerance`` times its size (and
    1e-4, which is rounding for the smallest), another verdict, or no recorded row. Empty where all agree.
    """
    return differences(tidy(measurements), read_results(), tolerance)


def differences(rows: pd.DataFrame, recorded: pd.DataFrame, tolerance: float = 0.02) -> pd.DataFrame:
    """The same of two tables of :func:`tidy`'s columns: which of the first one's rows the second does not confirm."""
    keys = ["claim", "run", "seed", "quantity"]
    both = rows.merge(recorded, on=keys, how="left", suffixes=("", "_recorded"))
    allowed = tolerance * both["value_recorded"].abs() + 1e-4
    agrees = (both["value"] - both["value_recorded"]).abs() <= allowed
    same = (both["verdict"] == both["verdict_recorded"]) & (both["config_hash"] == both["config_hash_recorded"])
    return both.loc[~(agrees & same), [*keys, "value", "value_recorded", "verdict", "verdict_recorded"]]


__all__ = [
    "CLAIMS",
    "COLUMNS",
    "CRITERIA",
    "KINDS",
    "PLAN",
    "VERDICTS",
    "Criterion",
    "Measurement",
    "Planned",
    "compare",
    "differences",
    "format_quantity",
    "measure",
    "measure_plan",
    "measure_shipped",
    "read_results",
    "results_path",
    "summary",
    "tidy",
    "write_results",
]
