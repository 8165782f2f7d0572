"""The claims: their criteria, what they measure on a network whose answer is known, and the rows that are recorded."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup

from howattend import claims, notebooks, runs
from howattend.analysis import Run
from howattend.claims import CRITERIA, Measurement
from howattend.models import ModelConfig
from howattend.tables import Table
from howattend.tasks import OneToOne
from howattend.training import TrainConfig


@pytest.fixture(scope="module")
def measured():
    return claims.measure_shipped()


@pytest.fixture
def untrained():
    """A run whose network has learnt nothing, on a test set of a usual size."""

    def make(architecture="AED", num_words=3, seed=0):
        task = OneToOne(num_words=num_words, min_length=4, max_length=6)
        config = runs.RunConfig("untrained", task, ModelConfig(architecture, hidden_size=16), TrainConfig(1), 0.9)
        return Run(config, config.new_model(seed), seed)

    return make


def test_every_row_of_the_specification_is_there():
    expected = {
        f"{row}{number}"
        for row, last in (("O", 12), ("E", 9), ("D", 4), ("T", 10), ("V", 4), ("C", 8))
        for number in range(1, last + 1)
    }
    assert set(CRITERIA) == expected | {"H1", "R1", "S1"}
    assert all(row.statistic and row.reproduced_if for row in CRITERIA.values())
    ours = {name for name, row in CRITERIA.items() if row.origin == "ours"}
    assert ours == {*(f"C{number}" for number in range(1, 9)), "T9", "T10"}
    assert all(bool(row.paper) == (row.origin == "paper") for row in CRITERIA.values())


def test_a_network_that_has_learnt_nothing_fulfils_no_claim_of_the_figure(untrained):
    """Counter-example to every criterion that training is to bring about."""
    run, ao = untrained(), untrained("AO")
    assert claims.measure("O1", {"run": run}).verdict is False
    assert claims.measure("O2", {"run": run}).verdict is False
    assert claims.measure("O7", {"run": run}).verdict is False
    assert claims.measure("O8", {"run": run, "words8": untrained(num_words=8)}).verdict is False
    assert claims.measure("O9", {"run": run}).verdict is False
    assert claims.measure("O4", {"run": ao}).verdict is True  # AO has no memory: its deltas are small by construction
    assert claims.measure("O11", {"run": run}).verdict is None  # only reported


def test_what_is_measured_is_what_was_planted(untrained):
    """Readouts set to the input components themselves implement the dictionary; swapped ones do not."""
    run = untrained("AO")
    words = list(run.task.target_vocabulary.content_ids)
    centred = run.encoder.input[words] - run.encoder.input[words].mean(0)
    with torch.no_grad():
        run.model.context_readout[words] = centred
    assert claims.measure("O7", {"run": run}).quantities["words"] == 1
    with torch.no_grad():
        run.model.context_readout[words] = centred.roll(1, 0)
    assert claims.measure("O7", {"run": run}).quantities["words"] == 0


def test_unknown_claims_are_answered_with_the_known_ones(untrained):
    with pytest.raises(ValueError, match="O1, O2"):
        claims.measure("O99", {"run": untrained()})


def test_a_missing_part_is_named(untrained):
    with pytest.raises(ValueError, match="words8"):
        claims.measure("O8", {"run": untrained()})


def test_a_run_without_attention_says_so(untrained):
    with pytest.raises(ValueError, match="attention"):
        claims.measure("O2", {"run": untrained("VED")})
    with pytest.raises(ValueError, match="no readout from its context"):
        claims.measure("O7", {"run": untrained("VED")})


def test_a_quick_training_is_marked(untrained):
    run = replace(untrained(), comparable=False)
    assert verdict_of(claims.measure("O1", {"run": run})) == NOT_COMPARABLE


NOT_COMPARABLE = "not comparable (a quick training, or below its accuracy bar)"


def verdict_of(found):
    """How the table of claims says a measurement's verdict."""
    return next(iter(claims.summary(claims.tidy([found])).sections.values()))[0][-1]


def test_a_run_below_its_accuracy_bar_has_no_verdict(untrained):
    """Nor has one that is compared with such a run; but accuracy itself is judged."""
    good, bad = untrained(), untrained()
    good.__dict__["accuracy"], bad.__dict__["accuracy"] = 0.9, 0.8999  # the bar is 0.9
    assert verdict_of(claims.measure("O4", {"run": good})) == "not reproduced"
    assert verdict_of(claims.measure("O4", {"run": bad})) == NOT_COMPARABLE
    assert verdict_of(claims.measure("O1", {"run": bad})) == "not reproduced"
    assert claims.measure("O10", {"run": good, "ao": good}).comparable
    assert not claims.measure("O10", {"run": good, "ao": bad}).comparable
    assert not claims.measure("O10", {"run": bad, "ao": good}).comparable
    assert claims.measure("O4", {"run": good, "ao": bad}).comparable  # what it needs not is not asked


def test_verdicts_on_our_own_predictions_have_words_of_their_own(untrained):
    run = untrained()
    run.__dict__["accuracy"] = 1.0
    for claim, words in (("O4", ("reproduced", "not reproduced")), ("C4", ("holds", "does not hold"))):
        for verdict, word in zip((True, False), words, strict=True):
            table = claims.summary(claims.tidy([Measurement.of(claim, run, verdict, {"share": 0.5})]))
            ((heading, rows),) = table.sections.items()
            assert rows[0][-1] == word
            assert heading.startswith(f"{claim}. ")
            assert f'<a href="ledger.html#claim-{claim}">{claim}</a>. ' in table._repr_html_()
            assert ("predicted: " in heading) == (claim == "C4")
            assert table.marks[word] == f"verdict-{'yes' if verdict else 'no'}"
    assert verdict_of(Measurement.of("C4", replace(run, comparable=False), True, {"share": 0.5})) == NOT_COMPARABLE


def test_a_value_over_nothing_is_no_verdict(untrained, monkeypatch):
    monkeypatch.setitem(claims.CLAIMS, "O4", lambda runs: Measurement.of("O4", runs["run"], False, {"a": float("nan")}))
    with pytest.raises(ValueError, match="O4 says nothing about untrained: its 'a' is over nothing"):
        claims.measure("O4", {"run": untrained()})


def test_the_tidy_table_has_a_verdict_at_the_first_quantity_only(untrained):
    run = untrained()
    run.__dict__["accuracy"] = 1.0
    found = Measurement.of("O4", run, False, {"delta share": 0.5, "delta share, all steps": 0.6})
    rows = claims.tidy([found])
    assert list(rows.columns) == list(claims.COLUMNS)
    assert list(rows["verdict"]) == ["False", ""]
    assert list(rows["quantity"]) == ["delta share", "delta share, all steps"]


def test_results_survive_writing_and_reading(untrained, tmp_path, monkeypatch):
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="howattend claims"):
        claims.read_results()
    assert list(claims.read_results(missing_ok=True).columns) == list(claims.COLUMNS)
    assert claims.read_results(missing_ok=True).empty
    found = [
        Measurement.of("O4", untrained(), True, {"delta share": 0.123456789, "delta share, all steps": 2e-5}),
        Measurement.of("O11", untrained(), None, {"variance drop": 1.0}),
    ]
    path = claims.write_results(found)
    assert [file.name for file in path.parent.iterdir()] == ["claims.csv"]
    assert np.allclose(claims.read_results()["value"], [0.123457, 2e-5, 1.0], rtol=1e-6)
    assert claims.compare(found).empty


@pytest.mark.parametrize(
    "changed",
    [
        {"quantities": {"delta share": 0.5}},
        {"quantities": {"delta share": 0.097}},
        {"verdict": False},
        {"quantities": {"another": 0.1}},
        {"claim": "O5"},
    ],
    ids=["value", "small value", "verdict", "quantity", "claim"],
)
def test_a_row_that_is_not_as_recorded_is_found(untrained, tmp_path, monkeypatch, changed):
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path))
    found = replace(Measurement.of("O4", untrained(), True, {"delta share": 0.1}), comparable=True)
    claims.write_results([found])
    assert len(claims.compare([replace(found, **changed)])) == 1


def test_shipped_runs_measure_what_is_recorded(measured):
    differing = claims.compare(measured)
    assert differing.empty, f"refresh with python -m howattend claims:\n{differing.to_string()}"


def test_nothing_is_recorded_that_is_not_measured(measured):
    keys = ["claim", "run", "seed", "quantity"]
    recorded = claims.read_results()
    extra = recorded.merge(claims.tidy(measured)[keys], on=keys, how="left", indicator=True)
    assert (extra["_merge"] == "both").all()
    assert not recorded.duplicated(keys).any()


def test_the_chapters_print_the_recorded_numbers(root):
    """The tables of claims in the committed chapters, cell by cell, beside data/results: no row is left out."""
    shown = {}
    for path in sorted((root / "book").glob("*.ipynb")):
        for cell in notebooks.read(path).cells:
            if cell.id not in ("claims", "conditions", "outcomes"):
                continue
            table = BeautifulSoup(cell.outputs[0].data["text/html"], "html.parser")
            for section in table.find_all("tbody"):
                heading, *rows = section.find_all("tr")
                for row in rows:
                    run, values, verdict = (column.get_text() for column in row.find_all("td"))
                    key = heading.get_text().split(".")[0], run
                    found = values.split(" · "), verdict
                    assert shown.setdefault(key, found) == found, f"{path.name} has another row of {key}"
    expected = {
        key: (
            [
                claims.format_quantity(row.quantity, row.value, claims.CRITERIA[key[0]].limits.values())
                for row in rows.itertuples()
            ],
            claims.CRITERIA[key[0]].say(rows.verdict.iloc[0]),
        )
        for key, rows in claims.read_results().groupby(["claim", "run"], sort=False)
    }
    assert shown == expected


def test_a_table_has_sections_and_escapes_what_it_shows():
    table = Table(("a", "b"), {"one < two": [("x", "1 & 2")], "three": [("y", "3"), ("z", "4")]}, {"3": "mark"})
    parsed = BeautifulSoup(table._repr_html_(), "html.parser").table
    sections = [[row.get_text("|") for row in body.find_all("tr")] for body in parsed.find_all("tbody")]
    assert sections == [["one < two", "x|1 & 2"], ["three", "y|3", "z|4"]]
    assert [cell.get_text() for cell in parsed.find_all("td", class_="mark")] == ["3"]
    assert repr(table) == "a | b\none < two\n  x | 1 & 2\nthree\n  y | 3\n  z | 4"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.96001, "0.96"),
        (1.0001, "1.00"),
        (0.00094, "0.00094"),
        (-0.02, "-0.02"),
        (0.0, "0.00"),
        (0.0997, "0.10"),
        (12.345, "12.35"),
    ],
)
def test_quantities_are_printed_with_two_or_three_digits(value, text):
    assert claims.format_quantity("share", value) == f"share = {text}"


def test_a_number_near_its_limit_shows_on_which_side_it_is():
    assert claims.format_quantity("deviation", 0.1038, [0.1]) == "deviation = 0.104"
    assert claims.format_quantity("deviation", 0.1038, [0.2]) == "deviation = 0.10"
    assert claims.format_quantity("share", 1.0, [1.0]) == "share = 1.00"


def test_accuracies_are_printed_as_percentages():
    assert claims.format_quantity("accuracy", 0.99994) == "accuracy = 99.99%"


def test_tidy_of_nothing_is_empty():
    assert isinstance(claims.tidy([]), pd.DataFrame)
    assert claims.tidy([]).empty
