"""What defines a network apart from its task: an architecture is a configuration, not a class."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from howattend.settings import ADDED, settings_of

ARCHITECTURES = ("VED", "AED", "AO")
CELLS = ("gru", "lstm", "ugrnn", "ff")
ATTENTIONS = ("dot", "scaled_dot", "additive")
DECODER_INPUTS = ("predicted", "teacher", "constant")
READOUTS = ("both", "context", "state")


@dataclass(frozen=True)
class ModelConfig:
    """Architecture and sizes of an encoder–decoder (Fig. 1).

    architecture
        "VED": recurrent encoder and decoder, no attention. "AED": the same with attention. "AO": attention only, no
        recurrence, positions encoded in the inputs.
    cell
        "gru", "lstm", "ugrnn" or "ff", the non-gated tanh cell (recurrent: an Elman RNN; in AO: a feedforward layer).
    hidden_size
        n, units of the hidden state and dimensions of the word embeddings (n = d).
    attention
        Scores from "dot" products of the states, "scaled_dot" products of learned queries and keys (the context then
        averages learned values), or "additive" (a small network of query and key). VED ignores it.
    decoder_input
        What the decoder is fed in training, after the start of sentence: its own "predicted" word, the true one
        ("teacher") or a "constant", the start of sentence again. None takes the default: "teacher" for AO and for
        translation, else "predicted".
    readout
        What the linear readout sees: "both" context and decoder state, "context" or "state". None takes the default:
        "state" for VED, else "both". With "state" the attention of AED and AO is computed but nothing learns it.
    dropout
        The share of the units of word embeddings, contexts and decoder states (before the readout) that a training step
        sets to zero. Only where data are scarce: translation.
    """

    architecture: str = "AED"
    cell: str = "gru"
    hidden_size: int = 128
    attention: str = "dot"
    decoder_input: str | None = None
    readout: str | None = None
    dropout: float = field(default=0.0, metadata=ADDED)

    def __post_init__(self) -> None:
        for name, valid in (
            ("architecture", ARCHITECTURES),
            ("cell", CELLS),
            ("attention", ATTENTIONS),
            ("decoder_input", (*DECODER_INPUTS, None)),
            ("readout", (*READOUTS, None)),
        ):
            if getattr(self, name) not in valid:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, valid))}, got {getattr(self, name)!r}")
        if not isinstance(self.hidden_size, int) or isinstance(self.hidden_size, bool) or self.hidden_size < 2:
            raise ValueError(f"hidden_size must be an integer ≥ 2, got {self.hidden_size!r}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in 0 … 1, 1 excluded, got {self.dropout!r}")
        if self.architecture == "AO" and self.hidden_size % 2:
            raise ValueError(f"hidden_size must be even for AO (sines and cosines in pairs), got {self.hidden_size}")
        if self.architecture == "VED" and self.readout in ("both", "context"):
            raise ValueError(f'readout must be "state" for VED, which has no context, got {self.readout!r}')

    def settings(self) -> dict[str, object]:
        """As plain data, for the hash of a run's configuration."""
        return settings_of(self)

    @property
    def has_attention(self) -> bool:
        return self.architecture != "VED"

    @property
    def is_recurrent(self) -> bool:
        return self.architecture != "AO"

    def resolve(self, task_decoder_input: str) -> ModelConfig:
        """The same configuration with its defaults filled in; the decoder input's default depends on the task."""
        decoder_input = self.decoder_input or (task_decoder_input if self.is_recurrent else "teacher")
        return replace(self, decoder_input=decoder_input, readout=self.readout or self.default_readout)

    @property
    def default_readout(self) -> str:
        return "both" if self.has_attention else "state"
