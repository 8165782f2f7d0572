"""What a verdict can be, of a row from its seeds and of a claim; and a quantity over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from howattend import statistics
from howattend.claims import CRITERIA

REPRODUCED, CONDITION, NOT = "reproduced", "reproduced under a condition", "not reproduced"
REPORTED, FEW, UNMEASURED = "reported", "too few seeds", "not measured"
#: What a row's verdict can be, and a claim's (which alone can be under a condition).
VERDICTS = (REPRODUCED, CONDITION, NOT, REPORTED, FEW, UNMEASURED)
#: Of a prediction of our own one does not say that it was reproduced.
OWN_WORDS = {REPRODUCED: "holds", CONDITION: "holds under a condition", NOT: "does not hold"}
#: The part of the seeds on which a claim has to hold, and the fewest that have to be trained (claims.toml, protocol).
REQUIRED, FEWEST = 0.8, 3


@dataclass(frozen=True)
class Over:
    """A quantity over the seeds that count: its values, mean and 95 % t-interval (NaN for a single seed)."""

    quantity: str
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, quantity: str, seeds: tuple[int, ...], values: tuple[float, ...]) -> Over:
        """From one value a seed; all NaN where there is none."""
        if not values:
            return cls(quantity, (), (), math.nan, math.nan, math.nan)
        found = statistics.t_interval(values)
        return cls(quantity, tuple(seeds), tuple(values), found.mean, found.low, found.high)

    def __str__(self) -> str:
        """For prose: "0.96 (0.95 to 0.97; 5 seeds)"."""
        if not self.values:
            return "no seed"
        if len(self.values) == 1:
            return f"{self.number(self.mean)} (1 seed)"
        return f"{self.number(self.mean)} ({self.interval}; {len(self.values)} seeds)"

    @property
    def interval(self) -> str:
        """ "0.95 to 0.97", or nothing for a single seed."""
        return f"{self.number(self.low)} to {self.number(self.high)}" if len(self.values) > 1 else ""

    def number(self, value: float, limits: Iterable[float] = ()) -> str:
        """A value as text: an accuracy in percent, else two digits behind the point or two significant ones; a third
        where two would make it look like one of the ``limits``.
        """
        if self.quantity.startswith("accuracy"):
            return f"{min(value, 1.0):.2%}".replace("%", " %")
        if any(round(value, 2) == limit != value for limit in limits):
            return f"{value:.3f}"
        return f"{value + 0.0:.2f}" if abs(value) >= 0.0995 or value == 0 else f"{value:.2g}"


@dataclass(frozen=True)
class ClaimVerdict:
    """A claim's verdict, the base runs that do not reproduce it, and the conditions under which these do."""

    claim: str
    verdict: str
    failing: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return say(self.claim, self.verdict)


def say(claim: str, verdict: str) -> str:
    """A verdict in words: the paper's claims are reproduced, our own predictions hold, or not."""
    return OWN_WORDS.get(verdict, verdict) if CRITERIA[claim].origin == "ours" else verdict


def over_seeds(verdicts: list[str], planned: int) -> str:
    """The verdict of a row from those of its seeds. A network that is trained once only (translation) has its own, and
    what is only reported needs no number of seeds.
    """
    judged = [verdict for verdict in verdicts if verdict]
    if verdicts and not judged:
        return REPORTED
    if len(verdicts) < min(planned, FEWEST):
        return FEW
    return REPRODUCED if judged.count("True") >= REQUIRED * len(judged) else NOT
