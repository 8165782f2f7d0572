"""What a verdict can be, of a row from its seeds and of a claim; and a quantity over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from howattend import statistics
from howattend.ledger.names import criterion

REPRODUCED, CONDITION, NOT = "reproduced", "reproduced under a condition", "not reproduced"
REPORTED, FEW, UNMEASURED = "reported", "too few seeds", "not measured"
#: What a row's verdict can be, and a claim's (which alone can be under a condition).
VERDICTS = (REPRODUCED, CONDITION, NOT, REPORTED, FEW, UNMEASURED)
#: Of a prediction of our own one does not say that it was reproduced.
OWN_WORDS = {REPRODUCED: "holds", CONDITION: "holds under a condition", NOT: "does not hold"}
#: The part of the seeds on which a claim has to hold, and the fewest that have to be trained (claims.toml, protocol).
REQUIRED, FEWEST = 0.8, 3

_SHARES = ("variance in 3 PCs", "words", "neighbours adjacent", "|cos|", "|cos| to μE", "argmax", "on the last word")
_SHARES += ("at s − 1", "lowest share", "contribution negative", "μD·μE second largest at s − 1", "agreement")
_SHARES += ("attention largest at s − 1", "largest absolute share", "the other verb's action")
_SHARES += ("attends to t = s", "attends to t = s, after", "attends to the verb, after", "stays")
_SIZES = ("ratio", "largest deviation", "N = 3", "N = 8", "distance", "distance / shuffled", "mean error")
#: Between what a quantity can lie at all. Signed shares are not among them: others of the nine can be negative.
_BOUNDS = {**dict.fromkeys(_SHARES, (0.0, 1.0)), **dict.fromkeys(_SIZES, (0.0, math.inf))}
_PURITY = re.compile("(encoder|decoder|null).*, depth")  # V4's
_BOUNDS |= {"silhouette": (-1.0, 1.0), "variance drop": (-math.inf, 1.0), "accuracy falls by": (-1.0, 1.0)}


def bounds(quantity: str) -> tuple[float, float]:
    """The least and the largest value that a quantity can have, infinite where it is not bounded."""
    if quantity.startswith("ρ"):
        return -1.0, 1.0
    if quantity in ("accuracy", "accuracy, after") or _PURITY.match(quantity):
        return 0.0, 1.0
    return _BOUNDS.get(quantity, (-math.inf, math.inf))


@dataclass(frozen=True)
class Over:
    """A quantity over the seeds that count: its values, mean, and 95 % t-interval within what is possible.

    Two seeds have no interval worth the name: theirs is the range. NaN for a single seed.
    """

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
        low, high = (found.low, found.high) if len(values) >= FEWEST else (min(values), max(values))
        least, most = bounds(quantity)
        if len(values) == 1:
            low = high = math.nan
        elif least <= min(values) and max(values) <= most:  # T4 counts "words", O7 has a share by that name
            low, high = max(low, least), min(high, most)
        return cls(quantity, tuple(seeds), tuple(values), found.mean, low, high)

    def __str__(self) -> str:
        """For prose: "0.96 (0.95 to 0.97; 5 seeds)"."""
        if not self.values:
            return "no seed"
        if len(self.values) == 1:
            return f"{self.number(self.mean)} (1 seed)"
        return f"{self.number(self.mean)} ({self.interval}; {len(self.values)} seeds)"

    @property
    def interval(self) -> str:
        """ "0.95 to 0.97", or nothing for a single seed; a third digit where two do not tell its ends apart."""
        if len(self.values) < 2:
            return ""
        if self.high - self.low < 1e-9:
            return "no spread"
        low, high = self.number(self.low), self.number(self.high)
        if low == high:
            low, high = (self.number(value, more=1) for value in (self.low, self.high))
        return f"{low} to {high}" if low != high else "no spread"

    @property
    def spread(self) -> str:
        """What :attr:`interval` is."""
        return "95 % interval" if len(self.values) >= FEWEST else "range"

    def number(self, value: float, limits: Iterable[float] = (), more: int = 0) -> str:
        """A value as text: an accuracy in percent, else two digits behind the point or two significant ones; a third
        where two would make it look like one of the ``limits``, and so many ``more`` in any case.
        """
        digits = 2 + more
        if self.quantity.startswith("accuracy"):
            return f"{min(value, 1.0):.{digits}%}".replace("%", " %")
        if any(round(value, 2) == limit != value for limit in limits):
            return f"{value:.3f}"
        return f"{value + 0.0:.{digits}f}" if abs(value) >= 0.0995 or value == 0 else f"{value:.{digits}g}"


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
    """A verdict in words: the paper's claims are reproduced, our own predictions hold, or not.

    ValueError for a claim, or a verdict, that there is not.
    """
    if verdict not in VERDICTS:
        raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}")
    return OWN_WORDS.get(verdict, verdict) if criterion(claim).origin == "ours" else verdict


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
