"""Every claim of the ledger on every seed and variant of the sweep: which apply to a run, and with which other runs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from howattend import claims, measured, statistics
from howattend.analysis import Run, array
from howattend.claims import Measurement, Planned
from howattend.sweep.plan import Name, Plan
from howattend.tasks import Translation

#: With learned queries and keys the components are those of queries and keys, by which places are found; these claims
#: are about what is read out of the attended state, which then are values.
_ABOUT_READING = frozenset({"D1", *(f"C{number}" for number in range(1, 9))})


def planned(name: str, names: Iterable[str]) -> list[Planned]:
    """The claims that are measured on a run, with the run that takes each part.

    A claim of the ledger (``claims.PLAN``) applies to every run of the same task and architecture. What it is compared
    with, if anything, has the run's own cell and attention, on the same task its size, too, and where it is of the same
    architecture as well all else of the run: L2, length, fed word. The ledger's own rows stay as they are. H1 applies
    wherever there is attention.

    Args:
        name: of the run.
        names: of all runs that there are; a claim that needs another one is left out.
    """
    own, names = Name.of(name), set(names)
    rows: dict[str, Planned] = {}
    for row in claims.PLAN:
        base = row.parts["run"]
        if base == name:
            rows[row.claim] = row
        elif base == str(Name(own.task, own.architecture, "gru")):
            others = {part: str(_alike(Name.of(other), own)) for part, other in row.parts.items() if part != "run"}
            rows.setdefault(row.claim, Planned(row.claim, {"run": name, **others}))
    if "scaled_dot" in own.departures:
        rows = {claim: row for claim, row in rows.items() if claim not in _ABOUT_READING}
    if own.architecture != "ved":
        rows["H1"] = Planned("H1", {"run": name})
    return [row for row in rows.values() if set(row.parts.values()) <= names]


def _alike(other: Name, run: Name) -> Name:
    changed = replace(other, cell=run.cell)
    if (other.task, other.architecture) == (run.task, run.architecture):
        return changed.with_departures(*run.departures)
    kept = [part for part in run.departures if part == "scaled_dot"]
    if other.task == run.task:
        kept += [part for part in run.departures if re.fullmatch(r"n\d+", part)]
    return changed.with_departures(*kept)


def due(plan: Plan, seed: int, recorded: Mapping[str, int | str], measured: set[tuple[str, str, str]]) -> list[Planned]:
    """The rows of one seed that can be measured and are not.

    Args:
        plan: of the sweep.
        seed: of all the parts.
        recorded: configuration hash of each recorded run of this seed, by name.
        measured: claim, run and configuration hash of the rows of this seed that there are.
    """
    rows = (row for name in plan.by_name if name in recorded for row in planned(name, plan.by_name))
    return [
        row
        for row in rows
        if set(row.parts.values()) <= recorded.keys()
        and (row.claim, row.parts["run"], recorded[row.parts["run"]]) not in measured
    ]


def measure(row: Planned, parts: Mapping[str, Run]) -> Measurement:
    """One row. A claim that says nothing about a run (there is no "and" at a rate of 0) is recorded as such."""
    for run in parts.values():
        if isinstance(run.task, Translation):
            _ = run.measured  # what is wrong with its corpus or files is no result
    try:
        if row.claim == "H1":
            return approximation(parts["run"])
        return claims.measure(row.claim, parts)
    except ValueError:
        return Measurement.of(row.claim, parts["run"], None, {NOT_MEASURABLE: math.nan})


NOT_MEASURABLE = "not measurable"


def approximation(run: Run) -> Measurement:
    """H1's two quantities of one run: how much μ^D·μ^E makes of the scores, and how well the mean attention of its
    length approximates a sample's. The claim is their rank correlation over runs.
    """
    if isinstance(run.task, Translation):
        shares, distance = run.measured.shares, measured.mean_attention_distance(run, progress=False)
    else:
        lengths, steps = array(run.test.source_lengths), array(run.common_decoder_mask)
        shares = run.shares
        distance = statistics.distance_to_mean_attention(array(run.trace.attention), lengths, steps)
    quantities = {"centred share": shares.centred[0, 0], "1 − TV, mean attention": 1 - distance}
    return Measurement.of("H1", run, None, quantities)
