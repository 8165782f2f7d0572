"""The sweep on translation: measured in passes over the corpus, kept rounded, and small."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_translation import built, make_run

from howattend import claims, measured, runs, sweep
from howattend.models import EncoderDecoder, ModelConfig
from howattend.sweep import components, measuring, work
from howattend.sweep.plan import Entry, Job, Plan
from howattend.tasks import ExtendedSCAN
from howattend.training import TrainConfig


class FewCommands(ExtendedSCAN):
    """Extended SCAN with a test set of 100 sentences."""

    def test_set(self, size=100):
        return super().test_set(size)


def _config(architecture, half_precision=True):
    made = make_run(f"translation-{architecture.lower()}-gru-n96", architecture).config
    return replace(made, train=TrainConfig(steps=12, batch_size=32), accuracy_bar=0.0, half_precision=half_precision)


AED, AO = _config("AED"), _config("AO")
ESCAN = [
    runs.RunConfig(
        f"escan-{name.lower()}-gru", FewCommands(), ModelConfig(name, hidden_size=8), TrainConfig(1, batch_size=4), 0.0
    )
    for name in ("AED", "AO")
]
PLAN = Plan(tuple(Entry("tiny", (config,), (0,)) for config in (*ESCAN, AED, AO)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return built(tmp_path_factory)


@pytest.fixture(autouse=True)
def folders(folder, monkeypatch, tmp_path):
    """The tiny corpus is built, nothing is shipped, and the dictionary is that of the tiny corpus."""
    monkeypatch.setenv("HOWATTEND_CACHE", str(folder))
    monkeypatch.setenv("HOWATTEND_DATA", str(tmp_path / "data"))
    measured.write_lexicon(AED.task)
    yield
    for path in (folder / "sweep").glob("*"):
        path.unlink()


def _small_claims(monkeypatch):
    """T4 and T6 with words that a tiny corpus has."""
    for claim, limits in (("T4", {"words": 3, "occurrences": 2}), ("T6", {"words": 3, "occurrences": 2})):
        criterion = claims.CRITERIA[claim]
        monkeypatch.setitem(claims.CRITERIA, claim, replace(criterion, limits={**criterion.limits, **limits}))


def test_every_claim_of_translation_is_measured_on_the_sweeps_networks(monkeypatch):
    _small_claims(monkeypatch)
    for config in (*ESCAN, AED, AO):
        said = work.do(PLAN, Job(config, 0, config.name))
    assert said.endswith("claims measured")
    table = sweep.read_rows([AED.name])
    assert list(dict.fromkeys(table["claim"])) == ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T10", "H1"]
    assert "not measurable" not in set(table["quantity"])
    assert not list(sweep.unmeasured(PLAN))
    run, log = sweep.load(AED, 0)
    found = measured.measure(run, progress=False)
    values = table.set_index(["claim", "quantity"])["value"]
    assert values["T1", "distance"] == pytest.approx(found.distance("attention"), rel=1e-5)
    assert values["H1", "centred share"] == pytest.approx(found.shares.centred[0, 0], rel=1e-5)
    expected = 1 - measured.mean_attention_distance(run, progress=False)
    assert values["H1", "1 − TV, mean attention"] == pytest.approx(expected, rel=1e-5)
    assert set(table["accuracy"].round(6)) == {round(found.accuracy, 6)}
    row = sweep.read_runs().query("run == @AED.name").iloc[0]
    assert row["accuracy"] == pytest.approx(run.accuracy, rel=1e-5)
    assert np.isfinite(log[-1]["shares"]).all()
    assert row["flops"] > 0

    before = sweep.read_rows()
    monkeypatch.setattr(measured, "measure", lambda *_, **__: pytest.fail("measured again"))
    work.do(PLAN, Job(AED, 0, AED.name), again=True)
    pd.testing.assert_frame_equal(sweep.read_rows(), before)


def test_what_is_kept_of_translation_has_its_paths_and_terms_and_no_words():
    work.do(PLAN, Job(AED, 0, AED.name))
    run, _ = sweep.load(AED, 0)
    kept, found = components.load(AED.name, 0), run.measured
    assert list(kept.blocks) == ["decoder temporal", "encoder temporal"]
    expected = found.temporal_scores[np.ix_(kept.blocks["decoder temporal"], kept.blocks["encoder temporal"])]
    assert np.allclose(kept.products("decoder temporal", "encoder temporal"), expected, rtol=1e-3, atol=1e-3)
    signed = kept.terms[0].astype(float) * kept.counts[:, None, None]
    assert np.allclose(signed.sum(0) / signed.sum(), found.shares_all_steps.signed, atol=5e-3)
    assert kept.weights_sha256 == found.weights_hash


def test_weights_are_kept_and_measured_in_the_precision_of_the_run():
    work.do(PLAN, Job(AED, 0, AED.name))
    run, _ = sweep.load(AED, 0)
    assert all(torch.equal(weights, weights.half().float()) for weights in run.model.parameters())
    assert sweep.read_runs()["weights_sha256"].iloc[0] == components.load(AED.name, 0).weights_sha256


def test_no_trace_of_the_whole_test_split_is_made(monkeypatch):
    """Its logits alone would take a gigabyte."""
    sizes, real = [], EncoderDecoder.trace
    monkeypatch.setattr("howattend.measured.passes.CHUNK", 8)
    monkeypatch.setattr(
        EncoderDecoder, "trace", lambda self, batch, *rest: sizes.append(len(batch)) or real(self, batch, *rest)
    )
    work.do(PLAN, Job(AED, 0, AED.name))
    assert 8 <= max(sizes) <= max(8, len(AED.task.validation_set())) < len(AED.task.test_set())


def test_a_corpus_that_is_missing_is_no_result(monkeypatch, tmp_path):
    """It must not be recorded as a claim that says nothing about the run."""
    unread = replace(AED.task)  # nothing of the corpus is in memory
    run = work._Translating(replace(AED, task=unread), AED.new_model(0), 0)
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "empty"))
    for claim in ("H1", "T2"):
        with pytest.raises(FileNotFoundError, match="howattend corpus"):
            measuring.measure(claims.Planned(claim, {"run": AED.name}), {"run": run})
