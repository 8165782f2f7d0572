"""Tables for the book's pages: the same text on every run, with and without HTML.

A pandas Styler prints its memory address where a page shows no HTML, so a chapter's output could not be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Table:
    """Rows of text in sections, each under a heading that spans all columns.

    ``marks`` gives some cell texts a CSS class (book/_static/book.css has the classes), ``links`` some an address; of a
    heading what stands before its first full stop can have one.
    """

    columns: Sequence[str]
    sections: Mapping[str, Sequence[Sequence[str]]]  # heading: rows
    marks: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in self.columns)
        body = []
        for heading, rows in self.sections.items():
            first, stop, rest = heading.partition(".")
            shown = f"{self._linked(first)}{escape(stop + rest)}"
            span = f'<th scope="rowgroup" colspan="{len(self.columns)}">{shown}</th>'
            body.append(f"<tbody><tr>{span}</tr>{''.join(map(self._row, rows))}</tbody>")
        return f'<table class="howattend-table"><thead><tr>{head}</tr></thead>{"".join(body)}</table>'

    def _row(self, cells: Sequence[str]) -> str:
        def cell(text: str) -> str:
            mark = f' class="{self.marks[text]}"' if text in self.marks else ""
            return f"<td{mark}>{self._linked(text)}</td>"

        return f"<tr>{''.join(map(cell, cells))}</tr>"

    def _linked(self, text: str) -> str:
        return f'<a href="{escape(self.links[text])}">{escape(text)}</a>' if text in self.links else escape(text)

    def __repr__(self) -> str:
        lines = [" | ".join(self.columns)]
        for heading, rows in self.sections.items():
            lines += [heading, *("  " + " | ".join(row) for row in rows)]
        return "\n".join(lines)
