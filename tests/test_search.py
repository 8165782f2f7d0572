"""Beam search against greedy decoding, and against every sentence that there is."""

import math
from itertools import product

import pytest
import torch

from howattend.models import EncoderDecoder, ModelConfig, beam_search
from howattend.models.config import ARCHITECTURES, CELLS
from howattend.tasks import BOS, EOS, PAD, OneToOne

STEPS = 4


@torch.no_grad()
def log_probability(model, source, source_lengths, words):
    """Of words [S], fed at once as in training, given one source sentence."""
    encoded = model.encode(source, source_lengths)
    fed = [BOS] * len(words) if model.config.decoder_input == "constant" else [BOS, *words[:-1]]
    logits = model._logits(encoded, model._decode_words(encoded, torch.tensor([fed])))[0]
    return float(logits.log_softmax(-1)[range(len(words)), words].sum())


def exhaustive(model, source, source_lengths, steps, length_power, forbidden=()):
    """The best of all sentences that end within the steps."""
    said = [word for word in range(model.target_words) if word not in (EOS, *forbidden)]
    sentences = [[*words, EOS] for length in range(steps) for words in product(said, repeat=length)]
    scores = [log_probability(model, source, source_lengths, words) / len(words) ** length_power for words in sentences]
    return sentences[scores.index(max(scores))]


@pytest.fixture(params=["AED", "AO", "VED", "AED-lstm", "AED-ugrnn", "AED-constant", "AED-scaled_dot"])
def small(request, make_model):
    architecture, _, other = request.param.partition("-")
    cell = {"cell": other} if other in CELLS else {}
    fed = {"decoder_input": "constant"} if other == "constant" else {}
    attention = {"attention": other} if other == "scaled_dot" else {}
    return make_model(architecture, **cell, **fed, **attention)


@pytest.mark.parametrize("length_power", [0.0, 1.0])
def test_a_beam_wider_than_the_choice_finds_the_best_of_all_sentences(small, batch, length_power):
    found = beam_search(small, batch.source, batch.source_lengths, STEPS, 10**3, length_power=length_power)
    assert found.shape[1] <= STEPS
    greedy = small.generate(batch.source, batch.source_lengths, STEPS)
    different = 0
    for row in range(len(batch)):
        source = batch.source[row : row + 1], batch.source_lengths[row : row + 1]
        best = exhaustive(small, *source, STEPS, length_power)
        assert found[row].tolist() == best + [PAD] * (found.shape[1] - len(best))
        different += greedy[row, : len(best)].tolist() != best
    assert different > 0  # greedy decoding would not have passed


@torch.no_grad()
def test_width_one_is_greedy_decoding(model, batch):
    """Of every architecture and cell, with sentences that end and sentences that do not."""
    for model.readout_bias.data[EOS] in (0.0, 3.0):
        for steps in (1, 3, 9):
            greedy = model.generate(batch.source, batch.source_lengths, steps)
            found = beam_search(model, batch.source, batch.source_lengths, steps, 1)
            assert torch.equal(found, greedy)


@torch.no_grad()
@pytest.mark.parametrize("width", [2, 3, 5])
def test_sentences_end_once_and_do_not_depend_on_those_beside_them(small, batch, width):
    lengths = set()
    for small.readout_bias.data[EOS] in range(-2, 5):
        found = beam_search(small, batch.source, batch.source_lengths, 9, width)
        ended_before = (found == EOS).cumsum(1) - (found == EOS).long() > 0
        assert (found[ended_before] == PAD).all()
        lengths |= set((~ended_before).sum(1).tolist())
        for row in range(len(batch)):
            alone = beam_search(small, batch.source[row : row + 1], batch.source_lengths[row : row + 1], 9, width)[0]
            assert found[row, : len(alone)].tolist() == alone.tolist()
            assert (found[row, len(alone) :] == PAD).all()
    assert len(lengths) > 1


class Chain:
    """Planted: a network whose next word depends on the last one alone, with given probabilities."""

    def __init__(self, table):
        task = OneToOne(num_words=3, min_length=1, max_length=2)
        self.model = EncoderDecoder(ModelConfig("VED", "gru", hidden_size=6), task, 0).double()
        logits = torch.full((6, 6), -60.0, dtype=torch.float64)  # also of words that the table does not name
        for before, row in table.items():
            for word, probability in row.items():
                logits[before, word] = math.log(probability)
        self.model._logits = lambda encoded, states: logits[states[..., 0].round().long()]
        self.model._next_state = lambda tables, step, words, state: (words[:, None].double().repeat(1, 6),)

    def search(self, width, max_length=6, **options):
        source = torch.tensor([[3, EOS]])
        return beam_search(self.model, source, torch.tensor([2]), max_length, width, **options)[0].tolist()


A, B, C = 3, 4, 5


def test_the_greedy_choice_is_taken_back():
    chain = Chain({BOS: {A: 0.6, B: 0.4}, A: {A: 0.35, B: 0.35, EOS: 0.3}, B: {EOS: 1.0}})
    assert chain.search(1)[0] == A
    assert chain.search(2) == [B, EOS]


def test_the_score_is_the_mean_over_words_and_the_end():
    # [A, EOS] has log 0.5 over 2 words, [B, PAD, C, EOS] log 0.3 over 4: a lower sum and a higher mean.
    chain = Chain({BOS: {A: 0.5, B: 0.3, C: 0.2}, A: {EOS: 1.0}, B: {PAD: 1.0}, PAD: {C: 1.0}, C: {EOS: 1.0}})
    assert chain.search(3, length_power=0.0) == [A, EOS]
    assert chain.search(3, length_power=1.0) == [B, PAD, C, EOS]
    # log 0.3 / 4^p > log 0.5 / 2^p from p = log2(log 0.3 / log 0.5) = 0.797 on
    assert chain.search(3, length_power=0.79) == [A, EOS]
    assert chain.search(3, length_power=0.80) == [B, PAD, C, EOS]


def test_an_open_hypothesis_wins_only_where_none_has_ended():
    loop = {BOS: {A: 0.9, B: 0.1}, A: {A: 1.0}, B: {EOS: 1.0}}
    assert Chain(loop).search(2) == [B, EOS]
    assert Chain({**loop, B: {B: 1.0}}).search(2, max_length=4) == [A, A, A, A]


def test_a_forbidden_word_is_never_said():
    chain = Chain({BOS: {A: 0.9, B: 0.1}, A: {EOS: 1.0}, B: {A: 0.6, EOS: 0.4}})
    assert chain.search(1) == [A, EOS]
    assert chain.search(1, forbidden=[A]) == [B, EOS]
    assert A not in chain.search(4, forbidden=(A, A))


def test_forbidden_words_are_not_summed_out(small, batch):
    """The others keep their probabilities: what is found is the best sentence of those that remain."""
    found = beam_search(small, batch.source[:1], batch.source_lengths[:1], 3, 10**3, forbidden=[A])[0].tolist()
    best = exhaustive(small, batch.source[:1], batch.source_lengths[:1], 3, 1.0, forbidden=[A])
    assert found == best + [PAD] * (len(found) - len(best))


@pytest.mark.parametrize("value", [0, -1, 2.0, "5", None, True])
@pytest.mark.parametrize("name", ["width", "max_length"])
def test_a_wrong_number_is_refused(make_model, batch, name, value):
    arguments = {"width": 2, "max_length": 3, name: value}
    with pytest.raises(ValueError, match=rf"{name} must be an integer ≥ 1, got {value!r}"):
        beam_search(make_model(), batch.source, batch.source_lengths, **arguments)


def test_wrong_options_are_refused(make_model, batch):
    call = make_model(), batch.source, batch.source_lengths, 3, 2
    for power in (-0.1, math.inf, math.nan, "1"):
        with pytest.raises(ValueError, match="length_power must be a number ≥ 0"):
            beam_search(*call, length_power=power)
    for forbidden in ([6], [-1], range(6)):
        with pytest.raises(ValueError, match=r"forbidden must hold some, not all, of the word ids 0 … 5"):
            beam_search(*call, forbidden=forbidden)
    with pytest.raises(ValueError, match="source must hold word ids"):
        beam_search(call[0], batch.source + 9, *call[2:])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_finds_the_same(make_model, batch, architecture):
    model = make_model(architecture)
    here = beam_search(model, batch.source, batch.source_lengths, 9, 4)
    there = beam_search(model.to("cuda"), batch.source.cuda(), batch.source_lengths.cuda(), 9, 4)
    assert there.device.type == "cuda"
    assert torch.equal(here, there.cpu())
    model.to("cpu")
