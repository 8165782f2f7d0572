"""The figure of the three tasks on one page: what it is given is what it shows."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from howattend import contrast
from howattend.analysis import Run, array
from howattend.models import EncoderDecoder, ModelConfig
from howattend.runs import RunConfig
from howattend.statistics import softmax
from howattend.tasks import OneToOne
from howattend.training import TrainConfig

mpl.use("agg")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def run():
    task, config = OneToOne(num_words=3, min_length=4, max_length=6), ModelConfig("AED", hidden_size=8)
    model = EncoderDecoder(config, task, seed=0).eval()
    return Run(RunConfig("tiny", task, config, TrainConfig(steps=1), 0.0), model, seed=0)


def test_a_sample_is_cut_from_the_attention_of_the_whole_sentence(run):
    batch = run.test[:1]
    found, trace = contrast.sample(run, run, batch, steps=3), run.model.trace(batch)
    assert np.allclose(found.attention, array(trace.attention)[0, :3, :3])
    length = int(batch.source_lengths[0])
    scores = array(run.decoder.temporal)[:3] @ array(run.encoder.temporal)[:length].T
    assert np.allclose(found.temporal, softmax(scores)[:, :3])
    assert found.source == run.task.source_vocabulary.decode(batch.source[0])[:3]
    assert found.target == run.task.target_vocabulary.decode(batch.target[0])[:3]


def test_a_short_sentence_is_shown_with_its_end_and_without_padding(run):
    shortest = int(run.test.source_lengths.argmin())
    batch = run.test[shortest : shortest + 1]
    found = contrast.sample(run, run, batch, steps=20)
    assert len(found.source) == int(batch.source_lengths[0]) < batch.source.shape[1]
    assert found.source[-1] == found.target[-1] == "<eos>"
    for weights in (found.attention, found.temporal):
        assert np.allclose(weights.sum(1), 1)


def test_several_pairs_are_refused(run):
    with pytest.raises(ValueError, match="one pair, got 2"):
        contrast.sample(run, run, run.test[:2], steps=3)


def features(share, drop, paper=None):
    weights = np.full((2, 3), 1 / 3)
    shares = np.zeros((3, 3))
    shares[0, 0], shares[2, 2] = share, 1 - share
    sample = contrast.Sample(["the", "house", "<eos>"], ["maison", "<eos>"], weights, weights[:, ::-1])
    return contrast.Features(sample, shares, np.array([drop, drop + 0.1]), paper)


def test_the_page_has_a_row_a_task_with_numbers_words_and_the_papers_value():
    found = {
        "easy": {"AED": features(0.9, 0.8), "AO": features(1.0, 0.9)},
        "hard": {"AED": features(-0.2, 0.0, paper=0.08), "AO": features(0.3, 0.2)},
    }
    before = dict(mpl.rcParams)
    figure = contrast.page(found)
    assert dict(mpl.rcParams) == before
    assert len(figure.axes) == 2 * 6
    texts = [text.get_text() for text in figure.texts]
    assert all(texts.count(text) == 1 for text in ("easy", "hard", "AED", "AO"))
    first, last = figure.axes[0], figure.axes[-1]
    assert [label.get_text() for label in first.get_xticklabels()] == ["the", "house", "<eos>"]
    assert [label.get_text() for label in first.get_yticklabels()] == ["maison", "<eos>"]
    assert [text.get_text() for text in last.texts] == ["0.05", "0.25"]
    bars, below = figure.axes[4], figure.axes[10]
    assert {text.get_text() for text in bars.texts} == {"0.90", "0.10", "1.00"}
    assert below.get_ylim()[0] < -0.2  # a share below zero hangs below the axis, inside the panel
    gold = last.collections[0].get_segments()
    assert len(last.collections) == 1 and gold[0][0][1] == 0.08


def test_the_labels_of_a_page_do_not_overlap_one_another():
    found = {task: {"AED": features(0.9, 0.8), "AO": features(1.0, 0.9)} for task in ("one", "two", "three")}
    figure = contrast.page(found)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.texts]
    boxes += [axes.get_tightbbox() for axes in figure.axes] + [figure.legends[0].get_window_extent()]
    for number, box in enumerate(boxes):
        assert not any(box.padded(-2).overlaps(other.padded(-2)) for other in boxes[number + 1 :])
