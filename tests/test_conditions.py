"""The chapter on conditions: what it reads from recorded rows and stored products, on planted ones."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection

from howattend import claims, conditions, ledger, recorded, sweep
from howattend.claims.criteria import NOT_COMPARABLE
from howattend.sweep.components import Stored

BASE, WEAK, WEAKER = (f"one_to_one-ao-gru{l2}" for l2 in ("", "-l2_1e-3", "-l2_1e-4"))
COLUMNS = {"1e-4": WEAKER, "1e-3": WEAK, "1e-2": BASE}


def book_of(rows):
    """A ledger from (claim, run, seed, {quantity: value}, verdict)."""
    hashes = {entry.name: entry.candidates[0].hash for entry in sweep.full_plan().entries}
    table = [
        (claim, run, seed, quantity, value, "" if place else verdict, 1.0, hashes[run])
        for claim, run, seed, quantities, verdict in rows
        for place, (quantity, value) in enumerate(quantities.items())
    ]
    measured = pd.DataFrame(table, columns=list(claims.COLUMNS))
    return ledger.assemble(measured, measured.iloc[:0], sweep.read_runs().iloc[:0])


def o12(run, values, verdict="True", left_out=()):
    """Rows of O12 with its limit of 0.13, for seeds that count and for others behind them."""
    rows = [(value, verdict) for value in values] + [(value, NOT_COMPARABLE) for value in left_out]
    return [("O12", run, seed, {"|cos|": value, "null, 95 %": 0.13}, said) for seed, (value, said) in enumerate(rows)]


@pytest.fixture
def book():
    """O12 fails at the recipe's L2, holds at the next weaker one, and is not measured at the weakest."""
    return book_of([*o12(BASE, [0.2, 0.3, 0.25], "False", left_out=[0.9]), *o12(WEAK, [0.05, 0.1, 0.07])])


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


# ------------------------------------------------------------------------------------------------------------- claims


def test_seeds_that_count_and_seeds_that_do_not_are_apart(book):
    found = conditions.seeds(book, "O12", BASE)
    assert found.values == (0.2, 0.3, 0.25)
    assert found.left_out == (0.9,)
    assert found.at_most == pytest.approx(0.13) and np.isnan(found.at_least)
    other = conditions.seeds(book, "O12", BASE, "null, 95 %")
    assert other.values == (0.13,) * 3 and np.isnan(other.at_most)
    assert conditions.seeds(book, "O12", WEAKER) == conditions.Seeds(ahead=True)
    assert conditions.seeds(book, "O12", f"{BASE}-steps2500") == conditions.Seeds()  # the sweep only offers it
    with pytest.raises(ValueError, match="claim must be one of"):
        conditions.seeds(book, "O99", BASE)
    with pytest.raises(ledger.LedgerError, match=r"has no 'lost'; it has '\|cos\|'"):
        conditions.seeds(book, "O12", BASE, "lost")


def test_the_table_counts_seeds_and_says_what_is_missing(book):
    table = conditions.verdicts(book, {"AO": COLUMNS}, ["O12", "O9"])
    assert table.columns == ("claim", "1e-3", "1e-2")  # nothing is known of 1e-4
    assert table.sections == {"AO": [("O12", "yes\xa03/3", "no\xa00/3")]}
    assert table.marks == {"yes\xa03/3": "verdict-yes", "no\xa00/3": "verdict-no"}
    few = book_of(o12(BASE, [0.2, 0.1], left_out=[0.3, 0.3, 0.3]))
    assert conditions.verdicts(few, {"AO": COLUMNS}, ["O12"]).sections["AO"] == [("O12", "(2/2)")]


def test_not_yet_is_what_is_planned_and_not_what_is_not_asked(book):
    twice = {"AO": {"weak": WEAK}, "other": {"weak": WEAKER, "base": BASE}, "none": {"weak": "", "base": BASE}}
    table = conditions.verdicts(book, twice, ["O12"])
    no, yes = "no\xa00/3", "yes\xa03/3"
    assert table.sections == {"AO": [("O12", yes, "")], "other": [("O12", "not yet", no)], "none": [("O12", "", no)]}
    some = {"AO": {"1e-4": WEAKER, "none": "", "1e-2": BASE}, "VED": {"none": ""}}
    # Of this book no network is recorded.
    assert conditions.untrained(book, some) == ["AO: not yet trained by the sweep: 1e-4; 1e-2"]
    networks = pd.DataFrame({"run": [BASE], "trained": [False]})
    known = dataclasses.replace(book, networks=networks)
    assert conditions.untrained(known, some) == ["AO: not yet trained by the sweep: 1e-4"]


def test_h1_is_a_correlation_over_runs_and_has_no_cell():
    book = book_of([("H1", BASE, seed, {"centred share": 1.0, "1 − TV, mean attention": 0.9}, "") for seed in range(3)])
    assert not conditions.verdicts(book, {"AO": {"recipe": BASE}}, ["H1"]).sections


def test_claims_that_turn_are_told_and_others_are_not(book):
    assert conditions.turns(book, {"AO": COLUMNS}, ["O12"]) == ["AO: O12 holds at 1e-3, not at 1e-2"]
    same = book_of([*o12(BASE, [0.1, 0.1, 0.1]), *o12(WEAK, [0.1, 0.1, 0.1])])
    assert conditions.turns(same, {"AO": COLUMNS}, ["O12"]) == []


def test_a_column_of_which_nothing_is_known_or_planned_is_left_out(book, ax):
    def columns(base):
        return {"2,500": f"{base}-steps2500", "1,250": f"{base}-steps1250", "5,000": base}

    conditions.compare([ax], book, "one_to_one", [("O12", None, "angle")], columns)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1,250", "5,000"]
    assert {text.get_text() for text in ax.texts} == {"not yet"}


def test_a_strip_has_a_dot_a_seed_hollow_where_it_did_not_train(book, ax):
    series = {"AO": {name: conditions.seeds(book, "O12", run) for name, run in COLUMNS.items()}}
    conditions.strip(ax, series, recipe={"AO": "1e-2"})
    dots = [collection for collection in ax.collections if len(collection.get_offsets()) in (3, 4)]
    drawn = {round(float(y), 3): tuple(face[:3]) for each in dots
             for (_, y), face in zip(each.get_offsets(), each.get_facecolors(), strict=True)}  # fmt: skip
    assert set(drawn) == {0.2, 0.3, 0.25, 0.9, 0.05, 0.1, 0.07}
    assert [y for y, face in drawn.items() if face == (1, 1, 1)] == [0.9]
    assert [text.get_text() for text in ax.texts] == ["not yet"]
    assert [label.get_text() for label in ax.get_xticklabels()] == list(COLUMNS)
    (line,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert line.get_ydata()[0] == pytest.approx(0.13)


def test_limits_that_differ_have_the_colours_of_their_series(ax):
    series = {name: {"x": conditions.Seeds((0.5,), at_least=least)} for name, least in (("AED", 0.4), ("AO", 0.6))}
    conditions.strip(ax, series)
    lines = {line.get_ydata()[0]: line.get_color() for line in ax.lines if line.get_linestyle() == "--"}
    assert lines == {0.4: conditions.COLOURS["AED"], 0.6: conditions.COLOURS["AO"]}


@pytest.mark.parametrize(("second", "own", "across"), [(0.3, [(0, 0.2), (1, 0.3)], 0), (0.202, [], 1)])
def test_limits_that_differ_by_column_stand_at_their_columns(ax, second, own, across):
    each = {name: conditions.Seeds((0.5,), at_least=limit) for name, limit in (("a", 0.2), ("b", second))}
    conditions.strip(ax, {"AED": each})
    segments = [part for drawn in ax.collections if isinstance(drawn, LineCollection) for part in drawn.get_segments()]
    limits = [(float(part[:, 0].mean()), float(part[0, 1])) for part in segments if part[0, 1] != 0.5]  # 0.5: means
    assert limits == [pytest.approx(limit) for limit in own]
    assert len([line for line in ax.lines if line.get_linestyle() == "--"]) == across


def test_a_spread_of_no_account_does_not_fill_a_panel(ax):
    conditions.strip(ax, {"AED": {"x": conditions.Seeds((0.9, 0.9001))}})
    low, high = ax.get_ylim()
    assert high - low >= conditions.LEAST_SPAN - 1e-9 and low < 0.9 < high


def test_a_figure_compares_the_architectures_that_a_claim_is_about(book):
    figure, axes = plt.subplots(1, 2)
    panels = ("O12", None, "O12"), ("O5", None, "O5")  # O5 is about the AED
    conditions.compare(axes, book, "one_to_one", panels, lambda base: {"only": base})
    assert [len(ax.texts) for ax in axes] == [1, 1]  # AED's O12 and O5 are not recorded
    assert [ax.get_title() for ax in axes] == ["O12", "O5"]
    plt.close(figure)


# ------------------------------------------------------------------------------------------------------ stored networks


def stored(blocks, log_shares=None):
    """A network of which the given vectors [K, n] are stored: words from id 3 on, steps from 0."""
    places = {name: 0 if "temporal" in name else 3 for name in blocks}
    entries = {name: tuple(range(places[name], places[name] + len(each))) for name, each in blocks.items()}
    every = np.concatenate(list(blocks.values()))
    log = np.array([[250, 1.0, 0.3], [500, 0.5, 0.9], [750, 0.1, 1.0]], dtype=np.float32)
    shares = np.full((3, 2, 3, 3), np.nan) if log_shares is None else log_shares
    nothing = np.zeros((3, 0, 3, 3)), np.zeros(0, int)
    return Stored("planted", 0, "", "", 1.0, entries, (every @ every.T).astype(np.float32), *nothing, log, shares)


@pytest.fixture
def blocks():
    """Three words on axes 0 to 2; the place on axis 3; what it was fed against the words, and on 4 to 6."""
    axes = np.eye(10)
    words, fed = axes[:3], axes[4:7] - 0.5 * axes[:3]
    return {
        "encoder input": words,
        "decoder input": fed,
        "decoder temporal": np.stack([axes[3] + axes[9], axes[3] - axes[9]]),
        "context readout": 2 * words,
        "state readout": -fed,
    }


def test_a_state_readout_against_the_fed_word_explains_the_angle(blocks):
    found = recorded.readouts(stored(blocks), (3, 4, 5), steps=2)
    assert found.context_own == pytest.approx(1, abs=1e-5)
    assert found.context_other == pytest.approx(0, abs=1e-5)
    assert found.between == found.state_own == pytest.approx(0.5 / np.sqrt(1.25), abs=1e-5)
    assert found.state_fed == pytest.approx(-1, abs=1e-5)
    assert found.fed_own == pytest.approx(-0.5 / np.sqrt(1.25), abs=1e-5)
    assert found.state_place == pytest.approx(0, abs=1e-5)
    assert found.fed_inside == pytest.approx(0.25 / 1.25, abs=1e-5)
    assert found.by_fed == pytest.approx(found.between)  # all of it is by way of the fed word
    assert found.by_place == pytest.approx(0, abs=1e-5)
    assert found.outside == pytest.approx(0, abs=1e-5)


def test_an_angle_of_another_origin_is_left_outside(blocks):
    blocks["state readout"] = blocks["encoder input"] + np.eye(10)[7]  # nothing of what was fed
    blocks["decoder input"] = np.eye(10)[4:7]
    found = recorded.readouts(stored(blocks), (3, 4, 5), steps=2)
    assert found.between == found.outside == pytest.approx(np.sqrt(0.5), abs=1e-5)
    assert (found.by_fed, found.fed_inside) == pytest.approx((0, 0), abs=1e-5)


def test_a_readout_along_the_place_is_told(blocks):
    blocks["state readout"] = np.repeat(np.eye(10)[3:4], 3, 0) + 0.1 * blocks["encoder input"]
    found = recorded.readouts(stored(blocks), (3, 4, 5), steps=2)
    assert found.state_place == pytest.approx(1, abs=0.01)
    blocks["context readout"] = blocks["encoder input"] + np.eye(10)[3]
    assert recorded.readouts(stored(blocks), (3, 4, 5), steps=2).by_place == pytest.approx(np.sqrt(0.5), abs=0.01)


def test_learned_attention_has_no_such_angles(blocks):
    with pytest.raises(ValueError, match="learns its queries and keys"):
        recorded.readouts(stored(blocks | {"value input": np.eye(10)[:3]}), (3, 4, 5), steps=2)
    del blocks["state readout"]
    with pytest.raises(ValueError, match="has no state readout; it has encoder input"):
        recorded.readouts(stored(blocks), (3, 4, 5), steps=2)


@pytest.mark.parametrize(
    ("words", "steps", "message"),
    [
        ((3, 300), 2, "has no context readout of 300; it has 3 to 5"),
        ((), 2, r"words must be two or more.*got \[\]"),
        ((3,), 2, r"words must be two or more.*got \[3\]"),
        ((3, 4), 500, "has no decoder temporal of "),
        ((3, 4), 0, "steps must be"),
    ],
)
def test_words_and_steps_that_are_not_stored_are_named(blocks, words, steps, message):
    with pytest.raises(ValueError, match=message):
        recorded.readouts(stored(blocks), words, steps)


def test_the_parts_of_a_score_add_up_to_it():
    shares = np.random.default_rng(0).normal(size=(3, 2, 3, 3))
    shares /= shares.sum((2, 3), keepdims=True)
    for centred in (False, True):
        found = recorded.course(stored({"encoder input": np.eye(3)}, shares), centred=centred)
        assert found.temporal + found.mixed + found.content == pytest.approx(1)
        assert found.temporal == pytest.approx(shares[:, int(centred), 0, 0])
        assert found.content == pytest.approx(shares[:, int(centred), 1:, 1:].sum((1, 2)))
    assert found.watched and found.steps.tolist() == [250, 500, 750]
    assert found.accuracy == pytest.approx([0.3, 0.9, 1])
    assert not recorded.course(stored({"encoder input": np.eye(3)})).watched


@pytest.mark.parametrize(
    ("reached", "step"),
    [
        ([True, True, True], 250),
        ([True, False, True], 750),
        ([False, True, True], 500),
        ([True, True, False], None),
        ([False, False, False], None),
    ],
)
def test_for_good_means_to_the_end(reached, step):
    assert recorded.first_for_good(np.array([250, 500, 750]), np.array(reached)) == step
    with pytest.raises(ValueError, match="as long, got 3 and 4"):
        recorded.first_for_good(np.array([250, 500, 750]), np.array([*reached, True]))
