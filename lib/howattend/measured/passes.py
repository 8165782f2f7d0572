"""Two passes over the test split: components, then all that needs them; memory does not grow with the pairs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from tqdm import tqdm

from howattend import alignment, statistics
from howattend._progress import bar_options
from howattend.decomposition import Components, StreamingDecomposition
from howattend.measured.dictionary import aligned_steps
from howattend.measured.results import ALL, WEIGHTS, WORDS, Measured, common_steps, with_word
from howattend.models import EncoderDecoder, Trace
from howattend.tasks import Batch, Translation
from howattend.tasks.batch import length_mask

if TYPE_CHECKING:
    from howattend.analysis import Run
    from howattend.runs import RunConfig

CHUNK = 128  # pairs a batch: their logits, the largest part of a trace, take 50 MB with 6000 words

# A word's variance relative to its states' mean square: below it the states are equal up to rounding.
_NO_VARIANCE = 1e-12


def is_measured(config: RunConfig) -> bool:
    """Whether a run is one that is measured here: of translation, with dot-product attention (no VED)."""
    return not _obstacle(config)


def require_measured(config: RunConfig) -> None:
    """ValueError, which says why, for a run that is not measured here."""
    if obstacle := _obstacle(config):
        raise ValueError(f"run must be of translation with dot-product attention, but {config.name} {obstacle}")


def _obstacle(config: RunConfig) -> str:
    if not isinstance(config.task, Translation):
        return f"is of {config.task.name}"
    if not config.model.has_attention:
        return f"is a {config.model.architecture}, which has no attention"
    return "" if config.model.attention == "dot" else f"has attention {config.model.attention!r}"


def measure(run: Run, *, progress: bool = True) -> Measured:
    """Measure a translation run on its test split; its corpus must have been built (FileNotFoundError says how).

    ValueError for a run of another task, or without dot-product attention (VED).
    """
    require_measured(run.config)
    found = measure_batches(run, batches_of(run), progress=progress)
    train = run.task.split("train")
    means = alignment.offsets(aligned_steps(train))
    steps = np.arange(1, train.target.shape[1] + 1)
    words = int((train.target_lengths - 1).sum()) / int((train.source_lengths - 1).sum())
    aligned, counts = means.mean.numpy() + steps, means.counts.numpy()
    return replace(found, length_ratio=words, aligned=aligned, aligned_counts=counts)


def batches_of(run: Run) -> list[Batch]:
    """The test split, the shortest first, so that little of a batch is padding."""
    return [run.test[rows] for rows in run.test.target_lengths.argsort(stable=True).split(CHUNK)]


@torch.no_grad()
def mean_attention_distance(run: Run, batches: Iterable[Batch] | None = None, *, progress: bool = True) -> float:
    """How far an output's attention is from the mean attention of its sentence's length (H1): as
    :func:`howattend.statistics.distance_to_mean_attention`, over words at common decoder steps, in two passes.

    Args:
        run: of translation.
        batches: gone through twice; None: the test split.
        progress: show bars.

    Returns:
        A mean total variation in [0, 1].
    """
    require_measured(run.config)
    batches = batches_of(run) if batches is None else batches
    source_steps, target_steps = run.task.source_steps, run.task.target_steps
    sums = torch.zeros(source_steps + 1, target_steps, source_steps, dtype=torch.float64, device=run.device)
    counts = torch.zeros(source_steps + 1, target_steps, dtype=torch.float64, device=run.device)
    lengths = torch.zeros(target_steps + 1, dtype=torch.int64)
    for trace, batch in _traces(run, batches, "mean attention", progress):
        words = _word_mask(trace.decoder_mask)
        _, rows, columns = trace.attention.shape
        weights = trace.attention.double() * words[..., None]
        sums[:, :rows, :columns].index_add_(0, batch.source_lengths, weights)
        counts[:, :rows].index_add_(0, batch.source_lengths, words.double())
        lengths += torch.bincount(batch.target_lengths.cpu(), minlength=target_steps + 1)
    means, common = sums / counts[..., None].clamp(min=1), common_steps(lengths.numpy())
    total, outputs = 0.0, 0
    for trace, batch in _traces(run, batches, "distances", progress):
        words = _word_mask(trace.decoder_mask)
        words[:, common:] = False
        _, rows, columns = trace.attention.shape
        expected = means[batch.source_lengths, :rows, :columns]
        total += float(0.5 * (trace.attention - expected).abs().sum(-1)[words].sum())
        outputs += int(words.sum())
    return total / outputs


@torch.no_grad()
def measure_batches(run: Run, batches: Iterable[Batch], *, progress: bool = True) -> Measured:
    """The same on batches of any pairs of the task, without what is said of the training split.

    One batch is held at a time. They are gone through twice, so a list or an object that makes them anew is needed, no
    generator.
    """
    require_measured(run.config)
    first = _Components(run)
    for trace, batch in _traces(run, batches, "components", progress):
        first.add(trace, batch)
    second = _Rest(run, first)
    for trace, _ in _traces(run, batches, "terms", progress):
        second.add(trace)
    if second.pairs != first.pairs:
        raise ValueError(
            f"batches must give the same pairs each time, got {first.pairs} and then {second.pairs}: pass a list"
        )
    return Measured(
        run=run.name,
        seed=run.seed,
        config_hash=run.config.hash,
        weights_hash=weights_hash(run.model),
        accuracy=first.right / first.outputs,
        encoder=_stored(first.encoder.components()),
        decoder=_stored(first.decoder.components()),
        encoder_words=first.words_alone("encoder"),
        decoder_words=first.words_alone("decoder"),
        encoder_counts=first.encoder_counts.cpu().numpy(),
        decoder_counts=first.decoder_counts.cpu().numpy(),
        length_counts=first.length_counts.numpy(),
        term_sums=second.term_sums.cpu().numpy(),
        distance_sums=second.distance_sums,
        variances=np.stack([part.variances() for part in second.occurrences]),
        delta_shares=np.array([part.delta_share() for part in second.occurrences]),
        length_ratio=np.nan,
        aligned=np.full(run.task.target_steps, np.nan),
        aligned_counts=np.zeros(run.task.target_steps, np.int64),
    )


def weights_hash(model: EncoderDecoder) -> str:
    """sha256 of the network's parameters, in the precision that they have."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _traces(run: Run, batches: Iterable[Batch], what: str, progress: bool) -> Iterator[tuple[Trace, Batch]]:
    """Each batch with its trace under teacher forcing, as translation is trained and judged."""
    for batch in tqdm(batches, desc=f"{run.name}: {what}", unit="batch", **bar_options(progress)):
        trimmed = batch.trimmed().to(run.device)
        yield run.model.trace(trimmed, "teacher"), trimmed


def _stored(components: Components) -> Components:
    """In numpy, with input components in the precision that they are stored in."""
    temporal, inputs, _, steps, words = (
        None if part is None else part.cpu().numpy() for part in vars(components).values()
    )
    return Components(temporal, inputs.astype(np.float16).astype(np.float32), None, steps, words)


def _word_mask(mask: Tensor) -> Tensor:
    """The same mask [M, steps] without each sentence's last step, its end."""
    return length_mask(mask.sum(1) - 1, mask.shape[1])


class _Components:
    """First pass: components, lengths, accuracy."""

    def __init__(self, run: Run) -> None:
        task, size = run.task, run.model.config.hidden_size
        self.steps = task.source_steps, task.target_steps
        self.words = len(task.source_vocabulary), len(task.target_vocabulary)
        self.encoder = StreamingDecomposition(self.steps[0], self.words[0], size)
        self.decoder = StreamingDecomposition(self.steps[1], self.words[1], size)
        self.sums = {
            side: torch.zeros(steps, size, dtype=torch.float64, device=run.device)
            for side, steps in zip(("encoder", "decoder"), self.steps, strict=True)
        }
        self.encoder_counts = torch.zeros(self.words[0], self.steps[0], dtype=torch.int64, device=run.device)
        self.decoder_counts = torch.zeros(self.words[1], self.steps[1], dtype=torch.int64, device=run.device)
        self.length_counts = torch.zeros(self.steps[0] + 1, self.steps[1] + 1, dtype=torch.int64)
        self.pairs = self.right = self.outputs = 0

    def add(self, trace: Trace, batch: Batch) -> None:
        for side, steps in zip(("encoder", "decoder"), self.steps, strict=True):
            states, tokens, mask = (getattr(trace, f"{side}_{part}") for part in ("states", "tokens", "mask"))
            self.sums[side][: states.shape[1]] += (states.double() * _word_mask(mask)[..., None]).sum(0)
            rest = steps - states.shape[1]
            tokens, mask = pad(tokens, (0, rest)), pad(mask, (0, rest))
            getattr(self, side).update(pad(states, (0, 0, 0, rest)), tokens, mask)
            counts = getattr(self, f"{side}_counts")
            counts += _counts(tokens, mask, len(counts))
        lengths = (batch.source_lengths * (self.steps[1] + 1) + batch.target_lengths).cpu()
        self.length_counts += torch.bincount(lengths, minlength=self.length_counts.numel()).view_as(self.length_counts)
        self.pairs += len(batch)
        self.right += int(((trace.logits.argmax(-1) == batch.target) & trace.decoder_mask).sum())
        self.outputs += int(trace.decoder_mask.sum())

    def words_alone(self, side: str) -> np.ndarray:
        """The mean state [steps, n] at each step over words, in float32."""
        counts = with_word(self.length_counts.numpy().sum(1 if side == "encoder" else 0))
        means = self.sums[side].cpu().numpy() / np.where(counts > 0, counts, np.nan)[:, None]
        return means.astype(np.float32)


def _first_steps(components: Components, steps: int) -> Components:
    """The same of the first steps only."""
    counts = components.step_counts[:steps], components.word_counts
    return Components(components.temporal[:steps], components.input, None, *counts)


def _counts(tokens: Tensor, mask: Tensor, words: int) -> Tensor:
    """Occurrences [V, steps] of each word at each step."""
    steps = tokens.shape[1]
    places = tokens * steps + torch.arange(steps, device=tokens.device)
    return torch.bincount(places[mask], minlength=words * steps).view(words, steps)


class _Rest:
    """Second pass: sums of the nine terms, distances to the diagonal, variances and deltas of the encoder states."""

    def __init__(self, run: Run, first: _Components) -> None:
        self.encoder, self.decoder = first.encoder.components(), first.decoder.components()
        steps, lengths = first.steps, first.length_counts.numpy()
        self.common = common_steps(lengths.sum(1))
        self.temporal = alignment.temporal_scores(self.decoder, self.encoder).cpu().numpy()
        self.term_sums = torch.zeros(2, 3, steps[1], 3, 3, dtype=torch.float64, device=run.device)
        self.distance_sums = np.zeros((2, len(WEIGHTS), steps[1]))
        size = run.model.config.hidden_size
        self.occurrences = [_Occurrences(first.words[0], size, run.device) for _ in (WORDS, ALL)]
        self.pairs = 0

    def add(self, trace: Trace) -> None:
        self.pairs += len(trace)
        _, target_steps, source_steps = trace.scores.shape
        encoder, decoder = _first_steps(self.encoder, source_steps), _first_steps(self.decoder, target_steps)
        outputs = [_word_mask(trace.decoder_mask), trace.decoder_mask]
        for rows in (WORDS, ALL):
            self.term_sums[rows, :, :target_steps] += alignment.share_sums(decoder, encoder, trace, outputs[rows])
        self._add_distances(trace, [mask.cpu().numpy() for mask in outputs])
        words = _word_mask(trace.encoder_mask)
        words[:, self.common :] = False
        delta = encoder.delta_of(trace.encoder_states, trace.encoder_tokens, trace.encoder_mask)
        for part, mask in zip(self.occurrences, (words, trace.encoder_mask), strict=True):
            part.add(trace.encoder_states, encoder.temporal, delta, trace.encoder_tokens, mask)

    def _add_distances(self, trace: Trace, outputs: list[np.ndarray]) -> None:
        source = trace.encoder_mask.cpu().numpy()
        lengths = source.sum(1), outputs[ALL].sum(1)
        shape = trace.scores.shape
        temporal = self.temporal[: shape[1], : shape[2]]
        weights = {
            "attention": trace.attention.cpu().numpy(),
            "temporal": statistics.softmax(np.broadcast_to(temporal, shape), source[:, None]),
            "shuffled": np.broadcast_to((source / source.sum(1, keepdims=True))[:, None], shape),
        }
        for kind, name in enumerate(WEIGHTS):
            distances = statistics.diagonal_distance(weights[name], *lengths, outputs[ALL])
            for rows in (WORDS, ALL):
                self.distance_sums[rows, kind, : shape[1]] += np.where(outputs[rows], distances, 0).sum(0)


@dataclass
class _Moments:
    """Sums of vectors by word."""

    total: Tensor  # [V, n]
    squares: Tensor  # [V]

    def add(self, rows: Tensor, words: Tensor) -> None:
        self.total.index_add_(0, words, rows)
        self.squares.index_add_(0, words, rows.square().sum(1))

    def variances(self, counts: Tensor) -> Tensor:
        """Total variance [V] (trace of the covariance) of so many vectors."""
        return (self.squares / counts - (self.total / counts[:, None]).square().sum(1)).clamp(min=0)


class _Occurrences:
    """Of the occurrences of source words under a mask: variances by word, and the deltas' share of all variance."""

    def __init__(self, words: int, size: int, device: torch.device) -> None:
        self.counts = torch.zeros(words, dtype=torch.float64, device=device)
        self.states, self.rest = (
            _Moments(
                torch.zeros(words, size, dtype=torch.float64, device=device),
                torch.zeros(words, dtype=torch.float64, device=device),
            )
            for _ in range(2)
        )
        self.delta = 0.0

    def add(self, states: Tensor, temporal: Tensor, delta: Tensor, tokens: Tensor, mask: Tensor) -> None:
        words, rows = tokens[mask], states[mask].double()
        self.counts += torch.bincount(words, minlength=len(self.counts))
        self.states.add(rows, words)
        self.rest.add(rows - temporal.double().expand(states.shape)[mask], words)
        self.delta += float(delta[mask].double().square().sum())

    def variances(self) -> np.ndarray:
        """var h and var(h − μ) [2, V], NaN below 2 occurrences or where a word's states are equal up to rounding."""
        both = torch.stack([part.variances(self.counts) for part in (self.states, self.rest)])
        equal = both[0] <= _NO_VARIANCE * self.states.squares / self.counts
        return both.masked_fill((self.counts < 2) | equal, torch.nan).cpu().numpy()

    def delta_share(self) -> float:
        """Σ‖Δh‖² / Σ‖h − mean‖²."""
        energy = self.states.squares.sum() - self.states.total.sum(0).square().sum() / self.counts.sum()
        return self.delta / float(energy)
