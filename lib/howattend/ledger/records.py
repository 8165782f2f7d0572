"""The ledger itself: recorded rows, checked against the plan, and what follows from them over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from howattend import claims, runs, statistics, sweep
from howattend._validation import meant, require_known
from howattend.claims import CRITERIA
from howattend.claims.criteria import ABOUT_ACCURACY, NOT_COMPARABLE
from howattend.ledger.names import KINDS, VARIANTS, criterion, kind_of, limits, order_of, variant_of
from howattend.ledger.verdicts import (
    CONDITION,
    FEW,
    NOT,
    REPORTED,
    REPRODUCED,
    UNMEASURED,
    ClaimVerdict,
    Over,
    over_seeds,
)
from howattend.runs import RunConfig
from howattend.sweep.measuring import NOT_MEASURABLE
from howattend.sweep.plan import Plan

ARCHITECTURES = ("AED", "AO", "VED")
#: The row of H1 is over these together.
ALL_RUNS = "all base runs"
H1_SHARE, H1_NEARNESS = "centred share", "1 − TV, mean attention"


class LedgerError(ValueError):
    """Rows are missing, or no longer belong to what the code would train; the message says what to run."""


def read(plan: Plan | None = None) -> Ledger:
    """The ledger of the recorded rows.

    The sweep's rows, and for what the sweep has not measured, claim by run by seed, those of the shipped networks
    (claims.csv, if there is one).

    Args:
        plan: of configurations of your own that were trained with ``sweep.run``, beside those of the book.

    Raises :class:`LedgerError` where a row is of a configuration that neither has, ValueError where a file is damaged.
    """
    book = sweep.full_plan()
    if plan is not None:
        book = Plan((*book.entries, *(entry for entry in plan.entries if entry not in book.entries)))
    return assemble(sweep.read_rows(), claims.read_results(missing_ok=True), sweep.read_runs(), book)


def assemble(swept: pd.DataFrame, shipped: pd.DataFrame, networks: pd.DataFrame, plan: Plan | None = None) -> Ledger:
    """A ledger from rows of ``claims.COLUMNS`` (of the sweep, of the shipped networks) and ``sweep.RUN_COLUMNS``.

    The plan's configurations, and the shipped ones, are those that rows may be of; without one it is the sweep's.
    """
    plan = sweep.full_plan() if plan is None else plan
    configs = {candidate.hash: candidate for entry in plan.entries for candidate in entry.candidates}
    configs = {config.hash: config for config in runs.REGISTRY.values()} | configs
    _check(swept, configs, "python -m howattend sweep --only {run}", "data/results/sweep/{run}.csv")
    _check(shipped, configs, "python -m howattend claims", "data/results/claims.csv")
    _check(networks, configs, "python -m howattend sweep --only {run}", "data/results/sweep_runs.csv")
    keys = ["claim", "run", "seed"]
    known = pd.MultiIndex.from_frame(swept[keys])
    beside = shipped[~pd.MultiIndex.from_frame(shipped[keys]).isin(known)] if len(swept) else shipped
    tables = [table for table in (swept, beside) if len(table)]
    measured = pd.concat(tables, ignore_index=True) if tables else swept
    return Ledger(measured, networks, configs, plan)


def _check(table: pd.DataFrame, configs: Mapping[str, RunConfig], command: str, file: str) -> None:
    for run, config_hash in table[["run", "config_hash"]].drop_duplicates().itertuples(index=False):
        config = configs.get(config_hash)
        # A candidate whose L2 was too strong is recorded under a name of its own.
        if config is None or not (run == config.name or run.startswith(f"{config.name}-")):
            of = f"the recorded rows of {run} (hash {config_hash[:12]}) in {file}".format(run=run)
            if len(config_hash) < 64:  # short ones are completed from sweep_runs.csv
                raise LedgerError(
                    f"{of} are of no network that data/results/sweep_runs.csv has: one of the two files is damaged, or "
                    "of another commit; restore both with git checkout"
                )
            known = any(run == other.name for other in configs.values())
            advice = f"measure it anew with: {command}".format(run=run)
            if not known:
                advice = "no run is called so; if it is yours, give ledger.read your plan, else delete its lines"
            raise LedgerError(f"{of} are of a configuration that the code no longer has; {advice}")


@dataclass(frozen=True, eq=False)
class Ledger:
    """Everything recorded, and what follows from it: see :func:`read`."""

    measured: pd.DataFrame  # claims.COLUMNS, a row a claim, run, seed and quantity
    networks: pd.DataFrame  # sweep.RUN_COLUMNS, a row a network
    configs: Mapping[str, RunConfig]  # by hash
    plan: Plan  # of the sweep

    @cached_property
    def rows(self) -> pd.DataFrame:
        """One row a claim and run, in the order of claims.toml and of the sweep. Columns:

        claim, run, kind (:data:`KINDS`), task, architecture, cell, attention, decoder_input, l2, steps; the deciding
        ``quantity`` with its ``seeds``, ``values`` and ``verdicts`` ("True", "False", "") of those that count, and
        ``left_out``, ``left_out_values`` of those that did not train or are compared with one that did not; ``holds``
        (on how many seeds), ``mean``, ``low``, ``high``; ``at_least``, ``at_most`` (:func:`limits`); ``verdict``.
        H1 has one row, over all base runs. A claim that says nothing about a run has none.
        """
        found = [self._row(*key, here) for key, here in self._recorded.items() if key[0] != "H1"]
        found = [row for row in [*found, self._h1_row()] if row]
        table = pd.DataFrame(found, columns=list(_ROW_COLUMNS))
        order = {claim: place for place, claim in enumerate(CRITERIA)}
        of_run = {run: place for place, run in enumerate(self.plan.by_name)}
        keys = {
            "claim": order.get,
            "kind": KINDS.index,
            "architecture": lambda name: ARCHITECTURES.index(name) if name in ARCHITECTURES else 0,
            "run": lambda run: of_run.get(run, len(of_run)),
        }
        return table.sort_values(list(keys), key=lambda c: c.map(keys[c.name]), kind="stable", ignore_index=True)

    def has(self, claim: str, run: str) -> bool:
        """Whether a claim is recorded on a run. ValueError for a claim that there is not."""
        criterion(claim)
        return (claim, run) in self._recorded

    def of(self, claim: str, run: str, quantity: str | None = None, *, left_out: bool = False) -> Over:
        """A quantity of a claim and run over the seeds that count, or over those that are ``left_out``; without a name
        the deciding one.

        Raises :class:`LedgerError` where it is not recorded, with what is; ValueError for a claim that there is not.
        """
        if not self.has(claim, run):
            raise self._unrecorded(claim, run)
        found = self._recorded[claim, run]
        quantity = found.quantity if quantity is None else quantity
        if quantity not in found.values:
            raise LedgerError(f"{claim} on {run} has no {quantity!r}; it has {', '.join(map(repr, found.values))}")
        return found.over(quantity, found.left_out if left_out else found.counted)

    def row(self, claim: str, run: str) -> pd.Series:
        """The row of a claim and run; :class:`LedgerError` where there is none, ValueError for an unknown claim."""
        found = self.of_claim(claim)
        found = found[found["run"] == run]
        if not len(found):
            raise self._unrecorded(claim, run)
        return found.iloc[0]

    def _unrecorded(self, claim: str, run: str) -> LedgerError:
        """Why there is nothing of a claim and run, and what to do."""
        if claim in VARIANTS.values():
            return LedgerError(f"{claim} has no rows: it compares verdicts of others; see Ledger.variants, agreement")
        there = list(dict.fromkeys(self.rows.loc[self.rows["claim"] == claim, "run"]))
        said = f"no row of {claim} on {run} is recorded; {claim} is recorded on {', '.join(there) or 'no run'}"
        if claim == "H1":
            return LedgerError(f"{said}, as a correlation; see Ledger.approximation and correlation")
        runs_there = dict.fromkeys((*self.plan.by_name, *(name for _, name in self._recorded)))
        if run not in runs_there:
            near = meant(run, runs_there)
            return LedgerError(f"no run is called {run!r}; {near}{claim} is recorded on {', '.join(there) or 'no run'}")
        if claim in {row.claim for row in sweep.planned(run, self.plan.by_name)}:
            return LedgerError(f"{said}; record it with: python -m howattend sweep --only {run}")
        return LedgerError(f"{said}; it is not asked of {run}")

    def of_claim(self, claim: str, *kinds: str) -> pd.DataFrame:
        """A claim's rows, of some kinds (:data:`KINDS`) or of all. ValueError for a claim or kind that there is not."""
        criterion(claim)
        for kind in kinds:
            require_known(kind, "kind", KINDS)
        found = self.rows[self.rows["claim"] == claim]
        return found[found["kind"].isin(kinds)] if kinds else found

    def conditions(self, claim: str, task: str | None = None, architecture: str | None = None) -> pd.DataFrame:
        """The conditions that were measured for a claim, those under which it holds and those under which not: by what
        they change, L2 from strong to weak, the others from small to large.

        ``task`` and ``architecture`` are as in a row; ValueError for one, or a claim, that there is not.
        """
        for name in (task or "").split():  # H1's row, over all base runs, has several
            require_known(name, "task", dict.fromkeys(config.task.name for config in self.configs.values()))
        for name in (architecture or "").split():
            require_known(name, "architecture", ARCHITECTURES)
        found = self.of_claim(claim, "condition").sort_values("run", key=lambda column: column.map(order_of))
        found = found if task is None else found[found["task"] == task]
        return found if architecture is None else found[found["architecture"] == architecture]

    def verdict(self, claim: str) -> ClaimVerdict:
        """A claim's verdict: *reproduced* where every base run does; *under a condition* where those that do not have a
        measured condition, of the same task and architecture, under which they do; else *not reproduced*.

        A base run on which the criterion asks for a report only does not count, unless it asks for more under one of
        its conditions (E5, which is about a rate of "and"). V1–V3 are tables of verdicts: reported.
        """
        if claim in VARIANTS.values():
            return ClaimVerdict(claim, REPORTED if self.agreement(claim)[1] else UNMEASURED)
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
            # Too few of the recipe's networks trained: what its conditions say is all there is.
            states.append(CONDITION if good else NOT if len(judged) else base.verdict)
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
        """H1's points: run, seed, kind, task, architecture, ``nearness`` of the mean attention of a sentence's length
        to the sentence's own (1 − TV), and the centred ``share`` of μ^D·μ^E. Networks that reached their bar only.
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
        return {seed: _rho(some) for seed, some in per_seed.items()}, _rho(base) if len(base) >= 4 else math.nan

    def _h1_row(self) -> dict[str, object] | None:
        found, every = self.correlation()
        if not found:
            return None
        limit = CRITERIA["H1"].limits["rho"]
        verdicts = [str(rho >= limit) for rho in found.values()]
        verdict = over_seeds(verdicts, planned=5)
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
        rows = self.rows[self.rows["claim"].str.match(r"[OE]\d") & (self.rows["run"].map(variant_of) != "")]
        rows = rows.assign(variant=rows["run"].map(variant_of))
        table = rows.pivot(index=["claim", "task", "architecture"], columns="variant", values="verdict").astype(object)
        keys = pd.MultiIndex.from_frame(rows[["claim", "task", "architecture"]].drop_duplicates())
        table = table.reindex(index=keys, columns=list(VARIANTS), fill_value="")
        return table.where(table.notna(), "")

    def agreement(self, claim: str) -> tuple[int, int]:
        """V1, V2 or V3: of how many rows the variants' verdict is the GRU's with dot products, and how many there are
        where both have one. ValueError for another claim.
        """
        require_known(claim, "claim", dict.fromkeys(VARIANTS.values()))
        table = self.variants()
        names = [name for name, of in VARIANTS.items() if of == claim and name != "gru"]
        pairs = [pair for name in names for pair in zip(table["gru"], table[name], strict=True)]
        judged = [pair for pair in pairs if set(pair) <= {REPRODUCED, NOT}]
        return sum(gru == other for gru, other in judged), len(judged)

    # ---- rows ------------------------------------------------------------------------------------------------------

    @cached_property
    def _recorded(self) -> dict[tuple[str, str], _Recorded]:
        """What is measured of each claim and run, without what says nothing about the run."""
        found: dict[tuple[str, str], _Recorded] = {}
        table = self.measured[self.measured["quantity"] != NOT_MEASURABLE]
        columns = (table[name] for name in ("claim", "run", "seed", "quantity", "value", "verdict", "config_hash"))
        for claim, run, seed, quantity, value, verdict, config_hash in zip(*columns, strict=True):
            here = found.setdefault((claim, run), _Recorded(config_hash))
            here.verdicts.setdefault(int(seed), verdict)  # a seed's first row carries it
            here.values.setdefault(quantity, {})[int(seed)] = float(value)
        return found

    @cached_property
    def _untrained(self) -> dict[str, list[int]]:
        """The seeds of each run that did not reach its bar."""
        lost = self.networks[~self.networks["trained"].astype(bool)]
        return {run: sorted(map(int, some["seed"])) for run, some in lost.groupby("run")}

    def _row(self, claim: str, run: str, found: _Recorded) -> dict[str, object]:
        config = self.configs[found.config_hash]
        counted, apart = found.counted, found.left_out
        # A training that diverged left no network to measure.
        lost = [seed for seed in self._untrained.get(run, ()) if seed not in found.verdicts]
        verdicts = [found.verdicts[seed] for seed in counted]
        judged = verdicts + ["False"] * len(lost) if claim in ABOUT_ACCURACY else verdicts
        means = {quantity: found.over(quantity, counted).mean for quantity in found.values}
        deciding = found.values[found.quantity]
        left_out = *apart, *lost
        left_values = tuple(deciding.get(seed, math.nan) for seed in left_out)
        over, span = found.over(found.quantity, counted), limits(claim, config.model.architecture, means)
        entry = self.plan.by_name.get(run)  # none of a candidate whose L2 was too strong: it has one seed
        verdict = over_seeds(judged, len(entry.seeds) if entry else 1)
        kind, columns = kind_of(claim, run), config.columns()
        return _as_row(claim, run, kind, columns, over, verdicts, left_out, left_values, span, verdict)


def _rho(points: pd.DataFrame) -> float:
    """Spearman's ρ of H1's points. It is a ratio of small integers: rounded, so that 0.8 is no 0.7999999999999999."""
    return round(statistics.spearman(points["nearness"], points["share"]), 9)


@dataclass(eq=False)
class _Recorded:
    """What was measured of one claim on one run."""

    config_hash: str
    verdicts: dict[int, str] = field(default_factory=dict)  # by seed
    values: dict[str, dict[int, float]] = field(default_factory=dict)  # by quantity and seed; the deciding one is first

    @property
    def quantity(self) -> str:
        return next(iter(self.values))

    @property
    def counted(self) -> list[int]:
        return sorted(seed for seed, verdict in self.verdicts.items() if verdict != NOT_COMPARABLE)

    @property
    def left_out(self) -> list[int]:
        return sorted(self.verdicts.keys() - set(self.counted))

    def over(self, quantity: str, seeds: Iterable[int]) -> Over:
        values = self.values[quantity]
        seeds = tuple(seed for seed in seeds if math.isfinite(values.get(seed, math.nan)))
        return Over.of(quantity, seeds, tuple(values[seed] for seed in seeds))


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
