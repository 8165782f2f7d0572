"""The ledger: every claim over all seeds and under all conditions, from the recorded rows alone.

No network is loaded. A row is a claim on a run; its verdict is that of its seeds. A claim's verdict is that of the runs
of the book's recipe ("base"), and, where one of them fails, of the conditions under which the same task and architecture
were measured, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from howattend import claims, runs, statistics, sweep
from howattend.claims import CRITERIA, PLAN
from howattend.claims.criteria import ABOUT_ACCURACY, NOT_COMPARABLE
from howattend.runs import RunConfig
from howattend.sweep.measuring import NOT_MEASURABLE
from howattend.sweep.plan import Name, Plan

REPRODUCED, CONDITION, NOT = "reproduced", "reproduced under a condition", "not reproduced"
REPORTED, FEW, UNMEASURED = "reported", "too few seeds", "not measured"
#: What a row's verdict can be, and a claim's (which alone can be under a condition).
VERDICTS = (REPRODUCED, CONDITION, NOT, REPORTED, FEW, UNMEASURED)
#: Of a prediction of our own one does not say that it was reproduced.
OWN_WORDS = {REPRODUCED: "holds", CONDITION: "holds under a condition", NOT: "does not hold"}
#: The part of the seeds on which a claim has to hold, and the fewest that have to be trained (claims.toml, protocol).
REQUIRED, FEWEST = 0.8, 3

#: A run's part in the ledger. "base": the book's recipe, on which the verdict is over. "condition": the same task and
#: architecture with another L2, training length, rate of "and" or fed word. "variant": another cell or attention (V1–V3).
#: "beside": other settings of the task, or of the training, that are neither.
KINDS = ("base", "condition", "variant", "beside")
_CONDITIONS = ("l2_", "steps", "and", "predicted", "teacher", "constant")

ARCHITECTURES = ("AED", "AO", "VED")
#: The row of H1 is over these together.
ALL_RUNS = "all base runs"
H1_SHARE, H1_NEARNESS = "centred share", "1 − TV, mean attention"
VARIANTS = {"gru": "V1", "lstm": "V1", "ugrnn": "V1", "scaled_dot": "V2", "ff": "V3"}

#: What a claim's deciding quantity is compared with: its sense, and either the name of a limit in claims.toml or of
#: another quantity of the same row, times a factor that may be a limit, too. E3's and E4's depend on more.
_LIMITS: dict[str, tuple[str, str] | tuple[str, str, str]] = {
    **{"O1": (">", "accuracy"), "O2": (">", "share"), "O3": (">", "variance"), "O4": ("<", "delta")},
    **{"O5": ("<", "ratio"), "O6": ("<", "null to μE, 95 %"), "O7": (">", "words"), "O8": ("<", "deviation")},
    **{"O9": (">", "context"), "O10": (">", "adjacent"), "O12": ("<", "null, 95 %")},
    **{"R1": (">", "argmax"), "S1": ("<", "temporal"), "E1": (">", "accuracy"), "E2": (">", "share")},
    **{"E5": ("=", "slope"), "E6": (">", "words"), "E7": (">", "aed"), "E8": (">", "share")},
    **{"E9": (">", "AED's on one-to-one", "times_one_to_one"), "D1": (">", "silhouette"), "D2": ("<", "silhouette")},
    **{"D3": (">", "share"), "D4": (">", "slope"), "T1": ("<", "null"), "T2": (">", "rho"), "T3": ("<", "share")},
    **{"T4": ("<", "extended SCAN's", "times_escan"), "T5": ("=", "predicted slope"), "T6": (">", "agreement")},
    **{"T7": ("<", "rho"), "T8": (">", "extended SCAN's"), "T10": ("<", "error"), "H1": (">", "rho")},
    **{"V4": (">", "purity"), "C1": (">", "after"), "C2": (">", "share"), "C4": (">", "share"), "C5": (">", "share")},
    **{"C6": (">", "after"), "C8": ("<", "accuracy")},
}


class LedgerError(ValueError):
    """Rows are missing, or no longer belong to what the code would train; the message says what to run."""


@dataclass(frozen=True)
class Over:
    """A quantity over the seeds that count: its values, mean and 95 % t-interval (NaN for a single seed)."""

    quantity: str
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, quantity: str, seeds: tuple[int, ...], values: tuple[float, ...]) -> Over:
        """From one value a seed; all NaN where there is none."""
        if not values:
            return cls(quantity, (), (), math.nan, math.nan, math.nan)
        found = statistics.t_interval(values)
        return cls(quantity, tuple(seeds), tuple(values), found.mean, found.low, found.high)

    def __str__(self) -> str:
        """For prose: "0.96 (0.95 to 0.97; 5 seeds)"."""
        if not self.values:
            return "no seed"
        if len(self.values) == 1:
            return f"{self.number(self.mean)} (1 seed)"
        return f"{self.number(self.mean)} ({self.interval}; {len(self.values)} seeds)"

    @property
    def interval(self) -> str:
        """ "0.95 to 0.97", or nothing for a single seed."""
        return f"{self.number(self.low)} to {self.number(self.high)}" if len(self.values) > 1 else ""

    def number(self, value: float) -> str:
        """A value as text: an accuracy in percent, else two digits behind the point or two significant ones."""
        if self.quantity.startswith("accuracy"):
            return f"{min(value, 1.0):.2%}".replace("%", " %")
        return f"{value + 0.0:.2f}" if abs(value) >= 0.0995 or value == 0 else f"{value:.2g}"


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim's verdict, the base runs that do not reproduce it, and the conditions under which these do."""

    claim: str
    verdict: str
    failing: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return say(self.claim, self.verdict)


def say(claim: str, verdict: str) -> str:
    """A verdict in words: the paper's claims are reproduced, our own predictions hold, or not."""
    return OWN_WORDS.get(verdict, verdict) if CRITERIA[claim].origin == "ours" else verdict


def read() -> Ledger:
    """The ledger of the recorded rows.

    The sweep's rows, and for what the sweep has not measured, claim by run by seed, those of the shipped networks
    (claims.csv). Raises :class:`LedgerError` where a row is of a configuration that the code would not train.
    """
    return assemble(sweep.read_rows(), claims.read_results(), sweep.read_runs())


def assemble(swept: pd.DataFrame, shipped: pd.DataFrame, networks: pd.DataFrame, plan: Plan | None = None) -> Ledger:
    """A ledger from rows of ``claims.COLUMNS`` (of the sweep, of the shipped networks) and ``sweep.RUN_COLUMNS``."""
    plan = plan or sweep.full_plan()
    configs = {candidate.hash: candidate for entry in plan.entries for candidate in entry.candidates}
    configs = {config.hash: config for config in runs.REGISTRY.values()} | configs
    _check(swept, configs, "python -m howattend sweep --only {run}", "data/results/sweep/{run}.csv")
    _check(shipped, configs, "python -m howattend claims", "data/results/claims.csv")
    _check(networks, configs, "python -m howattend sweep --only {run}", "data/results/sweep_runs.csv")
    keys = ["claim", "run", "seed"]
    known = pd.MultiIndex.from_frame(swept[keys])
    beside = shipped[~pd.MultiIndex.from_frame(shipped[keys]).isin(known)] if len(swept) else shipped
    measured = pd.concat([table for table in (swept, beside) if len(table)], ignore_index=True)
    return Ledger(measured, networks, configs, {entry.name: entry.seeds for entry in plan.entries})


def _check(table: pd.DataFrame, configs: Mapping[str, RunConfig], command: str, file: str) -> None:
    for run, config_hash in table[["run", "config_hash"]].drop_duplicates().itertuples(index=False):
        config = configs.get(config_hash)
        # A candidate whose L2 was too strong is recorded under a name of its own.
        if config is None or not (run == config.name or run.startswith(f"{config.name}-")):
            known = any(run == other.name for other in configs.values())
            advice = f"measure it anew with: {command}" if known else f"no run is called so; delete its lines in {file}"
            raise LedgerError(
                f"the recorded rows of {run} (hash {config_hash[:12]}) are of a configuration that the code no longer "
                f"has; {advice}".format(run=run)
            )


def kind_of(claim: str, run: str) -> str:
    """A run's part in the ledger: see :data:`KINDS`."""
    planned = [row.parts["run"] for row in PLAN if row.claim == claim]
    if run in planned and not any(_is_base(other) for other in planned):
        return "base"  # T9: a claim on the networks of the two registers
    if _is_base(run):
        return "base"
    try:
        name = Name.of(run)
    except ValueError:  # the registers of translation
        return "beside"
    if name.cell != "gru" or "scaled_dot" in name.departures:
        return "variant"
    return "condition" if all(part.startswith(_CONDITIONS) for part in name.departures) else "beside"


def _is_base(run: str) -> bool:
    """Whether a run is the recipe of its task and architecture; translation's has a smaller one with more seeds."""
    try:
        name = Name.of(run)
    except ValueError:
        return False
    return name.cell == "gru" and all(part[0] == "n" and part[1:].isdigit() for part in name.departures)


def departures(run: str) -> tuple[str, ...]:
    """What a run's name says that departs from its recipe, in words, as ("L2 1e-3",)."""
    name, words = Name.of(run), []
    for part in name.departures:
        for prefix, said in (
            ("l2_", "L2 {}"),
            ("steps", "{} steps"),
            ("and", '"and" at {} %'),
            ("words", "{} words"),
            ("warmup", "{} steps of warm-up"),
            ("n", "{} units"),
        ):
            if part.startswith(prefix) and part[len(prefix)].isdigit():
                number = part.removeprefix(prefix)
                words.append(said.format(f"{int(number):,}" if number.isdigit() else number))
                break
        else:
            plain = {"teacher": "fed the true words", "constant": "fed a constant", "varied": "several lengths"}
            words.append(plain.get(part, part))
    return tuple(words)


def limits(claim: str, architecture: str, quantities: Mapping[str, float]) -> tuple[float, float]:
    """Between which numbers the deciding quantity has to lie: (at least, at most), NaN where it may be anything.

    A target that an interval has to contain is both. A criterion may ask for more than this.
    """
    given = CRITERIA[claim].limits
    if claim == "O3" and architecture != "AED":  # the others are reported
        return math.nan, math.nan
    if claim == "E3":
        return 1 - given["deviation"], 1 + given["deviation"]
    if claim in ("E4", "C7"):
        sense, name, factor = (">", architecture.lower(), None)
        sense = "<" if (claim, architecture) == ("C7", "AO") else sense
    elif claim == "C3":  # AED's deciding quantity is another
        return (given["ao"], math.nan) if architecture == "AO" else (math.nan, math.nan)
    elif claim == "T9":
        return 0.0, math.nan
    elif claim in _LIMITS:
        sense, name, factor = (*_LIMITS[claim], None)[:3]
    else:
        return math.nan, math.nan
    value = given[name] if name in given else quantities.get(name, math.nan)
    value *= given[factor] if factor else 1
    return (value if sense in ">=" else math.nan), (value if sense in "<=" else math.nan)


@dataclass(frozen=True, eq=False)
class Ledger:
    """Everything recorded, and what follows from it: see :func:`read`."""

    measured: pd.DataFrame  # claims.COLUMNS, a row a claim, run, seed and quantity
    networks: pd.DataFrame  # sweep.RUN_COLUMNS, a row a network
    configs: Mapping[str, RunConfig]  # by hash
    planned: Mapping[str, tuple[int, ...]]  # the seeds of each run of the sweep

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row a claim and run, in the order of claims.toml and of the sweep. Columns:

        claim, run, kind (:data:`KINDS`), task, architecture, cell, attention, decoder_input, l2, steps; the deciding
        ``quantity`` with its ``seeds``, ``values`` and ``verdicts`` ("True", "False", "") of those that count, and
        ``left_out``, ``left_out_values`` of those that did not train or are compared with one that did not; ``holds``
        (on how many seeds), ``mean``, ``low``, ``high``; ``at_least``, ``at_most`` (:func:`limits`); ``verdict``.
        H1 has one row, over all base runs. A claim that says nothing about a run has none.
        """
        found = [self._row(*key, group) for key, group in self._groups.items() if key[0] != "H1"]
        found = [row for row in [*found, self._h1_row()] if row]
        table = pd.DataFrame(found, columns=list(_ROW_COLUMNS))
        order = {claim: place for place, claim in enumerate(CRITERIA)}
        of_run = {run: place for place, run in enumerate(self.planned)}
        keys = {
            "claim": order.get,
            "kind": KINDS.index,
            "architecture": lambda name: ARCHITECTURES.index(name) if name in ARCHITECTURES else 0,
            "run": lambda run: of_run.get(run, len(of_run)),
        }
        return table.sort_values(list(keys), key=lambda c: c.map(keys[c.name]), kind="stable", ignore_index=True)

    def of(self, claim: str, run: str, quantity: str | None = None) -> Over:
        """A quantity of a claim and run over the seeds that count; without a name the deciding one.

        Raises :class:`LedgerError` where it is not recorded, with what is.
        """
        group = self._groups.get((claim, run))
        if group is None:
            there = [name for of, name in self._groups if of == claim]
            raise LedgerError(
                f"no row of {claim} on {run} is recorded; {claim} is recorded on {', '.join(there) or 'no run'}; record "
                f"it with: python -m howattend sweep --only {run}"
            )
        quantity = group["quantity"].iloc[0] if quantity is None else quantity
        if quantity not in set(group["quantity"]):
            raise LedgerError(
                f"{claim} on {run} has no {quantity!r}; it has {', '.join(map(repr, group['quantity'].unique()))}"
            )
        counted = self._counted(group)
        values = group[(group["quantity"] == quantity) & group["seed"].isin(counted)].dropna(subset="value")
        return Over.of(quantity, tuple(values["seed"]), tuple(values["value"]))

    def row(self, claim: str, run: str) -> pd.Series:
        """The row of a claim and run; :class:`LedgerError` where it is not recorded."""
        found = self.rows[(self.rows["claim"] == claim) & (self.rows["run"] == run)]
        if not len(found):
            raise LedgerError(
                f"no row of {claim} on {run} is recorded; record it with: python -m howattend sweep --only {run}"
            )
        return found.iloc[0]

    def of_claim(self, claim: str, *kinds: str) -> pd.DataFrame:
        """A claim's rows, of some kinds (:data:`KINDS`) or of all. ValueError for a claim that there is not."""
        if claim not in CRITERIA:
            raise ValueError(f"claim must be one of {', '.join(CRITERIA)}, got {claim!r}")
        found = self.rows[self.rows["claim"] == claim]
        return found[found["kind"].isin(kinds)] if kinds else found

    def conditions(self, claim: str, task: str | None = None, architecture: str | None = None) -> pd.DataFrame:
        """The conditions that were measured for a claim, those under which it holds and those under which not."""
        found = self.of_claim(claim, "condition")
        found = found if task is None else found[found["task"] == task]
        return found if architecture is None else found[found["architecture"] == architecture]

    def verdict(self, claim: str) -> ClaimVerdict:
        """A claim's verdict: *reproduced* where every base run does; *under a condition* where those that do not have a
        measured condition, of the same task and architecture, under which they do; else *not reproduced*.

        A base run on which the criterion asks for a report only does not count, unless it asks for more under one of
        its conditions (E5, which is about a rate of "and").
        """
        states, failing, helpful = [], [], []
        for base in self.of_claim(claim, "base").itertuples():
            tried = self.conditions(claim, base.task, base.architecture)
            judged = tried[tried["verdict"].isin((REPRODUCED, NOT))]
            if base.verdict == REPRODUCED or (base.verdict == REPORTED and not len(judged)):
                states.append(base.verdict)
                continue
            failing.append(base.run)
            good = tuple(tried.loc[tried["verdict"] == REPRODUCED, "run"])
            helpful += good
            states.append(CONDITION if good else NOT if base.verdict == REPORTED else base.verdict)
        for state in (NOT, FEW, CONDITION, REPRODUCED, REPORTED):
            if state in states:
                return ClaimVerdict(claim, state, tuple(failing), tuple(helpful))
        return ClaimVerdict(claim, UNMEASURED)

    @cached_property
    def verdicts(self) -> dict[str, ClaimVerdict]:
        """Of every claim, in the order of claims.toml."""
        return {claim: self.verdict(claim) for claim in CRITERIA}

    # ---- H1 --------------------------------------------------------------------------------------------------------

    @cached_property
    def approximation(self) -> pd.DataFrame:
        """H1's points: run, seed, kind, task, architecture, ``nearness`` of the mean attention of a sentence's length to
        the sentence's own (1 − TV), and the centred ``share`` of μ^D·μ^E. Networks that reached their bar only.
        """
        found = self.measured[(self.measured["claim"] == "H1")]
        trained = found.groupby(["run", "seed"])["verdict"].transform("first") != NOT_COMPARABLE
        keys = ["run", "seed", "config_hash"]
        table = found[trained].pivot_table("value", keys, "quantity", sort=False).reset_index()
        for name in (H1_SHARE, H1_NEARNESS):
            table[name] = table.get(name, pd.Series(dtype=float))
        table = table.dropna(subset=[H1_SHARE, H1_NEARNESS])
        configs = [self.configs[value] for value in table["config_hash"]]
        table["kind"] = [kind_of("H1", run) for run in table["run"]]
        table["task"] = [config.task.name for config in configs]
        table["architecture"] = [config.model.architecture for config in configs]
        table = table.rename(columns={H1_SHARE: "share", H1_NEARNESS: "nearness"})
        return table[["run", "seed", "kind", "task", "architecture", "nearness", "share"]]

    def correlation(self) -> tuple[dict[int, float], float]:
        """H1: Spearman's ρ of each seed over the base runs, and over all seeds together (NaN below four networks).

        A seed that only one run has (translation's) is in the latter, and in the former where others share it.
        """
        base = self.approximation[self.approximation["kind"] == "base"]
        per_seed = {int(seed): some for seed, some in base.groupby("seed") if len(some) >= 4}
        every = statistics.spearman(base["nearness"], base["share"]) if len(base) >= 4 else math.nan
        return {seed: statistics.spearman(some["nearness"], some["share"]) for seed, some in per_seed.items()}, every

    def _h1_row(self) -> dict[str, object] | None:
        found, every = self.correlation()
        if not found:
            return None
        limit = CRITERIA["H1"].limits["rho"]
        verdicts = [str(rho >= limit) for rho in found.values()]
        verdict = _over_seeds(verdicts, planned=5)
        verdict = NOT if verdict == REPRODUCED and every < limit else verdict  # the criterion is over all together, too
        over = Over.of("ρ", tuple(found), tuple(found.values()))
        base = self.approximation[self.approximation["kind"] == "base"]
        named = {"task": " ".join(base["task"].unique()), "architecture": " ".join(base["architecture"].unique())}
        empty = dict.fromkeys(("cell", "attention", "decoder_input"), "") | {"l2": math.nan, "steps": 0}
        return _as_row("H1", ALL_RUNS, "base", named | empty, over, verdicts, (), (), (limit, math.nan), verdict)

    # ---- V1–V3 -----------------------------------------------------------------------------------------------------

    def variants(self) -> pd.DataFrame:
        """V1–V3: the verdict of each O* and E* row for the GRU with dot products and for each variant (columns of
        :data:`VARIANTS`), indexed by claim, task and architecture; "" where a claim says nothing about a variant.
        """
        rows = self.rows[self.rows["claim"].str.match(r"[OE]\d") & (self.rows["run"].map(_variant) != "")]
        rows = rows.assign(variant=rows["run"].map(_variant))
        table = rows.pivot(index=["claim", "task", "architecture"], columns="variant", values="verdict")
        keys = rows[["claim", "task", "architecture"]].drop_duplicates()
        return table.reindex(index=pd.MultiIndex.from_frame(keys), columns=list(VARIANTS)).fillna("")

    # ---- rows ------------------------------------------------------------------------------------------------------

    @cached_property
    def _groups(self) -> dict[tuple[str, str], pd.DataFrame]:
        """The measured rows of each claim and run, without those that say nothing about the run."""
        found = self.measured[self.measured["quantity"] != NOT_MEASURABLE]
        return {key: group for key, group in found.groupby(["claim", "run"], sort=False)}

    @staticmethod
    def _counted(group: pd.DataFrame) -> list[int]:
        first = group.drop_duplicates("seed")
        return list(first.loc[first["verdict"] != NOT_COMPARABLE, "seed"])

    def _row(self, claim: str, run: str, group: pd.DataFrame) -> dict[str, object]:
        config = self.configs[group["config_hash"].iloc[0]]
        model = config.model.resolve(config.task.default_decoder_input)
        first = group.drop_duplicates("seed").sort_values("seed")
        counted = first[first["verdict"] != NOT_COMPARABLE]
        apart = first[first["verdict"] == NOT_COMPARABLE]
        # A training that diverged left no network to measure.
        lost = self.networks[(self.networks["run"] == run) & ~self.networks["trained"].astype(bool)]
        lost = [int(seed) for seed in lost["seed"] if seed not in set(first["seed"])]
        left_out = (*map(int, apart["seed"]), *lost)
        verdicts = list(counted["verdict"])
        judged = verdicts + ["False"] * len(lost) if claim in ABOUT_ACCURACY else verdicts
        over = self.of(claim, run)
        means = group[group["seed"].isin(counted["seed"])].groupby("quantity")["value"].mean()
        settings = {
            "task": config.task.name,
            "architecture": model.architecture,
            "cell": model.cell,
            "attention": model.attention if model.has_attention else "none",
            "decoder_input": model.decoder_input,
            "l2": config.train.l2,
            "steps": config.train.steps,
        }
        left_values = (*apart["value"], *(math.nan for _ in lost))
        verdict = _over_seeds(judged, len(self.planned.get(run, (0,))))
        span = limits(claim, model.architecture, means)
        return _as_row(claim, run, kind_of(claim, run), settings, over, verdicts, left_out, left_values, span, verdict)


_ROW_COLUMNS = ("claim", "run", "kind", "task", "architecture", "cell", "attention", "decoder_input", "l2", "steps")
_ROW_COLUMNS += ("quantity", "seeds", "values", "verdicts", "left_out", "left_out_values", "holds")
_ROW_COLUMNS += ("mean", "low", "high", "at_least", "at_most", "verdict")


def _as_row(
    claim: str,
    run: str,
    kind: str,
    settings: Mapping[str, object],
    over: Over,
    verdicts: list[str],
    left_out: tuple[int, ...],
    left_values: tuple[float, ...],
    span: tuple[float, float],
    verdict: str,
) -> dict[str, object]:
    return {
        **{"claim": claim, "run": run, "kind": kind, **settings},
        **{"quantity": over.quantity, "seeds": over.seeds, "values": over.values, "verdicts": tuple(verdicts)},
        **{"left_out": left_out, "left_out_values": left_values, "holds": verdicts.count("True")},
        **{"mean": over.mean, "low": over.low, "high": over.high, "at_least": span[0], "at_most": span[1]},
        "verdict": verdict,
    }


def _over_seeds(verdicts: list[str], planned: int) -> str:
    """The verdict of a row from those of its seeds. A network that is trained once only (translation) has its own."""
    judged = [verdict for verdict in verdicts if verdict]
    if len(verdicts) < min(planned, FEWEST):
        return FEW
    if not judged:
        return REPORTED
    return REPRODUCED if judged.count("True") >= REQUIRED * len(judged) else NOT


def _variant(run: str) -> str:
    """The column of :meth:`Ledger.variants` that a run belongs to; "" for none."""
    try:
        name = Name.of(run)
    except ValueError:
        return ""
    if not name.departures:
        return name.cell
    return "scaled_dot" if (name.cell, name.departures) == ("gru", ("scaled_dot",)) else ""
