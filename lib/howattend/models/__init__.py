"""Encoder–decoder networks: VED, AED and AO, with their cells and attentions."""

from howattend.models.attention import AdditiveAttention, DotAttention, ScaledDotAttention, attend
from howattend.models.cells import CELL_CLASSES, GRU, LSTM, UGRNN, Cell, NonGated
from howattend.models.config import ModelConfig
from howattend.models.encoder_decoder import Encoded, EncoderDecoder, positional_encoding
from howattend.models.search import beam_search
from howattend.models.trace import Trace

__all__ = [
    "CELL_CLASSES",
    "GRU",
    "LSTM",
    "UGRNN",
    "AdditiveAttention",
    "Cell",
    "DotAttention",
    "Encoded",
    "EncoderDecoder",
    "ModelConfig",
    "NonGated",
    "ScaledDotAttention",
    "Trace",
    "attend",
    "beam_search",
    "positional_encoding",
]
