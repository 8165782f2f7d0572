"""A trained network with its test set, and all that chapters and claims derive from both, each computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from howattend import alignment, decomposition, measured, training
from howattend.models import EncoderDecoder, Trace
from howattend.tasks import Batch, Task

if TYPE_CHECKING:
    from howattend.runs import RunConfig


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network on its held-out test set of M samples.

    "Common" steps are those at which every sample reads, or has to produce, a content word: behind the shortest length
    the temporal component mixes in ends of sentence, which distorts the statistics (claims.toml, words and steps).
    """

    config: RunConfig
    model: EncoderDecoder
    seed: int
    comparable: bool = True  # False after a quick training: its claims say nothing about the paper's

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def task(self) -> Task:
        return self.config.task

    @property
    def architecture(self) -> str:
        return self.config.model.architecture

    @property
    def device(self) -> torch.device:
        return self.model.readout_bias.device

    @cached_property
    def test(self) -> Batch:
        """The held-out test set, on the CPU."""
        return self.task.test_set()

    @cached_property
    def accuracy(self) -> float:
        """Word accuracy on the test set: free-running, or of translation teacher-forced."""
        forced = self.task.teacher_forced_accuracy
        return training.word_accuracy(self.model, self.test.to(self.device), teacher_forced=forced)

    @cached_property
    def trace(self) -> Trace:
        """States, scores and logits of the test set, the decoder fed as in training; on the CPU, whatever computed it.

        Statistics need float64, which not every accelerator has.
        """
        return self.model.trace(self.test.to(self.device)).to("cpu")

    @property
    def learns_keys(self) -> bool:
        """Whether the scores are dot products of learned queries and keys, and not of the states themselves."""
        return self.architecture != "VED" and self.config.model.attention == "scaled_dot"

    @property
    def encoder_vectors(self) -> Tensor:
        """[M, T, n] what is decomposed: the encoder states, or the keys where attention learns them (V2)."""
        return self.trace.keys if self.learns_keys else self.trace.encoder_states

    @property
    def decoder_vectors(self) -> Tensor:
        """[M, S, n] what is decomposed: the decoder states, or the queries where attention learns them (V2)."""
        return self.trace.queries if self.learns_keys else self.trace.decoder_states

    @cached_property
    def measured(self) -> measured.Measured:
        """Of a run of translation: what its test split gives, stored with the results or measured here."""
        return measured.of(self)

    @cached_property
    def encoder(self) -> decomposition.Components:
        """Components of the encoder states, or of the keys: see :attr:`encoder_vectors`."""
        return self._encoder_components(self.encoder_vectors)

    @cached_property
    def decoder(self) -> decomposition.Components:
        """Components of the decoder states, or of the queries: see :attr:`decoder_vectors`."""
        trace, words = self.trace, len(self.task.target_vocabulary)
        return decomposition.decompose(self.decoder_vectors, trace.decoder_tokens, trace.decoder_mask, words)

    def _encoder_components(self, vectors: Tensor) -> decomposition.Components:
        trace, words = self.trace, len(self.task.source_vocabulary)
        return decomposition.decompose(vectors, trace.encoder_tokens, trace.encoder_mask, words)

    @property
    def encoder_input_delta(self) -> Tensor:
        """χ^E + Δh^E [M, T, n], 0 on padding."""
        return self.encoder.input_delta(self.trace.encoder_tokens, self.trace.encoder_mask)

    @property
    def decoder_input_delta(self) -> Tensor:
        """χ^D + Δh^D [M, S, n], 0 on padding."""
        return self.decoder.input_delta(self.trace.decoder_tokens, self.trace.decoder_mask)

    @cached_property
    def encoder_steps(self) -> int:
        """The number of common encoder steps."""
        return int(self.test.source_lengths.min()) - 1

    @cached_property
    def decoder_steps(self) -> int:
        """The number of common decoder steps."""
        return int(self.test.target_lengths.min()) - 1

    @cached_property
    def common_encoder_mask(self) -> Tensor:
        """[M, T] True on common steps."""
        return first_steps(self.trace.encoder_mask, self.encoder_steps)

    @cached_property
    def common_decoder_mask(self) -> Tensor:
        """[M, S] True on common steps."""
        return first_steps(self.trace.decoder_mask, self.decoder_steps)

    @property
    def encoder_path(self) -> np.ndarray:
        """μ^E at the common steps [steps, n]."""
        return array(self.encoder.temporal)[: self.encoder_steps]

    @property
    def decoder_path(self) -> np.ndarray:
        """μ^D at the common steps [steps, n]."""
        return array(self.decoder.temporal)[: self.decoder_steps]

    @cached_property
    def value_input(self) -> Tensor:
        """χ of what the context averages [V, n], which readouts from the context see: the encoder states, or learned
        values.
        """
        return self._encoder_components(self.trace.values).input if self.learns_keys else self.encoder.input

    @property
    def inputs(self) -> np.ndarray:
        """χ^E of the content words [N, n], of the values where attention learns them."""
        return array(self.value_input)[list(self.task.source_vocabulary.content_ids)]

    def readouts(self, side: str) -> np.ndarray:
        """Readout vectors of the content words [N, n], from the "context" or the "state"."""
        weights = getattr(self.model, f"{side}_readout")
        if weights is None:
            raise ValueError(
                f'{self.name} has no readout from its {side}; its readout is "{self.model.config.readout}"'
            )
        return array(weights)[list(self.task.target_vocabulary.content_ids)]

    @cached_property
    def shares(self) -> alignment.Shares:
        """The nine terms' shares of the largest score, over common decoder steps."""
        return alignment.shares(self.decoder, self.encoder, self.trace, decoder_mask=self.common_decoder_mask)

    @cached_property
    def shares_all_steps(self) -> alignment.Shares:
        """The same over all steps, end of sentence included."""
        return alignment.shares(self.decoder, self.encoder, self.trace)


def array(tensor: Tensor) -> np.ndarray:
    """A tensor of any device as a numpy array."""
    return tensor.detach().cpu().numpy()


def first_steps(mask: Tensor, steps: int) -> Tensor:
    """The same mask [M, T] with nothing behind the first ``steps``."""
    return mask & (torch.arange(mask.shape[1], device=mask.device) < steps)
