"""The one training loop, for every task and architecture."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm

from howattend import files
from howattend._progress import bar_options
from howattend.models import EncoderDecoder
from howattend.settings import ADDED, settings_of
from howattend.tasks import Batch, Task, generator


@dataclass(frozen=True)
class TrainConfig:
    """A training recipe: Adam on the mean cross-entropy of the target words.

    The learning rate rises linearly over ``warmup_steps``, then falls along a half cosine to ``final_rate`` of its
    peak. ``l2`` is λ in λ Σ‖w‖² over all parameters. Gradients are clipped to a global norm of ``clip_norm`` before L2
    is added. ``bfloat16`` computes the readout's matrix products in bfloat16 while training (weights
    and sums stay float32): faster, where the processor has it and a large vocabulary makes the readout the cost.
    ``label_smoothing`` is the share of the target's probability that is dealt to all words alike.
    """

    steps: int = 5000
    batch_size: int = 128
    learning_rate: float = 1e-3
    warmup_steps: int = 100
    final_rate: float = 0.02
    l2: float = 1e-4
    clip_norm: float = 1.0
    bfloat16: bool = field(default=False, metadata=ADDED)
    label_smoothing: float = field(default=0.0, metadata=ADDED)

    def __post_init__(self) -> None:
        for name, lowest in (("steps", 1), ("batch_size", 1), ("warmup_steps", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise ValueError(f"{name} must be an integer ≥ {lowest}, got {value!r}")
        for name in ("learning_rate", "clip_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be greater than 0, got {getattr(self, name)!r}")
        if not 0 <= self.final_rate <= 1:
            raise ValueError(f"final_rate must lie in 0 … 1, got {self.final_rate!r}")
        if not self.l2 >= 0:
            raise ValueError(f"l2 must be at least 0, got {self.l2!r}")
        if not 0 <= self.label_smoothing < 1:
            raise ValueError(f"label_smoothing must lie in 0 … 1, 1 excluded, got {self.label_smoothing!r}")

    def settings(self) -> dict[str, object]:
        """As plain data, for the hash of a run's configuration."""
        return settings_of(self)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        done = (step - self.warmup_steps) / max(1, self.steps - self.warmup_steps)
        return self.learning_rate * (self.final_rate + (1 - self.final_rate) * (1 + math.cos(math.pi * done)) / 2)


@dataclass(frozen=True)
class Training:
    """What a training leaves beside the weights."""

    steps: int
    seconds: float  # over all sittings, evaluation included
    accuracy: float  # word accuracy on the validation set at the end
    log: list[dict[str, float]]  # step, loss, accuracy, seconds, and what ``on_log`` added
    core_seconds: float  # the processor's time, over all sittings: what else the machine did counts little


@torch.no_grad()
def word_accuracy(model: EncoderDecoder, batch: Batch, chunk: int = 1024, *, teacher_forced: bool = False) -> float:
    """Share of target words, ends of sentence included, that the network gets right at their step.

    By default of greedy free-running decoding; ``teacher_forced``: of the next word after the true ones.
    """
    right = total = 0
    for start in range(0, len(batch), chunk):
        part = batch[start : start + chunk].trimmed()
        if teacher_forced:
            words = model(part, "teacher").argmax(-1)
        else:
            words = model.generate(part.source, part.source_lengths, part.target.shape[1])
        mask = part.target_mask
        right += int(((words == part.target[:, : words.shape[1]]) & mask[:, : words.shape[1]]).sum())
        total += int(mask.sum())
    return right / total


def train(
    model: EncoderDecoder,
    task: Task,
    config: TrainConfig | None = None,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    *,
    log_every: int = 250,
    checkpoint_every: int = 100,
    progress: bool = True,
    on_log: Callable[[EncoderDecoder, dict[str, float]], None] | None = None,
) -> Training:
    """Train ``model`` in place.

    With ``checkpoint``, the state is saved there every ``checkpoint_every`` steps and on Ctrl-C, and a training that
    finds the file continues from it: it ends with the weights that an uninterrupted one would have, bit for bit on the
    same machine with the same number of threads. A finished training's file holds its end, so calling again returns at
    once. ``on_log`` is called with the model and each log entry, to which it may add numbers of its own.

    Raises ValueError where the checkpoint is damaged or belongs to another model, task, recipe or seed, and
    FloatingPointError where the loss is no longer finite (no checkpoint is then written).
    """
    config = config or TrainConfig()
    for argument, every in (("log_every", log_every), ("checkpoint_every", checkpoint_every)):
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"{argument} must be an integer ≥ 1, got {every!r}")
    expected = len(task.source_vocabulary), len(task.target_vocabulary)
    if (model.source_words, model.target_words) != expected:
        raise ValueError(
            f"task must have the model's vocabularies, {model.source_words} source and {model.target_words} target "
            f"words, but {task.name} has {expected[0]} and {expected[1]}"
        )
    device = model.readout_bias.device
    keep_memory()
    # Adam's weight decay is the gradient of λ Σ‖w‖², 2 λ w.
    adam = torch.optim.Adam(model.parameters(), lr=config.learning_rate, weight_decay=2 * config.l2, fused=True)
    settings = {"task": task.settings(), "model": {**model.config.settings(), "seed": model.seed}}
    identity = json.dumps({**settings, "train": config.settings(), "seed": int(seed)}, sort_keys=True)
    path = Path(checkpoint) if checkpoint is not None else None
    step, seconds, core_seconds, log = 0, 0.0, 0.0, []
    if path is not None and path.exists():
        step, seconds, core_seconds, log = _resume(path, identity, model, adam)
    begun, core_begun = time.perf_counter() - seconds, time.process_time() - core_seconds
    validation = task.validation_set().to(device)
    model.train()
    name = f"{task.name}-{model.config.architecture}"
    bar = tqdm(total=config.steps, initial=step, desc=name, unit="step", **bar_options(progress))
    with bar, _deferred_interrupt() as interrupted:
        while step < config.steps:
            for group in adam.param_groups:
                group["lr"] = config.rate(step)
            batch = task.training_batch(config.batch_size, seed, step).to(device)
            loss = train_step(model, adam, batch, config, generator("dropout", seed, step))
            step += 1
            bar.update()
            stop = interrupted.is_set()
            log_now = step % log_every == 0 or step == config.steps
            save_now = path is not None and (stop or step % checkpoint_every == 0 or step == config.steps)
            if (log_now or save_now) and not math.isfinite(float(loss)):
                raise FloatingPointError(
                    f"the loss of {name} is {float(loss)} at step {step}; lower learning_rate or clip_norm"
                )
            if log_now:
                accuracy = word_accuracy(model, validation, teacher_forced=task.teacher_forced_accuracy)
                seconds = time.perf_counter() - begun
                entry = {"step": step, "loss": float(loss), "accuracy": accuracy, "seconds": seconds}
                log.append(entry)
                bar.set_postfix(loss=f"{entry['loss']:.4f}", accuracy=f"{accuracy:.4f}")
                if on_log is not None:
                    on_log(model, entry)
            if save_now:
                spent = {"seconds": time.perf_counter() - begun, "core_seconds": time.process_time() - core_begun}
                _save(path, identity, model, adam, {"step": step, **spent, "log": log})
            if stop:
                raise KeyboardInterrupt
    model.eval()
    seconds, core_seconds = time.perf_counter() - begun, time.process_time() - core_begun
    return Training(step, seconds, log[-1]["accuracy"], log, core_seconds)


@contextmanager
def _deferred_interrupt() -> Iterator[threading.Event]:
    """Let Ctrl-C wait for the end of the step: in the midst of one, weights and step count would not belong together.

    A second Ctrl-C does not wait.
    """
    interrupted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield interrupted  # nothing to defer: signals do not reach this thread, or Ctrl-C is ignored on purpose
        return

    def handle(number: int, frame: object) -> None:
        interrupted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def keep_memory() -> None:
    """Let the C library keep the memory that a training step frees, for the next step.

    glibc hands larger blocks back to the system, and pages that come anew are costly: several milliseconds a step of
    the small networks here. It keeps blocks up to the largest one that it has seen freed, 32 MiB at most, so it is
    shown one, which is never touched and so takes no memory. Elsewhere this does nothing.
    """
    torch.empty(31 << 20, dtype=torch.uint8)


def train_step(
    model: EncoderDecoder,
    adam: torch.optim.Optimizer,
    batch: Batch,
    config: TrainConfig,
    random: torch.Generator | None = None,
) -> Tensor:
    """One update; returns the loss before it, a scalar tensor: the mean cross-entropy over the target words, ends of
    sentence included. Dropout, where the model has any, is drawn from ``random``.
    """
    mask = batch.target_mask
    contexts, states = model.decode(batch, mask=mask, dropout=random)
    with torch.autocast(states.device.type, torch.bfloat16, enabled=config.bfloat16):
        logits = model.readout(contexts, states)
        loss = nn.functional.cross_entropy(logits, batch.target[mask], label_smoothing=config.label_smoothing)
    adam.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
    adam.step()
    return loss.detach()


def _setting(value: object, other: object) -> object:
    """A setting, or of several only those that differ from the others."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {key: entry for key, entry in value.items() if entry != other.get(key)}
    return value


def _save(path: Path, identity: str, model: EncoderDecoder, adam: torch.optim.Adam, progress: dict) -> None:
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in adam.state.get(parameter, {}).items():
            tensors[f"adam.{key}.{name}"] = value
    files.save_tensors(path, tensors, {"identity": identity, "progress": json.dumps(progress)})


def _resume(path: Path, identity: str, model: EncoderDecoder, adam: torch.optim.Adam) -> tuple[int, float, float, list]:
    tensors, metadata = files.load_tensors(path, str(model.readout_bias.device))
    if metadata.get("identity") != identity:
        if "identity" not in metadata:
            raise ValueError(f"{path} holds no training at all; name another file, or delete it to start anew")
        theirs, mine = json.loads(metadata["identity"]), json.loads(identity)
        differing = ", ".join(
            f"{group} has {_setting(theirs.get(group), mine[group])}, not {_setting(mine[group], theirs.get(group))}"
            for group in mine
            if theirs.get(group) != mine[group]
        )
        raise ValueError(
            f"{path} is the checkpoint of another training ({differing}); name another file, or delete it to start anew"
        )
    model.load_state_dict({name[6:]: value for name, value in tensors.items() if name.startswith("model.")})
    for name, parameter in model.named_parameters():
        keys = ("step", "exp_avg", "exp_avg_sq")
        if f"adam.step.{name}" in tensors:
            adam.state[parameter] = {key: tensors[f"adam.{key}.{name}"] for key in keys}
    progress = json.loads(metadata["progress"])
    seconds = progress["seconds"]  # all that older checkpoints have
    return progress["step"], seconds, progress.get("core_seconds", seconds), progress["log"]


def parameter_count(model: EncoderDecoder) -> int:
    """The number of trained numbers in a network."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
