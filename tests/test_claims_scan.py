"""The claims on reversed, sort and extended SCAN, on runs whose states are planted and on networks that learnt nothing.

A planted run has the trace of a network with given encoder and decoder states, so what each claim should measure, and
what it should not, is known.
"""

import re

import numpy as np
import pytest
import torch

from howattend import claims, runs
from howattend.alignment import TERM_NAMES
from howattend.analysis import Run
from howattend.claims import CRITERIA, dynamics, escan, reversed, sort
from howattend.models import ModelConfig, Trace
from howattend.tasks import BOS, ExtendedSCAN, Kind, OneToOne, Reversed, Role, Sorted
from howattend.training import TrainConfig

MODULES = (reversed, sort, escan, dynamics)
ALL = {name: claim for module in MODULES for name, claim in module.CLAIMS.items()}


def untrained(task, architecture="AED", size=400, **model):
    """A run of a network that has learnt nothing, on a small test set."""
    settings = ModelConfig(architecture, **{"hidden_size": 16} | model)
    config = runs.RunConfig("untrained", task, settings, TrainConfig(1), 0.9)
    run = Run(config, config.new_model(0), 0)
    run.__dict__["test"] = task.sample(size, 1)
    return run


def planted(task, encoder_states, decoder_states, architecture="AO", batch=None, attention=None):
    """A run with these states [M, T, n] and [M, S, n], zero on padding; attention follows, or is given."""
    run = untrained(task, architecture, hidden_size=2 * (encoder_states.shape[2] // 2))
    run.__dict__["test"] = batch
    run.__dict__["accuracy"] = 1.0  # the states are planted, not what the network computes
    source, target = batch.source_mask, batch.target_mask
    keys = (encoder_states * source[..., None]).double()
    queries = (decoder_states * target[..., None]).double()
    pairs = target[..., None] & source[:, None]
    scores = (queries @ keys.mT).masked_fill(~pairs, 0)
    if attention is None:
        attention = scores.masked_fill(~source[:, None], -torch.inf).softmax(-1) * pairs
    fed = torch.full_like(batch.target, BOS)
    fed[:, 1:] = batch.target[:, :-1]
    run.__dict__["trace"] = Trace(
        keys, queries, scores, attention, queries, batch.source, fed * target, source, target, queries, keys, keys, 1.0
    )
    return run


def eye(size, width, offset=0):
    """``size`` unit vectors of R^width, from the axis ``offset`` on."""
    return torch.eye(width, dtype=torch.float64)[offset : offset + size]


def attending(task, batch, steps, architecture="AED"):
    """A run whose attention is on the given source steps [M, S], whatever its states."""
    random = torch.Generator().manual_seed(0)
    states = [torch.randn(*tokens.shape, 4, generator=random) for tokens in (batch.source, batch.target)]
    attention = torch.nn.functional.one_hot(steps.clamp(min=0), batch.source.shape[1]).double()
    return planted(task, *states, architecture, batch, attention * batch.target_mask[..., None])


# --------------------------------------------------------------------------------------------------------- the modules


def test_every_row_has_a_function_that_says_which_it_is():
    rows = {f"E{number}" for number in range(1, 10)} | {f"D{number}" for number in range(1, 5)} | {"R1", "S1"}
    assert set(ALL) == rows
    assert all(claims.CLAIMS.get(name, claim) is claim for name, claim in ALL.items())
    for name, claim in ALL.items():
        assert claim.__doc__.startswith(f"{name}: ")
        assert CRITERIA[name].limits


def test_plans_name_claims_of_their_module_and_the_parts_these_need():
    needed = {"E7": {"run", "ao"}, "E9": {"run", "one_to_one", "ao"}}
    for module in MODULES:
        assert {claim for claim, _ in module.PLAN} == set(module.CLAIMS)
        for claim, parts in module.PLAN:
            assert set(parts) == needed.get(claim, {"run"})
    assert len({(claim, parts["run"]) for module in MODULES for claim, parts in module.PLAN}) == sum(
        len(module.PLAN) for module in MODULES
    )


def test_a_network_that_has_learnt_nothing_fulfils_no_claim_that_training_is_to_bring_about():
    task = ExtendedSCAN(and_rate=0.2)
    aed, ao, one = untrained(task), untrained(task, "AO"), untrained(OneToOne())
    parts = {"run": aed, "ao": ao, "one_to_one": one}
    for name in ("E1", "E2", "E4", "E6", "E7", "E9", "D1"):
        assert ALL[name](parts).verdict is False, name
    for name in ("E1", "E2", "E4", "E6", "E8", "D3", "D4"):
        assert ALL[name]({"run": ao}).verdict is False, name
    assert ALL["D2"]({"run": ao}).verdict is True  # by construction
    assert ALL["R1"]({"run": untrained(Reversed())}).verdict is False
    assert ALL["R1"]({"run": untrained(Reversed(min_length=20), "AO")}).verdict is False
    assert ALL["S1"]({"run": untrained(Sorted())}).verdict is False


def test_measurements_are_plain_numbers_and_fit_the_table():
    task = ExtendedSCAN(and_rate=0.2)
    aed, ao, one = untrained(task), untrained(task, "AO"), untrained(OneToOne())
    found = [claim({"run": ao, "ao": ao, "one_to_one": one}) for name, claim in ALL.items() if name[0] in "ED"]
    found += [ALL["E7"]({"run": aed, "ao": ao}), ALL["S1"]({"run": untrained(Sorted())})]
    assert all(type(value) is float for each in found for value in each.quantities.values())
    assert all(each.verdict in (True, False, None) for each in found)
    table = claims.tidy(found)
    assert set(table["claim"]) == {name for name in ALL if name[0] in "ED"} | {"S1"}
    assert np.isfinite(table["value"]).all()
    assert "reproduced" in repr(claims.summary(table))


@pytest.mark.parametrize("name", [name for name in ALL if name[0] in "D" or name in ("E5", "E6", "E7", "E8")])
def test_a_run_of_another_task_says_so(name):
    run = untrained(OneToOne())
    with pytest.raises(ValueError, match=r"must be one of extended SCAN, but untrained is of the task 'one_to_one'"):
        ALL[name]({"run": run, "ao": run})


#: Tasks of one's own that lack what most claims are about, each in another way.
UNSUITED = {
    "no and": {"and_rate": 0},
    "and everywhere": {"and_rate": 1.0},
    "one verb": {"verbs": ("run",)},
    "no twice": {"phrases": ("verb", "direction")},
    "no left": {"directions": ("right",)},
    "verbs alone": {"phrases": ("verb",), "verbs": ("run",), "and_rate": 0},
    "one common step": {"min_length": 1},
    "one word": {"min_length": 1, "max_length": 1},
    "two words": {"min_length": 2, "max_length": 3},
}


@pytest.mark.parametrize("settings", UNSUITED.values(), ids=UNSUITED)
def test_a_task_of_ones_own_is_measured_or_it_is_said_what_it_lacks(settings):
    run = untrained(ExtendedSCAN(**settings), "AO", 150)
    refused = []
    for name in (name for name in claims.CLAIMS if name[0] in "EDC"):
        try:
            found = claims.measure(name, {"run": run, "ao": run, "one_to_one": run})
            assert found.quantities[next(iter(found.quantities))] == pytest.approx(0, abs=1e3)  # a number
        except ValueError as error:
            refused.append(name)
            who = f"{name}|C1–C8|this prediction" if name[0] == "C" else name
            what = "choose other|raise min_length|has only|lower and_rate"
            assert re.match(rf"({who}) (is about|are about|compares|says nothing).* untrained\b.*({what})", str(error))
    assert refused
    assert "E1" not in refused


@pytest.mark.parametrize(
    "name", [name for name in claims.CLAIMS if name[0] in "DC" or name in ("E4", "E5", "E7", "E8")]
)
def test_a_run_without_attention_says_so(name):
    run = untrained(ExtendedSCAN(), "VED", 50)
    with pytest.raises(ValueError, match=f"{name} is about networks with attention .*, but untrained is a VED"):
        claims.measure(name, {"run": run, "ao": run})


# ------------------------------------------------------------------------------------------------------------ reversed


@pytest.mark.parametrize("lengths", [(12, 12), (9, 12)])
def test_r1_mirrored_steps(lengths):
    task = Reversed(3, *lengths)
    batch = task.sample(600, 0)
    width = task.source_steps
    places = eye(width, width)
    encoder = places.expand(600, -1, -1) + 0.1 * torch.randn(600, width, width, generator=torch.Generator())
    run = planted(task, encoder, places[batch.alignment.clamp(min=0)], "AED", batch)
    found = reversed.anti_diagonal({"run": run})
    assert found.verdict is True
    assert found.quantities["argmax"] == found.quantities["argmax, all steps"] == 1
    if lengths == (12, 12):
        assert "argmax, lengths mixed" not in found.quantities
    else:  # what no function of the steps alone can do
        assert found.quantities["argmax, lengths mixed"] < 0.5
    paths = reversed.paths_by_length(run)
    assert list(paths) == list(range(lengths[0], lengths[1] + 1))
    assert all(decoder.shape == encoder.shape == (length + 1, width) for length, (decoder, encoder) in paths.items())


def test_r1_the_diagonal_is_no_anti_diagonal():
    task = Reversed(3, 12, 12)
    batch, places = task.sample(300, 0), eye(13, 13).expand(300, -1, -1)
    found = reversed.anti_diagonal({"run": planted(task, places, places, "AED", batch)})
    assert found.verdict is False
    assert found.quantities["argmax"] == 0


# ---------------------------------------------------------------------------------------------------------------- sort


def test_s1_words_attend_to_words():
    """Encoder states are their words, decoder states the words they put out: h^D·χ^E makes the score."""
    task = Sorted()
    batch, words = task.sample(600, 0), eye(11, 12)
    run = planted(task, words[batch.source], 4 * words[batch.target], "AED", batch)
    found = sort.sort_alignment({"run": run})
    assert found.verdict is True
    assert found.quantities["hD·χE"] == pytest.approx(1 - 1 / 8, abs=0.04)  # 1 / 8 is the mean word's, in μE
    assert found.quantities["attends the word"] == 1
    assert found.quantities["TV, hD·χE"] < 0.02 < found.quantities["TV, μD·μE"]
    assert sum(found.quantities[name] for row in TERM_NAMES for name in row) == pytest.approx(1)
    assert sum(found.quantities[f"{name}, centred"] for row in TERM_NAMES for name in row) == pytest.approx(1)
    assert sort.distances(run)["all terms"] == pytest.approx(0, abs=1e-9)


def test_s1_steps_that_attend_to_steps_are_the_counterexample():
    task = Sorted()
    batch, places = task.sample(300, 0), eye(13, 14).expand(300, -1, -1)
    found = sort.sort_alignment({"run": planted(task, places, 5 * places, "AED", batch)})
    assert found.verdict is False
    assert found.quantities["μD·μE"] == pytest.approx(1)
    assert found.quantities["TV, μD·μE"] == pytest.approx(0, abs=1e-9)
    assert found.quantities["attends the word"] < 0.5


def test_s1_says_which_of_its_two_readings_holds():
    """Decoder deltas alone point to the word: their mean, step by step and fed word by fed word, is taken away."""
    task = Sorted()
    batch, words = task.sample(2000, 0), eye(11, 12)
    random = torch.Generator().manual_seed(1)
    sign = (torch.rand(2000, 1, 1, generator=random) < 0.5).double() * 2 - 1  # half of the samples look for the rest
    run = planted(task, words[batch.source], sign * 4 * words[batch.target], "AED", batch)
    found = sort.sort_alignment({"run": run})
    assert found.quantities["ΔD·χE is the largest"] == 1


# ------------------------------------------------------------------------------------------------------- extended SCAN


def test_e1_is_the_accuracy():
    run = untrained(ExtendedSCAN())
    for accuracy, verdict in ((0.981, True), (0.979, False)):
        run.__dict__["accuracy"] = accuracy
        found = escan.accuracy({"run": run})
        assert (found.quantities, found.verdict) == ({"accuracy": accuracy}, verdict)


@pytest.fixture(scope="module")
def hiding():
    """An AO as the paper describes it: states are places and words; "twice" and "and" lean away from the decoder's
    path (axis "lean"), "left" and "right" look ahead. The decoder's states are functions of the step alone."""
    task = ExtendedSCAN(and_rate=0.02)
    batch, steps = task.sample(3000, 0), 21
    words = len(task.source_vocabulary)
    width = 2 * steps + 1 + words
    place, ahead = eye(steps, width), eye(steps, width, steps)
    lean, word = eye(1, width, 2 * steps)[0], eye(words, width, 2 * steps + 1)
    leaning = torch.zeros(words, dtype=torch.float64)
    for name, value in (("twice", -5.0), ("and", -6.0), ("left", -2.0), ("right", -2.0)):
        leaning[task.source_vocabulary.id(name)] = value
    roles = task.parse(batch).role
    encoder = 4 * place + word[batch.source] + leaning[batch.source][..., None] * lean
    encoder = encoder + torch.where((roles == Role.DIRECTION)[..., None], ahead, 0.0)
    offset = (torch.arange(steps) - torch.arange(steps)[:, None]).double()  # [S, T] t − s
    kernel = torch.where(offset == 0, 4.0, torch.where(offset == -1, 3.2, 2.0 * torch.exp(-offset.abs() / 3)))
    decoder = kernel @ place + lean + (0.4 * offset) @ ahead
    return planted(task, encoder, decoder.expand(len(batch), -1, -1), "AO", batch)


def test_e2_e3_e4_shares_and_variance(hiding):
    share, three = escan.temporal_share({"run": hiding}), escan.three_terms({"run": hiding})
    assert three.quantities["share"] == pytest.approx(1)  # the decoder's states are temporal components
    assert three.verdict is True
    assert share.quantities["share"] == pytest.approx(hiding.shares.signed[0, 0])
    assert share.verdict is (share.quantities["share"] >= 0.77)
    assert escan.variance_drop({"run": hiding}).verdict is True
    words_only = planted(
        hiding.task,
        eye(10, 10)[hiding.test.source],
        eye(8, 10)[hiding.test.target],
        "AED",
        hiding.test,
    )
    assert escan.variance_drop({"run": words_only}).verdict is False
    assert escan.temporal_share({"run": words_only}).verdict is False
    assert escan.three_terms({"run": words_only}).verdict is False


def parabolas(task, shift, size=2000):
    """μ^D_s·μ^E_t = −(t − s − shift_s)², exactly."""
    batch = task.sample(size, 0)
    t = torch.arange(task.source_steps, dtype=torch.float64)
    encoder = torch.stack([t, t**2, torch.ones_like(t)], -1)
    peak = torch.arange(task.target_steps) + torch.as_tensor(np.nan_to_num(shift))
    decoder = torch.stack([2 * peak, -torch.ones_like(peak), -(peak**2)], -1)
    return planted(task, encoder.expand(size, -1, -1), decoder.expand(size, -1, -1), "AED", batch)


def test_e5_peaks_where_predicted():
    task = ExtendedSCAN(and_rate=0.5)
    predicted = task.mean_offsets().mean
    about = 0.05 * np.where(np.arange(len(predicted)) % 3, 1, -1)  # not at the border, where no parabola is
    about[0] = 0.05
    found = escan.offset_peaks({"run": parabolas(task, predicted + about)})
    assert found.verdict is True
    assert found.quantities["slope"] == pytest.approx(1, abs=0.1)
    assert found.quantities["mean error"] < 0.1
    assert found.quantities["prediction moves by"] > 1
    assert found.quantities["mean error if on the diagonal"] > 0.5


def test_e5_peaks_that_stay_or_move_otherwise_are_told_apart():
    task = ExtendedSCAN(and_rate=0.5)
    predicted = task.mean_offsets().mean
    for shift in (np.zeros_like(predicted), -predicted, 2 * predicted, predicted + 1):
        assert escan.offset_peaks({"run": parabolas(task, shift)}).verdict is False


def test_e5_a_prediction_that_hardly_moves_is_reported_only():
    task = ExtendedSCAN(and_rate=0.02)
    found = escan.offset_peaks({"run": parabolas(task, task.mean_offsets().mean)})
    assert found.verdict is None
    assert abs(found.quantities["prediction moves by"]) < 1


def test_e6_the_dictionary(hiding):
    run = planted(hiding.task, hiding.trace.encoder_states, hiding.trace.decoder_states, "AO", hiding.test)
    task, inputs = run.task, run.encoder.input
    readout = torch.zeros(len(task.target_vocabulary), inputs.shape[1], dtype=torch.float64)
    for word, action in task.actions.items():  # the axis of the word, without what makes it lean
        readout[task.target_vocabulary.id(action), 43 + task.source_vocabulary.id(word)] = 1
    run.model.context_readout = torch.nn.Parameter(readout)
    found = escan.readout_dictionary({"run": run})
    assert found.verdict is True
    assert found.quantities == {"words": 1, "readouts largest on a word without output": 0}
    with torch.no_grad():
        run.model.context_readout[task.target_vocabulary.id("RUN")] = inputs[task.source_vocabulary.id("twice")]
    found = escan.readout_dictionary({"run": run})
    assert found.verdict is False
    assert found.quantities["words"] == pytest.approx(0.8)
    assert found.quantities["readouts largest on a word without output"] == 1


def test_e7_ends_of_phrases_and_own_words():
    task = ExtendedSCAN(and_rate=0.1)
    batch = task.sample(500, 0)
    ends = attending(task, batch, task.parse(batch).at(batch.alignment).end)
    own = attending(task, batch, batch.alignment, "AO")
    found = escan.subphrase_ends({"run": ends, "ao": own})
    assert found.verdict is True
    assert found.quantities["on the last word"] == 1
    assert found.quantities["AO's on the own word"] == 1
    of_outputs = task.parse(batch).at(batch.alignment)
    several = (of_outputs.words > 1) & own.common_decoder_mask
    turns = (of_outputs.role == Role.DIRECTION) & several
    assert found.quantities["AO's"] == pytest.approx(float(turns.sum() / several.sum()))  # "left" ends its phrase
    assert escan.subphrase_ends({"run": own, "ao": ends}).verdict is False
    assert escan.subphrase_ends({"run": ends, "ao": ends}).verdict is False


def test_e8_the_word_before_twice():
    task = ExtendedSCAN(and_rate=0.1)
    batch = task.sample(800, 0)
    own = attending(task, batch, batch.alignment, "AO")
    found = escan.word_before_twice({"run": own})
    assert found.verdict is True
    assert found.quantities["at s − 1"] == found.quantities["on the word before, any T"] == 1
    assert 0.3 < found.quantities["at s − 1, any T"] < 0.9  # behind an "and" it stands elsewhere
    second = (own.test.alignment + task.second_outputs(batch)).clamp(min=0)
    assert escan.word_before_twice({"run": attending(task, batch, second, "AO")}).verdict is False


def test_e9_deltas_beside_others():
    task, random = ExtendedSCAN(and_rate=0.1), torch.Generator().manual_seed(0)
    batch = task.sample(500, 0)
    places = eye(21, 32).expand(500, -1, -1)

    def noisy(level, of=task, pairs=batch):
        states = places[: len(pairs), : pairs.source.shape[1]]
        noise = level * torch.randn(states.shape, generator=random, dtype=torch.float64)
        return planted(of, states + noise, places[:, : pairs.target.shape[1]], "AED", pairs)

    one = OneToOne()
    runs_ = {"run": noisy(0.3), "one_to_one": noisy(0.1, one, one.sample(500, 0)), "ao": noisy(0.05)}
    assert escan.encoder_deltas(runs_).verdict is True
    assert escan.encoder_deltas(runs_ | {"one_to_one": runs_["run"]}).verdict is False
    assert escan.encoder_deltas(runs_ | {"ao": noisy(0.5)}).verdict is False


# ------------------------------------------------------------------------------------------------------------ dynamics


@pytest.fixture(scope="module")
def remembering():
    """An AED that reads "run twice" as "run run": the state at "twice" is that of the verb, and a little of its own."""
    task = ExtendedSCAN(and_rate=0.05)
    batch = task.sample(1500, 0)
    phrases, words = task.parse(batch), eye(10, 32, 21)
    read = torch.where(phrases.role == Role.TWICE, phrases.verb, batch.source)
    own = words[batch.source] * 0.2 * (phrases.role == Role.TWICE)[..., None]
    noise = 0.05 * torch.randn(1500, 21, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    encoder = eye(21, 32) + words[read] + own + noise
    return planted(task, encoder, eye(21, 32).expand(1500, -1, -1), "AED", batch)


def test_d1_clusters_of_twice_by_verb(remembering, hiding):
    found = dynamics.twice_splits({"run": remembering})
    assert found.verdict is True
    assert found.quantities["own verb nearest"] == 1
    assert found.quantities["silhouette"] > 0.7
    assert dynamics.twice_splits({"run": hiding}).verdict is False


def test_d1_clusters_that_lie_elsewhere_do_not_count(remembering):
    """Split by verb, but each near another verb's."""
    phrases = remembering.task.parse(remembering.test)
    verbs = torch.tensor([4, 5, 3])[(phrases.verb - 3).clamp(0, 2)]  # walk → run → jump → walk
    read = torch.where(phrases.role == Role.TWICE, verbs, remembering.test.source)
    run = planted(
        remembering.task,
        eye(21, 32) + eye(10, 32, 21)[read],
        eye(21, 32).expand(len(read), -1, -1),
        "AED",
        remembering.test,
    )
    found = dynamics.twice_splits({"run": run})
    assert found.quantities["silhouette"] > 0.7
    assert found.quantities["own verb nearest"] < 0.5
    assert found.verdict is False


def test_d1_only_phrases_of_a_verb_and_twice_count():
    task = ExtendedSCAN(repeat_directions=True, and_rate=0.1)
    run = untrained(task)
    twice, before, verbs = dynamics.twice_clusters(run, run.trace.encoder_mask)
    phrases = task.parse(run.test)
    assert len(twice) == len(before) == len(verbs) == int((phrases.kind == Kind.TWICE).sum()) // 2
    assert set(verbs.tolist()) == {task.source_vocabulary.id(verb) for verb in task.verbs}


def test_d2_one_cluster(remembering, hiding):
    assert dynamics.twice_is_one({"run": hiding}).verdict is True
    assert dynamics.twice_is_one({"run": remembering}).verdict is False


def test_d3_twice_hides_and_the_word_before_is_attended(hiding):
    found = dynamics.twice_hides({"run": hiding})
    assert found.quantities == {
        "lowest share": 1,
        "contribution negative": 1,
        "μD·μE second largest at s − 1": 1,
        "attention largest at s − 1": 1,
        "μD·μE largest at s": 1,
    }
    assert found.verdict is True


def test_d3_a_twice_that_shows_is_attended_itself(hiding):
    task, trace = hiding.task, hiding.trace
    twice = (hiding.test.source == task.source_vocabulary.id("twice")).double()[..., None]
    lean = eye(1, trace.encoder_states.shape[2], 42)[0]
    run = planted(task, trace.encoder_states + 8 * twice * lean, trace.decoder_states, "AO", hiding.test)
    found = dynamics.twice_hides({"run": run})
    assert found.verdict is False
    assert found.quantities["contribution negative"] == 0
    assert found.quantities["attention largest at s − 1"] == 0


def test_d4_signs_by_offset(hiding):
    found = dynamics.offsets_of_words({"run": hiding})
    assert found.verdict is True
    assert (
        found.quantities["and, share of offsets negative"] == found.quantities["twice, share of offsets negative"] == 1
    )
    assert found.quantities["left at 0"] < 0 < found.quantities["left, slope, low"]
    profile = dynamics.offset_profile(hiding, "left", np.array([-2, 0, 2, 30]))
    assert profile[0] < profile[1] < profile[2] and np.isnan(profile[3])


def test_d4_words_that_look_back_are_told_apart(hiding):
    trace = hiding.trace
    flipped = trace.decoder_states.clone()
    flipped[..., 21:42] *= -1
    run = planted(hiding.task, trace.encoder_states, flipped, "AO", hiding.test)
    assert dynamics.offsets_of_words({"run": run}).verdict is False


def test_d4_needs_the_words_it_is_about():
    with pytest.raises(
        ValueError, match=r'D4 is about "and", "twice", "left", but the task of untrained has no "and", only'
    ):
        dynamics.offsets_of_words({"run": untrained(ExtendedSCAN(and_rate=0), "AO")})


def test_dot_products_are_those_of_the_components(hiding):
    dots = dynamics.temporal_dots(hiding)
    components, path = hiding.encoder_input_delta, hiding.decoder.temporal
    for sample, s, t in ((0, 0, 0), (7, 3, 5), (20, 9, 2)):
        assert dots[sample, s, t] == pytest.approx(float(path[s] @ components[sample, t]))
    assert dots.shape == (3000, hiding.decoder_steps, hiding.encoder_steps)
