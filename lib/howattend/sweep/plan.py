"""What the sweep trains: every configuration with its seeds, in the order in which they are worth having."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from howattend import runs
from howattend._validation import meant
from howattend.models.config import ARCHITECTURES, CELLS
from howattend.runs import RunConfig
from howattend.tasks import Translation

SEEDS = (0, 1, 2, 3, 4)  # of the book's networks with GRU
FEWER = (0, 1, 2)  # of everything that is varied
REPEATED = "one_to_one-ao-gru-steps1250"  # trained again by a test, in twenty seconds
#: Runs with more seeds than others of their kind.
SEEDS_OF = {
    # Conditions on which verdicts rest: as many as the recipes; 6: see below.
    "escan-aed-gru-l2_1e-4": (*SEEDS, 6),
    "escan-ao-gru-l2_1e-3": SEEDS,
    "one_to_one-aed-gru-n256-l2_1e-4": SEEDS,
    "one_to_one-aed-gru-words8-n256-l2_1e-4": SEEDS,
    # Fewer than three reached their bar at first, and without a third there is no verdict.
    "escan-ao-gru": tuple(range(10)),
    "escan-ao-gru-constant": SEEDS,
    "escan-ao-gru-constant-steps1250": SEEDS,
    "escan-ao-gru-no_turns": SEEDS,
    "escan-ao-gru-no_turns-verbs3": SEEDS,
    "escan-ao-gru-no_turns-verbs9": SEEDS,
    "escan-ao-gru-and00-no_turns-verbs9": SEEDS,
    "one_to_one-ao-ff": SEEDS,
    # E7, E9 and T8 compare these with escan-ao-gru of the same seed, of which 0, 3, 6, 7 and 9 reached their bar.
    "escan-aed-gru": tuple(range(10)),
    "escan-aed-gru-teacher": (*FEWER, 3, 6),
    "one_to_one-aed-gru": tuple(range(10)),
    "translation-ao-gru-n96": (*FEWER, 3, 6),
    # Trained again by a test: these say where it must lie.
    REPEATED: SEEDS,
}
L2_GRID = (1e-2, 1e-3, 1e-4)
#: Training lengths beside the recipe's 5,000 steps; the learning rate falls over the whole of each.
LENGTHS, FURTHER_LENGTHS = (1250,), (2500, 10_000)
#: Rates of "and", in percent, with which the AO is trained at several seeds.
PERCENTS = (0, 5, 100)

#: What departs from the defaults, in the order in which a name has it (design: run names).
_DEPARTURES = re.compile(
    r"-(words\d+|varied|and\d+|no_turns|verbs\d+|n\d+|scaled_dot|teacher|constant|l2_\de-\d|warmup\d+|steps\d+)"
)
_KNOWN = (
    "words8, varied, and30, no_turns, verbs3, n96, scaled_dot, teacher, constant, l2_1e-3, warmup0, steps2500 (numbers "
    "are yours)"
)
_ORDER = (
    *("words", "varied", "and", "no_turns", "verbs", "n", "scaled_dot", "teacher", "constant", "l2_", "warmup"),
    "steps",
)


@dataclass(frozen=True)
class Name:
    """A run's name in its parts: task-architecture-cell, then what departs from the defaults."""

    task: str
    architecture: str
    cell: str
    departures: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str) -> Name:
        """The parts of a name. ValueError where it has not this form.

        The task may be one of your own; the sweep finds by the name which claims apply, and to what they compare.
        """
        task, architecture, cell, *_ = [*name.split("-", 3), "", ""]
        rest = name.removeprefix(f"{task}-{architecture}-{cell}")
        departures = tuple(_DEPARTURES.findall(rest))
        known = bool(task) and architecture.upper() in ARCHITECTURES and architecture.islower() and cell in CELLS
        if not known or "".join(f"-{departure}" for departure in departures) != rest:
            raise ValueError(
                f"a run's name is task-architecture-cell and known departures, such as one_to_one-aed-gru-l2_1e-5, got "
                f"{name!r}; architectures are {', '.join(ARCHITECTURES).lower()}, cells {', '.join(CELLS)}, "
                f"departures {_KNOWN}"
            )
        return cls(task, architecture, cell, departures)

    def with_departures(self, *more: str) -> Name:
        """The same with further departures, each once and in their order; ValueError for one that there is not."""
        if unknown := [part for part in more if not _DEPARTURES.fullmatch(f"-{part}")]:
            raise ValueError(f"a departure must be like one of {_KNOWN}, got {unknown[0]!r}")
        every = dict.fromkeys((*self.departures, *more))
        kinds = {name: next(i for i, kind in enumerate(_ORDER) if name.startswith(kind)) for name in every}
        return replace(self, departures=tuple(sorted(every, key=kinds.__getitem__)))

    def __str__(self) -> str:
        return "-".join((self.task, self.architecture, self.cell, *self.departures))


@dataclass(frozen=True)
class Entry:
    """A configuration and its seeds.

    Where no recipe was chosen before, there are several candidates, strongest L2 first: the one that keeps the accuracy
    bar with seed 0 is trained with the others; if none does, the weakest (see :func:`resolve`).
    """

    group: str
    candidates: tuple[RunConfig, ...]
    seeds: tuple[int, ...]
    unattended: bool = True  # False: trained only where it is named

    def __post_init__(self) -> None:
        if not self.candidates or not self.seeds:
            raise ValueError(f"an entry must have a configuration and a seed, got {self.candidates} and {self.seeds}")
        if len(names := {config.name for config in self.candidates}) > 1:
            raise ValueError(f"an entry's candidates must have one name, got {', '.join(sorted(names))}")

    @property
    def name(self) -> str:
        return self.candidates[0].name


@dataclass(frozen=True)
class Job:
    """One network to train."""

    config: RunConfig
    seed: int
    entry: str  # name of the entry: where a candidate fails, the run is called after it and its L2

    @property
    def key(self) -> tuple[str, int]:
        return self.config.hash, self.seed


@dataclass(frozen=True)
class Plan:
    """All entries, most valuable first, and which of them are to be trained: claims may need the others, too."""

    entries: tuple[Entry, ...]
    named: frozenset[str] | None = None  # None: all that may run unattended

    def __post_init__(self) -> None:
        """ValueError where a name is not of the sweep's form, or there twice: rows could not be told apart."""
        for name, number in Counter(entry.name for entry in self.entries).items():
            Name.of(name)
            if number > 1:
                raise ValueError(f"names of a plan's entries must differ, got {name} {number} times")

    @cached_property
    def by_name(self) -> dict[str, Entry]:
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def wanted(self) -> tuple[Entry, ...]:
        """The entries to be trained."""
        return tuple(
            entry for entry in self.entries if (entry.unattended if self.named is None else entry.name in self.named)
        )


def matching(plan: Plan, patterns: str | Iterable[str] | None) -> Plan:
    """The plan with those entries to be trained whose names match one of the patterns (``*`` stands for anything);
    with None the plan itself. ValueError where there is no pattern, or one matches none.
    """
    if patterns is None:
        return plan
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    if not patterns:
        raise ValueError("patterns must be names of runs, one or more, or None for all, got none")
    chosen: set[str] = set()
    for pattern in patterns:
        found = fnmatch.filter(plan.by_name, pattern)
        if not found:
            raise ValueError(
                f"unknown sweep run {pattern!r}; {meant(pattern.strip('*'), plan.by_name)}all are shown by: "
                "python -m howattend sweep --list"
            )
        chosen.update(found)
    return replace(plan, named=frozenset(chosen))


def resolve(entry: Entry, trained: dict[tuple[str, int], bool]) -> tuple[RunConfig | None, RunConfig | None]:
    """The configuration that an entry's seeds are trained with, and the candidate to try next; one of them is None.

    Args:
        entry: of the plan.
        trained: of each recorded run, by hash and seed: whether it reached its bar.
    """
    if len(entry.candidates) == 1:
        return entry.candidates[0], None
    for candidate in entry.candidates:
        verdict = trained.get((candidate.hash, entry.seeds[0]))
        if verdict is None:
            return None, candidate
        if verdict or candidate is entry.candidates[-1]:
            return candidate, None
    raise AssertionError("the last candidate is taken if no other is")


def jobs(plan: Plan, trained: dict[tuple[str, int], bool]) -> list[Job]:
    """What is left to train and can be now, in order: a configuration's other seeds wait for the choice of its L2."""
    left = []
    for entry in plan.wanted:
        chosen, next_try = resolve(entry, trained)
        if next_try is not None:
            left.append(Job(next_try, entry.seeds[0], entry.name))
        if chosen is not None:
            wanted = (Job(chosen, seed, entry.name) for seed in entry.seeds)
            left += [job for job in wanted if job.key not in trained]
    return left


def left_over(plan: Plan, trained: dict[tuple[str, int], bool]) -> list[Job]:
    """All that is left, for an estimate: where an L2 is not chosen yet, as if the next candidate were the right one."""
    left = []
    for entry in plan.wanted:
        chosen, next_try = resolve(entry, trained)
        config = chosen or next_try
        left += [job for job in (Job(config, seed, entry.name) for seed in entry.seeds) if job.key not in trained]
    return left


def recorded_name(job: Job, entry: Entry, reached: bool) -> str:
    """What a run is called: after its entry, unless it is a candidate whose L2 turned out too strong.

    That the first seed says. Others are trained with what was chosen: one that fails is a seed of the entry's.
    """
    if reached or job.seed != entry.seeds[0] or job.config.hash == entry.candidates[-1].hash:
        return entry.name
    return str(Name.of(entry.name).with_departures(_l2_name(job.config.train.l2)))


def l2_in_words(l2: float) -> str:
    """ "1e-3"."""
    return f"{l2:.0e}".replace("e-0", "e-")


def _l2_name(l2: float) -> str:
    return f"l2_{l2_in_words(l2)}"


# ---- the list ----------------------------------------------------------------------------------------------------


def full_plan() -> Plan:
    """The whole sweep: what it trains by itself, and what it trains where it is named.

    The latter are translation's networks, which need the corpus, and configurations beyond those that the book shows.
    """
    book, conditions = _book()
    entries = [*book, *_stuck(), *_feeding("escan", "teacher"), *_feeding("reversed", "teacher", "constant")]
    entries += [*conditions, *_variants(), *_strengths(_PAIRS, L2_GRID), *_strengths(_EIGHT_WORDS, L2_GRID)]
    entries += _strengths(["one_to_one-aed-gru-words8"], (1e-5,))
    entries += [*_rates("ao", PERCENTS), *_lengths(_PAIRS, LENGTHS)]
    entries += _lengths(["escan-ao-gru"], (10_000,))  # this one's networks lie at their bar
    entries += _predicted()
    further = [*_beginnings(), *_feeding("sort", "teacher"), *_strengths(_PAIRS, (1e-5,)), *_supplements()]
    further += [*_rates("ao", set(runs.AND_PERCENTS) - set(PERCENTS)), *_rates("aed", set(runs.AND_PERCENTS) - {30})]
    attended = {entry.name for entry in entries}
    further += [entry for entry in _lengths(_PAIRS, FURTHER_LENGTHS) if entry.name not in attended]
    named = (replace(entry, unattended=False) for entry in (*_in_order(further), *_translation()))
    entries = (*_in_order(entries), *named)
    return Plan(tuple(replace(entry, seeds=SEEDS_OF.get(entry.name, entry.seeds)) for entry in entries))


def _in_order(entries: list[Entry]) -> list[Entry]:
    """By group, in each the cheap ones first."""
    groups = list(dict.fromkeys(entry.group for entry in entries))
    return sorted(entries, key=lambda entry: (groups.index(entry.group), _cost(entry.candidates[0])))


#: Core-seconds of one step, before any was measured.
STEP_SECONDS = {"VED": 0.035, "AED": 0.04, "AO": 0.015}
_OF_CELL = {"gru": 1.0, "lstm": 1.2, "ugrnn": 0.8, "ff": 0.6}


def step_seconds(config: RunConfig) -> float:
    """A guess at the core-seconds of one training step."""
    return STEP_SECONDS[config.model.architecture] * _OF_CELL[config.model.cell]


def _cost(config: RunConfig) -> float:
    return config.train.steps * step_seconds(config)


def _changed(
    base: str,
    *departures: str,
    l2: float | None = None,
    steps: int | None = None,
    warmup: int | None = None,
    **model: object,
) -> RunConfig:
    """A run of the registry with something changed, under the name that says so."""
    known = runs.config(base)
    name = Name.of(base).with_departures(*departures)
    name = replace(name, cell=str(model.get("cell", name.cell)))
    changes = {"l2": l2, "steps": steps, "warmup_steps": warmup}
    recipe = replace(known.train, **{key: value for key, value in changes.items() if value is not None})
    return replace(known, name=str(name), model=replace(known.model, **model), train=recipe)


def _book() -> tuple[list[Entry], list[Entry]]:
    """The book's networks: those of its recipes, and the conditions of claims."""
    recipes, conditions = [], []
    for name, config in runs.REGISTRY.items():
        if isinstance(config.task, Translation):
            continue
        if all(part.startswith(("words", "varied")) for part in Name.of(name).departures):
            recipes.append(Entry("the book's networks", (config,), SEEDS))
        else:
            conditions.append(Entry("conditions in the book", (config,), FEWER))
    return recipes, conditions


_PAIRS = tuple(f"{task}-{architecture}-gru" for task in ("one_to_one", "escan") for architecture in ("aed", "ao"))
_AOS = tuple(base for base in _PAIRS if "-ao-" in base)
_EIGHT_WORDS = tuple(f"one_to_one-{architecture}-gru-words8" for architecture in ("aed", "ao"))


def _tried(group: str, base: str, *departures: str, **model: object) -> Entry:
    """A configuration whose L2 is chosen in the sweep."""
    return Entry(group, tuple(_changed(base, *departures, l2=l2, **model) for l2 in L2_GRID), FEWER)


def _variants() -> list[Entry]:
    """V1–V3: cells, learned attention, the non-gated AO."""
    group = "cells and attention"
    entries = [_tried(group, base, cell=cell) for base in _PAIRS for cell in ("lstm", "ugrnn")]
    entries += [_tried(group, base, "scaled_dot", attention="scaled_dot") for base in _PAIRS]
    return entries + [_tried(group, base, cell="ff") for base in _AOS]


def _stuck() -> list[Entry]:
    """AOs that stay at chance on reversed with some seeds, with a tenth of the recipe's L2."""
    return [Entry("trainings that stick", (_changed("reversed-ao-gru", "l2_1e-3", l2=1e-3),), SEEDS)]


def _beginnings() -> list[Entry]:
    """The same with another beginning of the training, and on extended SCAN."""
    configs = [
        _changed("reversed-ao-gru", "warmup1000", warmup=1000),
        _changed("escan-ao-gru", "warmup0", warmup=0),
    ]
    return [Entry("trainings that stick", (config,), SEEDS) for config in configs]


def _feeding(task: str, *inputs: str) -> list[Entry]:
    """The AED fed something else, on a task on which the book feeds it its own predictions."""
    base = f"{task}-aed-gru"
    return [Entry("fed word", (_changed(base, fed, decoder_input=fed),), FEWER) for fed in inputs]


def _strengths(bases: Iterable[str], strengths: Iterable[float]) -> list[Entry]:
    """Strengths of L2 that are in neither recipe nor registry."""
    entries = []
    for base in bases:
        for l2 in strengths:
            config = _changed(base, _l2_name(l2), l2=l2)
            if l2 != runs.config(base).train.l2 and config.name not in runs.REGISTRY:
                entries.append(Entry("strength of L2", (config,), FEWER))
    return entries


def _lengths(bases: Iterable[str], lengths: Iterable[int]) -> list[Entry]:
    configs = [_changed(base, f"steps{steps}", steps=steps) for base in bases for steps in lengths]
    return [Entry("training length", (config,), FEWER) for config in configs]


def _rates(architecture: str, percents: Iterable[int]) -> list[Entry]:
    names = [f"escan-{architecture}-gru-and{percent:02d}" for percent in sorted(percents)]
    return [Entry('rate of "and"', (runs.config(name),), FEWER) for name in names]


def _predicted() -> list[Entry]:
    """Where D3, D4 and O8 should hold if the reasons that the book gives for their failure are right.

    D3: without turns nothing is ever looked for one step ahead, so the temporal part need not keep that step as near as
    the one behind. Half of the phrases then have "twice", and at early steps the step behind is nearer than the own
    one; with more single verbs, and a quarter or a tenth, it should not be. Most phrases then are one word, and a
    sentence has so many places for an "and" that the last ones lie below their bar: so the same without "and".

    D4: fed a constant, "left" is below 0 on the diagonal and a verb has to be found by attention alone; after 1,250
    steps "and" is below 0 everywhere: both at once.

    O8: with weak L2 eight arms are as far from a simplex as the random directions leave them in which they began, and
    these are the closer to right angles the more dimensions there are: twice the units.
    """
    configs = [_changed("escan-ao-gru-constant", "steps1250", steps=1250)]
    for base, departures, verbs in (
        ("escan-ao-gru", ("no_turns",), 1),
        ("escan-ao-gru", ("no_turns", "verbs3"), 3),
        ("escan-ao-gru", ("no_turns", "verbs9"), 9),
        ("escan-ao-gru-and00", ("no_turns", "verbs9"), 9),
    ):
        known, phrases = runs.config(base), (*["verb"] * verbs, "twice")
        name = str(Name.of(known.name).with_departures(*departures))
        configs.append(replace(known, name=name, task=replace(known.task, phrases=phrases)))
    for words in ("", "-words8"):
        configs.append(_changed(f"one_to_one-aed-gru{words}", "n256", "l2_1e-4", l2=1e-4, hidden_size=256))
    return [Entry("predicted conditions", (config,), FEWER) for config in configs]


def _supplements() -> list[Entry]:
    """What some claims compare with, for each cell and attention: eight words (O8) and VED (O3, O10; its L2 is the
    recipe's, since stronger ones keep it from training); and AO on what it cannot learn."""
    group, words = "supplements", _EIGHT_WORDS
    entries = [Entry(group, (runs.config(name),), FEWER) for name in ("sort-ao-gru", "reversed-ao-gru-varied")]
    entries += [_tried(group, base, cell=cell) for base in words for cell in ("lstm", "ugrnn")]
    entries += [_tried(group, base, "scaled_dot", attention="scaled_dot") for base in words]
    entries.append(_tried(group, words[1], cell="ff"))
    return entries + [Entry(group, (_changed("one_to_one-ved-gru", cell=cell),), FEWER) for cell in ("lstm", "ugrnn")]


def _translation() -> list[Entry]:
    """Translation at a size of which three seeds fit: n = 96, 3,000 words a language, 15 epochs of both registers; and
    the shipped networks, for H1. Both need the corpus."""
    entries = []
    for architecture in ("AED", "AO"):
        shipped = runs.config(f"translation-{architecture.lower()}-gru")
        entries.append(Entry("translation", (shipped,), SEEDS[:1]))
        name, task = f"translation-{architecture.lower()}-gru-n96", Translation(num_words=3000)
        config = runs.translation_run(name, task, architecture, hidden_size=96, epoch=356, bar=0.4)
        entries.append(Entry("translation", (config,), FEWER))
    return entries
