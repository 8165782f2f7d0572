"""Tables for the book's pages: the same text on every run, with and without HTML.

A pandas Styler prints its memory address where a page shows no HTML, so a chapter's output could not be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows of text. A cell that repeats the one above is shown once; ``marks`` gives some cell texts a CSS class."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    marks: dict[str, str] | None = None

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        body, above = [], [""] * len(self.columns)
        for row in self.rows:
            same, cells = True, []
            for cell, last in zip(row, above, strict=True):
                same = same and cell == last  # only from the left: a later column may repeat by chance
                mark = (self.marks or {}).get(cell)
                attribute = f' class="{mark}"' if mark else ""
                cells.append(f"<td{attribute}>{'' if same else _lines(cell)}</td>")
            body.append(f"<tr>{''.join(cells)}</tr>")
            above = list(row)
        return (
            '<div class="howattend-table"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        )

    def __repr__(self) -> str:
        return "\n".join(" | ".join(cell.replace("\n", "; ") for cell in row) for row in [self.columns, *self.rows])


def _lines(cell: str) -> str:
    return "<br>".join(escape(line) for line in cell.split("\n"))
