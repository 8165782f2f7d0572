"""C1–C8: what edits of the encoder's states should do, if attention leaves the diagonal as Fig. 6 has it.

These are the project's own predictions, not the paper's claims; claims.toml has each with its reason. All are about the
first pairs of the test set with T = S and about common steps. The decoder is fed as in training, unless said otherwise,
so that an edit acts through attention and context.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from howattend.analysis import Run, first_steps
from howattend.claims.criteria import CRITERIA, Measurement
from howattend.claims.dynamics import twice_clusters
from howattend.claims.escan import some, suited, task_of
from howattend.claims.shared import Runs
from howattend.interventions import Edit, decode_with, remove, shift, swap_word
from howattend.tasks import Batch, Kind

#: How many pairs with T = S are decoded from edited states.
PAIRS = 2000


@dataclass(frozen=True, eq=False)
class Decoded:
    """What a network does at every output step, on the CPU."""

    attention: Tensor  # [B, S, T]
    words: Tensor  # [B, S] predicted words

    @property
    def attended(self) -> Tensor:
        """[B, S] the source step with the largest weight."""
        return self.attention.argmax(-1)


def pairs(run: Run) -> Batch:
    """The first ``PAIRS`` pairs of the test set with T = S, on the CPU; ValueError where there is none."""
    same = task_of(run).same_length(run.test).nonzero()[:, 0]
    if not len(same):
        raise ValueError(f"C1–C8 are about pairs with T = S, and the test set of {run.name} has none: lower and_rate")
    return run.test[same[:PAIRS]]


def decode(run: Run, batch: Batch, edits: Edit | Sequence[Edit] = (), decoder_input: str | None = None) -> Decoded:
    """The batch decoded from edited states."""
    edits = edits if isinstance(edits, Edit) else list(edits)
    found = decode_with(run.model, batch.to(run.device), edits, decoder_input=decoder_input)
    return Decoded(found.attention.cpu(), found.words.cpu())


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Occurrences of a phrase of two words: its verb at step t = s − 1, its last word at t = s."""

    rows: Tensor  # [P]
    steps: Tensor  # [P] s
    verbs: Tensor  # [P] word id
    shape: torch.Size  # [B, T]

    def __getitem__(self, chosen: Tensor) -> Occurrences:
        return replace(self, rows=self.rows[chosen], steps=self.steps[chosen], verbs=self.verbs[chosen])

    def mask(self, offset: int = 0) -> Tensor:
        """[B, T] True at s + offset."""
        mask = torch.zeros(self.shape, dtype=torch.bool)
        mask[self.rows, self.steps + offset] = True
        return mask

    def at(self, values: Tensor, offset: int = 0) -> Tensor:
        """[P] the values [B, S] at s + offset."""
        return values[self.rows, self.steps + offset]


def twice(run: Run, batch: Batch) -> Occurrences:
    """ "twice" at t = s of its phrase's second output, at common steps."""
    return _occurrences(run, '"V twice"', task_of(run).twice_on_diagonal(batch), batch)


def turns(run: Run, batch: Batch, direction: str = "left") -> Occurrences:
    """A direction at t = s, the phrase's first output being the turn, at common steps."""
    task, steps = task_of(run), min(batch.source.shape[1], batch.target.shape[1])
    phrases = task.parse(batch)
    here = (phrases.kind == Kind.DIRECTION) & (batch.source == task.source_vocabulary.id(direction))
    found = torch.zeros_like(here)
    # The output at s − 1 comes from the direction at s.
    found[:, 1:steps] = here[:, 1:steps] & (batch.alignment[:, : steps - 1] == torch.arange(1, steps))
    return _occurrences(run, f'"V {direction}"', found, batch)


def _occurrences(run: Run, what: str, mask: Tensor, batch: Batch) -> Occurrences:
    common = first_steps(mask, min(run.encoder_steps, run.decoder_steps))
    rows, steps = some(common, run, "this prediction", f"{what} where T = S").nonzero(as_tuple=True)
    return Occurrences(rows, steps, task_of(run).parse(batch).verb[rows, steps], batch.source.shape)


def _action_of(run: Run) -> dict[int, int]:
    """Each verb's word id, and its action's."""
    task = task_of(run)
    return {task.source_vocabulary.id(verb): task.target_vocabulary.id(task.actions[verb]) for verb in task.verbs}


def other_verbs(run: Run, found: Occurrences) -> Iterator[tuple[int, int, Tensor]]:
    """Each verb of the task: its id, its action's, and which of the occurrences [P] have another one."""
    for verb, action in _action_of(run).items():
        yield verb, action, found.verbs != verb


def _actions(run: Run, verbs: Tensor) -> Tensor:
    """The actions' word ids of verbs' word ids."""
    known = _action_of(run)
    return torch.tensor([known[verb] for verb in verbs.tolist()])


def share(truths: Tensor | Sequence[Tensor]) -> float:
    """The share of True, NaN of nothing."""
    truths = truths if isinstance(truths, Tensor) else torch.cat(list(truths))
    return float(truths.double().mean())


def without_twice(run: Run, batch: Batch, found: Occurrences) -> Edit:
    """C1's edit: the states of "twice" without their input component."""
    return remove(run.encoder, "input", found.mask())


def twice_as(run: Run, found: Occurrences, verb: int, chosen: Tensor) -> Edit:
    """C2's edit: the chosen "twice" with a verb's input component."""
    return swap_word(run.encoder, task_of(run).source_vocabulary.id("twice"), verb, found[chosen].mask())


def verb_as(run: Run, found: Occurrences, verb: int, chosen: Tensor) -> list[Edit]:
    """C3's edits: the verbs before the chosen "twice" with another verb's input component."""
    where = found[chosen].mask(-1)
    words = [task_of(run).source_vocabulary.id(word) for word in task_of(run).verbs]
    return [swap_word(run.encoder, word, verb, where) for word in words if word != verb]


def centres_of_twice(run: Run) -> dict[int, Tensor]:
    """The mean of χ_twice + Δh_t behind each verb, by the verb's word id."""
    components, _, verbs = twice_clusters(run, run.common_encoder_mask)
    return {int(verb): torch.as_tensor(components[verbs == verb].mean(0)) for verb in sorted(set(verbs.tolist()))}


def cluster_of(run: Run, found: Occurrences, verb: int) -> list[Edit]:
    """C4's edits: every "twice" behind another verb moved to where it lies behind this one."""
    centres = centres_of_twice(run)
    return [
        shift(centres[verb] - centre, found[found.verbs == own].mask())
        for own, centre in centres.items()
        if own != verb
    ]


def feeding(found: Occurrences, action: int, chosen: Tensor, batch: Batch) -> Batch:
    """C5's batch: an action as the first output of the chosen phrases, for a decoder that is fed the target's words."""
    some, target = found[chosen], batch.target.clone()
    target[some.rows, some.steps - 1] = action
    return replace(batch, target=target)


# ---------------------------------------------------------------------------------------------------------- the claims


def twice_shows(runs: Runs) -> Measurement:
    """C1: without χ_twice the second output attends to "twice" in AO."""
    run, limits = runs["run"], CRITERIA["C1"].limits
    suited(run, "C1", ["twice"])
    batch = pairs(run)
    found, before = twice(run, batch), decode(run, batch)
    after = decode(run, batch, without_twice(run, batch, found))
    own = _actions(run, found.verbs)
    was, now = (share(found.at(each.attended) == found.steps) for each in (before, after))
    quantities = {
        "attends to t = s, after": now,
        "before": was,
        "attends to s − 1, before": share(found.at(before.attended) == found.steps - 1),
        "attends to s − 1, after": share(found.at(after.attended) == found.steps - 1),
        "accuracy of second outputs, before": share(found.at(before.words) == own),
        "accuracy of second outputs, after": share(found.at(after.words) == own),
    }
    return Measurement.of("C1", run, was <= limits["before"] and now >= limits["after"], quantities)


def twice_is_read(runs: Runs) -> Measurement:
    """C2: "twice" with another verb's input component is attended and read as that verb in AO."""
    run, limit = runs["run"], CRITERIA["C2"].limits["share"]
    suited(run, "C2", ["twice"], verbs=2)
    batch = pairs(run)
    found = twice(run, batch)
    attends, says, stays = [], [], []
    for verb, action, chosen in other_verbs(run, found):
        after, some = decode(run, batch, twice_as(run, found, verb, chosen)), found[chosen]
        attends.append(some.at(after.attended) == some.steps)
        says.append(some.at(after.words) == action)
        stays.append(some.at(after.words) == _actions(run, some.verbs))
    quantities = {
        "attends to t = s": share(attends),
        "the other verb's action": share(says),
        "the own verb's action": share(stays),
    }
    verdict = quantities["attends to t = s"] >= limit and quantities["the other verb's action"] >= limit
    return Measurement.of("C2", run, verdict, quantities)


def where_it_is_read(runs: Runs) -> Measurement:
    """C3: another verb before "twice" changes the second output of AO, and not that of AED."""
    run, limits = runs["run"], CRITERIA["C3"].limits
    suited(run, "C3", ["twice"], verbs=2)
    batch = pairs(run)
    found, before = twice(run, batch), decode(run, batch)
    on_twice = found.at(before.attended) == found.steps
    says, stays, there, first = [], [], [], []
    for verb, action, chosen in other_verbs(run, found):
        after, some = decode(run, batch, verb_as(run, found, verb, chosen)), found[chosen]
        says.append(some.at(after.words) == action)
        stays.append(some.at(after.words) == some.at(before.words))
        there.append(on_twice[chosen])
        first.append(some.at(after.words, -1) == action)
    on = torch.cat(there)
    quantities = {
        "the other verb's action": share(says),
        "attends to “twice”": share(on_twice),
        "stays, of those": share(torch.cat(stays)[on]),
        "stays, of the rest": share(torch.cat(stays)[~on]),
        "first outputs with the other verb's action": share(first),
    }
    if run.architecture == "AO":
        verdict = quantities["the other verb's action"] >= limits["ao"]
    else:
        verdict = share(on_twice) >= limits["attends"] and quantities["stays, of those"] >= limits["aed"]
    return Measurement.of("C3", run, verdict, _finite(quantities))


def cluster_is_read(runs: Runs) -> Measurement:
    """C4: "twice" in another verb's cluster is read as that verb in AED."""
    run, limit = runs["run"], CRITERIA["C4"].limits["share"]
    suited(run, "C4", ["twice"], verbs=2)
    batch = pairs(run)
    found, before = twice(run, batch), decode(run, batch)
    on_twice = found.at(before.attended) == found.steps
    says, still, there = [], [], []
    for verb, action, chosen in other_verbs(run, found):
        after, some = decode(run, batch, cluster_of(run, found, verb)), found[chosen]
        says.append(some.at(after.words) == action)
        still.append(some.at(after.attended) == some.steps)
        there.append(on_twice[chosen])
    on, says, still = torch.cat(there), torch.cat(says), torch.cat(still)
    quantities = {
        "the other verb's action": share(says[on]),
        "still attends to “twice”": share(still[on]),
        "the other verb's action, of the rest": share(says[~on]),
        "attends to “twice”, before": share(on_twice),
    }
    verdict = share(says[on]) >= limit and share(still[on]) >= limit
    return Measurement.of("C4", run, verdict, _finite(quantities))


def fed_word_is_not_repeated(runs: Runs) -> Measurement:
    """C5: another verb's action fed as the first output does not change the second."""
    run = runs["run"]
    suited(run, "C5", ["twice"], verbs=2)
    batch = pairs(run)
    found, before = twice(run, batch), decode(run, batch, decoder_input="teacher")
    stays, repeats = [], []
    for _, action, chosen in other_verbs(run, found):
        after, some = decode(run, feeding(found, action, chosen, batch), decoder_input="teacher"), found[chosen]
        stays.append(some.at(after.words) == some.at(before.words))
        repeats.append(some.at(after.words) == action)
    quantities = {"stays": share(stays), "repeats the fed word": share(repeats)}
    return Measurement.of("C5", run, quantities["stays"] >= CRITERIA["C5"].limits["share"], quantities)


def left_hides(runs: Runs) -> Measurement:
    """C6: "left" with the input component of "twice" leaves the first output to the verb in AO."""
    run, limits = runs["run"], CRITERIA["C6"].limits
    words, batch = suited(run, "C6", ["twice", "left"]).source_vocabulary, pairs(run)
    found, before = turns(run, batch), decode(run, batch)
    after = decode(run, batch, swap_word(run.encoder, words.id("left"), words.id("twice"), found.mask()))
    was, now = (share(found.at(each.attended, -1) == found.steps - 1) for each in (before, after))
    says = share(found.at(after.words, -1) == _actions(run, found.verbs))
    quantities = {
        "attends to the verb, after": now,
        "before": was,
        "the verb's action, after": says,
        "attends to “left”, before": share(found.at(before.attended, -1) == found.steps),
        "attends to “left”, after": share(found.at(after.attended, -1) == found.steps),
    }
    verdict = was <= limits["before"] and now >= limits["after"] and says >= limits["after"]
    return Measurement.of("C6", run, verdict, quantities)


def _accuracy(found: Decoded, batch: Batch, mask: Tensor) -> float:
    return share((found.words == batch.target)[mask])


def deltas_matter(runs: Runs) -> Measurement:
    """C7: without its deltas AED makes mistakes, AO goes on as before."""
    run, limits = runs["run"], CRITERIA["C7"].limits
    suited(run, "C7", ["twice"])
    batch = pairs(run)
    mask = first_steps(batch.target_mask, run.decoder_steps)
    before, after = decode(run, batch), decode(run, batch, remove(run.encoder, "delta"))
    was, now = _accuracy(before, batch, mask), _accuracy(after, batch, mask)
    same = share((before.attended == after.attended)[mask])
    again = twice(run, batch)
    quantities = {
        "accuracy falls by": was - now,
        "accuracy, before": was,
        "accuracy, after": now,
        "attends to the same step": same,
        "second outputs right, after": share(again.at(after.words) == _actions(run, again.verbs)),
    }
    unchanged = was - now <= limits["ao"] and same >= limits["same"]
    return Measurement.of("C7", run, unchanged if run.architecture == "AO" else was - now >= limits["aed"], quantities)


def place_is_lost(runs: Runs) -> Measurement:
    """C8: without μ^E outputs find neither their words nor their phrases, which they find with it."""
    run, limits = runs["run"], CRITERIA["C8"].limits
    suited(run, "C8")
    batch = pairs(run)
    phrases = task_of(run).parse(batch).at(batch.alignment)
    mask = first_steps(batch.target_mask, run.decoder_steps) & (phrases.start >= 0)
    before, after = decode(run, batch), decode(run, batch, remove(run.encoder, "temporal"))

    def own_phrase(found: Decoded) -> float:
        return share(((found.attended >= phrases.start) & (found.attended <= phrases.end))[mask])

    now = _accuracy(after, batch, mask)
    quantities = {
        "accuracy, after": now,
        "accuracy, before": _accuracy(before, batch, mask),
        "own phrase, after": own_phrase(after),
        "own phrase, before": own_phrase(before),
    }
    had = quantities["accuracy, before"] > limits["accuracy"] and quantities["own phrase, before"] > limits["phrase"]
    verdict = had and now <= limits["accuracy"] and quantities["own phrase, after"] <= limits["phrase"]
    return Measurement.of("C8", run, verdict, quantities)


def _finite(quantities: dict[str, float]) -> dict[str, float]:
    """Without the shares of nothing, except the first, which the row needs: of nothing it is 0."""
    first = next(iter(quantities))
    known = {name: value for name, value in quantities.items() if name == first or not math.isnan(value)}
    return known | {first: 0.0 if math.isnan(known[first]) else known[first]}


CLAIMS = {
    "C1": twice_shows,
    "C2": twice_is_read,
    "C3": where_it_is_read,
    "C4": cluster_is_read,
    "C5": fed_word_is_not_repeated,
    "C6": left_hides,
    "C7": deltas_matter,
    "C8": place_is_lost,
}

_AO = "escan-ao-gru"
_AOS, _AEDS = (_AO, f"{_AO}-constant"), ("escan-aed-gru", "escan-aed-gru-l2_1e-4")
#: The rows of the ledger: claim, and the run of each part. The AED at L2 1e-4 is the one whose "twice" lies in the
#: clusters of Fig. 6a.
PLAN: list[tuple[str, dict[str, str]]] = [
    *((claim, {"run": run}) for claim in ("C1", "C2") for run in _AOS),
    *(("C3", {"run": run}) for run in (*_AOS, *_AEDS)),
    *(("C4", {"run": run}) for run in _AEDS),
    *(("C5", {"run": run}) for run in (_AO, *_AEDS)),
    *(("C6", {"run": run}) for run in _AOS),
    *((claim, {"run": run}) for claim in ("C7", "C8") for run in (*_AOS, *_AEDS)),
]
