"""V4: planted trees are found, and what only looks like one is not."""

import numpy as np
import pytest
import torch

from howattend import claims, statistics
from howattend.analysis import Run
from howattend.claims import CRITERIA, ved
from howattend.models import ModelConfig
from howattend.runs import RunConfig
from howattend.tasks import OneToOne
from howattend.training import TrainConfig

STEP, UNITS = 5, 32


@pytest.fixture(scope="module")
def words():
    """The first five words [1000, 5] of sentences of three different words."""
    return np.random.default_rng(0).integers(3, 6, (1000, STEP))


def branching(words, ratio, seed=0, noise=0.02):
    """States [P, n] in which each node of the prefix tree adds a direction of its own, ``ratio`` times as long as that
    of the node above it."""
    rng, states = np.random.default_rng(seed), np.zeros((len(words), UNITS))
    for depth in range(1, words.shape[1] + 1):
        nodes = np.unique(words[:, :depth], axis=0, return_inverse=True)[1].ravel()
        states += ratio**depth * rng.normal(size=(nodes.max() + 1, UNITS))[nodes]
    return states + noise * ratio ** words.shape[1] * rng.normal(size=states.shape)


def side_by_side(words, weights, seed=0, noise=0.02):
    """States [P, n] in which each step's word has a direction of its own, whatever the others are."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.normal(size=(UNITS, UNITS)))[0].reshape(-1, UNITS)
    codes = directions[: 3 * words.shape[1]].reshape(words.shape[1], 3, UNITS)
    states = sum(weight * code[word - 3] for weight, code, word in zip(weights, codes, words.T, strict=True))
    return states + noise * rng.normal(size=states.shape)


# ----------------------------------------------------------------------------------------------------- the statistic


def test_a_planted_tree_is_pure_at_every_depth(words):
    found = statistics.prefix_purity(branching(words, 0.3), words[:, :4])
    assert found.purity == pytest.approx(1)
    assert found.clusters.tolist() == [3, 9, 27, 81]
    assert (found.null < 0.45).all()


def test_the_first_word_weighing_most_makes_a_tree_and_the_last_word_weighing_most_none(words):
    weights = 0.4 ** np.arange(STEP)
    first = statistics.prefix_purity(side_by_side(words, weights), words[:, :2])
    last = statistics.prefix_purity(side_by_side(words, weights[::-1]), words[:, :2])
    assert first.purity == pytest.approx(1)
    assert (last.purity - last.null < 0.1).all()


def test_states_that_know_their_last_word_only_are_at_the_null(words):
    found = statistics.prefix_purity(side_by_side(words, [0, 0, 0, 0, 1]), words[:, :4])
    assert (abs(found.purity - found.null) < 0.05).all()


def test_words_that_can_be_read_but_do_not_branch_are_no_tree(words):
    """All five words lie side by side, equally strong: each can be read out without error, none makes a branch."""
    states = side_by_side(words, np.ones(STEP))
    centres = [states[words[:, 0] == word].mean(0) for word in (3, 4, 5)]
    assert statistics.nearest_centre_share(states, words[:, 0] - 3, centres) == 1
    assert statistics.prefix_purity(states, words[:, :2]).purity[1] < 0.9


def test_shuffled_states_are_at_the_null(words):
    states = np.random.default_rng(1).permutation(branching(words, 0.3))
    found = statistics.prefix_purity(states, words[:, :4])
    assert (abs(found.purity - found.null) < 0.03).all()


def test_the_null_is_what_chance_gives():
    """Two clusters of two states, two states a word: of the three ways to pair them one is pure, two are half."""
    states, words = np.array([[0.0], [0.1], [5.0], [5.1]]), np.array([[1], [1], [2], [2]])
    found = statistics.prefix_purity(states, words, draws=4000)
    assert found.purity[0] == 1
    assert found.null[0] == pytest.approx(2 / 3, abs=0.02)


def test_clusters_are_cut_where_there_are_prefixes_not_where_there_could_be():
    words = np.array([[1, 1], [1, 2], [2, 1]]).repeat(4, axis=0)  # nothing begins with 2 2
    found = statistics.prefix_purity(branching(words, 0.3), words)
    assert found.clusters.tolist() == [2, 3]
    assert found.purity == pytest.approx(1)


@pytest.mark.parametrize(
    ("states", "words", "said"),
    [
        (np.zeros((4, 2)), [[1], [1], [2], [2]], "two different points"),
        (np.eye(4), [[1], [1], [1], [1]], "one first word only"),
        (np.eye(4), [[1], [2], [3], [4]], "two states a prefix"),
        (np.eye(4), [[1], [2]], "words has shape"),
        (np.full((4, 2), np.nan), [[1], [1], [2], [2]], "states holds NaN"),
    ],
)
def test_what_has_no_purity_is_refused(states, words, said):
    with pytest.raises(ValueError, match=said):
        statistics.prefix_purity(states, words)


# --------------------------------------------------------------------------------------------------------- the claim


def planted(encoder, decoder, length=8):
    """A run on sentences of ``length`` words whose states are functions of source [M, T] and target [M, S] words."""
    task = OneToOne(min_length=length, max_length=length)
    config = RunConfig("planted", task, ModelConfig("VED", hidden_size=UNITS), TrainConfig(1), 0.0)
    run = Run(config, config.new_model(0), 0)
    run.__dict__["test"] = test = task.sample(1000, seed=0)
    run.__dict__["accuracy"] = 1.0
    trace = run.model.trace(test)
    for name, states in (("encoder_states", encoder(test)), ("decoder_states", decoder(test))):
        object.__setattr__(trace, name, torch.from_numpy(states.copy()))
    run.__dict__["trace"] = trace
    return run


def over_steps(words, states_of):
    """[M, steps, n] from a function of what was read until each step."""
    return np.stack([states_of(words[:, : step + 1]) for step in range(words.shape[1])], 1)


def tree_of_source(test):
    return over_steps(test.source.numpy(), lambda read: branching(read[:, :6], 0.3))


def last_source_word(test):
    return over_steps(test.source.numpy(), lambda read: branching(read[:, -1:], 0.3))


def next_word(test):
    return over_steps(test.target.numpy(), lambda read: branching(read[:, -1:], 0.3))


def tree_of_what_was_said(test):
    fed = np.concatenate([np.zeros((len(test), 1), int), test.target.numpy()[:, :-1]], 1)
    return over_steps(fed, lambda read: branching(read[:, :7], 0.3))


def tree_of_what_is_left(test):
    """The encoder's tree backwards: the last word, which all that is left ends in, is the thickest branch."""
    backwards = np.ascontiguousarray(test.target.numpy()[:, ::-1])
    return over_steps(backwards, lambda left: branching(left[:, :6], 0.3))[:, ::-1]


def test_a_tree_in_the_encoder_alone_is_the_claim():
    found = ved.tree({"run": planted(tree_of_source, next_word)})
    assert found.verdict is True
    assert next(iter(found.quantities)) == "encoder, depth 1–2"
    assert found.quantities["encoder, depth 1–2"] == pytest.approx(1)
    assert found.quantities["decoder above null"] < CRITERIA["V4"].limits["null"]


def test_without_a_tree_in_the_encoder_there_is_none():
    found = ved.tree({"run": planted(last_source_word, next_word)})
    assert found.verdict is False
    assert found.quantities["encoder, depth 1–2"] < 0.6
    assert found.quantities["encoder, by last words, depth 1"] == pytest.approx(1)


def test_a_decoder_with_the_same_tree_mirrors_it():
    found = ved.tree({"run": planted(tree_of_source, tree_of_what_was_said)})
    assert found.verdict is False
    assert found.quantities["decoder, depth 1"] == pytest.approx(1)


def test_a_tree_backwards_in_time_is_seen_beside_the_verdict():
    found = ved.tree({"run": planted(tree_of_source, tree_of_what_is_left)})
    assert found.quantities["decoder, mirrored, depth 2"] == pytest.approx(1)
    assert found.quantities["decoder above null"] < CRITERIA["V4"].limits["null"]


def test_a_network_that_has_learnt_nothing_has_no_tree():
    task = OneToOne(min_length=8, max_length=10)
    config = RunConfig("untrained", task, ModelConfig("VED", hidden_size=UNITS), TrainConfig(1), 0.0)
    run = Run(config, config.new_model(0), 0)
    run.__dict__["test"] = task.sample(1000, seed=0)
    found = claims.measure("V4", {"run": run})
    assert found.verdict is False
    assert found.quantities["encoder, just read, depth 2"] == 1  # as in every network: hence the later step


def test_sentences_must_be_long_enough():
    run = planted(tree_of_source, next_word, length=5)
    with pytest.raises(ValueError, match="step must lie in"):
        ved.tree({"run": run})
