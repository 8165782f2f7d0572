"""The chapter on conditions: claims against what was varied, and its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from howattend import plots, statistics
from howattend.claims import PLAN, format_quantity
from howattend.claims.criteria import ABOUT_ACCURACY
from howattend.ledger import FEW, NOT, REPRODUCED, Ledger, address
from howattend.recorded import Course
from howattend.sweep.components import Stored
from howattend.tables import Table

#: What a panel's axis spans at least, so that a spread of no account does not fill it.
LEAST_SPAN = 0.05
#: What belongs to no architecture: dark enough for a dot without a face.
GREY = "#444444"
#: What the cells of :func:`verdicts` say.
KEY = """\
yes 4/5   reproduced: holds on 4 of 5 trained seeds    no 1/5   not reproduced: on 1 of 5
(1/2)     too few trained seeds for a verdict           0.88     the mean of what is only reported
empty     not asked or not measured there"""
#: The colours of the architectures, as in the other chapters.
COLOURS = {"AED": plots.WORDS[0], "AO": plots.WORDS[1], "VED": plots.WORDS[3]}


# ---- claims against a condition ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seeds:
    """A quantity of a claim on the seeds of a run: those that count, and those of networks that did not train (or are
    compared with one that did not). Nothing where the run has not been measured; ``ahead`` if it will be.
    """

    values: tuple[float, ...] = ()
    left_out: tuple[float, ...] = ()
    at_least: float = math.nan  # where the claim can hold; NaN where it may be anything, or of another quantity
    at_most: float = math.nan
    ahead: bool = False


def seeds(book: Ledger, claim: str, run: str, quantity: str | None = None) -> Seeds:
    """A quantity on every measured seed of a run; without a name the deciding one, with its limits.

    Raises as :meth:`Ledger.of` for a quantity, and for a claim, that there is not.
    """
    if not book.has(claim, run):
        return Seeds(ahead=_planned(book, run))
    values, out = (book.of(claim, run, quantity, left_out=apart).values for apart in (False, True))
    if quantity is not None:
        return Seeds(values, out)
    row = book.row(claim, run)
    return Seeds(values, out, row["at_least"], row["at_most"])


def verdicts(book: Ledger, sections: Mapping[str, Mapping[str, str]], claims: Iterable[str]) -> Table:
    """Claims against a condition: the verdict, and on how many of the trained seeds each holds; :data:`KEY` explains.
    Columns in which nothing is recorded are left out; :func:`untrained` names their runs.

    Args:
        book: the ledger.
        sections: by heading, the run of each column.
        claims: the rows; in each section those that any of its runs has.
    """
    claims, names = list(claims), dict.fromkeys(column for runs in sections.values() for column in runs)
    marks: dict[str, str] = {}
    found = {
        heading: {claim: {name: _cell(book, claim, runs.get(name, ""), marks) for name in names} for claim in claims}
        for heading, runs in sections.items()
    }
    columns = [name for name in names if any(row[name] for rows in found.values() for row in rows.values())]
    content: dict[str, list[tuple[str, ...]]] = {}
    for heading, rows in found.items():
        ahead = {name: "not yet" if _planned(book, sections[heading].get(name, "")) else "" for name in columns}
        kept = [
            (claim, *(row[name] or ahead[name] for name in columns)) for claim, row in rows.items() if any(row.values())
        ]
        if kept:
            content[heading] = kept
    return Table(("claim", *columns), content, marks, {claim: address(claim) for claim in claims})


def untrained(book: Ledger, sections: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The columns of each section whose run the sweep has planned and not yet trained, a line a section."""
    lines = []
    for heading, runs in sections.items():
        names = [" ".join(column.split()) for column, run in runs.items() if _planned(book, run)]
        if names:
            lines.append(f"{heading}: not yet trained by the sweep: {'; '.join(names)}")
    return lines


def _planned(book: Ledger, run: str) -> bool:
    """Whether the sweep has a run ahead of it: planned, and not one network recorded."""
    entry = book.plan.by_name.get(run)
    return entry is not None and entry.unattended and not (book.networks["run"] == run).any()


def turns(book: Ledger, sections: Mapping[str, Mapping[str, str]], claims: Iterable[str]) -> list[str]:
    """What :func:`verdicts` says in lines: the claims that hold in some of the columns and not in others, and where."""
    lines, claims = [], list(claims)
    for heading, runs in sections.items():
        for claim in claims:
            rows = book.rows[book.rows["claim"] == claim].set_index("run")["verdict"]
            found = {column: rows.get(run, "") for column, run in runs.items()}
            good, bad = ([name for name in found if found[name] == verdict] for verdict in (REPRODUCED, NOT))
            if good and bad:
                lines.append(f"{heading}: {claim} holds at {', '.join(good)}, not at {', '.join(bad)}")
    return lines


def _cell(book: Ledger, claim: str, run: str, marks: dict[str, str]) -> str:
    if claim == "H1" or not book.has(claim, run):  # H1 has no row of a run, only one over all
        return ""
    row = book.row(claim, run)
    trained, judged = len(row["seeds"]), any(row["verdicts"])
    if claim in ABOUT_ACCURACY:
        trained += len(row["left_out"])  # a training that diverged counts against it
    mean = format_quantity("", row["mean"]).removeprefix(" = ")
    if row["verdict"] == FEW:
        text = f"({row['holds']}/{trained})" if judged or not trained else f"({mean})"
    elif not judged:
        text = mean
    else:
        text = f"{'yes' if row['verdict'] == REPRODUCED else 'no'}\N{NO-BREAK SPACE}{row['holds']}/{trained}"
        marks[text] = "verdict-yes" if row["verdict"] == REPRODUCED else "verdict-no"
    return text


def compare(
    axes: Iterable[Axes],
    book: Ledger,
    task: str,
    panels: Sequence[tuple[str, str | None, str]],
    columns: Callable[[str], Mapping[str, str]],
    recipe: Mapping[str, str] | None = None,
) -> None:
    """A panel a quantity, AED and AO side by side in each: see :func:`strip`.

    Args:
        axes: one a panel.
        book: the ledger.
        task: as in runs' names, "one_to_one".
        panels: claim, quantity (None: the deciding one) and title.
        columns: from the name of the recipe's run to the run of each column; one is left out of which nothing is
            recorded and nothing planned.
        recipe: the column of each architecture's recipe.
    """
    bases = {architecture: columns(f"{task}-{architecture.lower()}-gru") for architecture in ("AED", "AO")}
    known = set(book.measured["run"])
    for ax, (claim, quantity, title) in zip(axes, panels, strict=True):
        asked = {
            architecture: runs
            for architecture, runs in bases.items()
            if claim == "H1"
            or any((row.claim, row.parts["run"]) == (claim, f"{task}-{architecture.lower()}-gru") for row in PLAN)
        }
        kept = {name for runs in asked.values() for name, run in runs.items() if run in known or _planned(book, run)}
        series = {
            architecture: {name: seeds(book, claim, run, quantity) for name, run in runs.items() if name in kept}
            for architecture, runs in asked.items()
        }
        strip(ax, series, recipe=recipe, title=title)


@plots.styled
def strip(
    ax: Axes,
    series: Mapping[str, Mapping[str, Seeds]],
    *,
    recipe: Mapping[str, str] | None = None,
    title: str = "",
) -> None:
    """A quantity against a condition: a dot for each seed, hollow where the network, or one that it
    is compared with, did not train; a line for the mean.

    Args:
        ax: to draw on.
        series: by architecture ("AED", "AO"), the seeds of each column; the same columns in the same order in all.
            One that is planned and not yet measured is marked so.
        recipe: the column of each architecture's recipe, whose mean is drawn thick.
        title: of the panel.

    The dashed line is the criterion's limit, its shaded side where the claim can hold. Where limits differ, each is in
    the colour of its series, and across its columns only if these differ.
    """
    columns = list(dict.fromkeys(column for each in series.values() for column in each))
    width = 0.8 / len(series)
    spans: dict[tuple[float, float], str] = {}  # and the colour of the first series that has them
    own: list[tuple[float, float, str]] = []  # where limits differ by column: its place, a limit, the series' colour
    for number, (name, each) in enumerate(series.items()):
        colour, shift = COLOURS.get(name, plots.SPECIAL), (number - (len(series) - 1) / 2) * width
        limits: dict[float, tuple[float, float]] = {}  # by place
        for place, column in enumerate(columns):
            found = each.get(column)
            if found is None:
                continue
            x = place + shift
            _dots(ax, x, found, colour, 0.3 * width)
            if found.values:
                limits[x] = found.at_least, found.at_most
                thick = recipe is not None and recipe.get(name) == column
                mean = float(np.mean(found.values))
                ends = x - 0.42 * width, x + 0.42 * width
                ax.hlines(mean, *ends, color=colour, linewidth=4 if thick else 1.6, alpha=0.5 if thick else 1)
            elif found.ahead:
                ax.text(x, 0.03, "not yet", rotation=90, ha="center", va="bottom", fontsize=8, color=GREY,
                        transform=ax.get_xaxis_transform())  # fmt: skip
        if limits and not _alike(limits.values()):
            own += [(x, value, colour) for x, span in limits.items() for value in span if math.isfinite(value)]
        elif limits:
            span = next(iter(limits.values()))
            if not any(_alike([span, other]) for other in spans):
                spans[span] = colour
    for x, value, colour in own:
        ax.hlines(value, x - 0.55 * width, x + 0.55 * width, color=colour, linewidth=1.1, linestyle="--", zorder=1)
    ax.margins(y=0.12)
    ax.autoscale_view()
    low, high = ax.get_ylim()
    if high - low < LEAST_SPAN:  # no panel makes much of nothing
        ax.set_ylim((low + high - LEAST_SPAN) / 2, (low + high + LEAST_SPAN) / 2)
    ax.set_xlim(-0.55, len(columns) - 0.45)
    _limits(ax, {span: colour for span, colour in spans.items() if any(map(math.isfinite, span))})
    crowded = sum(map(len, columns)) > 16
    ax.set_xticks(range(len(columns)), columns, rotation=40 if crowded else 0, fontsize=9)
    ax.set_title(title, fontsize=11)


def _alike(spans: Iterable[tuple[float, float]]) -> bool:
    """Whether limits are so near one another that one line stands for all."""
    first, *others = spans
    return all(np.allclose(first, other, rtol=0.02, equal_nan=True) for other in others)


def _dots(ax: Axes, x: float, found: Seeds, colour: str, reach: float) -> None:
    """The seeds side by side, in their order; hollow those that do not count."""
    values = [*found.values, *found.left_out]
    places = x + (np.linspace(-reach, reach, len(values)) if len(values) > 1 else np.zeros(len(values)))
    faces = [colour] * len(found.values) + ["white"] * len(found.left_out)
    ax.scatter(places, values, s=22, c=faces, edgecolors=colour, linewidths=1.1, zorder=3)


def _limits(ax: Axes, spans: Mapping[tuple[float, float], str]) -> None:
    """Limits as dashed lines. One pair: with the region between, or beyond, shaded; several: in the series' colours."""
    values = [value for span in spans for value in span if math.isfinite(value)]
    low, high = ax.get_ylim()
    if values:
        low, high = min(low, min(values) - 0.05 * (high - low)), max(high, max(values) + 0.05 * (high - low))
    for span, colour in spans.items():
        for value in filter(math.isfinite, span):
            shown = plots.READOUT if len(spans) == 1 else colour
            ax.axhline(value, color=shown, linewidth=1.1, linestyle="--", zorder=1)
        if len(spans) == 1:
            lower, upper = span
            region = lower if math.isfinite(lower) else low, upper if math.isfinite(upper) else high
            ax.axhspan(*region, color=plots.READOUT, alpha=0.08, linewidth=0, zorder=0)
    ax.set_ylim(low, high)


@plots.styled
def strip_legend(figure: Figure, names: Iterable[str], *, recipe: bool = True) -> None:
    """The marks of :func:`strip`, below a figure."""
    marks = [Line2D([], [], marker="o", linestyle="", color=COLOURS[name], label=f"{name}, a seed") for name in names]
    marks.append(Line2D([], [], marker="o", linestyle="", markerfacecolor="white", markeredgecolor=GREY,
                        label="did not train, or its partner did not"))  # fmt: skip
    if recipe:
        marks.append(Line2D([], [], color=GREY, alpha=0.5, linewidth=4, label="mean, recipe"))
    marks.append(Line2D([], [], color=plots.READOUT, linestyle="--", label="limit"))
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), columnspacing=1.0, handletextpad=0.3)


# ---- trainings and trees -------------------------------------------------------------------------------------------


#: The parts of a score in :func:`course_panel`, with their colours and marks.
PARTS = {
    "temporal": ("μᴰ·μᴱ", "#1F4E79", "-"),
    "mixed": ("one factor temporal", "#5B9BD5", "--"),
    "content": ("neither temporal", plots.WORDS[1], "-."),
}


@plots.styled
def accuracy_panel(ax: Axes, networks: Sequence[Stored], bar: float, *, title: str = "") -> None:
    """The accuracy on the validation set while training, a line a seed: blue those that reach the bar in the end, on
    the test set, red those that do not.
    """
    for each in networks:
        colour = plots.WORDS[0] if each.accuracy >= bar else plots.WORDS[1]
        ax.plot(each.log[:, 0], each.log[:, 2], color=colour, linewidth=1.4, alpha=0.85)
    reached = sum(each.accuracy >= bar for each in networks)
    said = f"{reached} of {len(networks)} reach {bar:.1%}"
    ax.text(0.97, 0.05, said, ha="right", va="bottom", fontsize=9.5, transform=ax.transAxes)
    ax.axhline(bar, color=plots.READOUT, linestyle="--", linewidth=1)
    ax.set_ylim(0, 1.05)
    ax.set_title(title, fontsize=10.5)


@plots.styled
def course_panel(ax: Axes, courses: Sequence[Course], *, title: str = "") -> None:
    """The parts of the score while training, a line a seed, and the accuracy, dotted."""
    for each in courses:
        for name, (_, colour, style) in PARTS.items():
            ax.plot(each.steps, getattr(each, name), style, color=colour, linewidth=1.3, alpha=0.85)
        ax.plot(each.steps, each.accuracy, ":", color="#333333", linewidth=1.3)
    ax.axhline(0, color="#333333", linewidth=0.6)
    ax.set_ylim(-0.35, 1.2)
    ax.set_title(title)


@plots.styled
def course_legend(figure: Figure) -> None:
    """The lines of :func:`course_panel`, below a figure."""
    lines = [Line2D([], [], color=colour, linestyle=style, label=label) for label, colour, style in PARTS.values()]
    lines.append(Line2D([], [], color="#333333", linestyle=":", label="word accuracy"))
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines))


@plots.styled
def branches(ax: Axes, paths: np.ndarray, words: np.ndarray, names: Sequence[str], *, title: str = "") -> None:
    """States of consecutive steps as paths on their first two principal components, coloured by the first word.

    Args:
        ax: to draw on.
        paths: [P, K, n] the states of P sentences at K steps.
        words: [P] the first word of each, an index into ``names``.
        names: the words.
        title: of the panel.
    """
    components = statistics.principal_components(paths.reshape(-1, paths.shape[-1]), count=2)
    places = components.project(paths)
    for index, colour in enumerate(plots.word_colours(names).values()):
        tones = plots.shades(colour, paths.shape[1], 0.6)
        mine = places[words == index]
        for path in mine:
            ax.plot(*path.T, color=tones[0], linewidth=0.8, zorder=1)
        for step, tone in enumerate(tones):
            ax.scatter(*mine[:, step].T, s=9 + 4 * step, color=[tone], linewidths=0, zorder=2 + step)
    plots.label_components(ax, components)
    ax.set_title(title)


@plots.styled
def clouds(ax: Axes, states: np.ndarray, words: np.ndarray, names: Sequence[str], *, title: str = "") -> None:
    """States [P, n] on their first two principal components, coloured by a word [P] of each sentence."""
    components = statistics.principal_components(states, count=2)
    places = components.project(states)
    for index, (name, colour) in enumerate(plots.word_colours(names).items()):
        ax.scatter(*places[words == index].T, s=10, color=colour, linewidths=0, alpha=0.8, label=name)
    plots.label_components(ax, components)
    ax.set_title(title)
