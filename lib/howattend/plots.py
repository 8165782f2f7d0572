"""The book's visual language: the same colours and marks in every figure, set here and nowhere else.

Every function draws on axes that it is given and changes no global setting. Encoder orange, decoder purple, readouts
green, attention gold, one colour a word; a path begins with a square and ends with a star, lighter is earlier.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from howattend import statistics

P = ParamSpec("P")
R = TypeVar("R")

ENCODER, DECODER, READOUT, ATTENTION = "#D97700", "#7A3E9D", "#00805A", "#B58900"
SPECIAL, RECURRENT = "#6B6B6B", "#2F6DB5"  # start and end of sentence; recurrent connections (Fig. 1)
# Distinct for all common kinds of colour vision, and from the four colours above; words are labelled besides.
WORDS = ("#0072B2", "#D62F4B", "#56B4E9", "#8C5A2B", "#E78AC3", "#1B3A5C", "#C9B400", "#7FA7A0")
ATTENTION_MAP = LinearSegmentedColormap.from_list("attention", ["#FFFFFF", "#F6DE8D", ATTENTION, "#4A3300"])
SIGNED_MAP = LinearSegmentedColormap.from_list("signed", [DECODER, "#FFFFFF", READOUT])

STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 110,
    "figure.facecolor": "white",  # opaque, so that a figure reads on a dark page as it does on a light one
    "axes.facecolor": "white",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function under the book's settings, leaving the global ones as they are."""

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        # Not mpl.rc_context, which restores all settings: the first figure of a notebook loads the backend in here, and
        # undoing what that sets would leave every later figure unshown.
        before = {name: mpl.rcParams[name] for name in STYLE}
        mpl.rcParams.update(STYLE)
        try:
            return draw(*args, **kwargs)
        finally:
            mpl.rcParams.update(before)

    return wrapped


@styled
def figure(rows: int = 1, columns: int = 1, *, width: float = 9.0, height: float = 3.6) -> tuple[Figure, np.ndarray]:
    """A figure of ``width`` inches with rows of ``height`` inches each, and its axes as an array [rows, columns]."""
    return plt.subplots(rows, columns, figsize=(width, rows * height), squeeze=False)


def shades(colour: str, count: int, lightest: float = 0.72) -> np.ndarray:
    """[count, 3] RGB from a light tint of a colour to the colour itself: earlier is lighter."""
    tint = np.linspace(lightest, 0.0, count)[:, None]
    return np.asarray(to_rgb(colour)) * (1 - tint) + tint


def word_colours(words: Sequence[str]) -> dict[str, str]:
    """A colour for each content word; special words (in angle brackets) are grey."""
    content = [word for word in words if not word.startswith("<")]
    colours = dict(zip(content, (WORDS * (len(content) // len(WORDS) + 1))[: len(content)], strict=True))
    return {word: colours.get(word, SPECIAL) for word in words}


@styled
def temporal_paths(
    ax: Axes,
    encoder: np.ndarray,
    decoder: np.ndarray,
    *,
    common: int | None = None,
    title: str = "",
    inset: bool = False,
    legend: bool = True,
) -> statistics.PrincipalComponents:
    """Temporal components μ^E [T, n] and μ^D [S, n] on their joint first two principal components (Fig. 2a, c, e).

    Steps that never occur (NaN) are left out. Steps after the first ``common``, which some samples do not reach, are
    drawn hollow: there μ mixes in ends of sentence. ``inset`` adds the softmax of μ^D·μ^E over all steps.
    """
    encoder, decoder = (path[np.isfinite(path).all(1)] for path in (np.asarray(encoder), np.asarray(decoder)))
    components = statistics.principal_components(encoder, decoder, count=2)
    for path, colour, label in ((encoder, ENCODER, "encoder μᴱ"), (decoder, DECODER, "decoder μᴰ")):
        draw_path(ax, components.project(path), colour, label=label, common=common)
    label_components(ax, components)
    ax.set_title(title)
    if legend:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, handletextpad=0.2, columnspacing=1.2)
    if inset:
        (left, bottom), (right, _) = ax.dataLim.min, ax.dataLim.max
        ax.update_datalim([(right + 0.5 * (right - left), bottom)])  # room at the right
        ax.autoscale_view()
        small = ax.inset_axes((0.68, 0.60, 0.34, 0.34))
        attention_matrix(small, statistics.softmax(decoder @ encoder.T), labels=False)
        small.set_title("softmax μᴰ·μᴱ", fontsize=9.5, pad=3)
    return components


@styled
def draw_path(ax: Axes, points: np.ndarray, colour: str, *, label: str = "", common: int | None = None) -> None:
    """A path of points [T, 2]: a square at its start, a star at its end, lighter where earlier."""
    colours = shades(colour, len(points))
    ax.add_collection(
        LineCollection(np.stack([points[:-1], points[1:]], 1), colors=colours[1:], linewidths=1.6, zorder=2)
    )
    reached = len(points) if common is None else common
    middle = slice(1, -1)
    faces = [tuple(shade) if step < reached else (1, 1, 1) for step, shade in enumerate(colours)]
    ax.scatter(*points[middle].T, s=22, c=faces[middle], edgecolors=colours[middle], linewidths=1.2, zorder=3)
    ax.scatter(*points[0], s=70, marker="s", color=[colours[0]], edgecolors=colour, linewidths=1.4, zorder=4)
    ax.scatter(*points[-1], s=170, marker="*", color=colour, zorder=4, label=label)
    ax.autoscale_view()


def label_components(ax: Axes, components: statistics.PrincipalComponents) -> None:
    """Axis labels with the share of variance each component holds; equal scales, so that a circle looks like one."""
    for axis, number in ((ax.xaxis, 0), (ax.yaxis, 1)):
        axis.set_label_text(f"PC {number + 1} ({components.variance_ratio[number]:.0%})")
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.12)


@styled
def input_delta_cloud(
    ax: Axes,
    encoder_cloud: Mapping[str, np.ndarray],
    decoder_cloud: Mapping[str, np.ndarray],
    inputs: Mapping[str, np.ndarray],
    readouts: Mapping[str, np.ndarray],
    *,
    dictionary: Mapping[str, str],
    title: str = "",
) -> statistics.PrincipalComponents:
    """Input-delta components on the first two PCs of the encoder's input components (Fig. 2b, d, f).

    ``encoder_cloud`` and ``decoder_cloud`` map a word to points [count, n], drawn light and dark; ``inputs`` maps a
    source word to χ^E [n], drawn as a cross; ``readouts`` maps a target word to its readout [n], drawn as a line from
    the origin. ``dictionary`` maps a target word to the source word it translates: the two share a colour.
    """
    components = statistics.principal_components(np.stack(list(inputs.values())), count=2)
    colours = word_colours([*inputs, *(word for word in encoder_cloud if word.startswith("<"))])

    def place(points: np.ndarray) -> np.ndarray:
        # Directions from the origin matter here, so the components' mean is not taken away.
        return np.atleast_2d(points) @ components.axes.T

    for word, points in encoder_cloud.items():
        ax.scatter(*place(points).T, s=10, color=[shades(colours[word], 2, 0.55)[0]], linewidths=0, zorder=1)
    for word, points in decoder_cloud.items():
        colour = colours.get(dictionary.get(word), SPECIAL)
        ax.scatter(*place(points).T, s=9, color=colour, marker="v", linewidths=0, alpha=0.55, zorder=2)
    reach = max(np.linalg.norm(place(point)) for point in inputs.values())
    for word, vector in readouts.items():
        end = place(vector)[0]
        length = np.linalg.norm(end)
        end = end * 1.35 * reach / length if length > 0 else end
        colour = colours[dictionary[word]]
        ax.plot([0, end[0]], [0, end[1]], color=colour, linewidth=2, zorder=3)
        ax.annotate(
            word,
            end,
            color=READOUT,
            fontsize=11,
            fontweight="bold",
            ha="center",
            va="center",
            zorder=5,
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "white", "edgecolor": READOUT, "linewidth": 0.8},
        )
    for word, point in inputs.items():
        spot = place(point)[0]
        ax.scatter(
            *spot, s=90, marker="X", color=[np.asarray(to_rgb(colours[word])) * 0.6], edgecolors="white", zorder=4
        )
        beside = 15 * np.array([-spot[1], spot[0]]) / max(np.linalg.norm(spot), 1e-12)  # clear of the readout's line
        ax.annotate(
            word,
            spot,
            xytext=beside,
            textcoords="offset points",
            color=colours[word],
            fontweight="bold",
            ha="center",
            va="center",
            zorder=5,
        )
    label_components(ax, components)
    ax.set_title(title)
    return components


@styled
def cloud_legend(figure: Figure) -> None:
    """The marks of :func:`input_delta_cloud`, below a figure."""
    marks = (
        Line2D([], [], marker="o", linestyle="", color=shades(SPECIAL, 2, 0.55)[0], label="encoder χᴱ + Δhᴱ"),
        Line2D([], [], marker="v", linestyle="", color=SPECIAL, label="decoder χᴰ + Δhᴰ"),
        Line2D([], [], marker="X", linestyle="", color="#333333", label="input component χᴱ"),
        Line2D(
            [],
            [],
            color=SPECIAL,
            linewidth=2,
            marker="o",
            markerfacecolor="white",
            markeredgecolor=READOUT,
            label="readout of a target word",
        ),
    )
    figure.legend(handles=marks, loc="outside lower center", ncols=4, columnspacing=1.2, handletextpad=0.4)


@styled
def attention_matrix(
    ax: Axes,
    attention: np.ndarray,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    *,
    title: str = "",
    labels: bool = True,
) -> None:
    """Attention weights [S, T], decoder steps downwards, in gold; words on the axes where they are given."""
    ax.imshow(np.asarray(attention), cmap=ATTENTION_MAP, vmin=0, vmax=1, aspect="equal", interpolation="nearest")
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_title(title)
    if not labels:
        ax.set_xticks([])
        ax.set_yticks([])
        return
    ax.set_xlabel("encoder step t" if source is None else "source")
    ax.set_ylabel("decoder step s" if target is None else "target")
    for axis, words, count in ((ax.xaxis, source, attention.shape[1]), (ax.yaxis, target, attention.shape[0])):
        if words is None:
            ticks = [0, *range(4, count, 5)]
            axis.set_ticks(ticks, [str(tick + 1) for tick in ticks])
        else:
            long = axis is ax.xaxis and max(map(len, words)) > 2
            axis.set_ticks(range(count), list(words), rotation=90 if long else 0)


@styled
def term_bars(ax: Axes, shares: Mapping[str, np.ndarray], *, title: str = "", legend: bool = True) -> None:
    """The nine terms' shares [3, 3] in three parts, one bar a label (Fig. 5a).

    From the bottom: μ^D·μ^E (dark), μ^D·χ^E + μ^D·Δh^E (medium), the other six (light). A part below zero hangs below
    the axis, so the parts always add up to what they claim.
    """
    tones = ("#1F4E79", "#6FA3D0", "#CFDDEA")
    names = ("μᴰ·μᴱ", "μᴰ·χᴱ + μᴰ·Δhᴱ", "other six terms")
    for place, table in enumerate(shares.values()):
        table = np.asarray(table)
        parts = (table[0, 0], table[0, 1] + table[0, 2], table[1:].sum())
        tops = {True: 0.0, False: 0.0}
        for part, tone, name in zip(parts, tones, names, strict=True):
            up = part >= 0
            ax.bar(
                place,
                part,
                bottom=tops[up],
                color=tone,
                edgecolor="#333333",
                linewidth=0.5,
                width=0.62,
                label=name if place == 0 else None,
            )
            if abs(part) > 0.06:
                ax.text(
                    place,
                    tops[up] + part / 2,
                    f"{part:.2f}",
                    ha="center",
                    va="center",
                    fontsize=9.5,
                    color="white" if tone == tones[0] else "black",
                )
            tops[up] += part
    ax.axhline(0, color="#333333", linewidth=0.8)
    ax.set_xticks(range(len(shares)), list(shares))
    ax.set_ylabel("share of the score")
    ax.set_title(title)
    if legend:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


@styled
def heat_map(
    ax: Axes, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *, title: str = "", decimals: int = 2
) -> None:
    """A table of signed numbers as colours, zero white, each number written in its cell."""
    values = np.round(np.asarray(values, dtype=float), decimals) + 0.0  # + 0.0: no "-0.00"
    limit = float(np.nanmax(np.abs(values))) or 1.0
    sns.heatmap(
        values,
        ax=ax,
        cmap=SIGNED_MAP,
        vmin=-limit,
        vmax=limit,
        annot=True,
        fmt=f".{decimals}f",
        cbar=False,
        xticklabels=list(columns),
        yticklabels=list(rows),
        annot_kws={"size": 9.5},
        linewidths=0.5,
    )
    ax.tick_params(axis="y", rotation=0)
    ax.set_title(title)


@styled
def curve(
    ax: Axes,
    x: Sequence[float],
    y: Sequence[float],
    colour: str,
    *,
    interval: tuple[Sequence[float], Sequence[float]] | None = None,
    label: str = "",
    marker: str = "o",
    linestyle: str = "-",
) -> None:
    """A measured curve with its points marked, and its ``interval`` (low, high) as a band behind it."""
    if interval is not None:
        ax.fill_between(x, *interval, color=colour, alpha=0.16, linewidth=0)
    ax.plot(x, y, linestyle=linestyle, marker=marker, markersize=4.5, color=colour, label=label)


@styled
def grouped_bars(
    ax: Axes,
    series: Mapping[str, Sequence[float]],
    groups: Sequence[str],
    *,
    colours: Mapping[str, str],
    hollow: Sequence[str] = (),
    title: str = "",
) -> None:
    """One bar a series in each group, side by side (Fig. 5c); the series named in ``hollow`` are outlines only."""
    places, width = np.arange(len(groups)), 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        shift, colour = (number - (len(series) - 1) / 2) * width, colours[name]
        face = "white" if name in hollow else colour
        ax.bar(places + shift, values, 0.9 * width, color=face, edgecolor=colour, linewidth=1.4, label=name)
    ax.set_xticks(places, list(groups), rotation=45 if max(map(len, groups)) > 2 else 0)
    ax.set_title(title)


@styled
def offset_curves(
    ax: Axes, scores: np.ndarray, steps: Sequence[int], predicted: np.ndarray, *, reach: int = 5, title: str = ""
) -> None:
    """Scores [S, T] of a few decoder steps against the offset t − s, each relative to its maximum (Fig. 5b).

    ``steps`` count from 1; lighter is earlier. Dotted: the ``predicted`` offset [S] of the same step. Triangle: the
    measured peak, the vertex of the parabola through the highest point and its two neighbours.
    """
    peaks = statistics.peak_steps(scores) - np.arange(len(scores))
    for s, colour in zip(steps, shades(DECODER, len(steps), 0.6), strict=True):
        offsets = np.arange(scores.shape[1]) - (s - 1)
        near, heights = np.abs(offsets) <= reach, scores[s - 1] - np.nanmax(scores[s - 1])
        ax.plot(offsets[near], heights[near], ".-", color=colour, label=f"s = {s}")
        ax.axvline(predicted[s - 1], color=colour, linestyle=":", linewidth=2)
        if abs(peaks[s - 1]) <= reach:  # above the curves, whatever their range
            ax.plot(peaks[s - 1], 1.03, "v", color=colour, clip_on=False, transform=ax.get_xaxis_transform())
    ax.set_xlim(-reach - 0.2, reach + 0.2)
    ax.set_xticks(range(-reach, reach + 1))
    ax.set_xlabel("offset t − s")
    ax.set_title(title, pad=14)
