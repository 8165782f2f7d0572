"""Rows, weights and components that are recorded belong together, and with the code; what does not is told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from howattend import claims, csv_files, files, runs, sweep, training
from howattend.claims import Measurement
from howattend.models import ModelConfig
from howattend.sweep import checks, components, rows, work
from howattend.sweep.plan import Entry, Job, Plan
from howattend.tasks import OneToOne
from howattend.training import TrainConfig

# ---- what is recorded ------------------------------------------------------------------------------------------------


def test_the_sweeps_records_belong_together_and_with_the_shipped_networks():
    """Names, seeds, configurations, hashes of weights; and the rows of shipped seeds, which test_claims measures anew
    from their weights, are those of claims.csv."""
    problems = sweep.check(sweep.full_plan())
    assert not problems, "\n".join(problems)


def _repeatable():
    """Shipped networks of which H1 is recorded and soon measured: AO needs no loop."""
    table = sweep.read_rows()
    recorded = table[table["claim"] == "H1"]
    known = set(zip(recorded["run"], recorded["seed"], strict=True))
    names = ("one_to_one-ao-gru", "escan-ao-gru")
    return [name for name in names if (name, runs.manifest()[name]["seed"]) in known]


def test_rows_by_other_code_are_those_of_this_code():
    """Most networks of the sweep are not shipped, so their rows cannot be measured anew here.

    The records say by which code each was measured (:func:`sweep.measuring_digest`). Where that has changed since, the
    shipped networks decide: their rows are measured anew, those of claims.csv by test_claims, H1's here. Where they are
    as recorded, so are the others, and nothing is to be done; where not, all that older code has measured is to be
    measured again, from weights in the cache folder or trained anew.
    """
    measured = [sweep.approximation(runs.load_run(name)) for name in _repeatable()]
    table = sweep.read_runs()
    older = table[table["measured_with"] != sweep.measuring_digest()]
    differing = claims.differences(claims.tidy(measured), sweep.read_rows())
    assert differing.empty, (
        f"{differing.to_string()}\n{len(older)} of {len(table)} networks were measured by other code than this; "
        "measure all anew: python -m howattend claims, then python -m howattend sweep --again"
    )


def test_the_accuracies_of_what_is_only_tried_are_the_sweeps():
    """Both are of networks trained from the same seed, perhaps on another machine."""
    table = sweep.read_runs().set_index(["config_hash", "seed"])["accuracy"]
    for row in runs.read_accuracies().itertuples():
        if (row.config_hash, row.seed) in table.index:
            assert abs(table[row.config_hash, row.seed] - row.accuracy) < 0.05, row.run


# ---- what does not belong together -----------------------------------------------------------------------------------


class FewPairs(OneToOne):
    """One-to-one with a test set of 100 pairs."""

    def test_set(self, size=100):
        return super().test_set(size)


TINY = runs.RunConfig(
    name="one_to_one-ao-ff",
    task=FewPairs(num_words=2, min_length=1, max_length=2),
    model=ModelConfig("AO", "ff", hidden_size=8),
    train=TrainConfig(steps=20, batch_size=16, learning_rate=2e-2),
    accuracy_bar=0.0,
)
OTHER = replace(TINY, train=replace(TINY.train, steps=21))
PLAN = Plan((Entry("tiny", (TINY,), (0, 1)),))
NAME = TINY.name


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A data folder with two networks of a sweep, one of them shipped, too, and the rows of both."""
    folder = tmp_path_factory.mktemp("swept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOWATTEND_DATA", str(folder / "data"))
        patch.setenv("HOWATTEND_CACHE", str(folder / "cache"))
        patch.setattr(runs, "REGISTRY", {NAME: TINY})
        runs.train_and_ship(NAME)
        for seed in (0, 1):
            work.do(PLAN, Job(TINY, seed, NAME))
        rows_of_0 = sweep.read_rows().query("seed == 0 and claim != 'H1'").dropna(subset="value")
        files.write_text(claims.results_path(), rows_of_0.to_csv(index=False, lineterminator="\n"))
    return folder


@pytest.fixture
def data(trained, tmp_path, monkeypatch):
    """A copy of one's own."""
    for path in trained.rglob("*"):
        if path.is_file():
            place = tmp_path / path.relative_to(trained)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runs, "REGISTRY", {NAME: TINY})
    return tmp_path / "data"


def change_runs(change):
    table = change(sweep.read_runs())
    csv_files.write(rows.runs_path(), table)


def change_rows(change):
    table = change(pd.read_csv(rows.rows_path(NAME), keep_default_na=False, dtype=str))
    files.write_text(rows.rows_path(NAME), table.to_csv(index=False, lineterminator="\n"))


def change_components(seed=1, **changed):
    components.write(replace(components.load(NAME, seed), **changed))


def with_value(column, value, where=lambda table: table["seed"].astype(int) == 1):
    def change(table):
        table = table.copy()
        table.loc[where(table), column] = value
        return table

    return change


def twice(table):
    return pd.concat([table, table[-1:]])


def without_seed_1(table):
    return table[table["seed"].astype(int) != 1]


def seed_7(table):
    return pd.concat([table, table[-1:].assign(seed=7)])


def of_claim(claim):
    return lambda table: table["claim"] == claim


def test_nothing_is_wrong_at_first(data):
    assert sweep.check(PLAN) == []
    assert sweep.check(Plan((*PLAN.entries, Entry("tiny", (replace(OTHER, name="one_to_one-ao-lstm"),), (0, 1))))) == []


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda: change_runs(twice), f"has {NAME} seed 1 twice"),
        (lambda: change_runs(without_seed_1), f"lacks {NAME} seed 1: python -m howattend sweep --only {NAME}"),
        (lambda: change_runs(seed_7), f"has {NAME} seed 7, which the plan has not"),
        (lambda: change_runs(with_value("config_hash", OTHER.hash)), "the plan has no configuration"),
        (lambda: change_runs(with_value("run", "one_to_one-ao-lstm")), f"is called {NAME}"),
        (lambda: change_runs(with_value("trained", False)), "trained is False beside an accuracy of"),
        (lambda: change_runs(with_value("weights_sha256", "0" * 64)), "is of other weights than sweep_runs.csv says"),
        (
            lambda: change_runs(with_value("weights_sha256", "0" * 64, lambda table: table["seed"] == 0)),
            "is not of the shipped weights",
        ),
        (lambda: change_rows(twice), "twice; restore .*measure anew: python -m howattend sweep"),
        (
            lambda: change_rows(without_seed_1),
            f"lacks O1, O2, .*H1 of seed 1; .*, or: python -m howattend sweep --only {NAME}",
        ),
        (lambda: change_rows(seed_7), "seed 7: sweep_runs.csv has no such network"),
        (lambda: change_rows(lambda table: table[~of_claim("O4")(table)]), f"{NAME}.csv lacks O4 of seed 0"),
        (
            lambda: change_rows(with_value("config_hash", OTHER.hash[:8])),
            f"rows of another configuration, {OTHER.hash[:8]}; .*measure anew: .*--only {NAME} --again",
        ),
        (
            lambda: change_rows(with_value("value", "0.77", of_claim("O2"))),
            f"O2 of {NAME}, 'share': claims.csv has .*the sweep 0.77 .*howattend claims, or .*--again",
        ),
        (
            lambda: change_rows(with_value("verdict", "", of_claim("O2"))),
            f"O2 of {NAME}, 'share': claims.csv has",
        ),
        (
            lambda: change_rows(
                with_value("quantity", "renamed", lambda table: table["quantity"] == "share, all steps")
            ),
            f"O2 of {NAME}, 'share, all steps': claims.csv has .*the sweep nan",
        ),
        (lambda: components.path(NAME, 1).unlink(), "-seed1.npz is missing; restore it"),
        (lambda: claims.results_path().unlink(), "claims.csv is missing; write it with: python -m howattend claims"),
        (lambda: rows.runs_path().write_text("run\n"), r"sweep_runs.csv is damaged \(it has no task"),
        (lambda: components.path(NAME, 1).write_bytes(b"x"), "-seed1.npz is damaged"),
        (lambda: components.path(NAME, 2).write_bytes(b"x"), "-seed2.npz is of no recorded network"),
        (lambda: components.path(NAME, 0).replace(components.path(NAME, 1)), f"-seed1.npz is of {NAME} seed 0"),
        (lambda: change_components(weights_sha256="0" * 64), "is of other weights than sweep_runs.csv says"),
        (lambda: change_components(config_hash=OTHER.hash), f"is of {NAME} seed 1, {OTHER.hash[:12]}"),
    ],
)
def test_what_does_not_belong_together_is_told_with_what_to_do(data, damage, told):
    damage()
    problems = sweep.check(PLAN)
    assert any(pd.Series(problems).str.contains(told, regex=True)), problems


@pytest.mark.parametrize(
    "damage",
    [
        lambda: change_rows(with_value("config_hash", OTHER.hash[:8])),
        lambda: change_rows(twice),
        lambda: components.path(NAME, 1).unlink(),
        lambda: change_components(weights_sha256="0" * 64),
        lambda: change_components(config_hash=OTHER.hash),
    ],
)
def test_without_a_networks_weights_the_advice_is_another(data, damage):
    """On a fresh clone nothing of it can be measured again."""
    work.weights_path(TINY, 1).unlink()
    damage()
    problems = sweep.check(PLAN)
    assert problems
    for problem in problems:
        assert "restore it with git checkout" in problem and "--again" not in problem
    assert f"weights of {NAME} seed 1 are not here" in problems[0]
    assert "to train it anew delete its line in sweep_runs.csv" in problems[0]


def test_the_advice_to_train_anew_brings_all_back_together(data):
    """Its line is deleted; its rows and components are still those of the weights that are lost."""
    work.weights_path(TINY, 1).unlink()
    change_rows(with_value("value", "0.77", lambda table: of_claim("O2")(table) & (table["seed"] == "1")))
    change_components(weights_sha256="0" * 64)
    change_runs(without_seed_1)
    work.do(PLAN, Job(TINY, 1, NAME))
    assert sweep.check(PLAN) == []
    assert 0.77 not in sweep.read_rows().query("seed == 1 and claim == 'O2'")["value"].tolist()


def test_again_trains_nothing_and_leaves_what_has_no_weights(data, monkeypatch):
    work.weights_path(TINY, 1).unlink()
    monkeypatch.setattr(training, "train", lambda *_, **__: pytest.fail("trained"))
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    said = work.do(PLAN, Job(TINY, 1, NAME), again=True)
    assert f"weights of {NAME} seed 1 are not here; they stay on the machine that trained them" in said
    assert "delete its line" in said
    assert before == {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    work.do(PLAN, Job(TINY, 0, NAME), again=True)  # which is shipped
    assert sweep.check(PLAN) == []


# ---- damage ----------------------------------------------------------------------------------------------------------

TABLES = {"claims.csv": claims.read_results, "sweep_runs.csv": sweep.read_runs, f"{NAME}.csv": sweep.read_rows}
PLACES = {
    "claims.csv": claims.results_path,
    "sweep_runs.csv": rows.runs_path,
    f"{NAME}.csv": lambda: rows.rows_path(NAME),
}


@pytest.mark.parametrize("file", TABLES)
@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda text: "", "it is empty"),
        (lambda text: text.split("\n")[0] + "\n", "it has no rows"),
        (lambda text: text.replace("seed", "sed", 1), "it has no seed"),
        (lambda text: text.replace("run,", "run,run,", 1), "its columns must be "),
        (lambda text: text[:-30] + "\n", "in line|values and not"),
        (lambda text: text + "a,b\n", r"line \d+ has 2 values and not \d+"),
        (lambda text: text.replace("\n", "\n<<<<<<< HEAD\n", 2), "a merge is not finished: line 2 is <<<<<<< HEAD"),
        (lambda text: text + '"', r"unexpected end of data in line \d+"),
    ],
)
def test_a_damaged_table_is_told_with_the_line(data, file, damage, told):
    path = PLACES[file]()
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file} is damaged \(.*({told}).*\); restore it with git checkout"):
        TABLES[file]()
    if file != "claims.csv":
        assert ["is damaged" in problem for problem in sweep.check(PLAN)] == [True]


@pytest.mark.parametrize(
    ("file", "column", "value", "told"),
    [
        ("sweep_runs.csv", "trained", "maybe", "trained must be True or False, got 'maybe' in line 2"),
        ("sweep_runs.csv", "trained", "", "trained must be True or False, got '' in line 2"),
        ("sweep_runs.csv", "accuracy", "", "trained is True without an accuracy in line 2"),
        ("sweep_runs.csv", "accuracy", "7", r"accuracy must be a number in 0..1 or empty, got '7' in line 2"),
        ("sweep_runs.csv", "seconds", "-5", "seconds must be a number of at least 0, got '-5' in line 2"),
        ("sweep_runs.csv", "steps", "0", "steps must be a whole number of at least 1, got '0' in line 2"),
        ("sweep_runs.csv", "clock", "sun", "clock must be core or wall"),
        ("sweep_runs.csv", "config_hash", "123", "config_hash must be 64 hexadecimal digits, got '123' in line 2"),
        ("sweep_runs.csv", "measured_with", "12", "measured_with must be 12 hexadecimal digits or empty"),
        *(
            (file, column, value, told)
            for file in ("claims.csv", f"{NAME}.csv")
            for column, value, told in (
                ("seed", "1.5", "seed must be a whole number of at least 0, got '1.5' in line 2"),
                ("seed", "-1", "seed must be a whole number"),
                ("verdict", "yes", "verdict must be True, False, empty or not comparable, got 'yes' in line 2"),
                ("accuracy", "nan", r"accuracy must be a number in 0..1, got 'nan' in line 2"),
                ("value", "much", "value must be a number or empty, got 'much' in line 2"),
                ("run", "", "run must not be empty, got '' in line 2"),
                ("config_hash", "xyz", "config_hash must be .* hexadecimal digits, got 'xyz' in line 2"),
            )
        ),
    ],
)
def test_a_cell_that_its_column_cannot_hold_is_told_with_its_line(data, file, column, value, told):
    path = PLACES[file]()
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    table.loc[0, column] = value
    path.write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{file} is damaged \({told}"):
        TABLES[file]()


def test_a_configuration_that_the_plan_has_changed_is_told(data):
    """A recipe that has moved on: last week's rows are not passed off as today's."""
    problems = sweep.check(Plan((Entry("tiny", (OTHER,), (0, 1)),)))
    assert len(problems) == 2
    assert all(f"sweep --only {NAME}, and delete this line" in problem for problem in problems)


def test_a_run_that_the_plan_no_longer_has_is_told(data):
    problems = sweep.check(Plan((Entry("tiny", (replace(OTHER, name="one_to_one-ao-lstm"),), (0,)),)))
    assert len(problems) == 2 and all(problem.endswith("delete this line") for problem in problems)


def test_a_training_that_diverged_needs_no_rows_and_no_components(data):
    change_runs(lambda table: with_value("trained", False)(with_value("accuracy", np.nan)(table)))
    change_rows(without_seed_1)
    components.path(NAME, 1).unlink()
    assert sweep.check(PLAN) == []


def test_every_check_is_tried_above():
    """The words of each message, so that none is added without damage that it finds."""
    source = Path(checks.__file__).read_text(encoding="utf-8")
    assert source.count("yield f") + source.count("yield (") + source.count("yield str") == 18


def test_measured_rows_that_differ_are_found(data):
    run, _ = sweep.load(TINY, 0)
    found = claims.measure("O4", {"run": run})
    assert claims.differences(claims.tidy([found]), sweep.read_rows()).empty
    other = Measurement.of("O4", run, found.verdict, {"delta share": found.quantities["delta share"] + 0.3})
    assert len(claims.differences(claims.tidy([other]), sweep.read_rows())) == 1
