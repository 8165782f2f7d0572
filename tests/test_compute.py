"""What trainings were and cost, from the records; and that the chapter which shows it says nothing else."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from howattend import __main__ as command_line
from howattend import book, chapter_times, compute, notebooks, runs, sweep
from howattend.tasks.base import TEST_SAMPLES

ROOT = Path(__file__).resolve().parents[1]
CHAPTER = "reproducibility"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """The recorded networks."""
    return compute.networks()


@pytest.fixture(scope="module")
def cells() -> dict[str, notebooks.NotebookNode]:
    """The chapter's cells."""
    return {cell.id: cell for cell in notebooks.read(ROOT / "book" / f"{CHAPTER}.ipynb").cells}


def network(**changes: object) -> dict[str, object]:
    """A recorded network, as in sweep_runs.csv."""
    text = dict.fromkeys(("python", "torch", "numpy", "howattend", "weights_sha256"), "x")
    row = {**text, "run": "one_to_one-ao-gru", "task": "one_to_one", "architecture": "AO", "cell": "gru", "seed": 0}
    row |= {"attention": "dot", "decoder_input": "teacher", "l2": 1e-2, "steps": 1000, "accuracy": 0.5, "bar": 0.9}
    row |= {"trained": False, "seconds": 3600.0, "clock": "core", "flops": 7.2e12, "parameters": 1, "config_hash": "h"}
    return row | changes


# ---- networks ----------------------------------------------------------------------------------------------------


def test_every_recorded_network_is_there_once(table: pd.DataFrame):
    keys = list(zip(table["config_hash"], table["seed"], strict=True))
    assert len(set(keys)) == len(keys)
    swept = sweep.read_runs()
    assert set(zip(swept["config_hash"], swept["seed"], strict=True)) <= set(keys)
    assert {(entry["config_hash"], entry["seed"]) for entry in runs.manifest().values()} <= set(keys)
    assert set(runs.read_accuracies()["config_hash"]) <= set(table["config_hash"])
    assert table.loc[table["clock"] == compute.UNTIMED, "seconds"].isna().all()
    assert (table.loc[table["clock"] != compute.UNTIMED, "seconds"] > 0).all()


def test_a_shipped_network_has_the_manifests_time_and_versions(monkeypatch, tmp_path):
    """Without any sweep or other record."""
    weights = tmp_path / "data" / "weights"
    weights.mkdir(parents=True)
    manifest = json.loads((ROOT / "data/weights/manifest.json").read_text(encoding="utf-8"))["runs"]
    name = "one_to_one-ao-gru"
    (weights / "manifest.json").write_text(json.dumps({"runs": {name: manifest[name]}}), encoding="utf-8")
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    (row,) = compute.networks().itertuples()
    assert (row.run, row.seconds, row.clock) == (name, manifest[name]["seconds"], "wall")
    assert row.torch == manifest[name]["versions"]["torch"]
    assert math.isnan(row.flops)


# ---- settings ----------------------------------------------------------------------------------------------------


def test_settings_are_all_that_the_hash_is_of(table: pd.DataFrame):
    """What the pages show of a run decides its weights: the usual settings and its departures give its hash's."""
    for one in compute.configurations(table):
        shown = compute.settings(one.config) | compute.task_settings(one.config)
        hashed = one.config.settings()
        for part in ("model", "train", "task"):
            for key, value in hashed[part].items():
                assert key == "name" or shown[key] == value, (one.name, key)


def test_departures_say_what_a_name_says():
    def of(name: str) -> dict[str, object]:
        return compute.departures(sweep.full_plan().by_name[name].candidates[0])

    assert of("one_to_one-aed-gru") == {}
    assert of("one_to_one-aed-gru-teacher-l2_1e-5") == {"decoder_input": "teacher", "l2": 1e-5}
    assert of("one_to_one-ao-lstm-words8") == {"cell": "lstm", "num_words": 8}
    assert of("escan-ao-gru-and30") == {"and_rate": 0.3}
    assert of("escan-ao-gru-no_turns") == {"phrases": ("verb", "twice")}
    assert of("escan-ao-gru-no_turns-verbs3") == {"phrases": ("verb", "verb", "verb", "twice")}
    assert of("escan-ao-gru-and00-no_turns-verbs9") == {"and_rate": 0.0, "phrases": (*["verb"] * 9, "twice")}
    assert of("one_to_one-aed-gru-n256-l2_1e-4") == {"hidden_size": 256, "l2": 1e-4}
    assert of("reversed-aed-gru-varied") == {"min_length": 15, "l2": 1e-3}
    assert compute.departures(runs.config("translation-ved-gru")) == {"readout": "state"}


def test_no_two_runs_have_the_same_settings_and_all_of_the_plan_are_listed(table: pd.DataFrame):
    found = compute.configurations(table)
    assert len({one.config.hash for one in found}) == len(found)
    assert {entry.name for entry in sweep.full_plan().wanted} <= {one.name for one in found}
    assert {*runs.REGISTRY, *runs.TRIED} <= {one.name for one in found}
    assert set(table["config_hash"]) <= {one.config.hash for one in found}
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    assert set(names) <= {*table["run"], *runs.REGISTRY, *(entry.name for entry in sweep.full_plan().wanted)}


def test_an_l2_that_was_too_strong_keeps_its_line():
    entry = sweep.full_plan().by_name["escan-aed-lstm"]
    strong, middle, _ = entry.candidates
    rows = [network(run=f"{entry.name}-l2_1e-2", config_hash=strong.hash, accuracy=0.5, bar=0.98)]
    rows[0] |= {"clock": "wall", "seconds": 60.0, "flops": np.nan}
    rows += [network(run=entry.name, config_hash=middle.hash, seed=0, accuracy=0.99, bar=0.98, trained=True)]
    rows += [network(run=entry.name, config_hash=middle.hash, seed=1, accuracy=0.97, bar=0.98)]
    recorded = pd.DataFrame(rows)
    mine = [one for one in compute.configurations(recorded) if one.name.startswith(entry.name)]
    assert [one.name for one in mine] == [entry.name, f"{entry.name}-l2_1e-2"]
    (lines,) = compute.runs_table(mine, recorded).sections.values()
    assert lines == [
        (
            entry.name,
            "cell lstm · L2 0.001",
            "1 of 2; 1 to come",
            "98.00% (97.00 to 99.00)",
            "98.0%",
            "3600 s, 7.2 TFLOP",
        ),
        (f"{entry.name}-l2_1e-2", "cell lstm", "0 of 1", "50.00%", "98.0%", "≤ 60 s"),
    ]


def test_what_a_setting_names_several_times_is_said_once_with_its_number():
    config = sweep.full_plan().by_name["escan-ao-gru-and00-no_turns-verbs9"].candidates[0]
    one, recorded = compute.Configuration("group", config, (0,)), pd.DataFrame([network(config_hash=config.hash)])
    ((row,),) = compute.runs_table([one], recorded).sections.values()
    assert row[1] == "phrases verb × 9, twice · and_rate 0"


def test_a_network_that_diverged_is_counted_and_has_no_accuracy():
    config = sweep.full_plan().by_name["escan-ao-gru-warmup0"].candidates[0]
    recorded = pd.DataFrame([network(config_hash=config.hash, accuracy=np.nan)])
    one = compute.Configuration("group", config, (0, 1))
    ((row,),) = compute.runs_table([one], recorded).sections.values()
    assert row[2:4] == ("0 of 1; 1 to come", "")


# ---- cost --------------------------------------------------------------------------------------------------------


def test_hours_of_a_core_and_of_the_wall_are_not_added_up():
    recorded = pd.DataFrame(
        [
            network(),
            network(seed=1, trained=True),
            network(seed=2, clock="wall", seconds=7200.0, flops=np.nan),
            network(seed=3, clock=compute.UNTIMED, seconds=np.nan, flops=np.nan),
        ]
    )
    found = compute.totals(recorded).set_index("clock")
    assert found["networks"].to_dict() == {"core": 2, "wall": 1, compute.UNTIMED: 1, "all": 4}
    assert found["hours"].fillna(-1).to_dict() == {"core": 2, "wall": 2, compute.UNTIMED: -1, "all": -1}
    assert found["flops"].to_dict() == {"core": 1.44e13, "wall": 0, compute.UNTIMED: 0, "all": 1.44e13}
    assert found["counted"].to_dict() == {"core": 2, "wall": 0, compute.UNTIMED: 0, "all": 2}
    (heading,) = compute.totals_table(recorded).sections
    assert heading == "4 networks, of which 3 did not reach their bar (they are in the sums)"


def test_rates_and_costs_are_those_of_cores_alone():
    recorded = pd.DataFrame([network(), network(seed=1, seconds=1200.0, accuracy=0.7), network(seed=2, clock="wall")])
    (row,) = compute.costs(recorded).itertuples()
    assert (row.networks, row.seconds, row.rate) == (2, 2400, 3e9)
    assert row.wrong == pytest.approx(0.4)
    (rows,) = compute.rate_table(recorded).sections.values()
    assert rows == [("AO gru, attention dot, fed teacher", "2400", "7200", "3.0")]


# ---- run times ---------------------------------------------------------------------------------------------------


def test_missing_or_damaged_times_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"chapter_seconds\.csv is missing; .*chapters --times"):
        chapter_times.read()
    (tmp_path / "chapter_seconds.csv").write_text("chapter,minutes\n")
    with pytest.raises(ValueError, match="it has no seconds, core_seconds, machine"):
        chapter_times.read()


def test_times_are_recorded_in_the_order_of_the_book_and_change_no_digest(monkeypatch, tmp_path, capsys):
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text(
        "format: jb-book\nroot: book/a\nchapters:\n- file: book/b\n- file: book/c\n", encoding="utf-8"
    )
    for name in "abc":
        (tmp_path / "book" / f"{name}.ipynb").write_text("{}")
    digest = notebooks.inputs_digest(tmp_path)
    book._record_times(tmp_path, {"c": (12.34, 10.0), "gone": (1.0, 1.0)})
    book._record_times(tmp_path, {"a": (0.5, 0.0)})
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    found = chapter_times.read()
    assert found["chapter"].tolist() == ["a", "c"]
    assert found["seconds"].tolist() == [0.5, 12.3]
    assert found["core_seconds"].isna().tolist() == [True, False]  # a system that does not tell
    assert notebooks.inputs_digest(tmp_path) == digest
    assert "data/chapter_seconds.csv" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell what a process that has ended spent")
def test_the_cores_time_is_that_of_processes_and_what_they_started():
    burn = "import time\nwhile time.process_time() < {}: pass"
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn.format(0.3)!r}])"
    before = book._now()
    subprocess.run([sys.executable, "-c", nested], check=True)
    wall, core = (after - start for after, start in zip(book._now(), before, strict=True))
    assert wall > 0.25
    assert 0.25 < core < 10


def test_times_are_taken_one_chapter_at_a_time():
    with pytest.raises(book.BookError, match="workers is 2; with times it must be 1"):
        book.refresh(ROOT, ["architectures"], workers=2, times=True)


def test_every_chapter_has_a_time_and_the_page_shows_these(cells):
    recorded = chapter_times.read()
    assert recorded["chapter"].tolist() == list(book.chapters(ROOT)), "python -m howattend chapters --times"
    shown = re.findall(r"^(\S+) +(\d+) s", cells["times"].outputs[0].text, re.MULTILINE)
    assert shown[:-1] == [(row.chapter, f"{row.seconds:.0f}") for row in recorded.itertuples()], (
        f"the page has older times: python -m howattend chapters {CHAPTER}"
    )


#: How long a chapter's own last lines say that it takes with the shipped weights, in seconds.
SAID = {
    "seconds": 5,
    "a few seconds": 5,
    "half a minute": 30,
    "under a minute": 40,
    "a minute": 60,
    "about a minute": 60,
    "two minutes": 120,
}


def said_seconds(text: str) -> int:
    """What a chapter says of its run time."""
    (words,) = re.findall(r"un time:\*\* (?:about )?(.+?)(?: with|\. |, and)", text)
    return SAID[words]


def test_what_chapters_say_of_their_time_is_near_it():
    """Within a factor of three, or ten seconds: readers' machines differ by as much.

    It is the core's time, which is what an idle machine would take with one thread; if there is none, the wall clock's.
    """
    table = chapter_times.read().set_index("chapter")
    recorded = table["core_seconds"].fillna(table["seconds"])
    wrong = {}
    for name, path in book.chapters(ROOT).items():
        text = "\n".join(cell.source.replace("\n", " ") for cell in notebooks.read(path).cells)
        said = said_seconds(text)
        if not (said / 3 - 10 <= recorded[name] <= 3 * said + 10):
            wrong[name] = said, recorded[name]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("**Run time:** about a minute with the shipped weights, about 40 minutes with `retrain`", 60),
        ("**Run time:** half a minute with the shipped weights; ten minutes", 30),
        ("**Run time:** a few seconds. Nothing is trained", 5),
    ],
)
def test_what_is_said_is_read(text: str, seconds: int):
    assert said_seconds(text) == seconds


# ---- the chapter and the commands --------------------------------------------------------------------------------


def text_of(name: str) -> str:
    """A page's text; of a notebook its markdown."""
    path = ROOT / name
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    return "\n\n".join(cell.source for cell in notebooks.read(path).cells if cell.cell_type == "markdown")


def test_numbers_in_the_list_of_differences_are_those_of_the_code(cells):
    text = " ".join(cells["differs-text"].source.split())
    synthetic, one = runs.config("one_to_one-aed-gru"), runs.config("translation-aed-gru")
    register, seeds = runs.config("translation-aed-gru-verses"), sweep.full_plan().by_name["translation-aed-gru-n96"]
    few = seeds.candidates[0]
    escan, sort = runs.config("escan-ao-gru").task, runs.config("sort-aed-gru").task
    sizes = [config.model.hidden_size for config in (one, few, register)]
    words = [config.task.num_words for config in (one, register, few)]
    data = [
        line.strip("| ").split(" | ") for line in (ROOT / "data/README.md").read_text(encoding="utf-8").splitlines()
    ]
    rows = {cells[0]: cells for cells in data if len(cells) == 8}  # of the corpus and its registers
    longer = {name: float(rows[name][-1].strip("*")) - 1 for name in ("all", "catalogues", "verses")}
    for said in (
        f"{synthetic.model.hidden_size} units",
        f"({sizes[0]}; {sizes[1]} for the networks with several seeds; {sizes[2]} for those of one register)",
        f"*Here:* {words[0]:,} ({words[1]:,} for one register, {words[2]:,} for the networks with several seeds)",
        f"*Here:* {runs.config('reversed-aed-gru').task.max_length} words, always",
        f"{sort.min_length} to {sort.max_length} of them",
        f"at a rate of {escan.and_rate:g}.",
        f"dropout of {one.model.dropout:g} and label smoothing of {one.train.label_smoothing:g}",
        f"{runs.TRANSLATION_EPOCHS} epochs",
        f"{rows['all'][2]} training pairs",
        f"by {100 * longer['all']:.0f} % here ({100 * longer['catalogues']:.0f} % in one register",
        f"{TEST_SAMPLES:,} others",
    ):
        assert said in text, said
    assert longer["verses"] < 0


def commands(text: str) -> list[str]:
    """The arguments of every ``python -m howattend`` that a page shows in a block of its own."""
    return re.findall(r"^ {4}(?:\w+=\S+ )*\S*python -m howattend (.+?)(?: +#.*)?$", text, re.MULTILINE)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", f"book/{CHAPTER}.ipynb"])
def test_commands_that_a_page_shows_are_commands(page: str, monkeypatch):
    """The command line takes them, and the runs, patterns and chapters they name are there."""
    monkeypatch.setattr(argparse.ArgumentParser, "exit", _refuse)
    found = commands(text_of(page))
    for command in found:
        options = command_line._parser().parse_args([word for word in shlex.split(command) if word != "NAME"])
        if patterns := getattr(options, "only", None):
            sweep.matching(sweep.full_plan(), patterns)
        if options.command is command_line._train:
            assert {name for name in options.names if name != "NAME"} <= runs.REGISTRY.keys()
        if options.command in (command_line._book, command_line._chapters):
            assert set(options.names) <= book.chapters(ROOT).keys()
    assert found or page == "CONTRIBUTING.md"


def test_a_command_that_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(argparse.ArgumentParser, "exit", _refuse)
    (wrong,) = commands("text\n\n    HOWATTEND_DATA=x python -m howattend sweeps --only y   # a note\n")
    assert wrong == "sweeps --only y"
    with pytest.raises(AssertionError, match="invalid choice"):
        command_line._parser().parse_args(shlex.split(wrong))


def _refuse(parser: argparse.ArgumentParser, status: int = 0, message: str = "") -> None:
    raise AssertionError(message)


def test_the_chapter_names_tests_and_files_that_there_are(cells):
    text = text_of(f"book/{CHAPTER}.ipynb")
    named = set(re.findall(r"`((?:tests|data)/[\w./-]+)`", text))
    assert {"tests/test_training.py", "tests/test_sweep_repeat.py", "data/README.md"} <= named
    assert all((ROOT / name).exists() for name in named)
    printed = cells["totals"].outputs[0].data["text/plain"]
    assert str(compute.totals_table(compute.networks())) == printed
