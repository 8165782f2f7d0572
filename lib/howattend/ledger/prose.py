"""A claim in a few printed lines: its verdict, its networks, and the conditions that were tried."""

from __future__ import annotations

import textwrap

import pandas as pd

from howattend.ledger.names import departures
from howattend.ledger.page import limits_in_words, seeds_note
from howattend.ledger.records import Ledger
from howattend.ledger.verdicts import NOT, REPRODUCED, Over, say

_WIDTH = 96


def told(book: Ledger, claim: str) -> str:
    """What was found about a claim: on the recipe's networks, and under which of the measured conditions it holds,
    under which not, and which say nothing (a report only, or too few networks that trained).
    """
    lines = [f"{claim}: {book.verdict(claim)}"]
    for _, row in book.of_claim(claim, "base").iterrows():
        size = "".join(f", {part}" for part in departures(row["run"])) if row["run"] in book.planned else ""
        lines += _wrapped(f"{row['architecture']}{size}: {_measured(row)}", "  ")
        tried = book.conditions(claim, row["task"], row["architecture"])
        parts = {
            "holds under": tried[tried["verdict"] == REPRODUCED],
            "does not under": tried[tried["verdict"] == NOT],
            "no verdict under": tried[~tried["verdict"].isin((REPRODUCED, NOT))],
        }
        for said, some in parts.items():
            if len(some):
                each = (f"{', '.join(departures(other['run']))} ({_seeds(other)})" for _, other in some.iterrows())
                lines += _wrapped(f"{said}: {'; '.join(each)}", "    ")
    return "\n".join(lines)


def _measured(row: pd.Series) -> str:
    over = Over.of(row["quantity"], row["seeds"], row["values"])
    limit = limits_in_words(row["at_least"], row["at_most"], over.number)
    limit = f" (limit {limit})" if limit else ""
    near = row["at_least"], row["at_most"]
    found = f"{over.quantity} {over.number(over.mean, near)}" if over.values else "no seed counts"
    found += f", {over.interval}" if over.interval else ""
    return f"{say(row['claim'], row['verdict'])}, {seeds_note(row)}; {found}{limit}"


def _seeds(row: pd.Series) -> str:
    """ "3 of 3", or how many of a condition's networks trained."""
    counted, every = len(row["seeds"]), len(row["seeds"]) + len(row["left_out"])
    return f"{row['holds']} of {counted}" if any(row["verdicts"]) else f"{counted} of {every} trained"


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
