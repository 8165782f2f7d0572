"""Whether a shipped network still has the accuracy that was recorded of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from howattend import sentences
from howattend.analysis import Run
from howattend.tasks import Translation, corpora

TEST_SET, OWN_PAIRS = "test set", "own sentence pairs"
#: How many words of the 84 own pairs, some 700, another processor may say otherwise.
OWN_WORDS = 3


@dataclass(frozen=True)
class Verification:
    """The recorded accuracy of a shipped run beside the one measured now.

    A translation run is measured on the sentence pairs of our own, too, which need no corpus. Where that has not been
    built, ``recorded`` and ``measured`` are of these pairs, and ``on`` says so.
    """

    name: str
    recorded: float
    measured: float
    passed: bool
    on: str = TEST_SET
    own_pairs: tuple[float, float] | None = None  # recorded and measured, of a translation run

    def __str__(self) -> str:
        text = f"recorded {self.recorded:.4%}, measured {self.measured:.4%}"
        if self.own_pairs is None:
            return text
        if self.on == OWN_PAIRS:
            return f"{text} on {OWN_PAIRS}; not on the {TEST_SET}: no corpus (python -m howattend corpus)"
        return f"{text} on the {TEST_SET}; {self.own_pairs[0]:.4%}, {self.own_pairs[1]:.4%} on {OWN_PAIRS}"


def compare(run: Run, entry: Mapping, tolerance: float) -> Verification:
    """Measure a run again and compare with its entry of the manifest.

    Args:
        run: just loaded.
        entry: what is recorded of it.
        tolerance: by how much the accuracy on the test set may differ.

    Raises ValueError where nothing is recorded of a translation run on the own pairs, or the pairs have changed since.
    """
    own, passed = None, True
    if isinstance(run.task, Translation):
        if "own_pairs" not in entry:
            raise ValueError(
                f"the manifest has no own_pairs of {run.name}; train it anew: python -m howattend train {run.name}"
            )
        recorded, measured = entry["own_pairs"], sentences.measure(run)
        if recorded["sha256"] != measured["sha256"]:
            raise ValueError(
                f"{sentences.path()} is not the file that {run.name} was measured on; restore it with git checkout"
            )
        own = recorded["accuracy"], measured["accuracy"]
        passed = abs(own[0] - own[1]) * measured["words"] <= OWN_WORDS + 1e-3
        if not corpora.path(run.task.corpus).exists():
            return Verification(run.name, *own, passed, OWN_PAIRS, own)
    accuracy = run.accuracy
    passed &= abs(accuracy - entry["accuracy"]) <= tolerance and accuracy >= entry["accuracy_bar"]
    return Verification(run.name, entry["accuracy"], accuracy, passed, TEST_SET, own)
