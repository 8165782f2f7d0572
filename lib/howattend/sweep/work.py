"""One network of the sweep, from configuration to recorded rows: train it, keep its weights, measure what is due."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from howattend import files, measured, runs, training
from howattend.analysis import Run
from howattend.measured import Measured
from howattend.measured.passes import weights_hash
from howattend.runs import RunConfig
from howattend.sweep import components, measuring, rows
from howattend.sweep.digest import measuring_digest
from howattend.sweep.plan import Job, Plan, recorded_name
from howattend.tasks import Translation
from howattend.tasks.base import generator

Progress = Callable[[int], None]  # called with the step that a training has reached


def weights_path(config: RunConfig, seed: int) -> Path:
    """Where the sweep keeps a network: $HOWATTEND_CACHE/sweep/, by its configuration and seed."""
    return files.cache_folder() / "sweep" / f"{Path(config.name).name}-seed{seed}-{config.hash[:12]}.safetensors"


def checkpoint_path(config: RunConfig, seed: int) -> Path:
    """Where a training that was interrupted goes on from."""
    return weights_path(config, seed).with_suffix(".ckpt")


def is_shipped(config: RunConfig, seed: int) -> bool:
    """Whether the network is one whose weights are in the repository."""
    entry = runs.manifest().get(config.name, {})
    return (entry.get("config_hash"), entry.get("seed")) == (config.hash, seed)


def has_weights(config: RunConfig, seed: int) -> bool:
    """Whether the network's weights are at hand."""
    return is_shipped(config, seed) or weights_path(config, seed).exists()


def not_here(name: str, seed: int) -> str:
    """What to say of a network without weights, of which rows may be recorded."""
    return (
        f"weights of {name} seed {seed} are not here; they stay on the machine that trained them; to train it anew "
        f"delete its line in sweep_runs.csv, then: python -m howattend sweep --only {name}"
    )


def load(config: RunConfig, seed: int) -> tuple[Run, list[dict]]:
    """A trained network, shipped or of the sweep, and the log of its training.

    Raises FileNotFoundError where this machine does not have it, and ValueError where its file is damaged or of another
    configuration.
    """
    if is_shipped(config, seed):
        path = files.data_folder() / "weights" / runs.manifest()[config.name]["file"]
        return Run(config, runs.load(config.name), seed), json.loads(files.load_tensors(path)[1]["log"])
    path = weights_path(config, seed)
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: {not_here(config.name, seed)}")
    tensors, metadata = files.load_tensors(path)
    if (metadata.get("config_hash"), metadata.get("seed")) != (config.hash, str(seed)):
        raise ValueError(f"{path} is of another configuration or seed; delete it; {not_here(config.name, seed)}")
    model = config.new_model(seed)
    model.load_state_dict(tensors)
    kind = _Translating if isinstance(config.task, Translation) else Run
    return kind(config, model.eval(), seed), json.loads(metadata["log"])


class _Translating(Run):
    """A translation network of the sweep. What is measured of it takes a minute and several claims need it, so it is
    kept beside the weights."""

    @cached_property
    def measured(self) -> Measured:
        place = weights_path(self.config, self.seed).with_suffix(".npz")
        if place.exists():
            found = measured.load(place)
            if found.weights_hash == weights_hash(self.model):
                return found
        found = measured.measure(self, progress=False)
        measured.save(found, place)
        return found


def do(plan: Plan, job: Job, progress: Progress = lambda step: None, *, again: bool = False) -> str:
    """Train a network unless it is at hand, record it, and measure every claim that this makes possible.

    Interrupted at any point, the same call goes on. ``again``: measure what is recorded already, too, and train
    nothing: what has no weights here is left as it is. Returns what happened, in a line.
    """
    entry, config, seed = plan.by_name[job.entry], job.config, job.seed
    if again and not has_weights(config, seed):
        return f"left as it is: {not_here(entry.name, seed)}"
    table = rows.read_runs()
    recorded = table[(table["config_hash"] == config.hash) & (table["seed"] == seed)]
    if len(recorded) and has_weights(config, seed):
        accuracy = recorded["accuracy"].iloc[0]
    else:
        accuracy = _train(plan, job, progress)
    reached = accuracy >= config.accuracy_bar
    said = f"{recorded_name(job, entry, reached)} seed {seed}: word accuracy {accuracy:.2%}"
    if not reached:
        said += f", below its bar of {config.accuracy_bar:.1%}: did not train"
    if recorded_name(job, entry, reached) != entry.name:
        return said
    # A network whose line was deleted may have rows still, of other weights.
    count = measure_due(plan, seed, config.name, again=again or not len(recorded))
    return f"{said}; {count} claims measured"


def _train(plan: Plan, job: Job, progress: Progress) -> float:
    """Train and record a network, or only record it where it is at hand; its accuracy, NaN where training diverged."""
    config, seed = job.config, job.seed
    spent: dict[str, object] = {}
    if has_weights(config, seed):
        run, _ = load(config, seed)
        if is_shipped(config, seed):
            stored, clock = runs.manifest()[config.name], "wall"
        else:
            stored, clock = json.loads(files.load_tensors(weights_path(config, seed))[1]["spent"]), "core"
        spent = {"seconds": stored["seconds"], "clock": clock, **stored["versions"]}
        accuracy = run.accuracy
    else:
        model = config.new_model(seed)
        run = Run(config, model, seed)

        def watch(_: object, entry: dict) -> None:
            components.watch(run, entry)
            progress(entry["step"])

        checkpoint = checkpoint_path(config, seed)
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        try:
            done = training.train(model, config.task, config.train, seed, checkpoint, progress=False, on_log=watch)
        except FloatingPointError:  # a result, too: this configuration does not train with this seed
            done = None
        model.eval()
        weights = config.round(model)
        spent = {"seconds": done.core_seconds if done else 0.0, "clock": "core", **runs.versions()}
        accuracy = run.accuracy if done else float("nan")
        if done:
            log = json.dumps(done.log)
            plain = json.dumps({"seconds": done.core_seconds, "versions": runs.versions()})
            metadata = {"run": config.name, "seed": str(seed), "config_hash": config.hash, "log": log, "spent": plain}
            files.save_tensors(weights_path(config, seed), weights, metadata)
    entry = plan.by_name[job.entry]
    reached = accuracy >= config.accuracy_bar
    rows.record_run(_row(run, recorded_name(job, entry, reached), accuracy, spent))
    checkpoint_path(config, seed).unlink(missing_ok=True)
    return accuracy


def _row(run: Run, name: str, accuracy: float, spent: Mapping[str, object]) -> dict[str, object]:
    config = run.config
    return {
        "run": name,
        **config.columns(),
        "seed": run.seed,
        "accuracy": accuracy,
        "bar": config.accuracy_bar,
        "trained": bool(accuracy >= config.accuracy_bar),
        "flops": flops(config),
        "parameters": training.parameter_count(run.model),
        "config_hash": config.hash,
        "weights_sha256": weights_hash(run.model),
        "measured_with": "",
        **spent,
    }


def flops(config: RunConfig) -> float:
    """Floating-point operations of a whole training: those that torch counts (matrix products, forward and backward) in
    its first step, times its steps; where batches differ in length, the mean of its first 16 steps. Element-wise
    operations and the evaluations beside it are not in it."""
    model = config.new_model(0).train()
    adam = torch.optim.Adam(model.parameters())
    counted = 16 if isinstance(config.task, Translation) else 1
    with FlopCounterMode(display=False) as counter:
        for step in range(counted):
            batch = config.task.training_batch(config.train.batch_size, 0, step)
            training.train_step(model, adam, batch, config.train, generator("dropout", 0, step))
    return float(counter.get_total_flops()) / counted * config.train.steps


# ---- claims ----------------------------------------------------------------------------------------------------


def chosen(plan: Plan) -> dict[tuple[str, int], RunConfig]:
    """The configuration of every recorded network that the claims are about, by name and seed."""
    table = rows.read_runs()
    table = table[table["accuracy"].notna()]  # what diverged has no weights
    hashes = {candidate.hash: candidate for entry in plan.entries for candidate in entry.candidates}
    return {
        (name, seed): hashes[config_hash]
        for name, seed, config_hash in zip(table["run"], table["seed"], table["config_hash"], strict=True)
        if name in plan.by_name and config_hash in hashes
    }


def due(plan: Plan, seed: int, networks: Mapping[tuple[str, int], RunConfig]) -> list[measuring.Planned]:
    """The rows of the ledger that can be measured for a seed and are not recorded.

    ``networks`` are those of :func:`chosen`: read once for all that is done with the result, since other workers record
    theirs meanwhile.
    """
    recorded = {name: config.hash for (name, of), config in networks.items() if of == seed}
    table = rows.read_rows(recorded)
    table = table[table["seed"] == seed]
    measured = set(zip(table["claim"], table["run"], table["config_hash"], strict=True))
    return measuring.due(plan, seed, recorded, measured)


def measure_due(plan: Plan, seed: int, name: str, *, again: bool = False) -> int:
    """Measure and record the due rows in which a run takes part, and keep its components; how many rows these were.

    Rows that need weights that are not at hand are left. ``again``: rows that are recorded already, too.
    """
    networks = chosen(plan)
    configs = {name: config for (name, of), config in networks.items() if of == seed}
    wanted = due(plan, seed, networks)
    if again:
        wanted += [row for row in measuring.planned(name, configs) if row not in wanted]
    at_hand = {other for other, config in configs.items() if has_weights(config, seed)}
    wanted = [row for row in wanted if name in row.parts.values() and set(row.parts.values()) <= at_hand]
    if name in at_hand and (again or not components.path(name, seed).exists()):
        run, log = load(configs[name], seed)
        components.save(run, log)
    else:
        run = None
    for about in dict.fromkeys(row.parts["run"] for row in wanted):
        mine = [row for row in wanted if row.parts["run"] == about]
        needed = {part for row in mine for part in row.parts.values()}
        parts = {part: run if run and part == name else load(configs[part], seed)[0] for part in needed}
        found = [measuring.measure(row, {key: parts[part] for key, part in row.parts.items()}) for row in mine]
        first = not (rows.read_rows([about])["seed"] == seed).any()
        if first or (again and {row.claim for row in mine} >= {row.claim for row in measuring.planned(about, configs)}):
            rows.record_code(about, seed, measuring_digest())  # else rows by older code stay
        rows.record_claims(found)
    return len(wanted)
