"""The sweep: every configuration of the book at several seeds, and every claim on each of them."""

from howattend.sweep.checks import check
from howattend.sweep.digest import measuring_digest
from howattend.sweep.engine import estimate, overview, run, trained, unmeasured
from howattend.sweep.measuring import approximation, planned
from howattend.sweep.plan import Entry, Job, Name, Plan, full_plan, jobs, left_over, matching, resolve
from howattend.sweep.rows import RUN_COLUMNS, read_rows, read_runs
from howattend.sweep.work import load

__all__ = [
    "RUN_COLUMNS",
    "Entry",
    "Job",
    "Name",
    "Plan",
    "approximation",
    "check",
    "estimate",
    "full_plan",
    "jobs",
    "left_over",
    "load",
    "matching",
    "measuring_digest",
    "overview",
    "planned",
    "read_rows",
    "read_runs",
    "resolve",
    "run",
    "trained",
    "unmeasured",
]
