"""What the book's trainings were and what they cost: settings, seconds and operations, from the records alone.

Nothing is measured here: a network's row was written by the machine that trained it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from howattend import runs, sweep
from howattend.runs import RunConfig
from howattend.sweep import plan as plans
from howattend.tables import Table
from howattend.tasks import Translation

#: Of a network that has no time: it was trained before times were recorded.
UNTIMED = "none"
_TRANSLATION = "translation, shipped"
_ACCURACY_ONLY = "accuracy only"


@dataclass(frozen=True)
class Configuration:
    """A configuration of the book with the seeds that it is to be trained with."""

    group: str
    config: RunConfig
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.config.name


def configurations(table: pd.DataFrame | None = None) -> list[Configuration]:
    """Every configuration that was trained, or that the sweep is to train by itself, each once, in its order.

    Where the sweep chooses the strength of L2, those that it tried and left are listed behind the chosen one, under the
    name that their rows have.

    Args:
        table: of :func:`networks`; None reads it.
    """
    table = networks() if table is None else table
    done, found, swept = sweep.trained(table), {}, set(table.loc[table["clock"] != UNTIMED, "config_hash"])
    for entry in sweep.full_plan().entries:
        chosen, following = sweep.resolve(entry, done)
        config = chosen or following
        if not entry.unattended and config.hash not in swept:
            continue  # one that the sweep only offers
        found[config.hash] = Configuration(entry.group, replace(config, name=entry.name), entry.seeds)
        for other in entry.candidates:
            if other.hash != config.hash and (other.hash, entry.seeds[0]) in done:
                job = sweep.Job(other, entry.seeds[0], entry.name)
                named = replace(other, name=plans.recorded_name(job, entry, reached=False))
                found[other.hash] = Configuration(entry.group, named, entry.seeds[:1])
    for name, config in (runs.REGISTRY | runs.TRIED).items():
        group = _TRANSLATION if isinstance(config.task, Translation) else _ACCURACY_ONLY
        seed = runs.manifest().get(name, {}).get("seed", 0)
        found.setdefault(config.hash, Configuration(group, config, (seed,)))
    return list(found.values())


def networks() -> pd.DataFrame:
    """Every recorded network, once: those of the sweep, then shipped ones that the sweep has not, then those of which
    only the accuracy was kept.

    The columns are those of the sweep (``sweep.RUN_COLUMNS``). ``clock`` says what ``seconds`` are: of one core
    ("core"), of a busy machine's wall clock ("wall"), or not recorded (:data:`UNTIMED`); ``flops`` are NaN where they
    were not counted.
    """
    table = sweep.read_runs()
    known = set(zip(table["config_hash"], table["seed"], strict=True))
    more = []
    for name, entry in runs.manifest().items():
        if (entry["config_hash"], entry["seed"]) not in known:
            config = runs.config(name)
            spent = {"seconds": entry["seconds"], "clock": "wall", "parameters": entry["parameters"]}
            row = _row(config, entry["seed"], entry["accuracy"]) | spent | entry["versions"]
            more.append(row | {"weights_sha256": ""})
            known.add((entry["config_hash"], entry["seed"]))
    for row in runs.read_accuracies(missing_ok=True).itertuples():
        if (row.config_hash, row.seed) not in known:
            more.append(_row(runs.config(row.run), row.seed, row.accuracy))
    if not more:
        return table
    return pd.concat([table, pd.DataFrame(more, columns=list(table.columns))], ignore_index=True)


def _row(config: RunConfig, seed: int, accuracy: float) -> dict[str, object]:
    return {
        "run": config.name,
        **config.columns(),
        "seed": seed,
        "accuracy": accuracy,
        "bar": config.accuracy_bar,
        "trained": accuracy >= config.accuracy_bar,
        "seconds": np.nan,
        "clock": UNTIMED,
        "flops": np.nan,
        "config_hash": config.hash,
    }


# ---- settings ----------------------------------------------------------------------------------------------------

#: The run whose settings are the usual ones of its column in :func:`recipe_table`.
BASES = {
    "VED": "one_to_one-ved-gru",
    "AED": "one_to_one-aed-gru",
    "AO": "one_to_one-ao-gru",
    "translation": "translation-aed-gru",
}
_NAMED = {"architecture", "accuracy_bar"}  # said by the column, or in a column of its own
_SHORT = {"decoder_input": "fed", "l2": "L2"}


def settings(config: RunConfig) -> dict[str, object]:
    """All that defines a training but task and seed, with defaults filled in."""
    model = config.model.resolve(config.task.default_decoder_input)
    return {**asdict(model), **asdict(config.train), "accuracy_bar": config.accuracy_bar}


def task_settings(config: RunConfig) -> dict[str, object]:
    """All that defines a run's task but its name."""
    return {key: value for key, value in config.task.settings().items() if key != "name"}


def recipe_table() -> Table:
    """The usual settings of network and training: those of the runs of :data:`BASES`."""
    usual = [settings(runs.config(name)) for name in BASES.values()]
    rows = [(_SHORT.get(key, key), *(_text(one[key]) for one in usual)) for key in usual[0] if key not in _NAMED]
    return Table(("setting", *BASES), {"network and training": rows})


def task_table() -> Table:
    """The usual settings of each task: those of its AED."""
    names = dict.fromkeys(config.task.name for config in runs.REGISTRY.values())
    found = {name: task_settings(_task_base(name)) for name in names}
    return Table(
        ("setting", "value"),
        {name: [(key, _text(value)) for key, value in values.items()] for name, values in found.items()},
    )


def departures(config: RunConfig) -> dict[str, object]:
    """The settings in which a run is not as its base in :data:`BASES`, nor its task as the task's AED has it."""
    base = runs.config(BASES["translation" if isinstance(config.task, Translation) else config.model.architecture])
    usual = task_settings(_task_base(config.task.name)) | settings(base)
    mine = task_settings(config) | settings(config)
    return {key: value for key, value in mine.items() if key not in _NAMED and value != usual[key]}


def runs_table(found: Iterable[Configuration], table: pd.DataFrame) -> Table:
    """Every run: what departs from the usual settings, its networks, their word accuracy, and what a training took: the
    mean of its core-seconds, or where none are known the wall clock's, an upper bound; and its counted operations.

    A network that did not reach its bar is counted and is in the mean; a seed that is not recorded yet is counted, too.
    """
    sections: dict[str, list[tuple[str, ...]]] = {}
    for one in found:
        said = " · ".join(f"{_SHORT.get(key, key)} {_text(value)}" for key, value in departures(one.config).items())
        mine = table[table["config_hash"] == one.config.hash]
        bar = f"{one.config.accuracy_bar:.1%}"
        row = one.name, said or "as usual", _seeds(one, mine), _accuracy(mine), bar, _cost(mine)
        sections.setdefault(one.group, []).append(row)
    return Table(("run", "departs in", "seeds trained", "word accuracy", "bar", "a training"), sections)


def _task_base(task: str) -> RunConfig:
    return runs.config(f"{task}-aed-gru")


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(f"{one} × {times}" if times > 1 else str(one) for one, times in Counter(value).items())
    if value is None or isinstance(value, bool):
        return {None: "any", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:g}".replace("e-0", "e-")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _seeds(one: Configuration, mine: pd.DataFrame) -> str:
    left = len(set(one.seeds) - set(mine["seed"]))
    said = f"{int(mine['trained'].sum())} of {len(mine)}" if len(mine) else "none yet"
    return f"{said}; {left} to come" if left else said


def _accuracy(mine: pd.DataFrame) -> str:
    values = mine["accuracy"].dropna()
    if len(values) < 2:
        return "".join(f"{value:.2%}" for value in values)
    return f"{values.mean():.2%} ({100 * values.min():.2f} to {100 * values.max():.2f})"


def _cost(mine: pd.DataFrame) -> str:
    core, wall = (mine.loc[(mine["clock"] == clock) & (mine["seconds"] > 0), "seconds"] for clock in ("core", "wall"))
    seconds = [f"{core.mean():.0f} s"] if len(core) else [f"≤ {wall.min():.0f} s"] if len(wall) else []
    flops = mine["flops"].dropna()
    return ", ".join(seconds + [f"{flops.mean() / 1e12:.2g} TFLOP"] * bool(len(flops)))


# ---- cost --------------------------------------------------------------------------------------------------------


def totals(table: pd.DataFrame) -> pd.DataFrame:
    """Networks, hours and counted operations, by what the seconds are of; the last row is the sum.

    Columns: clock, networks, hours (a sum over clocks is none of either, so the last row has none), flops, counted (of
    how many networks the operations were counted).
    """
    rows = [
        {
            "clock": clock,
            "networks": len(some),
            "hours": some["seconds"].sum() / 3600 if clock != UNTIMED else np.nan,
            "flops": some["flops"].sum(),
            "counted": int(some["flops"].notna().sum()),
        }
        for clock in ("core", "wall", UNTIMED)
        if len(some := table[table["clock"] == clock])
    ]
    summed = pd.DataFrame(rows, columns=["clock", "networks", "hours", "flops", "counted"])
    everything = summed[["networks", "flops", "counted"]].sum()
    return pd.concat([summed, pd.DataFrame([{"clock": "all", "hours": np.nan, **everything}])], ignore_index=True)


_CLOCKS = {"core": "seconds of a core", "wall": "wall clock, upper bounds", UNTIMED: "not timed", "all": "all"}


def totals_table(table: pd.DataFrame) -> Table:
    """:func:`totals` for a page."""
    rows = [
        (
            _CLOCKS[row.clock],
            f"{row.networks:.0f}",
            "" if np.isnan(row.hours) else f"{row.hours:.1f}",
            f"{row.flops:.2g}" if row.counted else "",
            f"{row.counted:.0f}",
        )
        for row in totals(table).itertuples()
    ]
    short = table[~table["trained"].astype(bool)]
    heading = f"{len(table)} networks, of which {len(short)} did not reach their bar (they are in the sums)"
    return Table(("seconds", "networks", "hours", "FLOP", "counted in"), {heading: rows})


def rate_table(table: pd.DataFrame) -> Table:
    """What a step costs, by kind of network: seconds of a core, counted operations, and operations a second, over all
    networks that were timed so.
    """
    timed = table[(table["clock"] == "core") & (table["seconds"] > 0)]
    kinds = ["task", "architecture", "cell", "attention", "decoder_input"]
    sections: dict[str, list[tuple[str, ...]]] = {}
    for (task, *kind), sums in timed.groupby(kinds, sort=False)[["seconds", "steps", "flops"]].sum().iterrows():
        seconds, flops = sums["seconds"] / sums["steps"], sums["flops"] / sums["steps"]
        row = f"{1000 * seconds:.0f}", f"{flops / 1e6:.0f}", f"{flops / seconds / 1e9:.1f}"
        sections.setdefault(task, []).append(("{} {}, attention {}, fed {}".format(*kind), *row))
    return Table(("network", "core-seconds of 1,000 steps", "MFLOP of a step", "GFLOP a second"), sections)


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """Cost of one training of each run whose seconds are those of a core, as the mean over its networks.

    Columns: run, task, architecture, cell, attention, networks, seconds, flops, rate (counted operations a second),
    wrong (the share of words that the networks get wrong, mean).
    """
    timed = table[(table["clock"] == "core") & (table["seconds"] > 0)]
    keys = ["run", "task", "architecture", "cell", "attention"]
    found = timed.groupby(keys, sort=False).agg(
        networks=("seed", "size"), seconds=("seconds", "mean"), flops=("flops", "mean"), accuracy=("accuracy", "mean")
    )
    found = found.reset_index()
    found["rate"], found["wrong"] = found["flops"] / found["seconds"], 1 - found.pop("accuracy")
    return found
