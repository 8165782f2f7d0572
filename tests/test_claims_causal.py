"""C1–C8 on networks whose states and readouts are planted, so that what an edit does to them is known.

A planted network adds up its states from places and words, attends by dot product, reads its outputs off the context,
and may repeat the word that it is fed. It hides "twice", or copies the verb into it, or repeats: what each prediction
is about, and what would refute it.
"""

from types import SimpleNamespace

import pytest
import torch

from howattend import runs
from howattend.analysis import Run
from howattend.claims import CRITERIA, causal
from howattend.models import ModelConfig, Trace
from howattend.tasks import BOS, ExtendedSCAN, Kind, OneToOne, Role
from howattend.training import TrainConfig

STEPS, WORDS = 21, 10
PLACE, AHEAD, LEAN, WORD = (
    slice(0, STEPS),
    slice(STEPS, 2 * STEPS),
    2 * STEPS,
    slice(2 * STEPS + 1, 2 * STEPS + 1 + WORDS),
)
SIZE = 2 * STEPS + 1 + WORDS


class Planted:
    """As much of a network as edits need. ``flip`` turns places and queries over in every other sentence."""

    def __init__(self, task, *, hides=True, copies=False, repeats=0.0, flip=False):
        self.task, self.hides, self.copies, self.repeats, self.flip = task, hides, copies, repeats, flip
        self.config = SimpleNamespace(is_recurrent=copies, has_attention=True, decoder_input="teacher")
        self.readout_bias = torch.zeros(1)

    def sign(self, batch):
        """[B, 1, 1] by the sentence's first word, so that the same sentence always has the same."""
        return torch.where(batch.source[:, 1:2] % 2 == 0, 1.0, -1.0)[..., None].double() if self.flip else 1.0

    def encode(self, batch):
        phrases, steps = self.task.parse(batch), torch.eye(STEPS, dtype=torch.float64)
        states = torch.zeros(*batch.source.shape, SIZE, dtype=torch.float64)
        states[..., PLACE] = steps * self.sign(batch)
        turns, twice = phrases.role == Role.DIRECTION, phrases.role == Role.TWICE
        states[..., AHEAD] = torch.where(turns[..., None], steps, 0.0)
        states[..., LEAN] = -5.0 * twice if self.hides else 0.0
        known = torch.where(twice, phrases.verb, batch.source) if self.copies else batch.source
        states[..., WORD] = torch.nn.functional.one_hot(known, WORDS).double()
        return states

    def decode(self, batch):
        offset = torch.arange(STEPS) - torch.arange(STEPS)[:, None]  # [S, T] t − s
        near = torch.where(offset == 0, 5.0, torch.where(offset == -1, 3.6, torch.where(offset == 1, 1.0, 0.0)))
        states = torch.zeros(len(batch), STEPS, SIZE, dtype=torch.float64)
        states[..., PLACE] = near.double() * self.sign(batch)
        states[..., AHEAD] = torch.where(offset == 1, 5.0, -2.0).double()
        states[..., LEAN] = 1.0
        return 4 * states

    def trace(self, batch, decoder_input=None, chunk=1024, *, edit=None, edit_start=False):
        source, target = batch.source_mask, batch.target_mask
        keys, queries = self.encode(batch) * source[..., None], self.decode(batch) * target[..., None]
        keys = keys if edit is None else edit(keys, slice(0, len(batch)))
        pairs = target[..., None] & source[:, None]
        scores = (queries @ keys.mT).masked_fill(~pairs, 0)
        attention = scores.masked_fill(~source[:, None], -torch.inf).softmax(-1) * pairs
        fed = torch.full_like(batch.target, BOS)
        fed[:, 1:] = batch.target[:, :-1]
        logits = torch.zeros(*batch.target.shape, len(self.task.target_vocabulary), dtype=torch.float64)
        words, actions = self.task.source_vocabulary, self.task.target_vocabulary
        for word, action in self.task.actions.items():
            read = (attention @ keys)[..., WORD.start + words.id(word)]
            logits[..., actions.id(action)] = read + self.repeats * (fed == actions.id(action))
        logits[..., :3] = -1.0  # padding and the like: common steps have none
        logits = logits * target[..., None]
        return Trace(
            keys,
            queries,
            scores,
            attention,
            logits,
            batch.source,
            fed * target,
            source,
            target,
            queries,
            keys,
            keys,
            1.0,
        )


def planted(architecture="AO", task=None, size=1500, **how):
    task = task or ExtendedSCAN(and_rate=0.02)
    config = runs.RunConfig("planted", task, ModelConfig(architecture, hidden_size=16), TrainConfig(1), 0.9)
    run = Run(config, Planted(task, **how), 0)
    run.__dict__["test"] = task.sample(size, 1)
    run.__dict__["accuracy"] = 1.0
    return run


@pytest.fixture(scope="module")
def hiding():
    """AO as the story has it: "twice" hides, the word before is read, directions are looked for one step ahead."""
    return planted()


@pytest.fixture(scope="module")
def copying():
    """AED as the story has it: the verb is copied into "twice", which is read on the diagonal."""
    return planted("AED", hides=False, copies=True)


@pytest.fixture(scope="module")
def repeating():
    """An AO that looks at "twice", finds no action there, and says what it has just said."""
    return planted(hides=False, repeats=0.4)


def measured(name, run):
    found = causal.CLAIMS[name]({"run": run})
    return found.verdict, found.quantities


# --------------------------------------------------------------------------------------------------------- the planted


@pytest.mark.parametrize("name", ["hiding", "copying", "repeating"])
def test_the_planted_networks_solve_the_task(name, request):
    run = request.getfixturevalue(name)
    batch = causal.pairs(run)
    found, decoded = causal.twice(run, batch), causal.decode(run, batch)
    assert causal.share(found.at(decoded.words) == found.at(batch.target)) == 1
    turns = causal.turns(run, batch)
    assert causal.share(turns.at(decoded.words, -1) == turns.at(batch.target, -1)) == 1
    offset = found.at(decoded.attended) - found.steps
    assert (offset == (-1 if name == "hiding" else 0)).all()


# ------------------------------------------------------------------------------------------------------- which outputs


def test_pairs_are_those_with_as_many_outputs_as_words(hiding):
    batch = causal.pairs(hiding)
    assert torch.equal(batch.source_lengths, batch.target_lengths)
    assert len(batch) == int((hiding.test.source_lengths == hiding.test.target_lengths).sum()) < len(hiding.test)
    many = planted(size=3000)
    assert len(causal.pairs(many)) == causal.PAIRS
    assert (
        torch.equal(causal.pairs(many).source[0], many.test.source[0])
        or many.test.source_lengths[0] != (many.test.target_lengths[0])
    )


def test_places_of_twice_and_of_turns(hiding):
    batch, words = causal.pairs(hiding), hiding.task.source_vocabulary
    twice, left = causal.twice(hiding, batch), causal.turns(hiding, batch)
    for found, word in ((twice, "twice"), (left, "left")):
        assert (found.at(batch.source) == words.id(word)).all()
        assert torch.equal(found.at(batch.source, -1), found.verbs)
        assert int(found.steps.max()) < min(hiding.encoder_steps, hiding.decoder_steps)
        assert found.mask().sum() == found.mask(-1).sum() == len(found.rows)
    assert torch.equal(twice.at(batch.alignment), twice.steps - 1)
    assert torch.equal(left.at(batch.alignment, -1), left.steps)
    kinds = hiding.task.parse(batch).kind
    steps = min(hiding.encoder_steps, hiding.decoder_steps)
    for found, kind, word in ((twice, Kind.TWICE, "twice"), (left, Kind.DIRECTION, "left")):
        assert len(found.rows) == int(((kinds == kind) & (batch.source == words.id(word)))[:, :steps].sum())


def test_a_test_set_without_such_phrases_says_so():
    run = planted(task=ExtendedSCAN(min_length=1, max_length=4, and_rate=0.02), size=200)
    with pytest.raises(ValueError, match=r'is about "V twice" where T = S.* none at .* \(1 source, 1 target steps\)'):
        causal.CLAIMS["C1"]({"run": run})
    with pytest.raises(ValueError, match="pairs with T = S, and the test set of planted has none: lower and_rate"):
        causal.CLAIMS["C8"]({"run": planted(task=ExtendedSCAN(and_rate=1.0), size=20)})


@pytest.mark.parametrize("name", causal.CLAIMS)
def test_a_run_of_another_task_says_so(name):
    config = runs.RunConfig("other", OneToOne(), ModelConfig("AO", hidden_size=16), TrainConfig(1), 0.9)
    with pytest.raises(ValueError, match="must be one of extended SCAN"):
        causal.CLAIMS[name]({"run": Run(config, config.new_model(0), 0)})


# ------------------------------------------------------------------------------------------------------ the predictions


def test_c1_twice_that_hides_and_twice_that_does_not(hiding, repeating):
    verdict, found = measured("C1", hiding)
    assert verdict is True
    assert (found["attends to t = s, after"], found["before"], found["attends to s − 1, before"]) == (1, 0, 1)
    verdict, found = measured("C1", repeating)
    assert verdict is False
    assert found["before"] == 1


def test_c2_the_other_verb_is_read_off_twice(hiding, monkeypatch):
    verdict, found = measured("C2", hiding)
    assert verdict is True
    assert found == {"attends to t = s": 1, "the other verb's action": 1, "the own verb's action": 0}
    monkeypatch.setattr(causal, "twice_as", lambda *_: [])  # an edit that does nothing
    verdict, found = measured("C2", hiding)
    assert verdict is False
    assert found == {"attends to t = s": 0, "the other verb's action": 0, "the own verb's action": 1}


def test_c3_what_a_change_of_the_verb_does_tells_where_it_is_read(hiding, copying, repeating):
    verdict, found = measured("C3", hiding)
    assert verdict is True
    assert (found["the other verb's action"], found["attends to “twice”"]) == (1, 0)
    verdict, found = measured("C3", copying)
    assert verdict is True
    assert (found["attends to “twice”"], found["stays, of those"], found["the other verb's action"]) == (1, 1, 0)
    assert found["first outputs with the other verb's action"] == 1
    assert measured("C3", repeating)[0] is False  # the true word is fed, whatever the verb's state says
    assert measured("C3", planted("AED"))[0] is False  # an AED that hides "twice" as AO does
    assert measured("C3", planted("AO", hides=False, copies=True))[0] is False


def test_c4_the_cluster_of_twice_is_read_if_it_is_attended(copying):
    verdict, found = measured("C4", copying)
    assert verdict is True
    assert (found["the other verb's action"], found["still attends to “twice”"]) == (1, 1)
    verdict, found = measured("C4", planted("AED", copies=True))  # the copy is there, but hidden
    assert verdict is False
    assert found["attends to “twice”, before"] == found["the other verb's action"] == 0
    assert found["the other verb's action, of the rest"] == 0
    verdict, found = measured("C4", planted("AED", hides=False, repeats=0.4))  # it is attended, but has no copy
    assert verdict is False
    assert found["the other verb's action"] < 0.5


def test_c5_repeating_and_not(hiding, copying, repeating):
    assert measured("C5", hiding) == (True, {"stays": 1, "repeats the fed word": 0})
    assert measured("C5", copying)[0] is True
    assert measured("C5", repeating) == (False, {"stays": 0, "repeats the fed word": 1})


def test_c6_left_that_hides(hiding, repeating):
    verdict, found = measured("C6", hiding)
    assert verdict is True
    assert (found["attends to the verb, after"], found["before"], found["the verb's action, after"]) == (1, 0, 1)
    assert measured("C6", repeating)[0] is False  # "twice" hides nothing there


#: With verbs and "twice" alone, a place and a word simply add up in the states of the network that hides.
ALONE = ExtendedSCAN(phrases=("verb", "twice"), and_rate=0.02)


def test_c7_who_needs_deltas(hiding, copying, monkeypatch):
    verdict, found = measured("C7", copying)
    assert verdict is True
    assert found["accuracy falls by"] > 0.05
    assert measured("C7", planted("AED", task=ALONE))[0] is False
    verdict, found = measured("C7", hiding)  # to look ahead for directions takes words × places: a delta
    assert verdict is False
    assert found["accuracy falls by"] > 0.2
    monkeypatch.setattr(causal, "remove", lambda *_: [])  # an edit that does nothing
    verdict, found = measured("C7", hiding)
    assert verdict is True
    assert (found["accuracy falls by"], found["attends to the same step"]) == (0, 1)


def test_c7_is_too_strict_for_states_that_add_up():
    """Early steps have other words than late ones ("twice" is never the first), which leaves a delta all the same."""
    verdict, found = measured("C7", planted(task=ALONE))
    assert verdict is False
    assert 0.005 < found["accuracy falls by"] < 0.05


def test_c8_place_in_the_temporal_component_and_elsewhere():
    verdict, found = measured("C8", planted(task=ALONE))
    assert verdict is True
    assert found["own phrase, before"] == 1
    verdict, found = measured("C8", planted(flip=True))  # the mean place is none: deltas hold it
    assert verdict is False
    assert found["own phrase, after"] > 0.9


def test_c8_what_never_had_its_place_has_not_lost_it():
    run = planted()
    untrained = Run(run.config, run.config.new_model(0).eval(), 0)
    untrained.__dict__.update(test=run.test, accuracy=0.0)
    verdict, found = measured("C8", untrained)
    assert verdict is False
    assert max(found["accuracy, after"], found["own phrase, after"]) <= 0.5


# ------------------------------------------------------------------------------------------------------------- the rows


def test_every_row_has_a_function_and_a_plan():
    assert set(causal.CLAIMS) == {f"C{number}" for number in range(1, 9)}
    assert {claim for claim, _ in causal.PLAN} == set(causal.CLAIMS)
    assert all(set(parts) == {"run"} and parts["run"] in runs.REGISTRY for _, parts in causal.PLAN)
    for name, claim in causal.CLAIMS.items():
        assert claim.__doc__.startswith(f"{name}: ")
        assert CRITERIA[name].limits
        assert CRITERIA[name].origin == "ours"


@pytest.mark.parametrize("architecture", ["AO", "AED"])
def test_a_network_that_has_learnt_nothing_is_measured_too(architecture):
    task = ExtendedSCAN()
    config = runs.RunConfig("untrained", task, ModelConfig(architecture, hidden_size=16), TrainConfig(1), 0.9)
    run = Run(config, config.new_model(0), 0)
    run.__dict__["test"] = task.sample(400, 1)
    found = {name: claim({"run": run}) for name, claim in causal.CLAIMS.items()}
    assert all(value == value for each in found.values() for value in each.quantities.values())
    for name in ("C1", "C2", "C3", "C4", "C6"):
        assert found[name].verdict is False, name
