"""How well translation networks translate: word accuracy and BLEU, overall and by sentence length, and what they show.

BLEU is sacrebleu's corpus BLEU, and its signature is recorded with every score. It compares words as the corpus has
them, lower-cased and cut (``tok:none``, ``case:mixed`` of a text that has no capitals): scores of other work, which are
of detokenised text, cannot be compared with these. A reference keeps the words that the vocabulary lacks, and an
``<unk>`` of a network matches none of them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from howattend import csv_files, files, runs, sentences
from howattend._progress import bar_options
from howattend._validation import require_count, shortened
from howattend.analysis import Run
from howattend.models import EncoderDecoder, beam_search
from howattend.tasks import Batch, Translation

BEAM = 5
MAX_BEAM = 100  # time and memory grow with it, and translations get no better: a wider one is a mistake, and hangs
ALL = "all"
#: Groups of pairs by words of the source sentence, its end not counted: from, to.
LENGTHS = {"1-3": (1, 3), "4-6": (4, 6), "7-9": (7, 9), "10-12": (10, 12), "13-15": (13, 15)}
LEAST_PAIRS = 10  # smaller groups have no row
BOOTSTRAP = 1000  # resamplings of the sentences for an interval
COLUMNS = (
    *("run", "seed", "search", "register", "lengths", "pairs", "mean_length"),
    *("bleu", "low", "high", "accuracy", "known_accuracy", "signature", "config_hash"),
)


# ---- decoding -------------------------------------------------------------------------------------------------------


def decode(
    model: EncoderDecoder,
    source: Tensor,
    source_lengths: Tensor,
    max_length: int,
    width: int = 1,
    chunk: int = 256,
    *,
    progress: bool = False,
) -> Tensor:
    """Translations [B, max_length] of many sentences, ``chunk`` at a time; on the CPU, padded behind the end.

    Args:
        model: on any device.
        source: [B, T] word ids, on any device.
        source_lengths: [B], ends of sentence included.
        max_length: words of the longest translation, its end included.
        width: 1 decodes greedily, more is the width of a beam (:func:`howattend.models.beam_search`), at most
            :data:`MAX_BEAM`.
        chunk: sentences decoded at once.
        progress: show a bar.

    Raises ValueError for a width or length out of range.
    """
    width, chunk = _width("width", width), require_count(chunk, "chunk")
    device, found = model.readout_bias.device, [torch.zeros(0, max_length, dtype=torch.int64)]
    options = {"desc": search_name(width), "unit": "batch", **bar_options(progress)}
    for start in tqdm(range(0, len(source), chunk), **options):
        lengths = source_lengths[start : start + chunk].to(device)
        part = source[start : start + chunk, : int(lengths.max())].to(device)
        if width == 1:
            words = model.generate(part, lengths, max_length)
        else:
            words = beam_search(model, part, lengths, max_length, width)
        found.append(torch.nn.functional.pad(words.cpu(), (0, max_length - words.shape[1])))
    return torch.cat(found)


def search_name(width: int) -> str:
    """How a search is named in results: "greedy", "beam 5"."""
    return "greedy" if width == 1 else f"beam {width}"


def _width(name: str, value: int) -> int:
    """The width of a search as an int; ValueError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= MAX_BEAM:
        raise ValueError(f"{name} must be an integer from 1 (greedy) to {MAX_BEAM}, got {value!r}")
    return int(value)


def translate(
    model: EncoderDecoder | Run, task: Translation, english: str | Sequence[str], beam: int = BEAM
) -> list[str]:
    """French for English sentences of one's own, written as usual.

    What the network cannot name is ``<unk>``; :meth:`Translation.unknown_words` names the English words that it does
    not know.

    Args:
        model: a network of translation, or its run.
        task: the one that it was trained on; its vocabularies are needed.
        english: a sentence, or several.
        beam: the search's width, 1 (greedy) to :data:`MAX_BEAM`.

    Raises TypeError for arguments of another kind, and ValueError for another task than the network's, a beam out of
    range, and sentences as for :meth:`Translation.encode`.
    """
    model, beam = _network(model, task), _width("beam", beam)
    words = decode(model, *task.encode(english), task.target_steps, beam)
    return [detokenise(task.target_vocabulary.decode(row)) for row in words]


def _require_translation(task: Translation) -> None:
    if not isinstance(task, Translation):
        raise TypeError(f"task must be a Translation, such as a translation run's, got {shortened(task)}")


def _network(model: EncoderDecoder | Run, task: Translation) -> EncoderDecoder:
    """The network, which must be one of the task."""
    _require_translation(task)
    if isinstance(model, Run):
        if model.task != task:
            raise ValueError(f"task must be the one of {model.name}, got another one: pass run.task")
        model = model.model
    if not isinstance(model, EncoderDecoder):
        raise TypeError(f"model must be an EncoderDecoder or a Run, got {shortened(model)}")
    sizes = len(task.source_vocabulary), len(task.target_vocabulary)
    if (model.source_words, model.target_words) != sizes:
        raise ValueError(
            f"model must have the task's vocabularies of {sizes[0]} and {sizes[1]} words, got one of "
            f"{model.source_words} and {model.target_words}: pass the task that it was trained on"
        )
    return model


_JOINS_NEXT = re.compile(r"\w+'|[(\[{]")  # l', jusqu'
_JOINS_LAST = re.compile(r"-\w[\w-]*|[.,)\]}]|\.{2,}")  # -vous, -t-il


def detokenise(words: Sequence[str]) -> str:
    """French words as one line: clitics at their word, no space before a point or a comma, one before ``: ; ! ?``.

    Quotes open and close in turn. Everything stays in lower case, as the networks say it.
    """
    text, joined, quoted = "", True, False
    for word in words:
        closes = word == '"' and quoted
        text += word if joined or closes or _JOINS_LAST.fullmatch(word) else f" {word}"
        joined = bool(_JOINS_NEXT.fullmatch(word)) or (word == '"' and not quoted)
        quoted ^= word == '"'
    return text


# ---- BLEU -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """Corpus BLEU, 0 … 100, with the 95 % interval of a bootstrap over sentences, and sacrebleu's signature."""

    bleu: float
    low: float
    high: float
    signature: str


def bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Score:
    """BLEU of translations, one reference each, all as words.

    Up to 4-grams of the whole corpus with its brevity penalty; a corpus that matches no n-gram of an order is smoothed
    ("exp"). ValueError where the two differ in number or are empty, ModuleNotFoundError without sacrebleu.
    """
    try:
        from sacrebleu.metrics import BLEU  # only results need it
    except ModuleNotFoundError:
        raise ModuleNotFoundError("BLEU is computed by the package sacrebleu: pip install sacrebleu") from None
    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(
            f"hypotheses and references must be as many, at least 1, got {len(hypotheses)} and {len(references)}"
        )
    metric = BLEU(tokenize="none", force=True)  # force: it is meant that points are words
    lines, reference_lines = ([" ".join(words) for words in side] for side in (hypotheses, references))
    score = metric.corpus_score(lines, [reference_lines], n_bootstrap=BOOTSTRAP)
    signature = str(metric.get_signature())
    found = json.loads(score.format(width=6, signature=signature, is_json=True))
    mean, half = (
        found.get("confidence_mean", found["score"]),
        found.get("confidence_var", 0.0),
    )  # absent where all are 0
    return Score(found["score"], mean - half, mean + half, signature)


# ---- a run ----------------------------------------------------------------------------------------------------------


def measure(run: Run, widths: Sequence[int] = (1, BEAM), split: str = "test", *, progress: bool = True) -> pd.DataFrame:
    """BLEU and teacher-forced word accuracy of a run, a row for each search, register and length of source sentence.

    Columns: run, seed, search ("greedy", "beam 5"), register ("all", and each of the corpus's where there are several),
    lengths ("all", "1-3", …), pairs (at least 10: a smaller group has no row), mean_length (words of these sources),
    bleu, low and high (95 %), accuracy (of the next word on the row's pairs) and known_accuracy (the same without the
    target's ``<unk>``), signature, config_hash.

    Raises FileNotFoundError where the corpus has not been built, ValueError for a width out of range, TypeError for a
    run of another task.
    """
    _require_translation(run.task)
    widths = [_width("widths", width) for width in widths]
    task, batch = run.task, run.task.split(split)
    references, registers = task.split_words(split)[1:]
    right = sentences.right_words(run.model, batch.to(run.device))
    groups = list(_groups(batch, registers))
    rows = []
    for width in widths:
        ids = decode(run.model, batch.source, batch.source_lengths, task.target_steps, width, progress=progress)
        hypotheses = [task.target_vocabulary.decode(row) for row in ids]
        for register, lengths, chosen in groups:
            score = bleu([hypotheses[index] for index in chosen], [references[index] for index in chosen])
            part = batch[chosen]
            accuracy = sentences.accuracies(right[chosen], part)
            length = float((part.source_lengths - 1).double().mean())
            pairs = (register, lengths, len(chosen), length)
            values = (score.bleu, score.low, score.high, *accuracy, score.signature)
            rows.append((run.name, run.seed, search_name(width), *pairs, *values, run.config.hash))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _groups(batch: Batch, registers: list[str]) -> Iterator[tuple[str, str, Tensor]]:
    """Register, lengths and the rows [K] of each group of pairs that is large enough."""
    words, of_pair = batch.source_lengths - 1, np.array(registers)
    several = sorted(set(registers)) if len(set(registers)) > 1 else []
    for register in (ALL, *several):
        here = torch.from_numpy((of_pair == register) | (register == ALL))
        for lengths, (first, last) in {ALL: (1, int(words.max())), **LENGTHS}.items():
            chosen = torch.nonzero(here & (words >= first) & (words <= last)).flatten()
            if len(chosen) >= LEAST_PAIRS:
                yield register, lengths, chosen


def path() -> Path:
    """Where the rows of the shipped runs are kept."""
    return files.data_folder() / "results" / "bleu.csv"


def read() -> pd.DataFrame:
    """The recorded rows, see :func:`measure`."""
    if not path().exists():
        raise FileNotFoundError(f"{path()} is missing; restore it with git checkout, or: python -m howattend bleu")
    rows = pd.read_csv(path(), keep_default_na=False, dtype={"lengths": str})
    if missing := set(COLUMNS) - set(rows.columns):
        raise ValueError(f"{path()} is damaged: it has no {', '.join(sorted(missing))}; restore it with git checkout")
    return rows


def record(names: Iterable[str] = (), device: str = "cpu", *, progress: bool = True) -> pd.DataFrame:
    """Measure shipped translation runs on the test split and record their rows in place of those that they had.

    Args:
        names: of runs; none: all translation runs that are shipped.
        device: where to decode.
        progress: show bars.

    Returns the rows of these runs. Raises ValueError for a run of another task or where none is shipped,
    FileNotFoundError without its weights or the corpus.
    """
    names = list(names) or [name for name in runs.manifest() if is_translation(name)]
    if wrong := [name for name in names if not is_translation(name)]:
        known = ", ".join(name for name in runs.REGISTRY if is_translation(name))
        raise ValueError(f"names must be of translation runs ({known}), got {', '.join(wrong)}")
    if not names:
        raise ValueError("no translation run is shipped; train one: python -m howattend train RUN")
    measured = []
    for name in names:
        measured.append(measure(runs.load_run(name, device), progress=progress))
        with files.locked(path()):
            rows = [measured[-1]]
            if path().exists():
                recorded = read()
                rows.append(recorded[(recorded["run"] != name) & recorded["run"].isin(runs.REGISTRY)])
            _write(pd.concat(rows))
    return pd.concat(measured, ignore_index=True)


def is_translation(name: str) -> bool:
    """Whether a run of this name is one of the translation task."""
    return isinstance(runs.config(name).task, Translation)


def _write(rows: pd.DataFrame) -> None:
    order = {name: number for number, name in enumerate(runs.REGISTRY)}
    csv_files.write(path(), rows.sort_values("run", key=lambda names: names.map(order), kind="stable"))


# ---- what the rows show ---------------------------------------------------------------------------------------------

#: The lengths over which BLEU's fall is measured: it counts 4-grams, and shorter sentences have none.
FALL = ("4-6", "7-9", "10-12", "13-15")
_Z = 1.959964  # standard errors in half a 95 % interval


@dataclass(frozen=True)
class Comparison:
    """A difference that is to be positive, with its 95 % interval; it holds where the interval is above 0.

    The intervals come from those of two scores on the same sentences, taken as independent. Their errors are positively
    correlated (a hard sentence is hard for both), so this one is too wide, never too narrow.
    """

    difference: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low > 0


def recorded_accuracy(rows: pd.DataFrame, run: str) -> float:
    """Teacher-forced word accuracy of a run on all pairs, which the bar of its configuration is for."""
    return _rows(rows, run, "greedy", ALL, [ALL])[0].accuracy


def better(rows: pd.DataFrame, run: str, other: str, search: str = "greedy", register: str = ALL) -> Comparison:
    """By how many points of BLEU one run is above another.

    Args:
        rows: of :func:`read` or :func:`measure`.
        run: the one that is to be better.
        other: the one that it is compared with.
        search: of both.
        register: the sentences that count.

    Raises ValueError where a row is missing.
    """
    (one,), (two,) = (_rows(rows, name, search, register, [ALL]) for name in (run, other))
    return _comparison(one.bleu - two.bleu, _error(one), _error(two))


def falls_faster(rows: pd.DataFrame, run: str, other: str, search: str = "greedy", register: str = ALL) -> Comparison:
    """By how much more of its BLEU one run loses with each further word of the source than another does.

    A run's fall is minus the slope of log BLEU on the mean length of the groups in :data:`FALL` (least squares): the
    share of the score that a word more costs. Relative, because the lower of two scores has fewer points to lose.

    Args and errors as for :func:`better`; ValueError, too, for a BLEU of 0.
    """
    slopes, errors = [], []
    for name in (run, other):
        found = _rows(rows, name, search, register, FALL)
        if not all(row.bleu > 0 for row in found):
            raise ValueError(f"{name} has a BLEU of 0, which has no share to lose")
        centred = np.array([row.mean_length for row in found])
        centred = centred - centred.mean()
        weights = centred / (centred**2).sum()
        slopes.append(-float(weights @ np.log([row.bleu for row in found])))
        errors.append(
            math.hypot(*(weight * _error(row) / row.bleu for weight, row in zip(weights, found, strict=True)))
        )
    return _comparison(slopes[0] - slopes[1], *errors)


def _rows(rows: pd.DataFrame, run: str, search: str, register: str, lengths: Sequence[str]) -> list:
    """One row for each of the lengths, in order."""
    chosen = rows[(rows["run"] == run) & (rows["search"] == search) & (rows["register"] == register)]
    found = [list(chosen[chosen["lengths"] == length].itertuples()) for length in lengths]
    if wrong := [length for length, here in zip(lengths, found, strict=True) if len(here) != 1]:
        raise ValueError(
            f"rows must hold one row for each of lengths {', '.join(lengths)} of {run}, {search}, register {register}; "
            f"not so for {', '.join(wrong)}: python -m howattend bleu {run}"
        )
    return [here[0] for here in found]


def _error(row: object) -> float:
    return (row.high - row.low) / 2 / _Z


def _comparison(difference: float, *errors: float) -> Comparison:
    half = _Z * math.hypot(*errors)
    return Comparison(difference, difference - half, difference + half)
