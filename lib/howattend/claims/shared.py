"""What the claims of several tasks have in common."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from howattend import statistics
from howattend.analysis import Run, array

Runs = Mapping[str, Run]


def delta_share(run: Run, mask: torch.Tensor) -> float:
    """Σ‖Δh^E‖² / Σ‖h^E − mean‖² over the masked encoder steps (O4, O10, E9)."""
    return statistics.energy_share(array(run.encoder.delta), array(run.encoder_vectors), array(mask))


def mean_variance_drop(run: Run, mask: torch.Tensor) -> float:
    """1 − var(h^E − μ^E)/var(h^E), mean over the content words (O11, E4)."""
    states, temporal, tokens = run.encoder_vectors, run.encoder.temporal, run.trace.encoder_tokens
    words = list(run.task.source_vocabulary.content_ids)
    drops = statistics.variance_drop(array(states), array(temporal), array(tokens), array(mask), words)
    return float(drops.mean())
