"""A claim in a few lines: its verdict, its networks, and the conditions that were tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from howattend.claims.criteria import address
from howattend.ledger.names import departures, departures_of, fails_elsewhere
from howattend.ledger.page import ELSEWHERE, STYLE, limits_in_words, seeds_note, verdict_html
from howattend.ledger.records import ALL_RUNS, Ledger
from howattend.ledger.verdicts import NOT, REPRODUCED, Over, say


@dataclass(frozen=True)
class Told:
    """What was found about some claims: on the recipe's networks, and under which of the measured conditions each
    holds, under which not, and which say nothing (a report only, or too few networks that trained).
    """

    book: Ledger
    claims: Sequence[str]

    def _repr_html_(self) -> str:
        parts = []
        for claim in self.claims:
            parts.append(
                f'<p><a href="{address(claim)}"><b>{claim}</b></a> '
                f"{verdict_html(claim, self.book.verdict(claim).verdict)}</p><ul>"
            )
            for found, tried in self._networks(claim):
                inner = "".join(f"<li>{escape(line)}</li>" for line in tried)
                parts.append(f"<li>{escape(found)}{f'<ul>{inner}</ul>' if inner else ''}</li>")
            parts.append("</ul>")
        return f'{STYLE}<div class="ledger ledger-told">{"".join(parts)}</div>'

    def __repr__(self) -> str:
        lines = []
        for claim in self.claims:
            lines.append(f"{claim}: {self.book.verdict(claim)}")
            for found, tried in self._networks(claim):
                lines += [f"  {found}", *(f"    {line}" for line in tried)]
        return "\n".join(lines)

    def _networks(self, claim: str) -> Iterator[tuple[str, list[str]]]:
        """A line for each network of the recipe, and lines on its conditions."""
        for _, row in self.book.of_claim(claim, "base").iterrows():
            tried = self.book.conditions(claim, row["task"], row["architecture"])
            parts = {
                "holds under": tried[tried["verdict"] == REPRODUCED],
                "does not under": tried[tried["verdict"] == NOT],
                "no verdict under": tried[~tried["verdict"].isin((REPRODUCED, NOT))],
            }
            lines = []
            for said, some in parts.items():
                each = (f"{', '.join(departures_of(other, row))} ({_seeds(other)})" for _, other in some.iterrows())
                lines += [f"{said}: {'; '.join(each)}"] if len(some) else []
            yield f"{_name(row['run'], row['architecture'])}: {_measured(row)}", lines


def told(book: Ledger, *claims: str) -> Told:
    """Some claims as paragraphs of a page."""
    return Told(book, claims)


def _name(run: str, architecture: str) -> str:
    """The architecture, and what tells a network from the others of the recipe: AED, 96 units."""
    if run == ALL_RUNS:
        return run
    try:
        return ", ".join((architecture, *departures(run)))
    except ValueError:  # the registers of translation
        return f"{architecture}, {run}"


def _measured(row: pd.Series) -> str:
    over, near = Over.of(row["quantity"], row["seeds"], row["values"]), (row["at_least"], row["at_most"])
    limit = limits_in_words(*near, over.number)
    found = f"{over.quantity} {over.number(over.mean, near)}" if over.values else "no seed counts"
    found += f", {over.interval}" if over.interval else ""
    found += f" (limit {limit})" if limit else ""
    found += f"; {ELSEWHERE}" if fails_elsewhere(row) else ""
    return f"{say(row['claim'], row['verdict'])}, {seeds_note(row)}; {found}"


def _seeds(row: pd.Series) -> str:
    """ "3 of 3", or how many of a condition's networks trained."""
    counted, every = len(row["seeds"]), len(row["seeds"]) + len(row["left_out"])
    return f"{row['holds']} of {counted}" if any(row["verdicts"]) else f"{counted} of {every} trained"
