"""The three tasks on one page: the paper's main message, from Fig. 2–5, in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from howattend import plots, statistics
from howattend.analysis import Run, array
from howattend.measured import Measured
from howattend.tasks import Batch


@dataclass(frozen=True)
class Sample:
    """The first steps of one sentence: what the network attends to, and what it would from position alone."""

    source: Sequence[str]  # T words
    target: Sequence[str]  # S words
    attention: np.ndarray  # [S, T] attention weights
    temporal: np.ndarray  # [S, T] softmax over the sentence's steps of μ^D_s·μ^E_t


def sample(run: Run, found: Run | Measured, batch: Batch, steps: int) -> Sample:
    """The first ``steps`` source and target steps, or all that there are, of a batch's only pair.

    The decoder is fed as in training. Weights are those of the whole sentence, cut afterwards.

    Args:
        run: the network.
        found: what has its components: the run itself, or of translation its measurement.
        batch: one pair; ValueError if it has more.
        steps: how many.
    """
    if len(batch) != 1:
        raise ValueError(f"batch must hold one pair, got {len(batch)}: index it, batch[:1]")
    trace = run.model.trace(batch.to(run.device))
    rows, columns = (min(steps, int(lengths[0])) for lengths in (batch.target_lengths, batch.source_lengths))
    keys, queries = (np.asarray(side.temporal) for side in (found.encoder, found.decoder))
    temporal = statistics.softmax(queries[:rows] @ keys[: int(batch.source_lengths[0])].T)
    return Sample(
        [run.task.source_vocabulary.words[index] for index in batch.source[0, :columns]],
        [run.task.target_vocabulary.words[index] for index in batch.target[0, :rows]],
        array(trace.attention[0, :rows, :columns]),
        temporal[:, :columns],
    )


@dataclass(frozen=True)
class Features:
    """What Fig. 5 measures of one network."""

    sample: Sample
    shares: np.ndarray  # [3, 3] of the nine terms in the largest score
    drops: np.ndarray  # [W] 1 − var(h − μ) / var(h) of each word
    paper: float | None = None  # the paper's mean of the drops


# Inches: set by hand, so that all matrices are alike and every label has its room.
_WIDTH, _TOP, _ROW, _BOTTOM, _LABELS = 8.4, 0.66, 1.78, 0.3, 0.92
_MATRIX, _NEXT, _BARS = 1.14, 1.22, 1.15


@plots.styled
def page(features: Mapping[str, Mapping[str, Features]]) -> Figure:
    """A row a task. From the left, of AED and AO: a sample's attention and that of position alone; shares; variance.

    Args:
        features: by task, and in it by architecture: "AED" and "AO".
    """
    height = _TOP + len(features) * _ROW + _BOTTOM
    figure = plt.figure(figsize=(_WIDTH, height), layout="none")

    def add(left: float, top: float, width: float) -> Axes:
        return figure.add_axes((left / _WIDTH, 1 - (top + _MATRIX) / height, width / _WIDTH, _MATRIX / height))

    def say(left: float, top: float, text: str, **style: object) -> None:
        figure.text(left / _WIDTH, 1 - top / height, text, ha="center", va="center", **style)

    bars, dots = _WIDTH - 2 * _BARS - 0.12, _WIDTH - _BARS - 0.02
    for row, (task, networks) in enumerate(features.items()):
        top, left = _TOP + row * _ROW, _LABELS
        say(0.12, top + _MATRIX / 2, task, rotation=90, fontsize=12, fontweight="bold")
        for architecture, found in networks.items():
            weights = {"attention": found.sample.attention, "softmax μᴰ·μᴱ": found.sample.temporal}
            if row == 0:
                say(left + (_MATRIX + _NEXT) / 2, 0.14, architecture, fontsize=12, fontweight="bold")
                for place, name in enumerate(weights):
                    say(left + place * _NEXT + _MATRIX / 2, 0.46, name, fontsize=10)
            for matrix in weights.values():
                _matrix(add(left, top, _MATRIX), found.sample, matrix, words=left == _LABELS)
                left += _NEXT
            left += 0.06
        if row == 0:
            say(bars + _BARS / 2, 0.36, "share of the\nlargest score", fontsize=10)
            say(dots + _BARS / 2, 0.36, "variance gone\nwith μᴱ", fontsize=10)
        _shares(add(bars, top, _BARS), {name: found.shares for name, found in networks.items()})
        _drops(add(dots, top, _BARS), networks)
    handles, names = figure.axes[4].get_legend_handles_labels()
    marks = {
        "one word": Line2D([], [], marker=".", linestyle="", color=plots.SPECIAL),
        "paper": Line2D([], [], color=plots.ATTENTION, linewidth=2.2),
    }
    figure.legend([*handles, *marks.values()], [*names, *marks], loc="lower right", ncols=5, columnspacing=1.2)
    return figure


def _matrix(ax: Axes, sample: Sample, weights: np.ndarray, *, words: bool) -> None:
    """One matrix, source words below it, target words at the left where asked for."""
    plots.attention_matrix(ax, weights, sample.source, sample.target)
    ax.set(xlabel="", ylabel="", anchor="NW", aspect="auto")
    ax.tick_params(length=0, pad=2, labelsize=8.5)
    ax.tick_params(axis="x", rotation=90)
    ax.tick_params(labelleft=words)


def _shares(ax: Axes, shares: Mapping[str, np.ndarray]) -> None:
    """The three-part bars, without a scale: their numbers are written in them."""
    plots.term_bars(ax, shares, legend=False)
    ax.set(ylabel="", yticks=[])
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), max(1.1, ax.get_ylim()[1]))
    ax.spines["left"].set_visible(False)


def _drops(ax: Axes, networks: Mapping[str, Features]) -> None:
    """The variance drop: a bar for the mean, a dot for each word, the paper's mean in gold."""
    for place, found in enumerate(networks.values()):
        mean = np.nanmean(found.drops)
        ax.bar(place, mean, width=0.62, color="#CFDDEA", edgecolor="#333333", linewidth=0.5)
        spread = np.linspace(-0.22, 0.22, len(found.drops))
        ax.plot(place + spread, found.drops, ".", color=plots.SPECIAL, markersize=4)
        if found.paper is not None:
            ax.hlines(found.paper, place - 0.42, place + 0.42, color=plots.ATTENTION, linewidth=2.2)
        top = max(mean, np.nanmax(found.drops), found.paper or 0)
        ax.text(place, top + 0.04, f"{mean:.2f}", ha="center", va="bottom", fontsize=9.5)
    ax.axhline(0, color="#333333", linewidth=0.8)
    ax.set_xticks(range(len(networks)), list(networks))
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.2)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
