"""The ledger as a page: a table with a dot for every seed, which reads without a script and filters with one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from howattend.claims import CRITERIA
from howattend.ledger.links import FIGURES, TASKS
from howattend.ledger.names import VARIANTS, departures_of, fails_elsewhere
from howattend.ledger.records import ALL_RUNS, ARCHITECTURES, Ledger
from howattend.ledger.verdicts import CONDITION, FEW, NOT, REPORTED, REPRODUCED, UNMEASURED, VERDICTS, Over, bounds, say

#: A sign beside each verdict, so that colour is not all that tells them apart; and the class of its colour.
SIGNS = {REPRODUCED: "●", CONDITION: "◐", NOT: "○", REPORTED: "·", FEW: "·", UNMEASURED: "·"}
CLASSES = {REPRODUCED: "yes", CONDITION: "partly", NOT: "no", REPORTED: "open", FEW: "open", UNMEASURED: "open"}
#: What the dots need to be seen, with the page or, in Jupyter, without: _static/book.css has the rest.
STYLE = """<style>
.ledger svg { display: block; max-width: 100%; }
.ledger svg .may { fill: var(--ledger-may, #e5f1f7); }
.ledger svg .limit { stroke: var(--pst-color-text-muted, #666); }
.ledger svg :is(.interval, .mean) { stroke: var(--pst-color-text-base, #222); stroke-width: 1.2; fill: none; }
.ledger svg .seed.yes { fill: var(--ledger-yes, #0072b2); }
.ledger svg .seed.no { fill: none; stroke: var(--ledger-no, #c0263f); stroke-width: 1.8; }
.ledger svg .seed.open { fill: var(--pst-color-text-muted, #666); }
.ledger svg .seed.out { fill: none; stroke: var(--pst-color-text-muted, #666); stroke-width: 1.2; }
.ledger svg text { fill: var(--pst-color-text-muted, #666); font-size: 10px; }
.ledger svg .at-limit { font-weight: 700; }
.ledger-limit { display: none; } /* a phone shows it: there the axis is far from most dots */
.ledger-verdict.yes { color: var(--ledger-yes, #0072b2); }
.ledger-verdict.partly { color: var(--ledger-partly, #2b8cc4); }
.ledger-verdict.no { color: var(--ledger-no, #c0263f); }
</style>"""
_WIDTH, _HEIGHT, _MARGIN = 220, 26, 8  # of a row's axis, in the SVG's own units
#: Said of a row whose number passes while its claim fails.
ELSEWHERE = "fails by another part of the criterion"
#: Where V1–V3, which have no rows of their own, are found by the filters.
_TASKS_OF_VARIANTS = "one_to_one escan"
_ARCHITECTURES_OF_VARIANTS = {"V1": "AED AO VED", "V2": "AED AO", "V3": "AO"}


@dataclass(frozen=True)
class Axis:
    """The numbers that the axis of a claim runs from and to, the same in all its rows; none that is impossible."""

    low: float
    high: float

    @classmethod
    def of(cls, rows: pd.DataFrame) -> Axis:
        """Over all values that count, intervals and limits; values of networks that did not train may lie outside."""
        values = [value for values in rows["values"] for value in values]
        values += [value for name in ("low", "high", "at_least", "at_most") for value in rows[name]]
        values = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(values), max(values)
        room = 0.06 * (high - low) or 0.05 * abs(high) or 0.5
        possible = [bounds(quantity) for quantity in rows["quantity"].unique()]
        least, most = min((b[0] for b in possible), default=-math.inf), max((b[1] for b in possible), default=math.inf)
        return cls(max(low - room, min(least, low)), min(high + room, max(most, high)))

    def place(self, value: float) -> float:
        """The x of a value; one outside lies at the end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(_MARGIN + share * (_WIDTH - 2 * _MARGIN), 1)


def limits_in_words(at_least: float, at_most: float, number) -> str:
    """ "≥ 0.9", "0.87 to 1.13", "1.00 in its interval"; nothing without limits."""
    lower, upper = math.isfinite(at_least), math.isfinite(at_most)
    if lower and upper:
        one = at_least == at_most
        return f"{number(at_least)} in its interval" if one else f"{number(at_least)} to {number(at_most)}"
    return f"≥ {number(at_least)}" if lower else f"≤ {number(at_most)}" if upper else ""


def seeds_svg(row: pd.Series, axis: Axis) -> str:
    """The seeds of a row as dots, one above the other in their order: full where the claim holds, crossed where not,
    hollow for networks that did not train; the mean with its interval; the region in which the claim can hold, shaded.
    """
    over = Over.of(row["quantity"], row["seeds"], row["values"])
    seeds = [*zip(row["seeds"], row["values"], row["verdicts"], strict=True)]
    seeds += [(seed, value, None) for seed, value in zip(row["left_out"], row["left_out_values"], strict=True)]
    seeds.sort(key=lambda each: each[0])
    parts = []
    height = max(_HEIGHT, 8 + 4 * (len(seeds) - 1))  # ten seeds would lie on one another
    lower, upper = row["at_least"], row["at_most"]
    if math.isfinite(lower) or math.isfinite(upper):
        left = axis.place(lower) if math.isfinite(lower) else 0
        right = axis.place(upper) if math.isfinite(upper) else _WIDTH
        parts.append(f'<rect class="may" x="{left}" y="0" width="{round(right - left, 1)}" height="{height}"/>')
        for value in {lower, upper}:
            if math.isfinite(value):
                x = axis.place(value)
                parts.append(f'<path class="limit" d="M{x} 0V{height}"/>')
    middle = height / 2
    if len(over.values) > 1:
        low, high = axis.place(over.low), axis.place(over.high)
        parts.append(f'<path class="interval" d="M{low} {middle}H{high}"/>')
        parts.append(f'<path class="mean" d="M{axis.place(over.mean)} {middle - 6}v12"/>')
    step = (height - 8) / max(len(seeds) - 1, 1)
    for place, (_, value, verdict) in enumerate(seeds):
        if not math.isfinite(value):
            continue
        x, y = axis.place(value), round(4 + place * step if len(seeds) > 1 else middle, 1)
        if verdict == "False":
            parts.append(f'<path class="seed no" d="M{x - 2.6:.1f} {y - 2.6:.1f}l5.2 5.2m0 -5.2l-5.2 5.2"/>')
        else:
            name = {"True": "yes", "": "open", None: "out"}[verdict]
            parts.append(f'<circle class="seed {name}" cx="{x}" cy="{y}" r="3"/>')
    label = escape(_described(row, over), quote=True)
    return (
        f'<svg class="ledger-seeds" role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}">{"".join(parts)}</svg>'
    )


def _described(row: pd.Series, over: Over) -> str:
    """What the dots of a row show, for those who do not see them."""
    if not over.values:
        text = "no seed trained"
    else:
        text = f"{over.quantity} by seed: {', '.join(over.number(value) for value in over.values)}"
        text += f"; mean {over.number(over.mean)}"
        text += f", {over.spread} {over.interval}" if over.interval else ""
    said = limits_in_words(row["at_least"], row["at_most"], over.number)
    text += f"; limit {said}" if said else ""
    return text + (f"; left out: {len(row['left_out'])}" if row["left_out"] else "")


def _axis_svg(axis: Axis, row: pd.Series) -> str:
    """The numbers at the ends of a claim's axis, and the limit of its first row."""
    number = Over.of(row["quantity"], (), ()).number
    marks = [(axis.low, "start"), (axis.high, "end")]
    limit = next((value for value in (row["at_least"], row["at_most"]) if math.isfinite(value)), None)
    texts = []
    if limit is not None:
        x = axis.place(limit)
        anchor = "start" if x < 30 else "end" if x > _WIDTH - 30 else "middle"
        texts.append(f'<text class="at-limit" x="{x}" y="11" text-anchor="{anchor}">{escape(number(limit))}</text>')
        marks = [(value, where) for value, where in marks if abs(axis.place(value) - x) > 62]
    for value, where in marks:
        texts.append(f'<text x="{axis.place(value)}" y="11" text-anchor="{where}">{escape(number(value))}</text>')
    return (
        f'<svg class="ledger-axis" aria-hidden="true" viewBox="0 0 {_WIDTH} 14" width="{_WIDTH}" height="14">'
        f"{''.join(texts)}</svg>"
    )


def verdict_html(claim: str, verdict: str, note: str = "") -> str:
    """A verdict with its sign and colour."""
    note = f" <small>{escape(note)}</small>" if note else ""
    sign = f'<span aria-hidden="true">{SIGNS[verdict]}</span>'
    return f'<span class="ledger-verdict {CLASSES[verdict]}">{sign} {escape(say(claim, verdict))}</span>{note}'


def seeds_note(row: pd.Series) -> str:
    """On how many seeds a row's claim holds: "5 of 5 seeds; 1 left out"."""
    counted = len(row["seeds"])
    seeds = "1 seed" if counted == 1 else f"{counted} seeds"
    judged = any(row["verdicts"])
    note = (f"{row['holds']} of {seeds}" if counted > 1 else seeds) if judged else seeds
    return note + (f"; {len(row['left_out'])} left out" if row["left_out"] else "")


@dataclass(frozen=True)
class Page:
    """The ledger's table: every claim with its base runs, and the conditions that were tried, folded.

    ``filters`` adds the form that narrows it by task, architecture, verdict and words (_static/ledger.js). Without the
    script the form stays hidden and everything is shown.
    """

    book: Ledger
    claims: Sequence[str]
    filters: bool = True

    def _repr_html_(self) -> str:
        bodies = "".join(self._claim(claim) for claim in self.claims)
        head = "".join(f'<th scope="col">{name}</th>' for name in ("network", "mean", "seeds", "verdict"))
        table = f'<table class="ledger-table"><thead><tr>{head}</tr></thead>{bodies}</table>'
        script = '<script src="../_static/ledger.js" defer></script>' if self.filters else ""
        return f'{STYLE}<div class="ledger">{self._form() if self.filters else ""}{table}</div>{script}'

    def __repr__(self) -> str:
        lines = []
        for claim in self.claims:
            verdict = self.book.verdicts[claim]
            lines.append(f"{claim}. {CRITERIA[claim].claim}: {verdict}")
            for _, row in self.book.of_claim(claim, "base").iterrows():
                over = Over.of(row["quantity"], row["seeds"], row["values"])
                lines.append(
                    f"    {row['run']}: {over.quantity} {over}; {say(claim, row['verdict'])}, {seeds_note(row)}"
                )
        return "\n".join(lines)

    def _form(self) -> str:
        tasks = {"": "all", **TASKS}
        architectures = {"": "all", **{name: name for name in ARCHITECTURES}}
        found = {self.book.verdicts[claim].verdict for claim in self.claims}
        verdicts = {"": "all", **{verdict: verdict for verdict in VERDICTS if verdict in found}}

        def choice(name: str, options: dict[str, str]) -> str:
            options = "".join(f'<option value="{escape(key)}">{escape(said)}</option>' for key, said in options.items())
            return f'<label>{name} <select name="{name}">{options}</select></label>'

        fields = choice("task", tasks) + choice("architecture", architectures) + choice("verdict", verdicts)
        return (
            f'<form class="ledger-filters" hidden role="search" aria-label="Filter the claims">{fields}'
            '<label>search <input type="search" name="words" autocomplete="off"></label>'
            '<button type="reset">show all</button><output aria-live="polite"></output></form>'
        )

    def _claim(self, claim: str) -> str:
        criterion, verdict = CRITERIA[claim], self.book.verdicts[claim]
        rows = self.book.of_claim(claim)
        shown = rows[rows["kind"].isin(("base", "beside")) & ~rows["run"].str.contains("words|warmup")]
        tried = self.book.conditions(claim)
        axis = Axis.of(pd.concat([shown, tried]))
        where = ""
        if claim in FIGURES:
            chapter, figure = FIGURES[claim]
            where = f' <a href="{chapter}.html#{figure}">see the figure</a>'
        ours = criterion.origin == "ours"
        paper = "our own prediction" if ours else f"{_place(criterion.figure)}: {criterion.paper}"
        asked = f"holds if {criterion.reproduced_if}" if ours else f"reproduced if {criterion.reproduced_if}"
        if not criterion.limits and not ours and not any(map(any, rows["verdicts"])):  # O11, V1–V3
            asked = f"reported: {criterion.reproduced_if.removeprefix('reported, ')}"
        text = (
            f'<th scope="rowgroup" colspan="2" id="claim-{claim}"><b>{claim}.</b> {escape(criterion.claim)}. '
            f"<small>{escape(paper)}; {escape(asked)}.{where}</small></th>"
        )
        ticks = _axis_svg(axis, shown.iloc[0]) if len(shown) else ""
        said = verdict_html(claim, verdict.verdict, self._alike(claim))
        lines = [f'<tr class="ledger-claim">{text}<td>{ticks}</td><td>{said}</td></tr>']
        for _, row in shown.iterrows():
            lines.append(self._row(row, axis))
            if row["kind"] == "base":
                lines.append(self._tried(row, tried, axis))
        words = f"{claim} {criterion.claim} {' '.join(shown['run'])}".lower()
        data = f'data-claim="{claim}" data-verdict="{escape(verdict.verdict)}" data-words="{escape(words, quote=True)}"'
        if claim in _ARCHITECTURES_OF_VARIANTS:
            data += f' data-task="{_TASKS_OF_VARIANTS}" data-architecture="{_ARCHITECTURES_OF_VARIANTS[claim]}"'
        return f"<tbody {data}>{''.join(lines)}</tbody>"

    def _alike(self, claim: str) -> str:
        if claim not in VARIANTS.values() or not self.book.agreement(claim)[1]:
            return ""
        return "{} of {} rows alike".format(*self.book.agreement(claim))

    def _row(self, row: pd.Series, axis: Axis, name: str = "") -> str:
        over = Over.of(row["quantity"], row["seeds"], row["values"])
        name = name or f"{row['architecture']} <code>{escape(row['run'])}</code>"
        name = ALL_RUNS if row["run"] == ALL_RUNS else name
        mean = over.number(over.mean, (row["at_least"], row["at_most"])) if over.values else "–"
        mean = f"<small>{escape(over.quantity)}</small> {mean}"
        mean += f" <small>{over.interval}</small>" if over.interval else ""
        note = seeds_note(row) + (f"; {ELSEWHERE}" if fails_elsewhere(row) else "")
        verdict = verdict_html(row["claim"], row["verdict"], note)
        limit = limits_in_words(row["at_least"], row["at_most"], over.number)
        limit = f'<span class="ledger-limit" aria-hidden="true">limit {escape(limit)}</span>' if limit else ""
        cells = f'<th scope="row">{name}</th><td>{mean}</td><td>{limit}{seeds_svg(row, axis)}</td><td>{verdict}</td>'
        return f'<tr data-task="{row["task"]}" data-architecture="{row["architecture"]}">{cells}</tr>'

    def _tried(self, base: pd.Series, tried: pd.DataFrame, axis: Axis) -> str:
        """The conditions of a base run in a row of their own, folded."""
        tried = tried[(tried["task"] == base["task"]) & (tried["architecture"] == base["architecture"])]
        if not len(tried):
            return ""
        judged = tried[tried["verdict"].isin((REPRODUCED, NOT))]
        holds = int((judged["verdict"] == REPRODUCED).sum())
        said = f"{base['architecture']}, conditions tried: {len(tried)}"
        said += f"; holds under {holds} of {len(judged)} that can be judged" if len(judged) else ""
        names = {row["run"]: ", ".join(departures_of(row, base)) for _, row in tried.iterrows()}
        rows = "".join(self._row(row, axis, escape(names[row["run"]])) for _, row in tried.iterrows())
        words = escape(" ".join(f"{run} {name}" for run, name in names.items()).lower(), quote=True)
        return (
            f'<tr class="ledger-tried" data-task="{base["task"]}" data-architecture="{base["architecture"]}">'
            f'<td colspan="4"><details data-words="{words}"><summary>{escape(said)}</summary>'
            f"<table><tbody>{rows}</tbody></table></details></td></tr>"
        )


def _place(figure: str) -> str:
    """Where the paper has a claim: "Fig. 2a", "abstract", "supplement"."""
    return f"Fig. {figure}" if figure[0].isdigit() else figure.replace("SM", "supplement")


def counts(book: Ledger, claims: Iterable[str]) -> dict[str, int]:
    """How many of some claims have each verdict, in the order of :data:`VERDICTS`; those that none has are left out."""
    found = [book.verdicts[claim].verdict for claim in claims]
    return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}
