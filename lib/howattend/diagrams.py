"""Schematic drawings of the networks in the book's colours: the paper's Fig. 1 redrawn, and what a decoder is fed.

Text and lines scale with the axes, so that a drawing reads the same at any size. ``architectures`` and ``feedings``
make a figure of their own; ``architecture`` and ``feeding`` draw on axes that they are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from howattend.models.config import ARCHITECTURES, DECODER_INPUTS
from howattend.plots import ATTENTION, DECODER, ENCODER, READOUT, RECURRENT, SPECIAL, styled

Point = tuple[float, float]

INK = "#333333"
TITLES = {
    "VED": "vanilla encoder–decoder",
    "AED": "encoder–decoder with attention",
    "AO": "attention only, no recurrence",
}
FEEDING_TITLES = {
    "predicted": "predicted: its own last word",
    "teacher": "teacher: the true last word",
    "constant": "constant: always <bos>",
}
# Extents of the drawings, in units of which a box is one wide.
ARCHITECTURE_SIZE, FEEDING_SIZE = (9.0, 7.4), (7.2, 4.75)
WEIGHTS = (0.15, 0.7, 0.15)  # how thick the three arrows into the emphasised context are drawn
WRONG = "#C0392B"


def _unit(ax: Axes, width: float) -> float:
    """Points of one drawing unit, from the size of the axes in their figure."""
    return ax.get_position().width * ax.get_figure().get_size_inches()[0] * 72 / width


def _prepare(ax: Axes, size: Point) -> float:
    """Empty axes with equal scales that show 0 … width and 0 … height; returns the points of one unit."""
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(0, size[0])
    ax.set_ylim(0, size[1])
    return _unit(ax, size[0])


def _tint(colour: str, amount: float = 0.78) -> tuple[float, ...]:
    return tuple(amount + (1 - amount) * channel for channel in to_rgb(colour))


def _box(
    ax: Axes, centre: Point, text: str, colour: str, unit: float, *, width: float = 1.0, height: float = 0.74
) -> None:
    """A rounded box with its text in the middle."""
    corner = (centre[0] - width / 2, centre[1] - height / 2)
    look = {"facecolor": _tint(colour), "edgecolor": colour, "lw": 0.035 * unit, "zorder": 3}
    ax.add_patch(FancyBboxPatch(corner, width, height, "round,pad=0,rounding_size=0.14", **look))
    _text(ax, centre, text, unit)


def _text(ax: Axes, at: Point, text: str, unit: float, *, size: float = 0.36, **kwargs: object) -> None:
    kwargs = {"ha": "center", "va": "center", "color": INK, "zorder": 5, **kwargs}
    ax.text(*at, text, fontsize=size * unit, **kwargs)


def _arrow(
    ax: Axes, start: Point, end: Point, colour: str, unit: float, *, width: float = 0.045, zorder: float = 2
) -> None:
    """A straight arrow whose tip is at its end."""
    head = f"-|>,head_length={0.17 * unit},head_width={0.075 * unit}"
    look = {"color": colour, "lw": width * unit, "zorder": zorder, "mutation_scale": 1, "shrinkA": 0, "shrinkB": 0}
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle=head, joinstyle="miter", capstyle="butt", **look))


def _recurrence(ax: Axes, columns: Sequence[float], row: float, unit: float) -> None:
    """Blue arrows from each state to the next."""
    for left, right in pairwise(columns):
        _arrow(ax, (left + 0.51, row), (right - 0.51, row), RECURRENT, unit, width=0.065)


def _feedback(ax: Axes, columns: Sequence[float], above: float, below: float, colour: str, unit: float) -> None:
    """Dashed arrows from the word above each cell to the word that the next one is fed."""
    for left, right in pairwise(columns):
        turn = left + 0.86
        steps = [(left + 0.25, above), (turn, above), (turn, below), (right - 0.5, below)]
        ax.plot(*zip(*steps, strict=True), color=colour, lw=0.045 * unit, linestyle=(0, (2.5, 1.5)), zorder=2)
        _arrow(ax, (right - 0.5, below), (right - 0.24, below), colour, unit)


def _input(ax: Axes, x: float, cell: float, text: str, unit: float, *, position: bool = False) -> None:
    """An input word below a cell, with the arrow into it; a grey circle adds the positional encoding."""
    _text(ax, (x, cell - 1.65), text, unit)
    if position:
        look = {"color": [_tint(SPECIAL, 0.55)], "edgecolors": SPECIAL, "lw": 0.03 * unit, "zorder": 3}
        ax.scatter(x, cell - 1.02, s=(0.42 * unit) ** 2, **look)
        _text(ax, (x, cell - 1.03), "+", unit)
    _arrow(ax, (x, cell - 1.4), (x, cell - 0.39), INK, unit)


@styled
def architecture(
    ax: Axes,
    name: str,
    *,
    source: Sequence[str] = ("B", "A", "C"),
    target: Sequence[str] = ("2", "1", "3"),
    emphasised: int = 1,
) -> None:
    """One architecture of Fig. 1: VED, AED or AO, unrolled over three encoder and three decoder steps.

    Encoder orange, decoder purple, readouts green, recurrent connections blue, attention gold; grey circles add the
    positional encoding. The arrows into the context of the ``emphasised`` decoder step (from 0) are drawn strong, as
    thick as their weights might be.

    Raises:
        ValueError: if ``name`` is no architecture, or source and target are not of three words.
    """
    if name not in ARCHITECTURES:
        raise ValueError(f"name must be one of {', '.join(map(repr, ARCHITECTURES))}, got {name!r}")
    if len(source) != 3 or len(target) != 3:
        raise ValueError(f"source and target must have 3 words to fit the drawing, got {len(source)} and {len(target)}")
    unit = _prepare(ax, ARCHITECTURE_SIZE)
    encoders, decoders = (0.7, 2.1, 3.5), (5.6, 7.0, 8.4)
    cell, mixing, reading, top = 2.35, 4.1, 5.35, 6.4
    for step, (x, word) in enumerate(zip(encoders, source, strict=True), 1):
        _box(ax, (x, cell), f"$h^E_{step}$", ENCODER, unit)
        _input(ax, x, cell, word, unit, position=name == "AO")
    for step, (x, fed, word) in enumerate(zip(decoders, ("<bos>", *target), target, strict=False), 1):
        _box(ax, (x, cell), f"$h^D_{step}$", DECODER, unit)
        _box(ax, (x, reading), "$R$", READOUT, unit, height=0.62)
        _input(ax, x, cell, fed, unit, position=name == "AO")
        _text(ax, (x, top), word, unit)
        _arrow(ax, (x, reading + 0.32), (x, top - 0.25), INK, unit)
        aside = x if name == "VED" else x + 0.36
        _arrow(ax, (aside, cell + 0.38), (aside, reading - 0.33), DECODER, unit)
    if name == "AO":
        _text(ax, ((encoders[-1] + decoders[0]) / 2, cell - 1.02), "position", unit, size=0.3, color=SPECIAL)
    else:
        _recurrence(ax, (*encoders, *decoders), cell, unit)
    if name != "VED":
        _draw_attention(ax, encoders, decoders, (cell, mixing, reading), emphasised, unit)
        _text(ax, (decoders[0] - 0.72, mixing), "attention", unit, color=ATTENTION, ha="right", fontweight="bold")
    _text(ax, (decoders[0] - 0.72, reading), "readout", unit, color=READOUT, ha="right", fontweight="bold")
    _text(ax, (encoders[1], 0.2), "encoder", unit, color=ENCODER, fontweight="bold")
    _text(ax, (decoders[1], 0.2), "decoder", unit, color=DECODER, fontweight="bold")
    _text(ax, (0.15, 7.1), name, unit, size=0.5, ha="left", fontweight="bold")
    _text(ax, (1.85, 7.1), TITLES[name], unit, ha="left")


def _draw_attention(
    ax: Axes,
    encoders: Sequence[float],
    decoders: Sequence[float],
    rows: tuple[float, float, float],
    emphasised: int,
    unit: float,
) -> None:
    """Contexts in gold: queries from the decoder states below, keys and values from all encoder states."""
    cell, mixing, reading = rows
    for index, column in enumerate(decoders):
        x = column - 0.18
        _box(ax, (x, mixing), f"$c_{index + 1}$", ATTENTION, unit, width=0.7, height=0.62)
        _arrow(ax, (x, cell + 0.38), (x, mixing - 0.33), ATTENTION, unit, zorder=2.5)
        _arrow(ax, (x, mixing + 0.32), (x, reading - 0.33), ATTENTION, unit, zorder=2.5)
        for start, weight in zip(encoders, WEIGHTS, strict=True):
            tail, tip = (start, cell + 0.38), (x - 0.37, mixing - 0.15)
            if index == emphasised:
                _arrow(ax, tail, tip, ATTENTION, unit, width=0.03 + 0.1 * weight, zorder=2.4)
            else:
                ax.plot(*zip(tail, tip, strict=True), color=ATTENTION, alpha=0.35, lw=0.03 * unit, zorder=1)


@styled
def feeding(
    ax: Axes, mode: str, *, target: Sequence[str] = ("2", "1", "3"), predicted: Sequence[str] = ("2", "2", "3")
) -> None:
    """What the decoder is fed: "predicted", "teacher" or "constant"; a wrongly predicted word is red.

    Raises:
        ValueError: if ``mode`` is none of these, or target and predicted are not of three words.
    """
    if mode not in DECODER_INPUTS:
        raise ValueError(f"mode must be one of {', '.join(map(repr, DECODER_INPUTS))}, got {mode!r}")
    if len(target) != 3 or len(predicted) != 3:
        raise ValueError(f"target and predicted must have 3 words, got {len(target)} and {len(predicted)}")
    unit = _prepare(ax, FEEDING_SIZE)
    columns, cell = (2.4, 4.3, 6.2), 2.05
    says, true, fed = cell + 1.2, cell + 1.75, cell - 1.65
    words = {"predicted": ("<bos>", *predicted), "teacher": ("<bos>", *target), "constant": ("<bos>",) * 3}[mode]
    for step, (x, word) in enumerate(zip(columns, words, strict=False), 1):
        _box(ax, (x, cell), f"$h^D_{step}$", DECODER, unit)
        _input(ax, x, cell, word, unit)
        _arrow(ax, (x, cell + 0.38), (x, cell + 0.95), INK, unit)
    for x, word, right in zip(columns, predicted, target, strict=True):
        _text(ax, (x, says), word, unit, **({} if word == right else {"color": WRONG, "fontweight": "bold"}))
    _recurrence(ax, columns, cell, unit)
    labels = [(says, "predicts", SPECIAL), (fed, "is fed", SPECIAL)]
    if mode == "predicted":
        _feedback(ax, columns, says, fed, SPECIAL, unit)
    if mode == "teacher":
        labels.append((true, "truth", READOUT))
        for x, word in zip(columns, target, strict=True):
            _text(ax, (x, true), word, unit, color=READOUT, fontweight="bold")
        _feedback(ax, columns, true, fed, READOUT, unit)
    for y, label, colour in labels:
        _text(ax, (0.1, y), label, unit, ha="left", color=colour, fontweight="bold")
    _text(ax, (0.1, FEEDING_SIZE[1] - 0.2), FEEDING_TITLES[mode], unit, size=0.4, ha="left", fontweight="bold")


def _figure(
    draw: Callable[[Axes, str], None], names: Sequence[str], size: Point, columns: int | None, width: float
) -> Figure:
    """A figure of ``width`` inches with one drawing a name, ``columns`` beside one another."""
    if not names:
        raise ValueError("pass at least one name to draw")
    columns = min(columns or len(names), len(names))
    rows = -(-len(names) // columns)
    gap = 0.035  # of a panel, between panels
    height = width / columns * size[1] / size[0] * rows
    drawing = plt.figure(figsize=(width, height), layout="none")
    for index, name in enumerate(names):
        row, column = divmod(index, columns)
        left, bottom = (column + gap / 2) / columns, 1 - (row + 1 - gap / 2) / rows
        draw(drawing.add_axes((left, bottom, (1 - gap) / columns, (1 - gap) / rows)), name)
    return drawing


@styled
def architectures(*names: str, columns: int | None = None, width: float = 9.0) -> Figure:
    """The architectures named (all three if none is), ``columns`` of them side by side: Fig. 1.

    Text grows with ``width`` / ``columns``: in one column of 6 inches it still reads on a phone.
    """
    return _figure(architecture, names or ARCHITECTURES, ARCHITECTURE_SIZE, columns, width)


@styled
def feedings(*modes: str, columns: int | None = None, width: float = 9.0) -> Figure:
    """The three ways to feed a decoder, or those named, ``columns`` of them side by side."""
    return _figure(feeding, modes or DECODER_INPUTS, FEEDING_SIZE, columns, width)
