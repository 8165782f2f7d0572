"""The sweep on translation: measured in passes over the corpus, kept rounded, and small."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_translation import built, make_config

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
    made = make_config(f"translation-{architecture.lower()}-gru-n96", architecture)
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
def swept(tmp_path_factory):
    """Folders of a sweep over PLAN, what it said of AED, and the sizes of the traces of translation that it made."""
    cache, data, sizes, real = built(tmp_path_factory), tmp_path_factory.mktemp("data"), [], EncoderDecoder.trace

    def traced(model, batch, *rest):
        if len(model.readout_bias) != len(ESCAN[0].task.target_vocabulary):  # extended SCAN's may be large
            sizes.append(len(batch))
        return real(model, batch, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOWATTEND_CACHE", str(cache))
        patch.setenv("HOWATTEND_DATA", str(data))
        patch.setattr("howattend.measured.passes.CHUNK", 8)
        for claim in ("T4", "T6"):  # with words that a tiny corpus has
            criterion = claims.CRITERIA[claim]
            patch.setitem(
                claims.CRITERIA,
                claim,
                replace(criterion, limits={**criterion.limits, "words": 3, "occurrences": 2}),
            )
        measured.write_lexicon(AED.task)
        for config in ESCAN:
            work.do(PLAN, Job(config, 0, config.name))
        patch.setattr(EncoderDecoder, "trace", traced)
        work.do(PLAN, Job(AO, 0, AO.name))
        alone = list(sizes)  # without extended SCAN's
        patch.setattr(EncoderDecoder, "trace", real)
        said = work.do(PLAN, Job(AED, 0, AED.name))
    return cache, data, said, alone


@pytest.fixture(autouse=True)
def folders(swept, monkeypatch):
    monkeypatch.setenv("HOWATTEND_CACHE", str(swept[0]))
    monkeypatch.setenv("HOWATTEND_DATA", str(swept[1]))


def test_every_claim_of_translation_is_measured_on_the_sweeps_networks(swept):
    assert swept[2].endswith("claims measured")
    table = sweep.read_rows([AED.name])
    assert list(dict.fromkeys(table["claim"])) == ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T10", "H1"]
    assert "not measurable" not in set(table["quantity"])
    assert not list(sweep.unmeasured(PLAN))
    run, log = sweep.load(AED, 0)
    found = measured.measure(run, progress=False)
    values = table.set_index(["claim", "quantity"])["value"]
    assert values["T1", "distance"] == pytest.approx(found.distance("attention"), rel=1e-4)
    assert values["H1", "centred share"] == pytest.approx(found.shares.centred[0, 0], rel=1e-4)
    expected = 1 - measured.mean_attention_distance(run, progress=False)
    assert values["H1", "1 − TV, mean attention"] == pytest.approx(expected, rel=1e-4)
    assert set(table["accuracy"].round(5)) == {round(found.accuracy, 5)}
    row = sweep.read_runs().query("run == @AED.name").iloc[0]
    assert row["accuracy"] == pytest.approx(run.accuracy, rel=1e-5)
    assert np.isfinite(log[-1]["shares"]).all()
    assert row["flops"] > 0


def test_measured_again_the_test_split_is_not_gone_through_anew(monkeypatch):
    run, _ = sweep.load(AED, 0)
    monkeypatch.setattr(measured, "measure", lambda *_, **__: pytest.fail("measured again"))
    assert run.measured.weights_hash == components.load(AED.name, 0).weights_sha256


def test_what_is_kept_of_translation_has_its_paths_and_terms_and_no_words():
    run, _ = sweep.load(AED, 0)
    kept, found = components.load(AED.name, 0), run.measured
    assert list(kept.blocks) == ["decoder temporal", "encoder temporal"]
    places = [kept.blocks[f"{side} temporal"] for side in ("decoder", "encoder")]
    decoder, encoder = (side.temporal[list(there)] for side, there in
                        zip((found.decoder, found.encoder), places, strict=True))  # fmt: skip
    lengths = np.outer(np.linalg.norm(decoder, axis=1), np.linalg.norm(encoder, axis=1))
    error = np.abs(kept.products("decoder temporal", "encoder temporal") - decoder @ encoder.T)
    assert (error <= 2e-3 * lengths).all()
    signed, expected = (kept.terms[0] * kept.counts[:, None, None]).sum(0), found.term_sums[1, 0].sum(0)
    assert np.allclose(signed, expected, atol=1e-2 * np.abs(expected).max())
    assert kept.weights_sha256 == found.weights_hash
    assert components.path(AED.name, 0).stat().st_size < 4_000


def test_weights_are_kept_and_measured_in_the_precision_of_the_run():
    run, _ = sweep.load(AED, 0)
    assert all(torch.equal(weights, weights.half().float()) for weights in run.model.parameters())
    table = sweep.read_runs().set_index("run")
    assert table.loc[AED.name, "weights_sha256"] == components.load(AED.name, 0).weights_sha256


def test_no_trace_of_the_whole_test_split_is_made(swept):
    """Its logits alone would take a gigabyte: batches, and while training the validation set."""
    assert 8 in swept[3]
    assert max(swept[3]) <= max(8, len(AED.task.validation_set())) < len(AED.task.test_set())


def test_a_corpus_that_is_missing_is_no_result(monkeypatch, tmp_path):
    """It must not be recorded as a claim that says nothing about the run."""
    unread = replace(AED.task)  # nothing of the corpus is in memory
    run = work._Translating(replace(AED, task=unread), AED.new_model(0), 0)
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "empty"))
    for claim in ("H1", "T2"):
        with pytest.raises(FileNotFoundError, match="howattend corpus"):
            measuring.measure(claims.Planned(claim, {"run": AED.name}), {"run": run})
