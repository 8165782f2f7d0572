"""The runs of the book: a registry of configurations, the manifest of what training them gave, and shipped weights."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from howattend import csv_files, files, sentences, training, verification
from howattend._validation import require_device, unknown
from howattend.analysis import Run
from howattend.models import EncoderDecoder, ModelConfig
from howattend.tasks import ExtendedSCAN, OneToOne, Reversed, Sorted, Task, Translation
from howattend.training import TrainConfig
from howattend.verification import Verification

QUICK_STEPS = 200  # so that the eight networks of the one-to-one chapter train in two minutes on two cores
#: The rates of "and", in percent, at which both architectures are trained on extended SCAN, beside the task's default.
AND_PERCENTS = (0, 2, 5, 10, 30, 100)
MAX_SEEDS = 5  # how many seeds a training tries before it reports that the configuration does not train


@dataclass(frozen=True)
class RunConfig:
    """A task, a network, a recipe, and the word accuracy from which on the network counts as trained."""

    name: str
    task: Task
    model: ModelConfig
    train: TrainConfig
    accuracy_bar: float
    half_precision: bool = False  # whether weights are kept as float16; all is computed in float32

    def settings(self) -> dict[str, object]:
        """All that decides the result of a training but its seed, as plain data with defaults filled in."""
        model = self.model.resolve(self.task.default_decoder_input)
        return {"task": self.task.settings(), "model": model.settings(), "train": self.train.settings()}

    @property
    def hash(self) -> str:
        """sha256 of :meth:`settings`."""
        return files.canonical_hash(self.settings())

    def columns(self) -> dict[str, object]:
        """What tables of runs say of it: the settings that differ most, with defaults filled in."""
        model = self.model.resolve(self.task.default_decoder_input)
        return {
            "task": self.task.name,
            "architecture": model.architecture,
            "cell": model.cell,
            "attention": model.attention if model.has_attention else "none",
            "decoder_input": model.decoder_input,
            "l2": self.train.l2,
            "steps": self.train.steps,
        }

    def quick(self) -> RunConfig:
        """The same with a training so short that its claims are not comparable."""
        return replace(self, train=replace(self.train, steps=QUICK_STEPS))

    def new_model(self, seed: int, device: str = "cpu") -> EncoderDecoder:
        """An untrained network."""
        return EncoderDecoder(self.model, self.task, seed).to(device)

    def round(self, model: EncoderDecoder) -> dict[str, Tensor]:
        """A trained network's weights as they are kept, to which the network is rounded, too: what is measured of it is
        then true of what is kept."""
        tensors = model.state_dict()
        if self.half_precision:
            tensors = {name: tensor.half() for name, tensor in tensors.items()}
            model.load_state_dict(tensors)
        return tensors


def _registry() -> tuple[dict[str, RunConfig], dict[str, RunConfig]]:
    # One recipe an architecture, chosen on accuracy alone: the strongest L2 of 1e-4, 1e-3 and 1e-2 that keeps the
    # accuracy bar (data/README.md has what the grid gave).
    recipes = {
        "VED": TrainConfig(steps=10_000, l2=1e-4),
        "AED": TrainConfig(steps=5_000, l2=1e-2),
        "AO": TrainConfig(steps=5_000, l2=1e-2),
    }
    bars = {"VED": 0.99, "AED": 0.999, "AO": 0.999}
    runs, tried = {}, {}

    def add(name: str, task: Task, architecture: str, l2=None, bar=None, to=runs, **model: object) -> None:
        config, recipe = ModelConfig(architecture=architecture, **model), recipes[architecture]
        if l2 is not None:
            recipe = replace(recipe, l2=l2)
        to[name] = RunConfig(name, task, config, recipe, bar or bars[architecture])

    for architecture in ("VED", "AED", "AO"):
        add(f"one_to_one-{architecture.lower()}-gru", OneToOne(), architecture)
    add("one_to_one-aed-gru-teacher", OneToOne(), "AED", decoder_input="teacher")
    for architecture in ("AED", "AO"):
        add(f"one_to_one-{architecture.lower()}-gru-words8", OneToOne(num_words=8), architecture)
    # The conditions of claims: the next weaker L2 of the grid, and nearly none.
    add("one_to_one-aed-gru-l2_1e-5", OneToOne(), "AED", l2=1e-5)
    add("one_to_one-aed-gru-teacher-l2_1e-5", OneToOne(), "AED", l2=1e-5, decoder_input="teacher")
    for architecture in ("AED", "AO"):
        add(f"one_to_one-{architecture.lower()}-gru-l2_1e-3", OneToOne(), architecture, l2=1e-3)
        add(f"one_to_one-{architecture.lower()}-gru-words8-l2_1e-3", OneToOne(num_words=8), architecture, l2=1e-3)
    # The same choice on the other tasks; AEDs need a weaker L2 there.
    for architecture in ("AED", "AO"):
        add(
            f"reversed-{architecture.lower()}-gru",
            Reversed(min_length=20, max_length=20),
            architecture,
            l2=1e-3 if architecture == "AED" else None,
        )
    add("reversed-aed-gru-varied", Reversed(), "AED", l2=1e-3)
    add("sort-aed-gru", Sorted(), "AED", l2=1e-3, bar=0.99)
    # Where to attend depends on more than a position and a word, which are all that AO's states know. Its failure is to
    # be no matter of the L2.
    for l2, suffix in ((None, ""), (1e-3, "-l2_1e-3"), (1e-4, "-l2_1e-4")):
        add(f"reversed-ao-gru-varied{suffix}", Reversed(), "AO", l2=l2, to=tried)
        add(f"sort-ao-gru{suffix}", Sorted(), "AO", l2=l2, bar=0.99, to=tried)
    # Extended SCAN at its default rate of "and", the highest at which AO still reaches 98 %, and at others: the name
    # has the rate in percent.
    for architecture, l2 in (("AED", 1e-3), ("AO", None)):
        name = f"escan-{architecture.lower()}-gru"
        add(name, ExtendedSCAN(), architecture, l2=l2, bar=0.98)
        for percent in AND_PERCENTS:
            to = runs if architecture == "AED" and percent == 30 else tried
            add(f"{name}-and{percent:02d}", ExtendedSCAN(and_rate=percent / 100), architecture, l2=l2, bar=0.98, to=to)
    # The conditions of claims: weaker L2, and what the fed word changes in AO, which fed a constant needs weaker L2.
    add("escan-aed-gru-l2_1e-4", ExtendedSCAN(), "AED", l2=1e-4, bar=0.98)
    add("escan-ao-gru-constant", ExtendedSCAN(), "AO", l2=1e-3, bar=0.98, decoder_input="constant")
    add("escan-ao-gru-l2_1e-3", ExtendedSCAN(), "AO", l2=1e-3, bar=0.98)
    # English to French: dropout in place of L2, since here it is data that are scarce. Sizes are what 40 MB of weights
    # allow. The networks of one register are for the natural experiment of claim T9: French is longer in one of them.
    for architecture in ("AED", "AO", "VED"):
        name, bar = f"translation-{architecture.lower()}-gru", 0.55 if architecture == "AED" else 0.4
        runs[name] = translation_run(
            name, Translation(num_words=5000), architecture, hidden_size=224, epoch=356, bar=bar
        )
    for architecture in ("AED", "AO"):
        for register, epoch in (("catalogues", 142), ("verses", 214)):
            name = f"translation-{architecture.lower()}-gru-{register}"
            task = Translation(register=register, num_words=2000)
            runs[name] = translation_run(name, task, architecture, hidden_size=64, epoch=epoch, bar=0.4)
    return runs, tried


TRANSLATION_EPOCHS = 15


def translation_run(
    name: str, task: Translation, architecture: str, hidden_size: int, epoch: int, bar: float
) -> RunConfig:
    """A run on human translations, of so many batches an epoch."""
    recipe = TrainConfig(
        steps=TRANSLATION_EPOCHS * epoch,
        learning_rate=2e-3,
        warmup_steps=200,
        l2=0.0,
        bfloat16=True,
        label_smoothing=0.1,
    )
    model = ModelConfig(architecture, hidden_size=hidden_size, dropout=0.4)
    return RunConfig(name, task, model, recipe, bar, half_precision=True)


#: The runs whose weights are shipped, and those of which only the accuracy is recorded.
REGISTRY, TRIED = _registry()


def config(name: str) -> RunConfig:
    """The configuration of a run; ValueError names those most like it, and all there are."""
    try:
        return (TRIED | REGISTRY)[name]
    except KeyError:
        raise ValueError(unknown("run", name, REGISTRY)) from None


def shipped_config(name: str) -> RunConfig:
    """The configuration of a run whose weights are kept; ValueError where only its accuracy is."""
    if name in TRIED:
        raise ValueError(f"no weights are kept of {name}, only its accuracy: python -m howattend accuracies {name}")
    return config(name)


def _manifest_path() -> Path:
    return files.data_folder() / "weights" / "manifest.json"


_NEEDED = {"file", "sha256", "config_hash", "seed", "seconds", "accuracy", "accuracy_bar"}  # of a manifest's entry


def manifest() -> dict[str, dict]:
    """What is recorded of each shipped run, by name."""
    path = _manifest_path()
    if not path.exists():
        return {}
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))["runs"]
        for name, entry in recorded.items():
            if missing := _NEEDED - entry.keys():
                raise ValueError(f"{name} has no {', '.join(sorted(missing))}")
            numbers = {key: entry[key] for key in ("seed", "seconds", "accuracy", "accuracy_bar")}
            if wrong := [key for key, value in numbers.items() if not isinstance(value, int | float)]:
                raise ValueError(f"{wrong[0]} of {name} is no number")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it with git checkout") from None
    return recorded


def load(name: str, device: str = "cpu") -> EncoderDecoder:
    """A shipped network, in evaluation mode.

    Raises ValueError where the weights' checksum or the configuration's hash is not the recorded one, and
    FileNotFoundError, with what to do, where a run has no weights.
    """
    run_config, entry = config(name), manifest().get(name)
    if name in TRIED:
        raise FileNotFoundError(
            f"no weights are shipped for {name}, only its accuracy is recorded: {accuracies_path()}"
        )
    if entry is None:
        lost = (
            "" if _manifest_path().exists() else f"{_manifest_path()} is missing: restore it with git checkout. Else "
        )
        raise FileNotFoundError(
            f"{lost}no weights are shipped for {name}; train it with: python -m howattend train {name}"
        )
    if entry["config_hash"] != run_config.hash:
        raise ValueError(
            f"the manifest's weights of {name} are of another configuration (hash {entry['config_hash'][:12]}, "
            f"the registry has {run_config.hash[:12]}); train it anew with: python -m howattend train {name}"
        )
    path = _manifest_path().parent / entry["file"]
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing; restore it with git checkout, or: python -m howattend train {name}"
        )
    if files.file_hash(path) != entry["sha256"]:
        raise ValueError(
            f"{path} is damaged: its sha256 is not the one in the manifest; restore it with git checkout, "
            f"or train it anew: python -m howattend train {name}"
        )
    require_device(device)
    model = run_config.new_model(entry["seed"])
    model.load_state_dict(files.load_tensors(path)[0])  # in float32, whatever they are stored in
    return model.to(device).eval()


def load_run(name: str, device: str = "cpu") -> Run:
    """A shipped run, ready for analysis."""
    model = load(name, device)
    return Run(config(name), model, manifest()[name]["seed"])


def train_run(
    name: str, seed: int = 0, device: str = "cpu", *, quick: bool = False, progress: bool = True
) -> tuple[Run, training.Training]:
    """Train a run from scratch, or on from where it was interrupted; no shipped file is read or written.

    Checkpoints lie in the cache folder; that of a finished training is removed, so a second call trains again.
    """
    run, done = _train(name, seed, device, quick, progress)
    _checkpoint(run.config, seed).unlink()
    return run, done


def _train(name: str, seed: int, device: str, quick: bool, progress: bool) -> tuple[Run, training.Training]:
    """The same, with the checkpoint of the finished training left in its place: called again, it returns at once."""
    run_config = config(name).quick() if quick else config(name)
    require_device(device)
    checkpoint = _checkpoint(run_config, seed)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    model = run_config.new_model(seed, device)
    done = training.train(model, run_config.task, run_config.train, seed, checkpoint, progress=progress)
    return Run(run_config, model.eval(), seed, comparable=not quick), done


def _checkpoint(run_config: RunConfig, seed: int) -> Path:
    return files.cache_folder() / "checkpoints" / f"{run_config.name}-seed{seed}-{run_config.hash[:12]}.ckpt"


def obtain(
    names: Iterable[str], *, retrain: bool = False, quick: bool = False, seed: int = 0, device: str = "cpu"
) -> dict[str, Run]:
    """The runs of a chapter: shipped, or with ``retrain`` trained here from ``seed``; ``quick`` trains very shortly."""
    names = [names] if isinstance(names, str) else names
    if retrain or quick:
        return {name: train_run(name, seed, device, quick=quick)[0] for name in names}
    return {name: load_run(name, device) for name in names}


def train_and_ship(name: str, seeds: Iterable[int] = range(MAX_SEEDS), device: str = "cpu") -> dict:
    """Train with each seed in turn until one reaches the accuracy bar, store its weights and return its manifest entry.

    RuntimeError where none does; seeds that failed are recorded with the one that did not. Interrupted at any point,
    the same call goes on: checkpoints are removed when all is done.
    """
    run_config, failed, entry, tried = shipped_config(name), [], None, []
    for seed in seeds:
        run, done = _train(name, seed, device, quick=False, progress=True)
        weights = run_config.round(run.model)
        tried.append(seed)
        if run.accuracy >= run_config.accuracy_bar:
            entry = _ship(run, weights, done, failed)
            break
        failed.append({"seed": seed, "accuracy": round(run.accuracy, 6)})
    for seed in tried:
        _checkpoint(run_config, seed).unlink()
    if entry is not None:
        return entry
    raise RuntimeError(
        f"{name} did not reach its word accuracy of {run_config.accuracy_bar:.1%} with any seed: "
        + ", ".join(f"{failure['accuracy']:.2%} (seed {failure['seed']})" for failure in failed)
    )


def _ship(run: Run, weights: dict[str, Tensor], done: training.Training, failed: list[dict]) -> dict:
    folder, path = _manifest_path().parent, _manifest_path().parent / f"{run.name}.safetensors"
    log = json.dumps([{**entry, "seconds": round(entry["seconds"], 1)} for entry in done.log])
    files.save_tensors(path, weights, {"run": run.name, "seed": str(run.seed), "log": log})
    if isinstance(run.task, Translation):
        run.task.ship_vocabularies()
    entry = {
        "file": path.relative_to(folder).as_posix(),
        "sha256": files.file_hash(path),
        "config": run.config.settings(),
        "config_hash": run.config.hash,
        "seed": run.seed,
        "failed_seeds": failed,
        "steps": done.steps,
        "seconds": round(done.seconds, 1),
        "threads": torch.get_num_threads(),
        "device": str(run.device),
        "parameters": training.parameter_count(run.model),
        "accuracy": round(run.accuracy, 6),
        "accuracy_bar": run.config.accuracy_bar,
        "versions": versions(),
    }
    if isinstance(run.task, Translation):
        entry["own_pairs"] = sentences.measure(run)
    with files.locked(_manifest_path()):  # trainings of other runs may end at the same moment
        files.write_json(_manifest_path(), {"runs": {**manifest(), run.name: entry}})
    return entry


def versions() -> dict[str, str]:
    """Of Python, torch, numpy and this library."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("torch", "numpy", "howattend")}}


def accuracies_path() -> Path:
    """Where the accuracies of :data:`TRIED` are kept."""
    return files.data_folder() / "results" / "accuracies.csv"


_ACCURACIES = {
    "run": csv_files.text(),
    "seed": csv_files.whole(),
    "steps": csv_files.whole(1),
    "l2": csv_files.number(0),
    "accuracy": csv_files.number(0, 1),
    "config_hash": csv_files.hexadecimal(64),
}


def read_accuracies(*, missing_ok: bool = False) -> pd.DataFrame:
    """What the runs of :data:`TRIED` reached: run, seed, steps, l2, accuracy, config_hash.

    ValueError where the file is damaged; FileNotFoundError where there is none, or no rows with ``missing_ok``.
    """
    advice = "restore it with git checkout, or: python -m howattend accuracies"
    return csv_files.read(accuracies_path(), _ACCURACIES, missing_ok=missing_ok, advice=advice)


def record_accuracies(names: Iterable[str] = (), seed: int = 0, device: str = "cpu") -> pd.DataFrame:
    """Train the runs of :data:`TRIED` that are not recorded with this configuration and seed; keep their accuracy.

    Args:
        names: of runs; none: all of them.
        seed: of the training.
        device: where to train.

    Raises ValueError for a run that is not one of these.
    """
    names = list(names) or list(TRIED)
    if wrong := [name for name in names if name not in TRIED]:
        raise ValueError(f"names must be of {', '.join(TRIED)}, got {', '.join(wrong)}")
    for name in names:
        run_config, path = TRIED[name], accuracies_path()
        recorded = read_accuracies(missing_ok=True)
        if ((recorded["config_hash"] == run_config.hash) & (recorded["seed"] == seed)).any():
            continue
        run, done = train_run(name, seed, device)
        row = {"run": name, "seed": seed, "steps": done.steps, "l2": run_config.train.l2}
        row |= {"accuracy": round(run.accuracy, 6), "config_hash": run_config.hash}
        with files.locked(path):  # trainings of other runs may end at the same moment
            recorded = read_accuracies(missing_ok=True)
            kept = recorded[(recorded["run"] != name) & recorded["run"].isin(TRIED)]
            rows = pd.DataFrame([*kept.to_dict("records"), row])
            rows = rows.set_index("run").loc[[name for name in TRIED if name in set(rows["run"])]].reset_index()
            csv_files.write(path, rows)
    return read_accuracies()


def verify(name: str, device: str = "cpu", tolerance: float = 1e-4) -> Verification:
    """Reload a shipped run and measure its accuracy again; another processor may move a few words of the 180,000.

    A translation run is measured on sentence pairs of our own, and on the test set where the corpus has been built.
    """
    return verification.compare(load_run(name, device), manifest()[name], tolerance)
