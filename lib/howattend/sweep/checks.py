"""Whether the sweep's records still belong together, and with the plan, the weights and the ledger's own rows."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from howattend import claims, runs
from howattend.measured.passes import weights_hash
from howattend.runs import RunConfig
from howattend.sweep import components, rows, work
from howattend.sweep.plan import Job, Plan, recorded_name, resolve

_SWEEP = "python -m howattend sweep --only"


def check(plan: Plan) -> list[str]:
    """What is wrong with the records, one line each, with the command that puts it right; empty where nothing is.

    That a run of the plan has no seed at all is no fault: :func:`~howattend.sweep.overview` shows what is left.
    """
    try:
        table, measured = rows.read_runs(), rows.read_rows()
    except ValueError as error:  # damaged, with the line
        return [str(error)]
    found = [*_networks(plan, table), *_doubled(table)]
    if found:  # which rows and files belong to which network is then unsure
        return found
    return [*_seeds(plan, table), *_claims(plan, table, measured), *_files(plan, table), *_shipped(table, measured)]


def _of(plan: Plan) -> dict[str, tuple[RunConfig, str]]:
    """Each configuration of the plan and its entry's name, by hash."""
    return {candidate.hash: (candidate, entry.name) for entry in plan.entries for candidate in entry.candidates}


def _networks(plan: Plan, table: pd.DataFrame) -> Iterator[str]:
    """Networks of a configuration that the plan has not, or under a name that is not theirs."""
    known = _of(plan)
    for row in table.itertuples():
        what = f"sweep_runs.csv, {row.run} seed {row.seed}"
        if row.config_hash not in known:
            advice = f"{_SWEEP} {row.run}, and delete this line" if row.run in plan.by_name else "delete this line"
            yield f"{what}: the plan has no configuration {row.config_hash[:12]}; {advice}"
            continue
        config, entry = known[row.config_hash]
        name = recorded_name(Job(config, row.seed, entry), plan.by_name[entry], row.trained)
        if row.run != name:
            yield f"{what}: a network of this configuration is called {name}; delete this line, then {_SWEEP} {entry}"
        if row.trained != (row.accuracy >= config.accuracy_bar):
            verdict = f"{row.accuracy:.2%} and a bar of {config.accuracy_bar:.1%}"
            yield f"{what}: trained is {row.trained} beside an accuracy of {verdict}; restore it with git checkout"


def _doubled(table: pd.DataFrame) -> Iterator[str]:
    for row in table[table.duplicated(["run", "seed"])].itertuples():
        yield f"sweep_runs.csv has {row.run} seed {row.seed} twice: delete one of the lines"


def _seeds(plan: Plan, table: pd.DataFrame) -> Iterator[str]:
    """Seeds that are missing beside others, and those that the plan has not."""
    done = dict(zip(zip(table["config_hash"], table["seed"], strict=True), table["trained"], strict=True))
    for entry in plan.entries:
        chosen, _ = resolve(entry, done)
        if chosen is None:
            continue
        missing = [str(seed) for seed in entry.seeds if (chosen.hash, seed) not in done]
        if 0 < len(missing) < len(entry.seeds):
            yield f"sweep_runs.csv lacks {entry.name} seed {', '.join(missing)}: {_SWEEP} {entry.name}"
        for config_hash, seed in done:
            if config_hash == chosen.hash and seed not in entry.seeds:
                yield f"sweep_runs.csv has {entry.name} seed {seed}, which the plan has not: delete its lines"


def _claims(plan: Plan, table: pd.DataFrame, measured: pd.DataFrame) -> Iterator[str]:
    """Rows without their network or of another one, networks without rows, and rows that are there twice."""
    hashes = {(row.run, row.seed): row.config_hash for row in table.itertuples()}
    for row in measured.drop_duplicates(["run", "seed", "config_hash"]).itertuples():
        what = f"sweep/{row.run}.csv, seed {row.seed}"
        if (row.run, row.seed) not in hashes:
            yield f"{what}: sweep_runs.csv has no such network; delete these rows, or: {_SWEEP} {row.run}"
        elif hashes[row.run, row.seed] != row.config_hash:
            yield f"{what}: rows of another configuration, {row.config_hash[:12]}; {_again(plan, row)}"
    for row in measured[measured.duplicated(["claim", "run", "seed", "quantity"])].itertuples():
        yield f"sweep/{row.run}.csv has {row.claim} of seed {row.seed}, {row.quantity!r}, twice; {_again(plan, row)}"
    networks = work.chosen(plan)
    for seed in sorted(set(table["seed"])):
        due = [(row.parts["run"], row.claim) for row in work.due(plan, seed, networks)]
        for name in dict.fromkeys(name for name, _ in due):
            missing = ", ".join(claim for of, claim in due if of == name)
            yield f"sweep/{name}.csv lacks {missing} of seed {seed}; restore it with git checkout, or: {_SWEEP} {name}"


def _files(plan: Plan, table: pd.DataFrame) -> Iterator[str]:
    """Components without a network, networks without components, and those of other weights."""
    kept = table[table["run"].isin(plan.by_name) & table["accuracy"].notna()]
    expected = {components.path(row.run, row.seed): row for row in kept.itertuples()}
    for path in sorted(set(components.path("", 0).parent.glob("*")) - set(expected)):
        yield f"components/sweep/{path.name} is of no recorded network: delete it"
    for path, row in expected.items():
        what = f"components/sweep/{path.name}"
        try:
            found = components.load(row.run, row.seed)
        except FileNotFoundError:
            yield f"{what} is missing; {_again(plan, row)}"
        except ValueError as error:
            yield str(error)
        else:
            if (found.run, found.seed, found.config_hash) != (row.run, row.seed, row.config_hash):
                yield f"{what} is of {found.run} seed {found.seed}, {found.config_hash[:12]}; {_again(plan, row)}"
            elif found.weights_sha256 != row.weights_sha256:
                yield f"{what} is of other weights than sweep_runs.csv says; {_again(plan, row)}"


def _shipped(table: pd.DataFrame, measured: pd.DataFrame) -> Iterator[str]:
    """Shipped networks: their weights are those of the record, and their rows those of claims.csv."""
    manifest = runs.manifest()
    seeds = {(name, entry["seed"]): entry["config_hash"] for name, entry in manifest.items()}
    here = [row for row in table.itertuples() if seeds.get((row.run, row.seed)) == row.config_hash]
    for row in here:
        if weights_hash(runs.load(row.run)) != row.weights_sha256:
            what = f"sweep_runs.csv, {row.run} seed {row.seed}"
            yield f"{what} is not of the shipped weights; delete this line, then: {_SWEEP} {row.run}"
    of_shipped = pd.MultiIndex.from_tuples([(row.run, row.seed) for row in here], names=["run", "seed"])
    mine = measured[pd.MultiIndex.from_frame(measured[["run", "seed"]]).isin(of_shipped)]
    if not len(mine):
        return
    try:
        ledger, keys = claims.read_results(), ["claim", "run", "seed"]
    except (FileNotFoundError, ValueError) as error:
        yield str(error)
        return
    both = ledger[pd.MultiIndex.from_frame(ledger[keys]).isin(pd.MultiIndex.from_frame(mine[keys]))]
    for row in claims.differences(both, mine).itertuples():
        yield (
            f"{row.claim} of {row.run}, {row.quantity!r}: claims.csv has {row.value:.6g} {row.verdict}, the sweep "
            f"{row.value_recorded:.6g} {row.verdict_recorded}; python -m howattend claims, or "
            f"{_SWEEP} {row.run} --again"
        )


def _again(plan: Plan, row: tuple) -> str:
    """How to record a network's rows and components anew: without its weights it has to be trained again."""
    config = work.chosen(plan).get((row.run, row.seed))
    if config is not None and work.has_weights(config, row.seed):
        return f"restore it with git checkout, or measure anew: {_SWEEP} {row.run} --again"
    return f"restore it with git checkout; {work.not_here(row.run, row.seed)}"
