"""The sweep: what it plans, that it repeats and loses nothing, and that nothing that stops it leaves half a file."""

import json
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import interrupt_training

from howattend import claims, csv_files, files, runs, statistics, sweep, training
from howattend.__main__ import main
from howattend.analysis import Run, array
from howattend.models import ModelConfig
from howattend.runs import RunConfig
from howattend.sweep import components, engine, measuring, rows, work
from howattend.sweep.digest import code_of, measuring_digest
from howattend.sweep.plan import Entry, Job, Name, Plan, jobs, recorded_name, resolve
from howattend.tasks import Batch, OneToOne
from howattend.training import TrainConfig


class FewPairs(OneToOne):
    """One-to-one with a test set of 200 pairs."""

    def test_set(self, size: int = 200) -> Batch:
        return super().test_set(size)


TINY = RunConfig(
    name="one_to_one-ao-ff",
    task=FewPairs(num_words=2, min_length=1, max_length=2),
    model=ModelConfig("AO", "ff", hidden_size=8),
    train=TrainConfig(steps=300, batch_size=32, learning_rate=2e-2, l2=1e-2),
    accuracy_bar=0.9,
)
HARDER = replace(TINY, name="one_to_one-ao-ugrnn", model=replace(TINY.model, cell="ugrnn"), accuracy_bar=1.01)
PLAN = Plan((Entry("tiny", (TINY,), (0, 1)), Entry("tiny", (HARDER,), (0,))))
FIRST = Job(TINY, 0, TINY.name)


@pytest.fixture(autouse=True)
def data(monkeypatch, tmp_path):
    """A data folder without results and without shipped weights."""
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    return tmp_path / "data" / "results"


def leftovers(folder: Path) -> list[Path]:
    """Locks and files that are not finished."""
    return [path for path in folder.rglob("*") if path.name.endswith((".lock", ".part"))]


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Recorded networks without what another training may take longer for."""
    return table.drop(columns="seconds")


# ---- the plan ----------------------------------------------------------------------------------------------------


def test_the_plan_holds_what_the_issue_asks_for():
    plan = sweep.full_plan()
    seeds = {entry.name: len(entry.seeds) for entry in plan.entries}
    for name in runs.REGISTRY:
        if not name.startswith("translation"):
            assert seeds[name] >= 3
    book = [
        f"{task}-{architecture}-gru" for task in ("one_to_one", "reversed", "escan") for architecture in ("aed", "ao")
    ]
    for name in (*book, "one_to_one-ved-gru", "one_to_one-aed-gru-words8", "sort-aed-gru", "reversed-aed-gru-varied"):
        assert seeds[name] >= 5
    for task in ("one_to_one", "escan"):
        for architecture in ("aed", "ao"):
            for rest in ("lstm", "ugrnn", "gru-scaled_dot"):
                assert seeds[f"{task}-{architecture}-{rest}"] >= 3
            for steps in (1250, 2500, 10_000):
                assert seeds[f"{task}-{architecture}-gru-steps{steps}"] >= 3
        assert seeds[f"{task}-ao-ff"] >= 3
        assert seeds[f"{task}-aed-gru-teacher"] >= 3
    for percent in ("00", "02", "05", "10", "30", "100"):
        assert seeds[f"escan-ao-gru-and{percent}"] >= 3
        assert seeds[f"escan-aed-gru-and{percent}"] >= 3
    for base in ("one_to_one-aed-gru", "one_to_one-ao-gru", "escan-aed-gru", "escan-ao-gru"):
        strengths = {plan.by_name[name].candidates[0].train.l2 for name in seeds if name.startswith(f"{base}-l2_")}
        assert strengths | {plan.by_name[base].candidates[0].train.l2} == {1e-2, 1e-3, 1e-4, 1e-5}
    assert not plan.by_name["translation-aed-gru-n96"].unattended
    assert len(seeds) == len(plan.entries)


def test_runs_of_the_registry_keep_their_configuration_and_no_two_entries_share_one():
    plan = sweep.full_plan()
    every = {**runs.REGISTRY, **runs.TRIED}
    assert all(entry.candidates == (every[entry.name],) for entry in plan.entries if entry.name in every)
    hashes = [candidate.hash for entry in plan.entries for candidate in entry.candidates]
    assert len(set(hashes)) == len(hashes)


def test_the_most_valuable_comes_first_and_of_these_the_cheapest():
    names = [entry.name for entry in sweep.full_plan().entries]
    assert names.index("one_to_one-ao-gru") < names.index("one_to_one-aed-gru") < names.index("one_to_one-ao-lstm")
    assert names.index("escan-ao-ff") < names.index("escan-ao-gru-and05")
    assert names[-1].startswith("translation")


def test_a_name_is_its_parts():
    for name in sweep.full_plan().by_name:
        assert str(Name.of(name)) == name
        assert str(Name.of(name).with_departures()) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "mine", "one_to_one-aed", "one_to_one-rnn-gru", "one_to_one-AED-gru", "one_to_one-aed-gated", "-aed-gru"),
        *("escan-ao-gru-l2", "sort-aed-gru-teacher-lost"),
    ],
)
def test_other_names_are_refused_before_anything_is_trained(name):
    with pytest.raises(ValueError, match=r"task-architecture-cell and known departures, such as .* l2_1e-3, warmup0"):
        Name.of(name)
    with pytest.raises(ValueError, match="known departures"):
        Plan((Entry("mine", (replace(TINY, name=name),), (0,)),))


def test_a_task_of_ones_own_has_a_name_like_the_others():
    assert Name.of("copy-aed-gru-words12").task == "copy"
    assert list(Plan((Entry("mine", (replace(TINY, name="copy-ao-ff-l2_1e-2"),), (0,)),)).by_name) == [
        "copy-ao-ff-l2_1e-2"
    ]


def test_departures_that_there_are_not_are_refused():
    with pytest.raises(ValueError, match=r"a departure must be like one of words8, .*, got 'foo'"):
        Name.of(TINY.name).with_departures("teacher", "foo")


def test_a_plan_whose_entries_cannot_be_told_apart_is_refused():
    with pytest.raises(ValueError, match=f"names of a plan's entries must differ, got {TINY.name} 2 times"):
        Plan((Entry("a", (TINY,), (0,)), Entry("b", (replace(TINY, accuracy_bar=0.5),), (1,))))
    with pytest.raises(ValueError, match="candidates must have one name"):
        Entry("a", (TINY, HARDER), (0,))
    for candidates, seeds in (((), (0,)), ((TINY,), ())):
        with pytest.raises(ValueError, match="an entry must have a configuration and a seed"):
            Entry("a", candidates, seeds)


def test_the_strongest_l2_that_trains_is_taken_and_the_others_are_named_after_theirs():
    tried = tuple(replace(TINY, train=replace(TINY.train, l2=l2)) for l2 in (1e-2, 1e-3, 1e-4))
    entry = Entry("tiny", tried, (0, 1, 2))
    plan, hashes = Plan((entry,)), [config.hash for config in tried]
    assert jobs(plan, {}) == [Job(tried[0], 0, TINY.name)]
    assert jobs(plan, {(hashes[0], 0): False}) == [Job(tried[1], 0, TINY.name)]
    assert recorded_name(Job(tried[0], 0, TINY.name), entry, False) == f"{TINY.name}-l2_1e-2"
    done = {(hashes[0], 0): False, (hashes[1], 0): True}
    assert resolve(entry, done) == (tried[1], None)
    assert jobs(plan, done) == [Job(tried[1], seed, TINY.name) for seed in (1, 2)]
    assert recorded_name(Job(tried[1], 0, TINY.name), entry, True) == TINY.name
    assert recorded_name(Job(tried[1], 1, TINY.name), entry, False) == TINY.name  # a seed that fails is no candidate
    none = dict.fromkeys(((config_hash, 0) for config_hash in hashes), False)
    assert resolve(entry, none) == (tried[2], None)
    assert recorded_name(Job(tried[2], 0, TINY.name), entry, False) == TINY.name
    assert [job.seed for job in jobs(plan, none)] == [1, 2]


def test_what_the_sweep_only_offers_is_trained_where_it_is_named():
    plan = sweep.full_plan()
    offered = {entry.name for entry in plan.entries if not entry.unattended}
    assert {"one_to_one-aed-gru-steps10000", "one_to_one-aed-lstm-words8", "translation-ao-gru-n96"} <= offered
    assert not {entry.name for entry in plan.wanted} & offered
    assert {job.config.name for job in jobs(sweep.matching(plan, "*-steps2500"), {})} <= offered
    book = {name for name, config in runs.REGISTRY.items() if config.task.name != "translation"}
    assert not book & offered


def test_patterns_choose_entries_and_a_wrong_one_is_refused():
    plan = sweep.full_plan()
    assert [entry.name for entry in sweep.matching(plan, ["sort-aed-*"]).wanted] == [
        "sort-aed-gru",
        "sort-aed-gru-teacher",
    ]
    assert len(sweep.matching(plan, ["translation-*-n96"]).wanted) == 2
    assert not [entry for entry in plan.wanted if entry.name.startswith("translation")]
    assert sweep.matching(plan, "sort-aed-gru") == sweep.matching(plan, ["sort-aed-gru"])
    with pytest.raises(ValueError, match=r"patterns must be .* None for all, got none"):
        sweep.matching(plan, [])
    with pytest.raises(ValueError, match=r"^unknown sweep run 'lost'; all are shown by: .* sweep --list$"):
        sweep.matching(plan, ["lost"])
    for wrong in ("sort_aed-gru", "sort-aed-gr"):
        with pytest.raises(ValueError, match=r"did you mean .*sort-aed-gru.*\?") as told:
            sweep.matching(plan, [wrong])
        assert len(str(told.value)) < 250


# ---- claims of variants -----------------------------------------------------------------------------------------


def parts_of(claim, name):
    found = {row.claim: dict(row.parts) for row in sweep.planned(name, sweep.full_plan().by_name)}
    return found.get(claim)


def test_claims_apply_to_variants_with_parts_of_the_same_kind():
    assert parts_of("O2", "one_to_one-aed-lstm") == {"run": "one_to_one-aed-lstm"}
    assert parts_of("O8", "one_to_one-aed-lstm")["words8"] == "one_to_one-aed-lstm-words8"
    assert parts_of("O8", "one_to_one-ao-gru-scaled_dot")["words8"] == "one_to_one-ao-gru-words8-scaled_dot"
    assert parts_of("O8", "one_to_one-aed-gru-l2_1e-3")["words8"] == "one_to_one-aed-gru-words8-l2_1e-3"
    assert parts_of("O8", "one_to_one-ao-gru-l2_1e-5") is None  # eight words were not trained so
    assert parts_of("O10", "one_to_one-ved-ugrnn")["ao"] == "one_to_one-ao-ugrnn"
    assert parts_of("E9", "escan-aed-ugrnn") == {
        "run": "escan-aed-ugrnn",
        "one_to_one": "one_to_one-aed-ugrnn",
        "ao": "escan-ao-ugrnn",
    }
    assert parts_of("E7", "escan-aed-gru-steps2500")["ao"] == "escan-ao-gru"
    assert parts_of("H1", "sort-ao-gru") == {"run": "sort-ao-gru"}
    assert parts_of("H1", "one_to_one-ved-gru") is None
    assert parts_of("T4", "translation-aed-gru-n96") == {
        "run": "translation-aed-gru-n96",
        "ao": "translation-ao-gru-n96",
        "escan": "escan-aed-gru",
        "escan_ao": "escan-ao-gru",
    }
    assert parts_of("H1", "translation-ao-gru-n96")
    assert parts_of("D1", "escan-aed-lstm") and parts_of("D1", "escan-aed-gru-scaled_dot") is None


def test_the_ledgers_own_rows_are_measured_on_the_same_runs():
    names = sweep.full_plan().by_name
    for row in claims.PLAN:
        if not row.parts["run"].startswith("translation"):
            assert row in sweep.planned(row.parts["run"], names)


def test_learned_attention_is_decomposed_by_its_queries_and_keys(task):
    config = RunConfig("one_to_one-ao-gru-scaled_dot", task, ModelConfig("AO", attention="scaled_dot", hidden_size=8),
                       TrainConfig(), 0.0)  # fmt: skip
    run = Run(config, config.new_model(0), 0)
    keys = run.encoder.reconstruct(run.trace.encoder_tokens, run.trace.encoder_mask)
    assert torch.allclose(keys, run.trace.keys, atol=1e-6)
    assert not torch.allclose(keys, run.trace.encoder_states, atol=1e-2)
    assert run.shares.signed.sum() == pytest.approx(1)
    words = list(task.source_vocabulary.content_ids)
    assert np.allclose(run.inputs, array(run.value_input)[words])
    assert not np.allclose(run.inputs, array(run.encoder.input)[words], atol=1e-2)
    found = claims.measure("O2", {"run": run})
    scale = run.trace.score_scale
    temporal = scale * array(run.decoder.temporal) @ array(run.encoder.temporal).T
    mask, steps = array(run.trace.encoder_mask), array(run.common_decoder_mask)
    expected = statistics.distance_to_attention(temporal, array(run.trace.attention), mask, steps)
    assert found.quantities["TV, temporal"] == pytest.approx(expected, abs=1e-6)


# ---- one network ------------------------------------------------------------------------------------------------


def test_a_network_is_trained_once_recorded_and_measured(data, monkeypatch):
    said = work.do(PLAN, FIRST)
    assert said.startswith("one_to_one-ao-ff seed 0: word accuracy")
    row = sweep.read_runs().iloc[0]
    assert (row["run"], row["seed"], row["config_hash"], row["steps"]) == (TINY.name, 0, TINY.hash, 300)
    assert row["trained"] and row["accuracy"] >= 0.9
    assert row["seconds"] > 0 and row["flops"] == work.flops(TINY) > 0
    assert (row["torch"], row["clock"], row["decoder_input"]) == (torch.__version__, "core", "teacher")
    run, log = sweep.load(TINY, 0)
    assert row["weights_sha256"] == components.load(TINY.name, 0).weights_sha256
    assert [entry["step"] for entry in log] == [250, 300]
    assert np.shape(log[0]["shares"]) == (2, 3, 3)
    table = sweep.read_rows()
    assert list(table.columns) == list(claims.COLUMNS)
    assert {"O1", "O2", "O4", "H1"} <= set(table["claim"])
    assert set(table["config_hash"]) == {TINY.hash}
    again = claims.measure("O4", {"run": run})
    assert table.query("claim == 'O4'")["value"].iloc[0] == pytest.approx(again.quantities["delta share"], rel=1e-5)
    assert not leftovers(data) and not list(files.cache_folder().rglob("*.ckpt"))

    monkeypatch.setattr(training, "train_step", lambda *_: pytest.fail("trained again"))
    before = sweep.read_rows()
    assert FIRST not in jobs(PLAN, sweep.trained(sweep.read_runs()))
    work.do(PLAN, FIRST, again=True)
    pd.testing.assert_frame_equal(sweep.read_rows(), before)


def test_an_interrupted_training_ends_with_the_same_weights_and_rows(monkeypatch, tmp_path):
    work.do(PLAN, FIRST)
    whole, measured = plain(sweep.read_runs()), sweep.read_rows()
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "second"))
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "second cache"))
    with monkeypatch.context() as patch:
        interrupt_training(patch, step=150)
        with pytest.raises(KeyboardInterrupt):
            work.do(PLAN, FIRST)
    assert not len(sweep.read_runs()) and not leftovers(tmp_path / "second")
    work.do(PLAN, FIRST)
    pd.testing.assert_frame_equal(plain(sweep.read_runs()), whole)
    pd.testing.assert_frame_equal(sweep.read_rows(), measured)


def test_a_network_that_fails_to_train_is_recorded_and_shown():
    said = work.do(PLAN, Job(HARDER, 0, HARDER.name))
    assert "below its bar of 101.0%: did not train" in said
    row = sweep.read_runs().iloc[0]
    assert not row["trained"] and row["bar"] == pytest.approx(1.01)
    assert not [job for job in jobs(PLAN, sweep.trained(sweep.read_runs())) if job.config == HARDER]
    assert "H1" in set(sweep.read_rows([HARDER.name])["claim"])
    shown = sweep.overview(PLAN).set_index("run").loc[HARDER.name]
    assert (shown["done"], shown["did not train"]) == (1, 1)


def test_a_training_that_diverges_is_recorded_and_not_tried_again(monkeypatch):
    def diverge(*_, **__):
        raise FloatingPointError("the loss is nan")

    monkeypatch.setattr(training, "train", diverge)
    work.do(PLAN, FIRST)
    row = sweep.read_runs().iloc[0]
    assert np.isnan(row["accuracy"]) and not row["trained"]
    assert FIRST not in jobs(PLAN, sweep.trained(sweep.read_runs()))
    assert not list(sweep.unmeasured(PLAN))


def test_a_network_that_another_worker_records_meanwhile_stops_nothing(monkeypatch):
    work.do(PLAN, FIRST)
    chosen = work.chosen
    other = dict(sweep.read_runs().iloc[0]) | {"run": HARDER.name, "config_hash": HARDER.hash}

    def meanwhile(plan):
        found = chosen(plan)
        rows.record_run(other)
        return found

    monkeypatch.setattr(work, "chosen", meanwhile)
    assert not list(sweep.unmeasured(PLAN))
    assert [job.config for job in sweep.unmeasured(PLAN)] == [HARDER]


def test_claims_wait_for_the_runs_they_compare_with():
    first = replace(TINY, train=replace(TINY.train, steps=20), accuracy_bar=0.0)
    words8 = replace(
        first, name="one_to_one-ao-gru-words8", task=FewPairs(3, 1, 2), model=ModelConfig("AO", hidden_size=8)
    )
    first = replace(words8, name="one_to_one-ao-gru", task=FewPairs(2, 1, 2))
    plan = Plan((Entry("tiny", (first,), (0,)), Entry("tiny", (words8,), (0,))))
    work.do(plan, Job(first, 0, first.name))
    assert "O8" not in set(sweep.read_rows()["claim"])
    work.do(plan, Job(words8, 0, words8.name))
    assert "O8" in set(sweep.read_rows([first.name])["claim"])
    assert not list(sweep.unmeasured(plan))


def test_what_says_nothing_about_a_run_is_recorded_as_such(task):
    config = replace(TINY, task=FewPairs(2, 1, 1), name="one_to_one-ao-gru")
    found = measuring.measure(claims.Planned("E2", {"run": "x"}), {"run": Run(config, config.new_model(0), 0)})
    assert list(found.quantities) != [] and found.claim == "E2"
    found = measuring.measure(claims.Planned("E6", {"run": "x"}), {"run": Run(config, config.new_model(0), 0)})
    assert list(found.quantities) == ["not measurable"] and found.verdict is None


def test_what_is_kept_has_the_products_and_paths_of_the_components():
    work.do(PLAN, FIRST)
    run, log = sweep.load(TINY, 0)
    kept = components.load(TINY.name, 0)

    def close(found, one, other):
        lengths = np.outer(np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1))
        return (np.abs(found - one @ other.T) <= 2e-3 * lengths).all()

    decoder, encoder = (array(side.temporal) for side in (run.decoder, run.encoder))
    assert close(kept.products("decoder temporal", "encoder temporal"), decoder, encoder)
    paths = np.concatenate([decoder, encoder])
    centred = paths - paths.mean(0)
    found = kept.coordinates("decoder temporal", "encoder temporal", count=5)
    assert np.allclose(found @ found.T, centred @ centred.T, atol=1e-2 * np.abs(centred @ centred.T).max())
    readouts = array(run.model.context_readout)[list(kept.blocks["context readout"])]
    inputs = array(run.encoder.input)[list(kept.blocks["encoder input"])]
    assert close(kept.products("context readout", "encoder input"), readouts, inputs)
    signed = kept.terms[0] * kept.counts[:, None, None]
    assert np.allclose(signed.sum(0) / signed.sum(), run.shares_all_steps.signed, atol=5e-3)
    assert kept.counts.tolist() == run.trace.decoder_mask.sum(0).tolist()
    assert np.allclose(kept.log, [[entry["step"], entry["loss"], entry["accuracy"]] for entry in log], rtol=1e-3)
    assert np.allclose(kept.log_shares, [entry["shares"] for entry in log], atol=2.6e-3)
    assert components.path(TINY.name, 0).stat().st_size < 2_000
    with pytest.raises(ValueError, match="block must be one of decoder temporal"):
        kept.products("lost", "encoder input")
    with pytest.raises(ValueError, match=r"blocks must be one or more of decoder temporal, .*, got none"):
        kept.coordinates()
    with pytest.raises(ValueError, match="count must be an integer of at least 1, got 0"):
        kept.coordinates("decoder temporal", count=0)


def random_kept(seed=0, size=9, largest=5.0):
    """What could be kept of a network, with a vector of length 0, and shares not watched, or beyond all bounds."""
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((size, 4)) * random.uniform(0.01, 30, (size, 1))
    vectors[2] = 0
    shares = random.normal(0, 1, (3, 2, 3, 3))
    shares[0], shares[1, 0, 0, 0] = np.nan, 1e9
    return components.Stored(
        *(TINY.name, 3, "a" * 64, "b" * 64, 0.98765432101),
        blocks={"decoder temporal": (0, 1, 2, 3), "encoder input": (2, 4, 5, 6, 7)},
        gram=vectors @ vectors.T,
        terms=largest * random.uniform(-1, 1, (3, 5, 3, 3)),
        counts=np.array([10_000, 9_000, 17, 1, 0]),
        log=np.array([[250, 2.3, 0.1], [500, 0.0, 0.99997], [1000, 1e-4, 1.0]]),
        log_shares=shares,
    )


@pytest.mark.parametrize("largest", [5.0, 1e-6, 3e4, 0.0])
def test_what_is_kept_survives_writing_and_reading(largest):
    kept = random_kept(largest=largest)
    place = components.write(kept)
    before, found = place.read_bytes(), components.load(TINY.name, 3)
    lengths = np.sqrt(np.diag(kept.gram))
    assert (np.abs(found.gram - kept.gram) <= 1.6e-3 * np.outer(lengths, lengths)).all()
    assert np.allclose(np.sqrt(np.diag(found.gram)), lengths, rtol=3e-4)
    assert np.allclose(found.terms, kept.terms, atol=1.1e-3 * largest)
    assert found.counts.tolist() == kept.counts.tolist()
    assert np.allclose(found.log, kept.log, rtol=6e-4, atol=2e-5) and found.log[1, 1] == 0
    assert np.allclose(found.log_shares, kept.log_shares.clip(-160, 160), atol=2.6e-3, equal_nan=True)
    for name in ("run", "seed", "config_hash", "weights_sha256", "accuracy", "blocks"):
        assert getattr(found, name) == getattr(kept, name)
    assert components.write(kept).read_bytes() == before


def test_what_cannot_be_kept_is_refused():
    kept = random_kept()
    with pytest.raises(ValueError, match="too large to be kept"):
        components.write(replace(kept, counts=np.array([40_000, 0, 0, 0, 0])))
    assert not components.path(TINY.name, 3).exists()


def foreign(**arrays):
    def write(place):
        np.savez(place, **arrays)

    return write


def content_of(text):
    return foreign(content=np.frombuffer(text, np.uint8))


def cut_off(place):
    place.write_bytes(place.read_bytes()[:-150])


def flip_a_bit(place):
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 255
    place.write_bytes(content)


def write_npy(place):
    with place.open("wb") as stream:
        np.save(stream, np.zeros(3))


@pytest.mark.parametrize(
    "damage",
    [
        *(cut_off, flip_a_bit, write_npy, lambda place: place.write_bytes(b""), lambda place: place.write_bytes(b"PK")),
        *(
            foreign(),
            foreign(weights=np.zeros(3)),
            foreign(content=np.zeros((2, 2))),
            foreign(content=np.array("a\nb")),
        ),
        *map(content_of, (b"", b"\n", b"[]\n12", b"3\n12", b'"a"\n12', b"null\n12", b"{}\n12", b"{\n12")),
        content_of(b'{"format":1}\n1234'),
        content_of(b'{"format":2}\n1234'),
        content_of(b'{"format":2}\n123'),
        content_of(b'{"format":2,"blocks":[],"steps":0,"log":0}\n1234'),
        content_of(b'{"format":2,"blocks":{"a":null},"steps":0,"log":0}\n1234'),
        content_of(b'{"format":2,"blocks":{"a":1},"steps":"x","log":[]}\n1234'),
        content_of(b'{"format":2,"blocks":{"a":9},"steps":0,"log":0}\n1234'),
    ],
)
def test_a_damaged_or_foreign_file_of_components_is_told_in_plain_words(damage):
    place = components.write(random_kept())
    damage(place)
    told = (
        r"is damaged \((it is no whole file of the sweep|it is of another version.*|it has \d+ numbers and not \d+)\)"
    )
    with pytest.raises(ValueError, match=rf"{told}; restore it with git checkout"):
        components.load(TINY.name, 3)


def test_components_that_are_not_kept_are_told_with_those_that_are():
    components.write(random_kept())
    with pytest.raises(FileNotFoundError, match=r"kept are its seeds 3; restore it"):
        components.load(TINY.name, 0)
    with pytest.raises(FileNotFoundError, match=f"did you mean {TINY.name}"):
        components.load("one_to_one-ao-fff", 0)
    with pytest.raises(FileNotFoundError, match=r"npz is missing; restore .*sweep --list$"):
        components.load("nonsense", 0)


def test_rows_have_short_hashes_in_the_file_and_whole_ones_when_read(data):
    work.do(PLAN, FIRST)
    stored = pd.read_csv(rows.rows_path(TINY.name))
    assert set(stored["config_hash"]) == {TINY.hash[:8]}
    assert set(sweep.read_rows()["config_hash"]) == {TINY.hash}
    rows.runs_path().unlink()
    assert set(sweep.read_rows()["config_hash"]) == {TINY.hash[:8]}  # of no recorded network


# ---- by which code ---------------------------------------------------------------------------------------------------


def test_comments_and_layout_are_no_code():
    source = '"""Module."""\nimport os  # why\n\n\ndef f(a, b):\n    """Doc."""\n    return a + b\n'
    other = "import os\ndef f(a,\n      b):\n    # another\n    return a+b\n"
    assert code_of(source) == code_of(other)
    assert code_of(source) != code_of(source.replace("a + b", "a - b"))
    assert code_of("x = '# no comment'") == "x='#nocomment'"
    assert len(measuring_digest()) == 12


def test_the_oldest_code_that_measured_a_network_is_recorded(monkeypatch):
    digests = iter(digit * 12 for digit in "abcd")
    monkeypatch.setattr(work, "measuring_digest", lambda: next(digests))
    work.do(PLAN, FIRST)
    assert sweep.read_runs()["measured_with"].tolist() == ["a" * 12]
    table = sweep.read_rows()
    short = table.assign(config_hash=table["config_hash"].str[:8])
    csv_files.write(rows.rows_path(TINY.name), short[table["claim"] != "O4"])
    work.do(PLAN, FIRST)  # the missing row alone: the others stay by the older code
    assert "O4" in set(sweep.read_rows()["claim"])
    assert sweep.read_runs()["measured_with"].tolist() == ["a" * 12]
    work.do(PLAN, FIRST, again=True)
    assert sweep.read_runs()["measured_with"].tolist() == ["b" * 12]


def test_damaged_records_are_refused(data):
    work.do(PLAN, FIRST)
    rows.runs_path().write_text("run,seed\na,0\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"sweep_runs.csv is damaged \(it has no task.*git checkout"):
        sweep.read_runs()
    components.path(TINY.name, 0).write_bytes(b"hello")
    with pytest.raises(ValueError, match="is damaged"):
        components.load(TINY.name, 0)
    work.weights_path(TINY, 1).write_bytes(work.weights_path(TINY, 0).read_bytes())
    with pytest.raises(ValueError, match="of another configuration or seed"):
        sweep.load(TINY, 1)


# ---- processes --------------------------------------------------------------------------------------------------

LONG = replace(TINY, train=replace(TINY.train, steps=1000))
SLOW = Plan((Entry("tiny", (LONG,), (0, 1, 2)),))


def test_two_workers_are_stopped_go_on_and_lose_nothing(tmp_path, data, monkeypatch):
    def interrupt():
        until = time.monotonic() + 300
        while len(list((files.cache_folder() / "sweep").glob("*.ckpt"))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        sweep.run(SLOW, workers=2)
    assert not leftovers(tmp_path)
    begun = [json.loads(files.load_tensors(path)[1]["progress"])["step"] for path in
             (files.cache_folder() / "sweep").glob("*.ckpt")]  # fmt: skip
    assert begun and max(begun) < 1000

    lines = []
    assert sweep.run(SLOW, workers=2, say=lines.append)
    table = sweep.read_runs()
    assert table["seed"].tolist() == [0, 1, 2]
    assert "3 of 3 networks" in lines[-1] and "3 recorded, of which 0 did not train" in lines[-1]
    measured = sweep.read_rows()
    assert measured.groupby("seed").size().nunique() == 1
    assert not measured.duplicated(["claim", "run", "seed", "quantity"]).any()
    assert not leftovers(tmp_path)

    # From scratch, elsewhere, the same rows.
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "again"))
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "again cache"))
    work.do(SLOW, Job(LONG, 2, LONG.name))
    pd.testing.assert_frame_equal(plain(sweep.read_runs()), plain(table[table["seed"] == 2]).reset_index(drop=True))
    pd.testing.assert_frame_equal(sweep.read_rows(), measured[measured["seed"] == 2].reset_index(drop=True))


@pytest.mark.skipif(os.name == "nt", reason="file locks of POSIX")
def test_a_second_sweep_is_refused_and_stale_locks_are_removed(data, tmp_path):
    rows.runs_path().parent.mkdir(parents=True)
    lock = rows.runs_path().with_name("sweep_runs.csv.lock")
    lock.touch()
    with engine._alone():
        assert not lock.exists()
        with pytest.raises(RuntimeError, match="another sweep is running"), engine._alone():
            pass


def test_wrong_numbers_are_refused():
    with pytest.raises(ValueError, match="workers must be an integer of at least 1, got 0"):
        sweep.run(PLAN, workers=0)
    for wrong in ("2", 1.5, True):
        with pytest.raises(TypeError, match="workers must be an integer of at least 1"):
            sweep.run(PLAN, workers=wrong)
    for wrong in (-1, 0, float("nan"), "2"):
        with pytest.raises(ValueError, match="minutes must be a number greater than 0, got"):
            sweep.run(PLAN, minutes=wrong)


@pytest.mark.parametrize("variable", ["HOWATTEND_CACHE", "HOWATTEND_DATA"])
@pytest.mark.parametrize("below", ["", "below"])
def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_trained(variable, below, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, str(tmp_path / "file" / below))
    monkeypatch.setattr(engine, "_start", lambda *_: pytest.fail("a worker was started"))
    with pytest.raises(OSError, match=rf"file.* cannot be written to \(.*\); make room there, or set {variable} to"):
        sweep.run(PLAN, workers=1)


def test_a_folder_that_is_there_and_read_only_is_told(tmp_path, monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(engine.tempfile, "TemporaryFile", refuse)
    with pytest.raises(OSError, match=r"cannot be written to \(Permission denied\)"):
        sweep.run(PLAN, workers=1)


def test_again_says_which_weights_are_not_here_and_goes_on_to_its_end():
    work.do(PLAN, FIRST)
    work.weights_path(TINY, 0).unlink()
    before, lines = rows.runs_path().read_bytes(), []
    only = sweep.matching(PLAN, TINY.name)
    assert not sweep.run(only, workers=1, again=True, say=lines.append)  # the other seed is not trained
    assert any(f"weights of {TINY.name} seed 0 are not here" in line for line in lines)
    assert rows.runs_path().read_bytes() == before and not list(files.cache_folder().rglob("*.safetensors"))


def test_what_is_left_is_estimated_from_what_was_measured():
    nothing = sweep.read_runs()
    guess = sweep.estimate(TINY, nothing)
    row = {name: "" for name in sweep.RUN_COLUMNS} | {
        **{"run": TINY.name, "task": "one_to_one", "architecture": "AO", "cell": "ff", "attention": "dot"},
        **{"decoder_input": "teacher", "steps": 100, "seconds": 7.0, "clock": "core"},
    }
    table = pd.DataFrame([row])
    assert guess > 0 and sweep.estimate(TINY, table) == pytest.approx(300 * 0.07)
    assert sweep.estimate(replace(TINY, model=replace(TINY.model, cell="lstm")), table) == pytest.approx(300 * 0.07)


def test_the_command_shows_the_plan(capsys):
    assert main(["sweep", "--list", "--only", "sort-*"]) == 0
    assert "sort-aed-gru-teacher" in capsys.readouterr().out
    assert main(["sweep", "--only", "lost"]) == 1
    assert "unknown sweep run 'lost'" in capsys.readouterr().err
