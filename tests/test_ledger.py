"""The ledger: verdicts over planted seeds and conditions, rows that no longer belong, its page, picture and prose."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from howattend import claims, conditions, ledger, statistics, sweep
from howattend.claims import CRITERIA
from howattend.ledger import CONDITION, FEW, NOT, REPORTED, REPRODUCED, UNMEASURED, LedgerError
from howattend.ledger.names import departures_of
from howattend.ledger.page import Axis, seeds_svg
from howattend.sweep.measuring import NOT_MEASURABLE

AED, AO = "one_to_one-aed-gru", "one_to_one-ao-gru"
LOW = "not comparable"
YES, NO = "True", "False"


@cache
def plan() -> sweep.Plan:
    return sweep.full_plan()


def hash_of(run: str) -> str:
    return plan().by_name[run].candidates[-1].hash


def rows(claim: str, run: str, verdicts: str, value: float = 0.5, quantity: str = "share", **others: float):
    """Rows of a claim, a seed a letter: y holds, n does not, r is reported, x is below its bar."""
    verdict = {"y": YES, "n": NO, "r": "", "x": LOW}
    return [
        (claim, run, seed, name, number + 0.01 * seed, verdict[letter] if place == 0 else "", 0.9, hash_of(run))
        for seed, letter in enumerate(verdicts)
        for place, (name, number) in enumerate({quantity: value, **others}.items())
    ]


def network(run: str, seed: int, trained: bool = True) -> dict[str, object]:
    row = dict.fromkeys(sweep.RUN_COLUMNS, "") | {"run": run, "seed": seed, "trained": trained}
    return row | {"config_hash": hash_of(run)}


def table(*some) -> pd.DataFrame:
    return pd.DataFrame([row for part in some for row in part], columns=list(claims.COLUMNS))


def made(*some, shipped=(), networks=()) -> ledger.Ledger:
    """A ledger of planted rows."""
    listed = pd.DataFrame(list(networks), columns=list(sweep.RUN_COLUMNS))
    return ledger.assemble(table(*some), table(*shipped), listed, plan())


@pytest.fixture(scope="module")
def recorded() -> ledger.Ledger:
    return ledger.read()


# ---- verdicts of rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [
        *[("yyyyy", REPRODUCED), ("yyyyn", REPRODUCED), ("yyynn", NOT), ("nnnnn", NOT)],
        *[("yyyy", REPRODUCED), ("yyyn", NOT), ("yyy", REPRODUCED), ("yyn", NOT)],
        *[("yy", FEW), ("n", FEW), ("yyyxx", REPRODUCED), ("yyxxx", FEW), ("xxxxx", FEW), ("yyynx", NOT)],
        *[("rrrrr", REPORTED), ("rr", REPORTED), ("ryyyy", REPRODUCED), ("ry", FEW)],
    ],
)
def test_a_row_needs_four_fifths_of_at_least_three_seeds(seeds, verdict):
    row = made(rows("O2", AED, seeds)).row("O2", AED)
    assert row["verdict"] == verdict
    assert (len(row["seeds"]), len(row["left_out"])) == (len(seeds) - seeds.count("x"), seeds.count("x"))


def test_seeds_below_their_bar_are_shown_and_count_in_nothing():
    book = made(rows("O2", AED, "yxyy", value=0.9))
    row = book.row("O2", AED)
    assert (row["seeds"], row["left_out"]) == ((0, 2, 3), (1,))
    assert row["left_out_values"] == pytest.approx((0.91,))
    found = statistics.t_interval([0.90, 0.92, 0.93])
    assert (row["mean"], row["low"], row["high"]) == pytest.approx((found.mean, found.low, found.high))
    assert book.of("O2", AED).values == pytest.approx((0.90, 0.92, 0.93))


def test_a_training_that_diverged_is_counted_and_counts_against_accuracy():
    lost = [network(AED, 4, trained=False)]
    book = made(rows("O1", AED, "yyyy", quantity="accuracy"), rows("O2", AED, "yyyy"), networks=lost)
    for claim in ("O1", "O2"):
        row = book.row(claim, AED)
        assert row["left_out"] == (4,)
        assert math.isnan(row["left_out_values"][0])
    assert book.row("O1", AED)["verdict"] == REPRODUCED  # four of five
    two = [*lost, network(AED, 3, trained=False)]
    book = made(rows("O1", AED, "yyy", quantity="accuracy"), rows("O2", AED, "yyy"), networks=two)
    assert book.row("O1", AED)["verdict"] == NOT  # three of five
    assert book.row("O2", AED)["verdict"] == REPRODUCED


def test_a_network_that_is_trained_once_has_its_own_verdict():
    shipped = claims.read_results()
    book = ledger.assemble(table(), shipped[shipped["run"].str.startswith("translation")], table_of_networks(), plan())
    for run, verdict in (("translation-aed-gru", NOT), ("translation-ao-gru", REPRODUCED)):
        row = book.row("T1", run)
        assert (row["verdict"], row["seeds"]) == (verdict, (0,))
        assert math.isnan(row["low"])


def table_of_networks() -> pd.DataFrame:
    return pd.DataFrame(columns=list(sweep.RUN_COLUMNS))


def test_the_sweeps_rows_win_and_the_shipped_fill_in():
    swept, other = rows("O2", AED, "y", value=0.9), rows("O2", AED, "nnn", value=0.1)
    book = made(swept, shipped=[other, rows("O4", AED, "n", value=0.7)])
    assert book.of("O2", AED).values == pytest.approx((0.9, 0.11, 0.12))
    assert book.row("O2", AED)["holds"] == 1
    assert book.of("O4", AED).values == (0.7,)


def test_what_says_nothing_about_a_run_has_no_row():
    book = made(rows("D4", "escan-ao-gru-and00", "rrr", value=math.nan, quantity=NOT_MEASURABLE))
    assert len(book.rows) == 0
    assert book.verdict("D4").verdict == UNMEASURED


# ---- verdicts of claims --------------------------------------------------------------------------------------------

WEAK = f"{AED}-l2_1e-3"


@pytest.mark.parametrize(
    ("some", "verdict"),
    [
        ({AED: "yyyyy", AO: "yyyyn"}, REPRODUCED),
        ({AED: "nnnnn", AO: "yyyyy"}, NOT),
        ({AED: "nnnnn", AO: "yyyyy", WEAK: "yyyyy"}, CONDITION),
        ({AED: "xxxxx", AO: "yyyyy", WEAK: "yyy"}, CONDITION),
        ({AED: "xxxxx", AO: "yyyyy"}, FEW),
        ({AED: "yyxxx", AO: "yyyyy", WEAK: "yyn"}, NOT),  # all that is known speaks against it
        ({AED: "yyxxx", AO: "yyyyy", WEAK: "yxx"}, FEW),
        ({AED: "xxxxx", AO: "nnnnn"}, NOT),
        ({AED: "nnnnn", AO: "yyyyy", WEAK: "yyx"}, NOT),  # two seeds are too few for a condition, too
        ({AED: "yyyyy", AO: "nnnnn", WEAK: "yyyyy"}, NOT),  # of the other architecture
        ({AED: "nnnnn", AO: "yyyyy", "one_to_one-aed-lstm": "yyy"}, NOT),  # another cell is no condition
        ({AED: "nnnnn", AO: "yyyyy", f"{AED}-scaled_dot": "yyy"}, NOT),
        ({AED: "nnnnn", AO: "yyyyy", f"{AED}-words8": "yyyyy"}, NOT),  # nor another task
        ({AED: "rrrrr", AO: "rrrrr"}, REPORTED),
        ({AED: "yyyyy", AO: "rrrrr"}, REPRODUCED),
    ],
)
def test_a_claim_holds_on_every_network_of_the_recipe_or_under_a_condition_of_the_same(some, verdict):
    book = made(*(rows("O2", run, seeds) for run, seeds in some.items()))
    assert book.verdict("O2").verdict == verdict


def test_all_conditions_are_listed_whether_they_help_or_not():
    helps, hurts = WEAK, f"{AED}-teacher"
    book = made(rows("O2", AED, "nnnnn"), rows("O2", AO, "yyyyy"), rows("O2", helps, "yyy"), rows("O2", hurts, "nnn"))
    found = book.verdict("O2")
    assert (found.failing, found.conditions) == ((AED,), (helps,))
    assert set(book.conditions("O2")["run"]) == {helps, hurts}
    said = ledger.told(book, "O2")
    for text in (repr(said), Parsed(said._repr_html_()).text):
        assert re.search(r"O2\W+reproduced under a condition", text)
        assert "holds under: L2 1e-3 (3 of 3)" in text
        assert "does not under: fed the true words (0 of 3)" in text


def test_conditions_are_in_the_order_of_what_they_change():
    names = [f"{AED}-{change}" for change in ("steps10000", "l2_1e-5", "teacher", "steps1250", "l2_1e-3", "l2_1e-4")]
    book = made(*(rows("O2", run, "yyy") for run in names))
    found = [run.removeprefix(f"{AED}-") for run in book.conditions("O2")["run"]]
    assert found == ["teacher", "l2_1e-3", "l2_1e-4", "l2_1e-5", "steps1250", "steps10000"]


def test_a_report_that_asks_for_more_under_a_condition_is_decided_there():
    base = rows("E5", "escan-aed-gru", "rrrrr", quantity="slope"), rows("E5", "escan-ao-gru", "rrrrr", quantity="slope")
    assert made(*base).verdict("E5").verdict == REPORTED
    low = rows("E5", "escan-ao-gru", "rxxxx", quantity="slope")
    follows = rows("E5", "escan-aed-gru-and30", "yyyyy")
    assert made(base[0], low, follows).verdict("E5").verdict == CONDITION  # a report needs no number of seeds
    for seeds, verdict in (("yyyyy", CONDITION), ("nnnnn", NOT)):
        assert made(*base, rows("E5", "escan-aed-gru-and30", seeds)).verdict("E5").verdict == verdict


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        *[(AED, "base"), ("translation-aed-gru", "base"), ("translation-ao-gru-n96", "base")],
        *[(WEAK, "condition"), (f"{AED}-teacher-l2_1e-5", "condition"), (f"{AED}-steps1250", "condition")],
        *[
            ("escan-aed-gru-and30", "condition"),
            ("escan-ao-gru-constant", "condition"),
            ("escan-ao-gru-no_turns", "condition"),
            ("escan-ao-gru-no_turns-verbs3", "condition"),
        ],
        *[("one_to_one-aed-lstm", "variant"), (f"{AO}-scaled_dot", "variant"), ("escan-ao-ff", "variant")],
        *[(f"{AED}-words8", "beside"), (f"{AED}-words8-l2_1e-3", "beside"), ("reversed-aed-gru-varied", "beside")],
        *[("translation-aed-gru-n96", "base"), (f"{AED}-n256-l2_1e-4", "condition")],
        *[("escan-ao-gru-warmup0", "beside"), ("translation-aed-gru-verses", "beside")],
    ],
)
def test_what_a_run_is(run, kind):
    assert ledger.kind_of("O2", run) == kind


def test_the_registers_are_what_t9_is_about():
    assert ledger.kind_of("T9", "translation-ao-gru-catalogues") == "base"
    assert ledger.kind_of("T5", "translation-ao-gru-catalogues") == "beside"


def test_departures_are_said_in_words():
    assert ledger.departures(f"{AED}-teacher-l2_1e-5") == ("fed the true words", "L2 1e-5")
    assert ledger.departures("escan-ao-gru-and100-steps10000") == ('"and" at 100 %', "10,000 steps")
    known = ledger.departures("escan-ao-gru-no_turns-verbs3")
    assert known == ('no "left" or "right"', "3 times the single verbs")
    assert ledger.departures(f"{AED}-n256-l2_1e-4") == ("256 units", "L2 1e-4")
    assert ledger.departures(AED) == ()


@pytest.mark.parametrize(
    ("departs", "said"),
    [
        ("constant", ("fed a constant", "L2 1e-3")),
        ("l2_1e-3", ("L2 1e-3",)),
        ("and00", ('"and" at 0 %',)),
    ],
)
def test_an_l2_that_a_name_does_not_say_is_said_of_its_row(departs, said):
    base, run = "escan-ao-gru", f"escan-ao-gru-{departs}"
    book = made(rows("D3", base, "nnn"), rows("D3", run, "nnn"))
    assert departures_of(book.row("D3", run), book.row("D3", base)) == said
    for text in (repr(ledger.told(book, "D3")), page_of(book, "D3").text):
        assert ", ".join(said) in text


# ---- rows that do not belong ---------------------------------------------------------------------------------------


def test_rows_of_another_configuration_say_how_to_refresh():
    stale = [(*row[:-1], "0" * 64) for row in rows("O2", AED, "yyy")]
    with pytest.raises(LedgerError, match=rf"(?s){AED} .*python -m howattend sweep --only {AED}"):
        made(stale)
    with pytest.raises(LedgerError, match="python -m howattend claims"):
        made(shipped=[stale])
    with pytest.raises(LedgerError, match=f"sweep --only {AED}"):
        made(networks=[network(AED, 0) | {"config_hash": "0" * 64}])


def test_rows_of_a_run_that_there_is_no_more():
    gone = [("O2", f"{AED}-n7", *row[2:-1], "0" * 64) for row in rows("O2", AED, "y")]
    where = rf"{AED}-n7 \(hash 0+\) in data/results/sweep/{AED}-n7\.csv"
    with pytest.raises(LedgerError, match=f"{where} .*if it is yours, give ledger.read your plan, else delete"):
        made(gone)


def test_a_hash_that_was_not_completed_is_of_no_recorded_network():
    lost = [(*row[:-1], row[-1][:8]) for row in rows("O2", AED, "yyy")]
    with pytest.raises(LedgerError, match=r"of no network that data/results/sweep_runs\.csv has.*git checkout"):
        made(lost)


def test_a_plan_of_ones_own_is_read_beside_the_books(monkeypatch):
    base = plan().by_name[AED].candidates[0]
    own = replace(base, name=f"{AED}-n7", model=replace(base.model, hidden_size=7))
    given = [(claim, own.name, *rest[:-1], own.hash) for claim, _, *rest in rows("O2", AED, "yyy")]
    monkeypatch.setattr(sweep, "read_rows", lambda: table(given, rows("O2", AED, "yyy")))
    with pytest.raises(LedgerError, match=r"give ledger\.read your plan"):
        ledger.read()
    book = ledger.read(sweep.Plan((sweep.Entry("mine", (own,), (0, 1, 2)),)))
    assert book.of("O2", own.name).seeds == (0, 1, 2)
    assert book.row("O2", own.name)["verdict"] == book.row("O2", AED)["verdict"] == REPRODUCED


def test_a_candidate_that_was_too_strong_is_no_stranger():
    entry = plan().by_name["one_to_one-aed-lstm"]
    tried = network("one_to_one-aed-lstm", 0, False)
    tried |= {"run": "one_to_one-aed-lstm-l2_1e-2", "config_hash": entry.candidates[0].hash}
    assert len(made(rows("O2", AED, "yyy"), networks=[tried]).networks) == 1


def test_what_is_missing_is_named():
    book = made(rows("O2", AED, "yyy", others=0.1))
    with pytest.raises(LedgerError, match=rf"no row of O2 on {AO}.*recorded on {AED}.*sweep --only {AO}"):
        book.of("O2", AO)
    with pytest.raises(LedgerError, match="no 'tv'; it has 'share', 'others'"):
        book.of("O2", AED, "tv")
    with pytest.raises(LedgerError, match="sweep --only"):
        book.row("O3", AED)
    with pytest.raises(LedgerError, match=f"no run is called 'one_to_one_aed-gru'; did you mean {AED}"):
        book.of("O2", "one_to_one_aed-gru")
    with pytest.raises(LedgerError, match=f"no row of E2 on {AED}.*; it is not asked of {AED}"):
        book.of("E2", AED)
    with pytest.raises(LedgerError, match=r"V1 has no rows.*Ledger\.variants"):
        book.row("V1", AED)
    with pytest.raises(LedgerError, match=r"Ledger\.approximation"):
        book.of("H1", ledger.ALL_RUNS)


@pytest.mark.parametrize(
    "call",
    [
        lambda book: book.of_claim("O99"),
        lambda book: book.has("O99", AED),
        lambda book: book.of("O99", AED),
        lambda book: book.row("O99", AED),
        lambda book: book.conditions("O99"),
        lambda book: book.verdict("O99"),
        lambda book: ledger.kind_of("O99", AED),
        lambda book: ledger.limits("O99", "AED", {}),
        lambda book: ledger.say("O99", NOT),
        lambda book: repr(ledger.told(book, "O99")),
    ],
)
def test_an_unknown_claim_is_refused_wherever_it_is_given(call):
    with pytest.raises(ValueError, match=r"claim must be one of H1, O1, .*, got 'O99'"):
        call(made(rows("O2", AED, "yyy")))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda book: book.of_claim("O2", "bases"), "kind must be one of base, condition, .*, got 'bases'"),
        (lambda book: book.conditions("O2", "one-to-one"), "task must be one of .*one_to_one.*, got 'one-to-one'"),
        (lambda book: book.conditions("O2", None, "aed"), "architecture must be one of AED, AO, VED, got 'aed'"),
        (lambda book: book.agreement("O2"), "claim must be one of V1, V2, V3, got 'O2'"),
        (lambda book: ledger.say("O2", "fine"), "verdict must be one of reproduced, .*, got 'fine'"),
    ],
)
def test_a_filter_that_there_is_not_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(made(rows("O2", AED, "yyy")))


def test_seeds_that_are_left_out_have_values_too():
    book = made(rows("O2", AED, "yyxy", value=0.5))
    assert book.of("O2", AED).seeds == (0, 1, 3)
    assert book.of("O2", AED, left_out=True).values == pytest.approx((0.52,))


def test_a_quantity_in_words():
    book = made(rows("O2", AED, "yyy", value=0.9), rows("O4", AED, "y", value=0.004), rows("O1", AED, "yyy", 0.999))
    assert str(book.of("O2", AED)) == "0.91 (0.89 to 0.93; 3 seeds)"
    assert str(book.of("O4", AED)) == "0.004 (1 seed)"
    assert str(replace(book.of("O1", AED), quantity="accuracy")).startswith("100.00 % (98.")
    assert book.of("O2", AED).number(0.903, limits=[0.9]) == "0.903"


def test_an_interval_keeps_to_what_is_possible_and_to_what_two_seeds_can_say():
    def over(quantity, *values):
        return ledger.Over.of(quantity, tuple(range(len(values))), values)

    assert statistics.t_interval([0.9, 0.99, 0.95]).high > 1
    assert over("argmax", 0.9, 0.99, 0.95).high == 1
    assert over("encoder, by last words, depth 2", 0.9, 0.99, 0.95).high == 1
    assert over("share", 0.9, 0.99, 0.95).high > 1  # a signed share: others may be negative
    assert over("ρ", -0.9, -0.99, -0.95).low == -1
    assert over("largest deviation", 0.01, 0.05, 0.1).low == 0
    counted = over("words", 50.0, 50.0, 50.0)  # T4's number of words, beside O7's share
    assert counted.low == counted.high == 50
    assert (over("share", 0.1, 0.7).low, over("share", 0.1, 0.7).high) == (0.1, 0.7)
    assert (over("share", 0.1, 0.7).spread, over("share", 0.1, 0.7, 0.4).spread) == ("range", "95 % interval")
    assert over("share", 0.9622, 0.9631).interval == "0.962 to 0.963"
    assert over("accuracy", 0.99961, 0.99963).interval == "99.961 % to 99.963 %"
    assert over("share", 1.0, 1.0, 1.0).interval == "no spread"


# ---- limits --------------------------------------------------------------------------------------------------------


def test_limits_are_those_that_the_recorded_verdicts_were_given_by(recorded):
    """Each seed on which a claim holds lies within the limits of its row, where they are no other network's value."""
    checked = 0
    for row in recorded.rows.itertuples():
        judged = YES in row.verdicts or NO in row.verdicts
        if judged and (row.claim, row.architecture) != ("C3", "AED"):
            assert math.isfinite(row.at_least) or math.isfinite(row.at_most), row.claim
        if row.at_least == row.at_most or row.claim in ("O6", "O12", "E9", "T4", "T8"):
            continue
        for value, verdict in zip(row.values, row.verdicts, strict=True):
            if verdict == YES:
                checked += 1
                assert not value < row.at_least, (row.claim, row.run)
                assert not value > row.at_most, (row.claim, row.run)
    assert checked > 50


def test_limits_are_of_the_architecture_and_of_the_row():
    assert ledger.limits("E4", "AED", {}) == pytest.approx((0.85, math.nan), nan_ok=True)
    assert ledger.limits("E4", "AO", {}) == pytest.approx((0.90, math.nan), nan_ok=True)
    assert ledger.limits("E3", "AO", {}) == pytest.approx((0.87, 1.13))
    assert ledger.limits("E9", "AED", {"AED's on one-to-one": 0.08}) == pytest.approx((0.16, math.nan), nan_ok=True)
    assert ledger.limits("O12", "AO", {"null, 95 %": 0.13}) == pytest.approx((math.nan, 0.13), nan_ok=True)
    assert ledger.limits("O3", "VED", {}) == pytest.approx((math.nan, math.nan), nan_ok=True)
    assert ledger.limits("E5", "AED", {}) == (1.0, 1.0)


# ---- H1, V1–V3 -----------------------------------------------------------------------------------------------------

H1_RUNS = (AED, AO, "sort-aed-gru", "escan-aed-gru", "escan-ao-gru")


def h1(order: Mapping[str, float], seeds: str = "rrrrr") -> list:
    """Rows of H1: each run's nearness as given, its share equal to it."""
    both = {run: {"quantity": "centred share", "1 − TV, mean attention": value} for run, value in order.items()}
    return [row for run, value in order.items() for row in rows("H1", run, seeds, value, **both[run])]


def test_h1_is_a_correlation_over_runs_for_each_seed():
    alike = dict(zip(H1_RUNS, (0.9, 0.95, 0.2, 0.7, 0.8), strict=True))
    book = made(h1(alike))
    per_seed, together = book.correlation()
    assert per_seed == pytest.approx(dict.fromkeys(range(5), 1.0))
    assert together == pytest.approx(1.0)
    assert book.verdict("H1").verdict == REPRODUCED
    row = book.of_claim("H1").iloc[0]
    assert (row["run"], row["holds"], row["at_least"]) == (ledger.ALL_RUNS, 5, 0.8)


def test_a_rho_of_exactly_the_limit_reaches_it():
    """Four networks with Σd² = 2 have ρ = 1 − 2/10, which floating-point numbers may miss by their last digit."""
    nearness = dict(zip(H1_RUNS[:4], (1.0, 2.0, 3.0, 4.0), strict=True))
    share = dict(zip(H1_RUNS[:4], (1.0, 2.0, 4.0, 3.0), strict=True))
    names = {"centred share": share, "1 − TV, mean attention": nearness}
    some = [(*row[:4], names[row[3]][row[1]], *row[5:]) for row in h1(nearness)]
    book = made(some)
    assert set(book.correlation()[0].values()) == {0.8}
    assert book.verdict("H1").verdict == REPRODUCED
    once = made([row for row in some if row[2] == 0])
    assert once.correlation() == ({0: 0.8}, 0.8)


def test_h1_leaves_out_conditions_and_networks_below_their_bar():
    alike = dict(zip(H1_RUNS, (0.9, 0.95, 0.2, 0.7, 0.8), strict=True))
    against = [("H1", run, *row[2:4], 5.0, *row[5:]) for run in (WEAK,) for row in rows("H1", run, "rrrrr")]
    against = [(*row[:3], name, *row[4:]) for row in against for name in ("centred share", "1 − TV, mean attention")]
    low = h1({"sort-ao-gru": 99.0}, "xxxxx")
    book = made(h1(alike), against, low)
    assert book.correlation()[1] == pytest.approx(1.0)
    assert set(book.approximation["run"]) == {*H1_RUNS, WEAK}
    assert set(book.approximation.query("kind == 'base'")["run"]) == set(H1_RUNS)


def test_h1_is_refuted_by_shares_that_fall():
    falling = [
        (*row[:4], -row[4] if row[3] == "centred share" else row[4], *row[5:])
        for row in h1(dict(zip(H1_RUNS, (0.9, 0.95, 0.2, 0.7, 0.8), strict=True)))
    ]
    assert made(falling).verdict("H1").verdict == NOT
    assert made(rows("O2", AED, "yyy")).verdict("H1").verdict == UNMEASURED


def test_variants_stand_beside_the_gru():
    lstm, dot, ff = "one_to_one-aed-lstm", f"{AED}-scaled_dot", "one_to_one-ao-ff"
    same = [rows(claim, run, "yyy") for claim in ("O2", "O4") for run in (AED, AO, lstm, ff)]
    book = made(*same, rows("O2", dot, "nnn"), rows("O4", dot, "yyx"), rows("O8", dot, "yyy"))
    found = book.variants()
    row = found.loc[("O2", "one_to_one", "AED")]
    assert dict(row) == {"gru": REPRODUCED, "lstm": REPRODUCED, "ugrnn": "", "scaled_dot": NOT, "ff": ""}
    assert (book.agreement("V1"), book.agreement("V2"), book.agreement("V3")) == ((2, 2), (0, 1), (2, 2))
    assert book.verdict("V2").verdict == REPORTED
    assert made(rows("O2", AED, "yyy")).verdict("V1").verdict == UNMEASURED


# ---- the page ------------------------------------------------------------------------------------------------------


class Parsed(HTMLParser):
    """Tags with their attributes, text, and whether every tag that opens closes in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.open, self.text = [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "input":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str, **having: str) -> list[dict]:
        return [found for name, found in self.tags if name == tag and having.items() <= found.items()]


def page_of(book: ledger.Ledger, *names: str, **settings) -> Parsed:
    return Parsed(ledger.Page(book, names, **settings)._repr_html_())


def test_every_row_of_the_page_can_be_filtered_and_is_shown_without_a_script(recorded):
    parsed = page_of(recorded, *CRITERIA)
    assert parsed.open == []
    bodies = parsed.all("tbody", **{})
    described = [body for body in bodies if "data-claim" in body]
    assert [body["data-claim"] for body in described] == list(CRITERIA)
    for body in described:
        assert body["data-verdict"] == recorded.verdicts[body["data-claim"]].verdict
        assert body["data-words"] == body["data-words"].lower()
    tasks = {option["value"] for option in parsed.all("option")}
    shown = [row for row in parsed.all("tr") if row.get("class") != "ledger-claim"]
    rows_of_claims = [row for row in shown if row and "data-task" in row]
    assert len(rows_of_claims) > 60
    for row in rows_of_claims:
        assert set(row["data-task"].split()) <= tasks
        assert set(row["data-architecture"].split()) <= tasks
    assert [found for name, found in parsed.tags if "hidden" in found] == parsed.all("form")
    assert len(parsed.all("svg", role="img")) == len([row for row in rows_of_claims if "class" not in row])
    assert all(found["aria-label"] for found in parsed.all("svg", role="img"))


def test_claims_are_linked_to_their_place_in_the_ledger(recorded):
    address = ledger.address("O2")
    assert f'<a href="{address}">' in ledger.told(recorded, "O2")._repr_html_()
    table = conditions.verdicts(recorded, {"AED": {"recipe": AED}}, ["O2"])
    assert f'<td><a href="{address}">O2</a></td>' in table._repr_html_()
    page, place = address.split(".html#")
    assert page == "ledger" and f'id="{place}"' in ledger.Page(recorded, ["O2"])._repr_html_()


def test_the_page_escapes_what_it_shows(monkeypatch):
    nasty = replace(CRITERIA["O2"], claim='<b>"x" & y', paper="</th>", reproduced_if="a < b")
    monkeypatch.setitem(CRITERIA, "O2", nasty)
    parsed = page_of(made(rows("O2", AED, "yyn", quantity='<i>&"')), "O2")
    assert parsed.open == []
    assert '<b>"x" & y' in parsed.text
    assert "a < b" in parsed.text
    assert parsed.all("i") == []
    assert parsed.all("tbody")[0]["data-words"].startswith('o2 <b>"x" & y')
    assert parsed.all("svg", role="img")[0]["aria-label"].startswith('<i>&"')


def test_seeds_are_dots_whatever_became_of_them():
    book = made(rows("O2", AED, "ynxrr", value=0.9), networks=[network(AED, 5, trained=False)])
    row = book.row("O2", AED)
    axis = Axis.of(book.rows)
    svg = Parsed(seeds_svg(row, axis))
    kinds = [found["class"] for _, found in svg.tags if found.get("class", "").startswith("seed ")]
    assert kinds == ["seed yes", "seed no", "seed out", "seed open", "seed open"]  # the diverged one has no place
    assert [found["class"] for found in svg.all("path")].count("limit") == 1
    label = svg.tags[0][1]["aria-label"]
    assert "0.90, 0.91, 0.93, 0.94" in label
    assert "limit ≥ 0.90" in label
    assert "left out: 2" in label


def test_an_axis_holds_values_and_limits_and_clamps_the_rest():
    book = made(rows("O2", AED, "yyyx", value=0.2))
    axis = Axis.of(book.rows)
    assert axis.low < 0.2
    assert axis.high > 0.9
    assert axis.place(-50) == axis.place(axis.low) < axis.place(0.2) < axis.place(0.9) < axis.place(50)
    one = Axis.of(made(rows("O11", AED, "r", value=1.0)).rows)
    assert one.low < 1 < one.high
    assert Axis.of(made(rows("O11", AED, "x")).rows) == Axis(-0.06, 1.06)


def test_an_axis_ends_where_its_quantity_does_and_holds_intervals():
    axis = Axis.of(made(rows("R1", "reversed-ao-gru", "yyy", value=0.97, quantity="argmax")).rows)
    assert axis.high == 1
    book = made(rows("O8", AED, "nny", value=0.3, quantity="largest deviation"))
    row = book.row("O8", AED)
    wide = book.rows.assign(high=0.9)
    assert Axis.of(wide).high > 0.9 > Axis.of(book.rows).high > row["high"]
    assert Axis.of(wide).low >= 0


def test_a_number_that_passes_while_its_claim_fails_says_so():
    """T6's agreement is high enough, the articles are not "the"; O2 fails by what is drawn."""
    book = made(
        rows("T6", "translation-aed-gru", "n", value=0.7, quantity="agreement"), rows("O2", AED, "nnn", value=0.2)
    )
    for claim, elsewhere in (("T6", True), ("O2", False)):
        for said in (repr(ledger.told(book, claim)), page_of(book, claim).text):
            assert ("fails by another part" in said) == elsewhere
    varying = {"quantity": "variance drop", "extended SCAN's": 0.9}
    assert "another part" in repr(ledger.told(made(rows("T4", "translation-aed-gru", "n", 0.1, **varying)), "T4"))


def test_what_is_only_reported_asks_for_nothing(recorded):
    text = page_of(recorded, "O11", "V1", "H1", "O4").text
    assert "reported: AED and AO" in text
    assert "reproduced if reported" not in text
    assert "abstract: positive" in text
    assert "supplement: alike" in text
    assert "Fig. 2b, 2d" in text


def test_the_filters_find_conditions_and_the_variants():
    book = made(rows("O2", AED, "nnn"), rows("O2", WEAK, "yyy"))
    parsed = page_of(book, "O2", "V3")
    folded = parsed.all("details")[0]["data-words"]
    assert "l2 1e-3" in folded
    assert WEAK in folded
    variants = parsed.all("tbody", **{"data-claim": "V3"})[0]
    assert (variants["data-task"], variants["data-architecture"]) == ("one_to_one escan", "AO")


def test_conditions_are_folded_below_the_network_that_they_are_of():
    book = made(rows("O2", AED, "nnn"), rows("O2", AO, "yyy"), rows("O2", WEAK, "yyy"))
    html = ledger.Page(book, ["O2"])._repr_html_()
    assert "AED, conditions tried: 1; holds under 1 of 1 that can be judged" in html
    assert html.count("<details") == 1
    assert html.index(f"<code>{AED}</code>") < html.index("<details") < html.index(f"<code>{AO}</code>")
    text = repr(ledger.Page(book, ["O2"]))
    assert "O2. The temporal components alone give the attention: reproduced under a condition" in text
    assert f"{AO}: share 0.51 (0.49 to 0.53; 3 seeds); reproduced, 3 of 3 seeds" in text


def test_own_predictions_hold_or_do_not():
    book = made(rows("C1", "escan-ao-gru", "nnnnn"))
    assert str(book.verdict("C1")) == "does not hold"
    assert "our own prediction; holds if" in page_of(book, "C1", filters=False).text


def test_pictures_can_be_drawn_of_much_and_of_little(recorded):
    for book in (recorded, made(rows("O2", AED, "ynxrr"), h1({AED: 0.9, "sort-aed-gru": 0.2}))):
        for draw in (ledger.summary, ledger.nearness):
            figure = draw(book)
            figure.canvas.draw()
            assert figure.axes
            plt.close(figure)


# ---- the book ------------------------------------------------------------------------------------------------------


def cells(root, chapter: str) -> list[dict]:
    return json.loads((root / "book" / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_every_link_leads_to_a_figure(root):
    assert set(ledger.FIGURES) == set(CRITERIA)
    for claim, (chapter, figure) in ledger.FIGURES.items():
        names = {cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") for cell in cells(root, chapter)}
        assert figure in names, f"{claim} links to {chapter}.html#{figure}"


DECIDED = (REPRODUCED, CONDITION, NOT)


def test_every_claim_that_needs_a_condition_or_fails_has_its_paragraph(root, recorded):
    told = [cell for cell in cells(root, "ledger") if cell["id"].startswith("told-")]
    calls = [call for cell in told for call in re.findall(r"ledger\.told\(([^)]*)\)", "".join(cell["source"]))]
    named = [claim for call in calls for claim in re.findall(r'"([A-Z]\d+)"', call)]
    assert len(named) == len(set(named))
    asked = [claim for claim in CRITERIA if CRITERIA[claim].origin == "paper" and claim != "H1"]
    needing = {claim for claim in asked if recorded.verdicts[claim].verdict in (CONDITION, NOT)}
    assert needing <= set(named), "write a paragraph (why-…, told-…) in book/ledger.ipynb"
    undecided = {claim for claim in asked if recorded.verdicts[claim].verdict not in DECIDED}
    assert set(named) <= needing | undecided, "reproduced now: their paragraphs in book/ledger.ipynb are out of date"
    before = {cell["id"].removeprefix("why-") for cell in cells(root, "ledger") if cell["id"].startswith("why-")}
    assert {cell["id"].removeprefix("told-") for cell in told} <= before


def listed(text: str, verdict: str) -> list[str]:
    """The claims that the opening page lists under a verdict; none without such a bullet."""
    line = re.search(rf"(?m)^- \*\*{verdict}\*\*.*(\n  .*)*", text)
    named = [word for word in re.findall(r"\b[A-Z]\d+\b", line.group() if line else "") if word in CRITERIA]
    assert len(named) == len(set(named))
    return named


def test_the_opening_page_says_of_each_claim_what_the_rows_say(root, recorded):
    text = (root / "book" / "index.md").read_text(encoding="utf-8")
    asked = [claim for claim in CRITERIA if CRITERIA[claim].origin == "paper"]
    for verdict in DECIDED:
        expected = {claim for claim in asked if recorded.verdicts[claim].verdict == verdict}
        assert set(listed(text, verdict.capitalize())) == expected, f"{verdict}: {sorted(expected)}"
    for claim in listed(text, "Not yet decided"):
        assert recorded.verdicts[claim].verdict not in DECIDED, f"{claim}: {recorded.verdicts[claim]}"
