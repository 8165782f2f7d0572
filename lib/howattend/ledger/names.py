"""What a run is in the ledger, read off its name, and what its claims are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping

from howattend._validation import require_known
from howattend.claims import CRITERIA, PLAN, Criterion
from howattend.sweep.plan import Name, l2_in_words

#: A run's part in the ledger. "base": the book's recipe, on which the verdict is over. "condition": the same task and
#: architecture with another L2, size, training length, rate of "and", mix of phrases or fed word. "variant": another
#: cell or attention (V1–V3). "beside": other settings of the task, or of the training, that are neither.
KINDS = ("base", "condition", "variant", "beside")
_CONDITIONS = ("predicted", "teacher", "constant", "l2_", "and", "no_turns", "verbs", "n", "steps")
_ORDER = (*_CONDITIONS, "")

VARIANTS = {"gru": "V1", "lstm": "V1", "ugrnn": "V1", "scaled_dot": "V2", "ff": "V3"}

#: What a claim's deciding quantity is compared with: its sense, and either the name of a limit in claims.toml or of
#: another quantity of the same row, times a factor that may be a limit, too. E3's and E4's depend on more.
_LIMITS: dict[str, tuple[str, str] | tuple[str, str, str]] = {
    **{"O1": (">", "accuracy"), "O2": (">", "share"), "O3": (">", "variance"), "O4": ("<", "delta")},
    **{"O5": ("<", "ratio"), "O6": ("<", "null to μE, 95 %"), "O7": (">", "words"), "O8": ("<", "deviation")},
    **{"O9": (">", "context"), "O10": (">", "adjacent"), "O12": ("<", "null, 95 %")},
    **{"R1": (">", "argmax"), "S1": ("<", "temporal"), "E1": (">", "accuracy"), "E2": (">", "share")},
    **{"E5": ("=", "slope"), "E6": (">", "words"), "E7": (">", "aed"), "E8": (">", "share")},
    **{"E9": (">", "AED's on one-to-one", "times_one_to_one"), "D1": (">", "silhouette"), "D2": ("<", "silhouette")},
    **{"D3": (">", "share"), "D4": (">", "slope"), "T1": ("<", "null"), "T2": (">", "rho"), "T3": ("<", "share")},
    **{"T4": ("<", "extended SCAN's", "times_escan"), "T5": ("=", "predicted slope"), "T6": (">", "agreement")},
    **{"T7": ("<", "rho"), "T8": (">", "extended SCAN's"), "T10": ("<", "error"), "H1": (">", "rho")},
    **{"V4": (">", "purity"), "C1": (">", "after"), "C2": (">", "share"), "C4": (">", "share"), "C5": (">", "share")},
    **{"C6": (">", "after"), "C8": ("<", "accuracy")},
}


def criterion(claim: str) -> Criterion:
    """A claim's criterion; ValueError for a claim that there is not."""
    require_known(claim, "claim", CRITERIA)
    return CRITERIA[claim]


def kind_of(claim: str, run: str) -> str:
    """A run's part in the ledger: see :data:`KINDS`. ValueError for a claim that there is not."""
    criterion(claim)
    planned = [row.parts["run"] for row in PLAN if row.claim == claim]
    if run in planned and not any(_is_base(other) for other in planned):
        return "base"  # T9: a claim on the networks of the two registers
    if _is_base(run):
        return "base"
    try:
        name = Name.of(run)
    except ValueError:  # the registers of translation
        return "beside"
    if name.cell != "gru" or "scaled_dot" in name.departures:
        return "variant"
    return "condition" if all(part.startswith(_CONDITIONS) for part in name.departures) else "beside"


def _is_base(run: str) -> bool:
    """Whether a run is the recipe of its task and architecture; translation's has a smaller one with more seeds."""
    try:
        name = Name.of(run)
    except ValueError:
        return False
    smaller = name.task == "translation" and all(part.startswith("n") for part in name.departures)
    return name.cell == "gru" and (smaller or not name.departures)


_PLAIN = {
    "teacher": "fed the true words",
    "constant": "fed a constant",
    "varied": "several lengths",
    "no_turns": 'no "left" or "right"',
}


def departures(run: str) -> tuple[str, ...]:
    """What a run's name says that departs from its recipe, in words, as ("L2 1e-3",)."""
    name, words = Name.of(run), []
    for part in name.departures:
        for prefix, said in (
            ("l2_", "L2 {}"),
            ("steps", "{} steps"),
            ("and", '"and" at {} %'),
            ("words", "{} words"),
            ("warmup", "{} steps of warm-up"),
            ("verbs", "{} times the single verbs"),
            ("n", "{} units"),
        ):
            if part.startswith(prefix) and part[len(prefix)].isdigit():
                number = part.removeprefix(prefix)
                words.append(said.format(f"{int(number):,}" if number.isdigit() else number))
                break
        else:
            words.append(_PLAIN.get(part, part))
    return tuple(words)


def departures_of(row: Mapping[str, object], base: Mapping[str, object]) -> tuple[str, ...]:
    """The same of a row of the ledger, with its L2 where that is not the base row's and the name does not say so."""
    words = departures(str(row["run"]))
    said = row["l2"] == base["l2"] or any(word.startswith("L2 ") for word in words)
    return words if said else (*words, f"L2 {l2_in_words(float(row['l2']))}")


def order_of(run: str) -> tuple[object, ...]:
    """A key that sorts conditions by what they change: the fed word, L2 from strong to weak, rates, lengths."""
    name = Name.of(run)
    key = []
    for part in name.departures:
        kind = next(place for place, start in enumerate(_ORDER) if part.startswith(start))
        value = float(part.removeprefix(_ORDER[kind])) if part[-1].isdigit() else 0.0
        key.append((kind, -value if _ORDER[kind] == "l2_" else value))
    return tuple(key)


def limits(claim: str, architecture: str, quantities: Mapping[str, float]) -> tuple[float, float]:
    """Between which numbers the deciding quantity has to lie: (at least, at most), NaN where it may be anything.

    A target that an interval has to contain is both. A criterion may ask for more than this.
    """
    given = criterion(claim).limits
    if claim == "O3" and architecture != "AED":  # the others are reported
        return math.nan, math.nan
    if claim == "E3":
        return 1 - given["deviation"], 1 + given["deviation"]
    if claim in ("E4", "C7"):
        sense, name, factor = (">", architecture.lower(), None)
        sense = "<" if (claim, architecture) == ("C7", "AO") else sense
    elif claim == "C3":  # AED's deciding quantity is another
        return (given["ao"], math.nan) if architecture == "AO" else (math.nan, math.nan)
    elif claim == "T9":
        return 0.0, math.nan
    elif claim in _LIMITS:
        sense, name, factor = (*_LIMITS[claim], None)[:3]
    else:
        return math.nan, math.nan
    value = given[name] if name in given else quantities.get(name, math.nan)
    value *= given[factor] if factor else 1
    return (value if sense in ">=" else math.nan), (value if sense in "<=" else math.nan)


def fails_elsewhere(row: Mapping[str, object]) -> bool:
    """Whether a row's number lies within its limits on every seed where its claim fails: another part decides there.

    False where the limit is another quantity that differs from seed to seed: the row's is the mean.
    """
    claim, (least, most) = str(row["claim"]), (row["at_least"], row["at_most"])
    given = tuple(criterion(claim).limits)
    own = claim in ("E3", "E4", "C7") or (claim in _LIMITS and _LIMITS[claim][1] in given)
    failing = [value for value, verdict in zip(row["values"], row["verdicts"], strict=True) if verdict == "False"]
    if not failing or least == most or (math.isnan(least) and math.isnan(most)):
        return False
    if not own and len(row["values"]) > 1:
        return False
    return not any(value < least or value > most for value in failing)


def variant_of(run: str) -> str:
    """The column of :meth:`Ledger.variants` that a run belongs to; "" for none."""
    try:
        name = Name.of(run)
    except ValueError:
        return ""
    if not name.departures:
        return name.cell
    return "scaled_dot" if (name.cell, name.departures) == ("gru", ("scaled_dot",)) else ""
