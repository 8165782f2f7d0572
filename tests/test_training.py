"""The training loop: that it learns, what it minimises, and that no interruption or damage goes unnoticed."""

import errno
import json
import math
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from howattend import files, training
from howattend.models import EncoderDecoder, ModelConfig
from howattend.tasks import EOS, PAD, Batch, OneToOne, Reversed
from howattend.training import TrainConfig, Training, train, word_accuracy

RECIPE = TrainConfig(steps=30, batch_size=8, warmup_steps=5)
EVERY = {"checkpoint_every": 10, "log_every": 7, "progress": False}


def new_model(task, architecture="AED", seed=0, hidden_size=6, **settings):
    return EncoderDecoder(ModelConfig(architecture, hidden_size=hidden_size, **settings), task, seed)


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(first, second):
    return all(torch.equal(value, second[name]) for name, value in first.items())


@pytest.fixture
def uninterrupted(task):
    model = new_model(task)
    train(model, task, RECIPE, seed=4, **EVERY)
    return weights(model)


@pytest.fixture
def checkpoint(task, tmp_path):
    """The checkpoint of a finished training."""
    path = tmp_path / "finished.ckpt"
    train(new_model(task), task, RECIPE, seed=4, checkpoint=path, **EVERY)
    return path


# ---- learning ----------------------------------------------------------------------------------------------------


def test_a_tiny_network_learns_a_tiny_task():
    task = OneToOne(num_words=3, min_length=3, max_length=5)
    model = new_model(task, "AO", hidden_size=16)
    before = word_accuracy(model, task.test_set(2000))
    done = train(model, task, TrainConfig(steps=250, batch_size=64, learning_rate=2e-2), log_every=50, progress=False)
    losses = [entry["loss"] for entry in done.log]
    assert losses[0] > 10 * losses[-1]
    assert before < 0.5
    assert word_accuracy(model, task.test_set(2000)) > 0.99
    assert done.accuracy == word_accuracy(model, task.validation_set()) > 0.99
    assert not model.training


@pytest.mark.parametrize("architecture", ["VED", "AED"])
def test_recurrent_networks_learn_too(architecture):
    task = OneToOne(num_words=2, min_length=1, max_length=2)
    model = new_model(task, architecture, hidden_size=16)
    train(model, task, TrainConfig(steps=250, batch_size=32, learning_rate=2e-2), log_every=250, progress=False)
    assert word_accuracy(model, task.test_set(1000)) > 0.99


def test_a_training_reports_what_it_did(task):
    seen = []
    model = new_model(task)
    done = train(model, task, RECIPE, on_log=lambda network, entry: seen.append((network, entry)), **EVERY)
    assert isinstance(done, Training)
    assert done.steps == 30
    assert [entry["step"] for entry in done.log] == [7, 14, 21, 28, 30]
    assert all(set(entry) == {"step", "loss", "accuracy", "seconds"} for entry in done.log)
    assert done.accuracy == done.log[-1]["accuracy"] == word_accuracy(model, task.validation_set())
    assert 0 < done.log[0]["seconds"] < done.log[-1]["seconds"] <= done.seconds
    assert [entry for _, entry in seen] == done.log
    assert all(network is model for network, _ in seen)


def test_the_same_seed_trains_the_same_weights_and_another_others(task, uninterrupted):
    before = torch.get_rng_state()
    for seed, expected in ((4, True), (5, False)):
        model = new_model(task)
        train(model, task, RECIPE, seed=seed, progress=False)
        assert same(weights(model), uninterrupted) == expected
    assert torch.equal(torch.get_rng_state(), before)


def test_the_bar_is_shown_in_notebooks_but_not_in_log_files(task, capsys, monkeypatch):
    train(new_model(task), task, RECIPE)
    assert capsys.readouterr() == ("", "")
    written = []
    stream = type("OutStream", (), {"write": lambda self, text: written.append(text), "flush": lambda self: None})
    stream.__module__ = "ipykernel.iostream"
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(sys, "stderr", stream())
    train(new_model(task), task, RECIPE, progress=False)
    assert written == []
    train(new_model(task), task, RECIPE)
    assert "30/30" in "".join(written)


# ---- what is minimised -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bfloat16", [False, True])
def test_the_loss_is_the_mean_over_unpadded_words(task, bfloat16):
    model, batch = new_model(task), task.sample(16, seed=0)
    logits, total, words = model(batch).log_softmax(-1), 0.0, 0
    for row, length in enumerate(batch.target_lengths.tolist()):
        for step in range(length):
            total -= logits[row, step, batch.target[row, step]].item()
            words += 1
    assert words < batch.target.numel()  # or there is no padding to be counted by mistake
    adam = torch.optim.Adam(model.parameters())
    loss = training.train_step(model, adam, batch, replace(RECIPE, bfloat16=bfloat16))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(total / words, rel=2e-2 if bfloat16 else 1e-5)
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_label_smoothing_deals_a_share_to_all_words_alike(task):
    model, batch = new_model(task), task.sample(16, seed=0)
    logs = model(batch).log_softmax(-1)[batch.target_mask]
    right = logs.gather(1, batch.target[batch.target_mask][:, None])[:, 0]
    expected = -(0.75 * right + 0.25 * logs.mean(1)).mean().item()
    config = replace(RECIPE, label_smoothing=0.25)
    loss = training.train_step(model, torch.optim.Adam(model.parameters()), batch, config)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert expected > -right.mean().item() * 1.01  # or the test could not tell
    assert RECIPE.settings().keys() == replace(RECIPE, label_smoothing=0.0).settings().keys()
    assert config.settings()["label_smoothing"] == 0.25


def test_dropout_is_another_at_each_step_and_resumes(task, tmp_path):
    def trained(steps_at_a_time):
        model = EncoderDecoder(ModelConfig("AED", hidden_size=8, dropout=0.3), task, seed=0)
        seen = []
        for steps in steps_at_a_time:

            def stop(_, entry, steps=steps):
                seen.append(entry["loss"])
                if entry["step"] == steps:
                    raise KeyboardInterrupt

            try:
                train(
                    model,
                    task,
                    RECIPE,
                    checkpoint=tmp_path / f"{len(steps_at_a_time)}.ckpt",
                    log_every=1,
                    checkpoint_every=1,
                    progress=False,
                    on_log=stop,
                )
            except KeyboardInterrupt:
                model = EncoderDecoder(ModelConfig("AED", hidden_size=8, dropout=0.3), task, seed=0)
        return model

    whole, parts = trained([RECIPE.steps + 1]), trained([11, RECIPE.steps + 1])
    for name, value in whole.state_dict().items():
        assert torch.equal(value, parts.state_dict()[name])


def first_gradient(task, tmp_path, **recipe):
    """Adam's average after one step, 0.1 times what it took for the gradient, beside the weights before and after."""
    model = new_model(task, "AED")
    before = weights(model)
    train(model, task, TrainConfig(steps=1, batch_size=8, **recipe), checkpoint=tmp_path / "one.ckpt", progress=False)
    stored, _ = files.load_tensors(tmp_path / "one.ckpt")
    return {name: stored[f"adam.exp_avg.{name}"] * 10 for name in before}, before, weights(model)


def test_l2_is_the_gradient_of_lambda_times_the_squared_norm(task, tmp_path):
    with_l2, before, _ = first_gradient(task, tmp_path / "with", l2=0.25)
    without, _, _ = first_gradient(task, tmp_path / "without", l2=0.0)
    for name, value in before.items():
        w = value.clone().requires_grad_()
        (0.25 * w.square().sum()).backward()
        assert torch.allclose(with_l2[name] - without[name], w.grad, atol=1e-5), name


def test_gradients_are_clipped_to_a_global_norm(task, tmp_path):
    def norm(**recipe):
        return sum(g.square().sum() for g in first_gradient(task, tmp_path, l2=0.0, **recipe)[0].values()).sqrt().item()

    assert norm(clip_norm=1e6) > 0.01
    (tmp_path / "one.ckpt").unlink()
    assert norm(clip_norm=0.01) == pytest.approx(0.01, rel=1e-3)


def test_the_learning_rate_rises_then_falls_along_a_half_cosine():
    recipe = TrainConfig(steps=110, learning_rate=0.4, warmup_steps=10, final_rate=0.1)
    assert recipe.rate(0) == pytest.approx(0.04)
    assert recipe.rate(4) == pytest.approx(0.2)
    assert recipe.rate(9) == recipe.rate(10) == pytest.approx(0.4)
    assert recipe.rate(60) == pytest.approx((0.4 + 0.04) / 2)  # half-way
    assert recipe.rate(35) == pytest.approx(0.04 + 0.36 * (1 + math.cos(math.pi / 4)) / 2)
    assert recipe.rate(109) == pytest.approx(0.04, rel=1e-2)
    assert TrainConfig(warmup_steps=0, learning_rate=0.4).rate(0) == pytest.approx(0.4)


@pytest.mark.parametrize("warmup_steps", [0, 10])
def test_the_optimiser_follows_the_schedule(task, tmp_path, warmup_steps):
    """Adam's first step moves a weight by at most the rate, and by nearly that where the gradient is clear."""
    recipe = {"learning_rate": 0.01, "warmup_steps": warmup_steps}
    _, before, after = first_gradient(task, tmp_path, **recipe)
    largest = max((after[name] - before[name]).abs().max().item() for name in before)
    assert largest == pytest.approx(TrainConfig(**recipe).rate(0), rel=1e-2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 0}, "steps must be an integer ≥ 1, got 0"),
        ({"steps": 10.0}, "steps must be an integer ≥ 1, got 10.0"),
        ({"batch_size": 0}, "batch_size must be an integer ≥ 1, got 0"),
        ({"warmup_steps": -1}, "warmup_steps must be an integer ≥ 0, got -1"),
        ({"learning_rate": 0}, "learning_rate must be greater than 0, got 0"),
        ({"learning_rate": math.nan}, "learning_rate must be greater than 0, got nan"),
        ({"clip_norm": -1}, "clip_norm must be greater than 0, got -1"),
        ({"final_rate": 1.5}, "final_rate must lie in 0 … 1, got 1.5"),
        ({"l2": -1e-4}, "l2 must be at least 0, got -0.0001"),
        ({"label_smoothing": 1.0}, "label_smoothing must lie in 0 … 1, 1 excluded, got 1.0"),
    ],
)
def test_bad_recipes_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainConfig(**settings)


@pytest.mark.parametrize("argument", ["log_every", "checkpoint_every"])
@pytest.mark.parametrize("value", [0, -1, 2.5])
def test_bad_intervals_are_named(task, argument, value):
    with pytest.raises(ValueError, match=f"{argument} must be an integer ≥ 1, got {value}"):
        train(new_model(task), task, RECIPE, **{argument: value})


def test_a_task_of_another_vocabulary_is_refused(task):
    with pytest.raises(ValueError, match=r"6 source and 6 target words, but one_to_one has 5 and 5"):
        train(new_model(task), OneToOne(2, 2, 5), RECIPE)


# ---- accuracy ----------------------------------------------------------------------------------------------------


class Parrot:
    """A network that always says these words."""

    def __init__(self, words):
        self.words = torch.tensor(words)

    def generate(self, source, source_lengths, max_length):
        assert max_length == 3
        return self.words[: len(source)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([[3, 4, EOS], [4, EOS, PAD]], 1),
        ([[3, 4, EOS], [4, EOS, 3]], 1),  # what follows the end does not count
        ([[3, 4, EOS], [EOS, PAD, PAD]], 3 / 5),  # padding is not the end of sentence
        ([[4, 3, EOS], [4, 4, EOS]], 2 / 5),
        ([[3], [4]], 2 / 5),  # where every sentence has ended too early, the rest is missed
        ([[EOS, PAD], [EOS, PAD]], 0),
    ],
)
def test_word_accuracy_counts_words_and_ends(words, expected):
    target = torch.tensor([[3, 4, EOS], [4, EOS, PAD]])
    batch = Batch(target, torch.tensor([3, 2]), target, torch.tensor([3, 2]), torch.full((2, 3), -1))
    assert word_accuracy(Parrot(words), batch) == expected


def test_word_accuracy_in_chunks_is_the_same(make_model, task):
    batch, model = task.sample(50, seed=0), make_model("AED")
    assert word_accuracy(model, batch, chunk=7) == word_accuracy(model, batch)


def test_word_accuracy_is_free_running(task):
    """A network that was trained with the true words is judged by its own."""
    model = new_model(task, "AED", decoder_input="teacher")
    train(model, task, TrainConfig(steps=60, batch_size=32, learning_rate=1e-2), progress=False)
    batch = task.sample(200, seed=0)
    said = model.generate(batch.source, batch.source_lengths, 6)
    said = torch.nn.functional.pad(said, (0, 6 - said.shape[1]))
    taught = model(batch, "teacher").argmax(-1)
    mask = batch.target_mask
    assert word_accuracy(model, batch) == ((said == batch.target) & mask).sum().item() / mask.sum().item()
    assert word_accuracy(model, batch) != ((taught == batch.target) & mask).sum().item() / mask.sum().item()


# ---- interruption ------------------------------------------------------------------------------------------------

KILLED = """
import sys, time
from pathlib import Path
from howattend.models import EncoderDecoder, ModelConfig
from howattend.tasks import OneToOne
from howattend.training import TrainConfig, train

def wait(model, entry):
    if entry["step"] == 14:
        Path(sys.argv[1], "now").touch()
        time.sleep(120)

task = OneToOne(num_words=3, min_length=2, max_length=5)
model = EncoderDecoder(ModelConfig("AED", hidden_size=6), task, 0)
recipe = TrainConfig(steps=30, batch_size=8, warmup_steps=5)
train(model, task, recipe, 4, Path(sys.argv[1], "killed.ckpt"), log_every=7, checkpoint_every=10, on_log=wait)
"""


def test_a_killed_training_ends_with_the_same_weights(task, tmp_path, uninterrupted):
    """Killed without warning four steps after its checkpoint, then started again: bit for bit the same."""
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)]) as child:
        until = time.monotonic() + 60
        while not (tmp_path / "now").exists():
            assert child.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        child.kill()
    assert child.returncode == -signal.SIGKILL
    assert progress(tmp_path / "killed.ckpt")["step"] == 10
    model, steps = new_model(task), []
    done = train(model, task, RECIPE, 4, tmp_path / "killed.ckpt", on_log=lambda _, e: steps.append(e["step"]), **EVERY)
    assert steps == [14, 21, 28, 30]  # went on from step 10
    assert [entry["step"] for entry in done.log] == [7, 14, 21, 28, 30]
    assert same(weights(model), uninterrupted)


def progress(path):
    return json.loads(files.load_tensors(path)[1]["progress"])


def test_ctrl_c_waits_for_the_step_and_saves(task, tmp_path, uninterrupted):
    path, model, before = tmp_path / "interrupted.ckpt", new_model(task), signal.getsignal(signal.SIGINT)

    def interrupt(_, entry):
        if entry["step"] == 14:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(model, task, RECIPE, 4, path, on_log=interrupt, **EVERY)
    assert signal.getsignal(signal.SIGINT) is before
    saved = progress(path)
    assert saved["step"] in (14, 15)  # the step that the signal met
    assert same(weights(model), {k[6:]: v for k, v in files.load_tensors(path)[0].items() if k.startswith("model.")})
    resumed = new_model(task)
    done = train(resumed, task, RECIPE, 4, path, **EVERY)
    assert done.seconds > saved["seconds"]
    assert same(weights(resumed), uninterrupted)


def test_interrupted_again_and_again(task, tmp_path, uninterrupted):
    """Five sittings; each begins with a network as new."""
    path, sittings = tmp_path / "often.ckpt", 0
    while True:
        sittings += 1
        model = new_model(task)
        try:
            train(model, task, RECIPE, 4, path, on_log=lambda *_: signal.raise_signal(signal.SIGINT), **EVERY)
            break
        except KeyboardInterrupt:
            continue
    assert sittings >= 5
    assert same(weights(model), uninterrupted)


def test_a_second_ctrl_c_does_not_wait(task, tmp_path):
    def interrupt(_, entry):
        if entry["step"] == 14:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("unreachable: the second one stops here")

    with pytest.raises(KeyboardInterrupt):
        train(new_model(task), task, RECIPE, 4, tmp_path / "twice.ckpt", on_log=interrupt, **EVERY)
    assert progress(tmp_path / "twice.ckpt")["step"] == 10


def test_where_ctrl_c_is_ignored_it_stays_so(task):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = train(new_model(task), task, RECIPE, on_log=lambda *_: signal.raise_signal(signal.SIGINT), **EVERY)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.steps == 30


def test_a_finished_training_returns_at_once(task, checkpoint, uninterrupted, monkeypatch):
    monkeypatch.setattr(training, "train_step", lambda *_: pytest.fail("a finished training must not go on"))
    model = new_model(task)
    done = train(model, task, RECIPE, 4, checkpoint, **EVERY)
    assert same(weights(model), uninterrupted)
    assert done.steps == 30
    assert done.accuracy == word_accuracy(model, task.validation_set())


# ---- checkpoints that do not belong, or are damaged --------------------------------------------------------------


def test_a_checkpoint_of_another_training_is_refused(task, checkpoint):
    cases = {
        "seed": (new_model(task), task, RECIPE, 5),
        "initial weights": (new_model(task, seed=1), task, RECIPE, 4),
        "network": (new_model(task, cell="lstm"), task, RECIPE, 4),
        "decoder input": (new_model(task, decoder_input="teacher"), task, RECIPE, 4),
        "recipe": (new_model(task), task, TrainConfig(steps=31, batch_size=8, warmup_steps=5), 4),
        "task": (new_model(task), Reversed(3, 2, 5), RECIPE, 4),
        "lengths": (new_model(task), OneToOne(3, 2, 4), RECIPE, 4),
    }
    for changed, (model, its_task, recipe, seed) in cases.items():
        before = weights(model)
        with pytest.raises(ValueError, match=r"checkpoint of another training .* delete it to start anew"):
            train(model, its_task, recipe, seed, checkpoint, progress=False)
        assert same(weights(model), before), changed


def test_weights_are_no_checkpoint(task, tmp_path):
    model = new_model(task)
    files.save_tensors(tmp_path / "weights.safetensors", model.state_dict())
    with pytest.raises(ValueError, match="no training at all"):
        train(model, task, RECIPE, 4, tmp_path / "weights.safetensors")


def test_a_flipped_byte_is_refused_wherever_it_is(task, checkpoint):
    content = checkpoint.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    model = new_model(task)
    before = weights(model)
    for position in {*range(0, header, header // 60), *range(header, len(content), len(content) // 60)}:
        damaged = bytearray(content)
        damaged[position] ^= 1
        checkpoint.write_bytes(damaged)
        with pytest.raises(ValueError, match="delete it"):
            train(model, task, RECIPE, 4, checkpoint, progress=False)
    assert same(weights(model), before)


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_truncated_checkpoint_is_refused(task, checkpoint, kept):
    checkpoint.write_bytes(checkpoint.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"finished\.ckpt is damaged .* delete it or restore it"):
        train(new_model(task), task, RECIPE, 4, checkpoint, progress=False)


def test_a_loss_that_is_no_longer_finite_stops_and_saves_nothing(task, tmp_path):
    model = new_model(task)
    model.readout_bias.data[3] = math.nan
    with pytest.raises(FloatingPointError, match=r"the loss of one_to_one-AED is nan at step 10; lower learning_rate"):
        train(model, task, RECIPE, 4, tmp_path / "nan.ckpt", checkpoint_every=10, log_every=100, progress=False)
    assert list(tmp_path.iterdir()) == []


def test_a_training_whose_disk_is_full_keeps_its_last_checkpoint(task, tmp_path, monkeypatch, uninterrupted):
    path, save_file, saved = tmp_path / "x.ckpt", files.save_file, []

    def fail_at_the_second(tensors, target, metadata):
        saved.append(1)
        if len(saved) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        save_file(tensors, target, metadata)

    monkeypatch.setattr(files, "save_file", fail_at_the_second)
    with pytest.raises(OSError, match="No space left"):
        train(new_model(task), task, RECIPE, 4, path, **EVERY)
    assert list(tmp_path.iterdir()) == [path]
    model = new_model(task)
    train(model, task, RECIPE, 4, path, **EVERY)
    assert same(weights(model), uninterrupted)


def test_nothing_is_unpickled(task, tmp_path, monkeypatch, uninterrupted):
    def refuse(*_, **__):
        raise AssertionError("something was pickled or unpickled")

    for owner, name in ((pickle, "load"), (pickle, "loads"), (pickle, "dumps"), (torch, "load"), (torch, "save")):
        monkeypatch.setattr(owner, name, refuse)
    path = tmp_path / "checkpoint.ckpt"
    for _ in range(2):
        model = new_model(task)
        train(model, task, RECIPE, 4, path, **EVERY)
    assert same(weights(model), uninterrupted)
    assert int.from_bytes(path.read_bytes()[:8], "little") < path.stat().st_size  # safetensors: header's length first
    assert path.read_bytes()[8:9] == b"{"
