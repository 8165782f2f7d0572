"""The ledger in one picture, and H1's scatter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from howattend import plots
from howattend.ledger.links import SHORT, TASKS
from howattend.ledger.page import counts
from howattend.ledger.records import Ledger
from howattend.ledger.verdicts import CONDITION, FEW, NOT, REPORTED, REPRODUCED, UNMEASURED

#: From reproduced to not: dark blue, light blue, red, which no common kind of colour blindness makes alike.
COLOURS = {REPRODUCED: "#0072B2", CONDITION: "#8CC6E8", NOT: "#D62F4B"}
COLOURS |= dict.fromkeys((REPORTED, FEW, UNMEASURED), "#949494")
#: Of a seed's dot, by the verdict of its row; None: it does not count.
_MARKS: dict[str | None, dict[str, object]] = {
    "True": {"marker": "o", "color": COLOURS[REPRODUCED], "s": 15},
    "False": {"marker": "x", "color": COLOURS[NOT], "s": 17, "linewidths": 1.5},
    "": {"marker": "o", "color": COLOURS[REPORTED], "s": 15},
    None: {"marker": "o", "facecolors": "white", "edgecolors": "#555555", "s": 14, "linewidths": 0.9},
}
_SMALL = {"s": 8, "linewidths": 0.8}  # in two lines
_FACES = {REPRODUCED: "white", CONDITION: "black", NOT: "white"}

#: The sections of the picture, by column: a heading, and the claims below it.
SECTIONS: tuple[tuple[tuple[str, tuple[str, ...]], ...], ...] = (
    (
        ("One-to-one", tuple(f"O{number}" for number in range(1, 13))),
        ("Reversed, sort", ("R1", "S1")),
        ("All tasks", ("H1",)),
        ("Variants", ("V1", "V2", "V3", "V4")),
    ),
    (
        ("Extended SCAN", tuple(f"E{number}" for number in range(1, 10))),
        ("“Twice”, “left”", tuple(f"D{number}" for number in range(1, 5))),
        ("Translation", tuple(f"T{number}" for number in range(1, 9))),
    ),
)
_ROW = 0.245  # inches
#: Where each architecture's dots begin, in the units of a column (104 wide).
_PLACES = ({"AED": 65, "AO": 78, "VED": 91}, {"AED": 77, "AO": 89})
_SPACE = 2.15  # between two dots
_ABREAST = 5  # more of them stand in two lines


@plots.styled
def summary(book: Ledger) -> Figure:
    """Every claim of the paper with its verdict as a colour, and a dot for each seed of each of its networks.

    A bar above says how many claims are reproduced, under a condition, and not.
    """
    tall = max(sum(len(claims) + 1.35 for _, claims in column) for column in SECTIONS)
    figure, axes = plt.subplot_mosaic(
        [["bar", "bar"], ["left", "right"]],
        figsize=(8.4, _ROW * (tall + 3.6)),
        height_ratios=(3.0, tall + 0.3),
        gridspec_kw={"wspace": 0.02, "hspace": 0.01},
    )
    claims = [claim for column in SECTIONS for _, some in column for claim in some]
    _bar(axes["bar"], counts(book, claims))
    for ax, sections, places in zip((axes["left"], axes["right"]), SECTIONS, _PLACES, strict=True):
        _column(ax, book, sections, places, tall)
    return figure


def _bar(ax: Axes, found: dict[str, int]) -> None:
    """The verdicts' counts as one bar, and what colours and marks mean."""
    total, left = sum(found.values()), 0
    for verdict, count in found.items():
        ax.add_patch(Rectangle((left, 0), count, 1, facecolor=COLOURS[verdict], edgecolor="white", linewidth=1.5))
        face = _FACES.get(verdict, "black")
        ax.text(left + count / 2, 0.5, str(count), ha="center", va="center", fontsize=12, color=face)
        left += count
    open_ones = [verdict for verdict in found if verdict in (REPORTED, FEW, UNMEASURED)]
    squares = {verdict: COLOURS[verdict] for verdict in (REPRODUCED, CONDITION, NOT) if verdict in found}
    squares |= {" / ".join(open_ones): COLOURS[REPORTED]} if open_ones else {}
    marks = [
        Line2D([], [], linestyle="", marker="s", markersize=9, color=squares[name], label=name) for name in squares
    ]
    dots = [
        Line2D([], [], linestyle="", marker="o", markersize=4, color=COLOURS[REPRODUCED], label="a seed: holds"),
        Line2D([], [], linestyle="", marker="x", markersize=4.5, color=COLOURS[NOT], label="does not"),
        Line2D([], [], linestyle="", marker="o", markersize=4, color=COLOURS[REPORTED], label="is reported"),
        Line2D(
            [], [], linestyle="", marker="o", markersize=4, mfc="white", color="#555555", label="below its accuracy bar"
        ),
    ]
    settings = {"handletextpad": 0.1, "columnspacing": 1.4, "borderpad": 0, "loc": "upper center"}
    first = ax.legend(handles=marks, ncols=len(marks), bbox_to_anchor=(0.5, 0.56), **settings)
    ax.add_artist(first)
    ax.legend(handles=dots, ncols=len(dots), bbox_to_anchor=(0.5, 0.28), **settings)
    ax.set_xlim(0, total)
    ax.set_ylim(-2.0, 1.1)
    ax.axis("off")


def _column(
    ax: Axes, book: Ledger, sections: Sequence[tuple[str, Sequence[str]]], places: Mapping[str, float], tall: float
) -> None:
    """Claims below their headings: a square in the verdict's colour, id, words, dots by architecture."""
    for architecture, x in places.items():
        ax.text(x, 1.0, architecture, fontsize=9, color="#555555", va="center", ha="left")
    y = 0.0
    for heading, claims in sections:
        y += 1.0
        ax.text(0, y, heading, fontsize=10.5, fontweight="bold", va="center")
        for claim in claims:
            y += 1
            verdict = book.verdicts[claim].verdict
            ax.add_patch(Rectangle((0, y - 0.42), 4, 0.84, facecolor=COLOURS[verdict], linewidth=0))
            ax.text(5.5, y, claim, fontsize=9, va="center", fontweight="bold")
            ax.text(15, y, SHORT[claim], fontsize=9, va="center")
            _dots(ax, book, claim, y, places)
        y += 0.35
    ax.set_xlim(0, 104)
    ax.set_ylim(tall + 0.6, 0.4)
    ax.axis("off")


def _dots(ax: Axes, book: Ledger, claim: str, y: float, places: Mapping[str, float]) -> None:
    """The seeds of each base run: full where the claim holds, crosses where not, grey where the criterion asks for a
    report only, hollow for seeds that did not train.
    """
    alike, judged = book.agreement(claim) if claim in ("V1", "V2", "V3") else (0, 0)
    if judged:
        ax.text(103, y, f"{alike} of {judged} verdicts", fontsize=9, va="center", ha="right")
    begin = dict(places)
    for _, row in book.of_claim(claim, "base").iterrows():
        architecture = row["architecture"] if row["architecture"] in begin else "AED"  # H1: over all
        verdicts = dict(zip(row["seeds"], row["verdicts"], strict=True)) | dict.fromkeys(row["left_out"])
        left, two_lines = begin[architecture] + 1, len(verdicts) > _ABREAST
        for number, (_, verdict) in enumerate(sorted(verdicts.items())):
            line, place = divmod(number, _ABREAST)
            x, shift = left + place * _SPACE, (line - 0.5) * 0.44 if two_lines else 0.0
            ax.scatter(x, y + shift, **_MARKS[verdict] | (_SMALL if two_lines else {}))
        # A second network of an architecture stands beside it.
        begin[architecture] = left + min(len(verdicts), _ABREAST) * _SPACE + 0.7


@plots.styled
def nearness(book: Ledger) -> Figure:
    """H1: the centred share of μ^D·μ^E against how near the mean attention of a sentence's length is to the sentence's
    own. Colours are tasks, circles AED, squares AO; pale: networks under conditions and variants.
    """
    found = book.approximation
    figure, axes = plots.figure(1, 1, width=8.4, height=4.4)
    ax = axes[0, 0]
    others, base = found[found["kind"] != "base"], found[found["kind"] == "base"]
    colours = dict(zip(TASKS, plots.WORDS[:2] + plots.WORDS[3:6], strict=True))
    for some, alpha, size in ((others, 0.4, 14), (base, 1.0, 34)):
        for (task, architecture), points in some.groupby(["task", "architecture"], sort=False):
            ax.scatter(
                points["nearness"],
                points["share"],
                s=size,
                marker={"AED": "o", "AO": "s"}[architecture],
                facecolors="white" if architecture == "AO" and some is base else colours[task],
                edgecolors=colours[task],
                linewidths=1.4 if some is base else 0,
                alpha=alpha,
            )
    ax.set_xlabel("1 − TV(a sentence's attention, mean attention of its length)")
    ax.set_ylabel("centred share of μᴰ·μᴱ")
    marks = [
        Line2D([], [], linestyle="", marker="o", color=colours[task], label=TASKS[task])
        for task in TASKS
        if task in set(base["task"])
    ]
    grey = {"linestyle": "", "color": "#555555"}
    marks += [Line2D([], [], marker="o", label="AED", **grey)]
    marks += [Line2D([], [], marker="s", markerfacecolor="white", label="AO", **grey)]
    if len(others):
        marks.append(Line2D([], [], marker="o", markersize=4, alpha=0.4, label="other settings", **grey))
    ax.legend(handles=marks, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
