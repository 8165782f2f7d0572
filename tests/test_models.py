"""Cells, attention and the three architectures, against their equations written out sample by sample."""

import math
from itertools import product

import pytest
import torch

from howattend.models import CELL_CLASSES, EncoderDecoder, ModelConfig, attend, positional_encoding
from howattend.models.config import ARCHITECTURES, ATTENTIONS, CELLS, DECODER_INPUTS, READOUTS
from howattend.tasks import BOS, EOS, PAD, Batch, OneToOne, generator

TORCH_CELLS = {"gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell, "ff": torch.nn.RNNCell}
FLOATS = ("encoder_states", "decoder_states", "scores", "attention", "contexts", "logits", "queries", "keys", "values")
PER_TARGET = ("decoder_states", "contexts", "logits", "queries")
PER_SOURCE = ("encoder_states", "keys", "values")
VALID = [  # every configuration there is, but for VED's ignored attention
    (architecture, cell, attention, decoder_input, readout)
    for architecture, cell, attention, decoder_input, readout in product(
        ARCHITECTURES, CELLS, ATTENTIONS, DECODER_INPUTS, READOUTS
    )
    if architecture != "VED" or (attention == "dot" and readout == "state")
]


def close(first, second):
    return torch.allclose(first, second, rtol=0, atol=1e-12)


# ---- the equations, for one sample and one step, with nothing shared with the library -----------------------------


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def plain_cell(kind, cell, x, state):
    """The next state (h,) or (h, c) from an input [d] and the last state."""
    inputs = cell.weight_ih @ x + cell.bias_ih
    recurrent = cell.weight_hh @ state[0] + cell.bias_hh
    n, h = len(state[0]), state[0]
    i, r = (
        [inputs[k : k + n] for k in range(0, len(inputs), n)],
        [recurrent[k : k + n] for k in range(0, len(inputs), n)],
    )
    if kind == "gru":
        reset, update = sigmoid(i[0] + r[0]), sigmoid(i[1] + r[1])
        return ((1 - update) * torch.tanh(i[2] + reset * r[2]) + update * h,)
    if kind == "lstm":
        memory = sigmoid(i[1] + r[1]) * state[1] + sigmoid(i[0] + r[0]) * torch.tanh(i[2] + r[2])
        return sigmoid(i[3] + r[3]) * torch.tanh(memory), memory
    if kind == "ugrnn":
        update = sigmoid(i[0] + r[0] + 1)
        return (update * h + (1 - update) * torch.tanh(i[1] + r[1]),)
    return (torch.tanh(i[0] + r[0]),)


def plain_position(step, size):
    """Sines and cosines of a step, in pairs of one frequency."""
    return torch.tensor(
        [f(step / 10_000 ** (2 * pair / size)) for pair in range(size // 2) for f in (math.sin, math.cos)],
        dtype=torch.float64,
    )


def plain_states(model, side, words, state):
    """The states after each word; AO begins every step from zero and adds the position."""
    cell, embedding = getattr(model, side), getattr(model, f"{'source' if side == 'encoder' else 'target'}_embedding")
    zero = (torch.zeros(6, dtype=torch.float64),) * 2
    state, states = state or zero, []
    for step, word in enumerate(words):
        x = embedding[word]
        if model.config.architecture == "AO":
            x, state = x + plain_position(step, 6), zero
        state = plain_cell(model.config.cell, cell, x, state)
        states.append(state)
    return states


def plain_scores(model, query, key):
    attention, kind = model.attention, model.config.attention
    if kind == "dot":
        return (query * key).sum()
    if kind == "scaled_dot":
        return (attention.query_weight @ query) @ (attention.key_weight @ key) / math.sqrt(6)
    mixed = torch.tanh(attention.query_weight @ query + attention.key_weight @ key)
    return (attention.score_weight[0] * mixed).sum()


def plain_forward(model, source, fed):
    """Encoder states, decoder states, weights, contexts and logits of one sentence, with the words as fed."""
    encoder = plain_states(model, "encoder", source, None)
    start = encoder[-1] if model.config.architecture != "AO" else None
    decoder = [state[0] for state in plain_states(model, "decoder", fed, start)]
    encoder, weights, contexts, logits = [state[0] for state in encoder], [], [], []
    for state in decoder:
        logit = model.readout_bias
        if model.attention is not None:
            scores = torch.stack([plain_scores(model, state, key) for key in encoder])
            weight = torch.exp(scores) / torch.exp(scores).sum()
            averaged = encoder
            if model.config.attention == "scaled_dot":
                averaged = [model.attention.value_weight @ value for value in encoder]
            context = sum(share * value for share, value in zip(weight, averaged, strict=True))
            weights.append(weight)
            contexts.append(context)
            if model.config.readout in ("both", "context"):
                logit = logit + model.context_readout @ context
        if model.config.readout in ("both", "state"):
            logit = logit + model.state_readout @ state
        logits.append(logit)
    return [torch.stack(part) if part else None for part in (encoder, decoder, weights, contexts, logits)]


# ---- cells -------------------------------------------------------------------------------------------------------


def make_cell(kind, input_size=4, hidden_size=5):
    return CELL_CLASSES[kind](input_size, hidden_size, generator("weights", 1)).double()


def random_tensor(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_state(kind, size=3, hidden_size=5):
    return tuple(random_tensor(size, hidden_size, seed=seed) for seed in range(2 if kind == "lstm" else 1))


@pytest.mark.parametrize("kind", CELLS)
class TestCells:
    def test_a_step_is_its_equation(self, kind):
        cell, state, inputs = make_cell(kind), random_state(kind), random_tensor(3, 4, seed=7)
        after = cell.step(cell.project(inputs), state)
        assert len(after) == len(state)
        for sample in range(3):
            expected = plain_cell(kind, cell, inputs[sample], tuple(part[sample] for part in state))
            assert all(close(part[sample], e) for part, e in zip(after, expected, strict=True))

    def test_no_state_is_the_zero_state(self, kind):
        cell, projected = make_cell(kind), random_tensor(3, 4, seed=7)
        projected = cell.project(projected)
        zero = tuple(torch.zeros_like(part) for part in random_state(kind))
        for without, given in zip(cell.step(projected, None), cell.step(projected, zero), strict=True):
            assert close(without, given)

    def test_all_steps_can_be_projected_at_once(self, kind):
        cell, inputs = make_cell(kind), random_tensor(6, 3, 4)
        for together, alone in zip(cell.project(inputs), inputs, strict=True):
            assert close(together, cell.project(alone))


@pytest.mark.parametrize("kind", TORCH_CELLS)
def test_cells_are_those_of_torch_with_the_same_weights(kind):
    cell, inputs = make_cell(kind), random_tensor(6, 3, 4)
    theirs = TORCH_CELLS[kind](4, 5).double()
    theirs.load_state_dict(cell.state_dict())
    state = expected = None
    for step in cell.project(inputs).unbind():
        state = cell.step(step, state)
    for step in inputs:
        expected = theirs(step, expected)
    for part, e in zip(state, expected if kind == "lstm" else [expected], strict=True):
        assert close(part, e)


def test_a_ugrnn_is_a_gru_whose_reset_gate_is_open():
    ugrnn, gru = make_cell("ugrnn"), make_cell("gru")
    with torch.no_grad():
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(gru, name)[5:] = getattr(ugrnn, name)
            getattr(gru, name)[:5] = 0
        gru.bias_ih[:5] = 50.0
        gru.bias_ih[5:10] += ugrnn.gate_bias
    inputs, state = random_tensor(3, 4, seed=7), random_state("gru")
    assert close(ugrnn.step(ugrnn.project(inputs), state)[0], gru.step(gru.project(inputs), state)[0])


def test_positions_are_sines_and_cosines_of_timescale_10_000():
    assert close(positional_encoding(30, 6), torch.stack([plain_position(step, 6) for step in range(30)]))


# ---- configurations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("architecture", "cell", "attention", "decoder_input", "readout"), VALID)
def test_every_valid_configuration_runs_and_learns(task, batch, architecture, cell, attention, decoder_input, readout):
    config = ModelConfig(architecture, cell, 6, attention, decoder_input, readout)
    model = EncoderDecoder(config, task, seed=0)
    logits = model(batch)
    assert logits.shape == (7, 6, 6)
    assert torch.isfinite(model.trace(batch).logits).all()
    assert model.generate(batch.source, batch.source_lengths, 4).shape[0] == 7
    mask = batch.target_mask
    torch.nn.functional.cross_entropy(logits[mask], batch.target[mask]).backward()
    unused = set()  # parameters that cannot matter, for then nothing may pretend to train them
    for name, _ in model.named_parameters():
        of_encoder = name.startswith(("encoder.", "source_embedding"))
        if (
            (architecture == "AO" and name.endswith("weight_hh"))  # every step begins from zero
            or (readout == "state" and name.startswith("attention."))  # no readout sees the context
            or (readout == "state" and architecture == "AO" and of_encoder)  # nor, without a memory, the encoder
        ):
            unused.add(name)
    assert {name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()} == unused
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architecture": "aed"}, r"architecture must be one of 'VED', 'AED', 'AO', got 'aed'"),
        ({"cell": "rnn"}, r"cell must be one of 'gru', 'lstm', 'ugrnn', 'ff', got 'rnn'"),
        ({"attention": None}, r"attention must be one of 'dot', 'scaled_dot', 'additive', got None"),
        ({"decoder_input": "true"}, r"decoder_input must be one of 'predicted', 'teacher', 'constant', None, got"),
        ({"readout": "all"}, r"readout must be one of 'both', 'context', 'state', None, got 'all'"),
        ({"hidden_size": 1}, r"hidden_size must be an integer ≥ 2, got 1"),
        ({"hidden_size": 8.0}, r"hidden_size must be an integer ≥ 2, got 8.0"),
        ({"architecture": "AO", "hidden_size": 7}, r"hidden_size must be even for AO"),
        ({"architecture": "VED", "readout": "both"}, r'readout must be "state" for VED'),
        ({"architecture": "VED", "readout": "context"}, r'readout must be "state" for VED'),
    ],
)
def test_bad_settings_are_answered_with_the_valid_ones(settings, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig(**settings)


@pytest.mark.parametrize(
    ("architecture", "task_default", "decoder_input", "readout"),
    [
        ("VED", "predicted", "predicted", "state"),
        ("AED", "predicted", "predicted", "both"),
        ("AED", "teacher", "teacher", "both"),
        ("AO", "predicted", "teacher", "both"),
    ],
)
def test_defaults(architecture, task_default, decoder_input, readout):
    resolved = ModelConfig(architecture).resolve(task_default)
    assert (resolved.decoder_input, resolved.readout) == (decoder_input, readout)
    chosen = ModelConfig(architecture, decoder_input="constant", readout="state")
    assert chosen.resolve(task_default) == chosen


# ---- the forward pass --------------------------------------------------------------------------------------------


def check_against_plain(model, batch):
    trace = model.trace(batch)
    for sample in range(len(batch)):
        T, S = int(batch.source_lengths[sample]), int(batch.target_lengths[sample])
        with torch.no_grad():
            encoder, decoder, weights, contexts, logits = plain_forward(
                model, batch.source[sample, :T].tolist(), trace.decoder_tokens[sample, :S].tolist()
            )
        assert close(trace.encoder_states[sample, :T], encoder)
        assert close(trace.decoder_states[sample, :S], decoder)
        assert close(trace.logits[sample, :S], logits)
        if model.attention is not None:
            assert close(trace.attention[sample, :S, :T], weights)
            assert close(trace.contexts[sample, :S], contexts)


def test_a_batch_is_its_sentences_one_by_one(model, batch):
    """Encoder from zero, decoder from the encoder's last state, attention, readout; AO position by position."""
    check_against_plain(model, batch)


@pytest.mark.parametrize("architecture", ["AED", "AO"])
@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("readout", READOUTS)
def test_attentions_and_readouts_are_their_equations(make_model, batch, architecture, attention, readout):
    check_against_plain(make_model(architecture, attention=attention, readout=readout), batch)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_with_fewer_words_than_the_vocabulary(make_model, architecture):
    """Its words are embedded one by one, not looked up in a table of all: the same numbers."""
    source, target, alignment = torch.tensor([[3, 5, EOS]]), torch.tensor([[4, EOS]]), torch.tensor([[1, 2]])
    few = Batch(source, torch.tensor([3]), target, torch.tensor([2]), alignment)
    check_against_plain(make_model(architecture, decoder_input="teacher"), few)


@pytest.mark.parametrize("decoder_input", DECODER_INPUTS)
def test_padding_never_changes_a_valid_position(model, batch, decoder_input):
    """Neither more of it, nor garbage in its place, nor the other sentences of the batch."""
    expected = model.trace(batch, decoder_input)
    garbage = torch.randint(0, 6, (7, 9), generator=torch.Generator().manual_seed(0))

    def pad(tokens, lengths):
        longer = torch.nn.functional.pad(tokens, (0, 9 - tokens.shape[1]))
        return torch.where(torch.arange(9) < lengths[:, None], longer, garbage)

    source, target = (
        pad(batch.source, batch.source_lengths),
        pad(batch.target, batch.target_lengths),
    )
    padded = Batch(source, batch.source_lengths, target, batch.target_lengths, torch.full((7, 9), -1))
    assert_agree(model.trace(padded, decoder_input), expected, range(7), batch)
    words = model.generate(batch.source, batch.source_lengths, 8)
    assert torch.equal(model.generate(source, batch.source_lengths, 8), words)
    for sample in range(7):
        T, S = int(batch.source_lengths[sample]), int(batch.target_lengths[sample])
        alone = Batch(
            batch.source[sample : sample + 1, :T],
            batch.source_lengths[sample : sample + 1],
            batch.target[sample : sample + 1, :S],
            batch.target_lengths[sample : sample + 1],
            batch.alignment[sample : sample + 1, :S],
        )
        assert_agree(model.trace(alone, decoder_input), expected, [sample], batch)


def assert_agree(trace, expected, samples, batch):
    """The samples of a trace equal those of another up to the end of each sentence."""
    for row, sample in enumerate(samples):
        T, S = int(batch.source_lengths[sample]), int(batch.target_lengths[sample])
        for name in FLOATS:
            steps = (
                (slice(S), slice(T)) if name in ("scores", "attention") else (slice(T if name in PER_SOURCE else S),)
            )
            if getattr(expected, name) is not None:
                assert close(getattr(trace, name)[(row, *steps)], getattr(expected, name)[(sample, *steps)]), name
        assert torch.equal(trace.decoder_tokens[row, :S], expected.decoder_tokens[sample, :S])


def test_the_decoder_is_fed_as_told(make_model, batch):
    model = make_model("AED")
    teacher, constant, predicted = (model.trace(batch, way) for way in ("teacher", "constant", "predicted"))
    mask = batch.target_mask
    assert torch.equal(teacher.decoder_tokens[:, 1:], torch.where(mask[:, 1:], batch.target[:, :-1], PAD))
    assert (constant.decoder_tokens[mask] == BOS).all()
    chosen = predicted.logits.argmax(-1)
    assert torch.equal(predicted.decoder_tokens[:, 1:][mask[:, 1:]], chosen[:, :-1][mask[:, 1:]])
    assert not torch.equal(predicted.decoder_tokens, teacher.decoder_tokens)
    for trace in (teacher, constant, predicted):
        assert (trace.decoder_tokens[:, 0] == BOS).all()


@pytest.mark.parametrize("way", DECODER_INPUTS)
def test_trace_and_forward_feed_as_configured_unless_told_otherwise(make_model, batch, way):
    configured, told = make_model("AED", decoder_input=way), make_model("AED")
    expected = configured.trace(batch)
    assert_agree(told.trace(batch, way), expected, range(7), batch)
    mask = batch.target_mask
    with torch.no_grad():
        assert close(configured(batch)[mask], expected.logits[mask])
        assert close(told(batch, way)[mask], expected.logits[mask])


# ---- traces ------------------------------------------------------------------------------------------------------


class TestTrace:
    def test_shapes(self, model, batch):
        trace = model.trace(batch)
        B, T, S, n, V = 7, 6, 6, 6, 6
        shapes = {
            **dict.fromkeys(PER_SOURCE, (B, T, n)),
            **dict.fromkeys(PER_TARGET, (B, S, n)),
            **dict.fromkeys(("scores", "attention"), (B, S, T)),
            "logits": (B, S, V),
        }
        has_attention = model.config.architecture != "VED"
        for name, shape in shapes.items():
            value = getattr(trace, name)
            if has_attention or name in ("encoder_states", "decoder_states", "logits"):
                assert value.shape == shape, name
                assert value.dtype == torch.float64
                assert not value.requires_grad
            else:
                assert value is None, name
        assert torch.equal(trace.encoder_tokens, batch.source)
        assert torch.equal(trace.encoder_mask, batch.source_mask)
        assert torch.equal(trace.decoder_mask, batch.target_mask)
        assert len(trace) == B

    def test_is_zero_at_padding(self, model, batch):
        trace, source, target = model.trace(batch), batch.source_mask, batch.target_mask
        assert not source.all()
        assert not trace.encoder_states[~source].any()
        assert not any(getattr(trace, name)[~target].any() for name in ("decoder_states", "logits", "decoder_tokens"))
        if trace.scores is None:
            return
        assert not any(getattr(trace, name)[~target].any() for name in ("queries", "contexts"))
        assert not any(getattr(trace, name)[~source].any() for name in ("keys", "values"))
        pairs = target[:, :, None] & source[:, None]
        assert not any(getattr(trace, name)[~pairs].any() for name in ("scores", "attention"))

    @pytest.mark.parametrize("architecture", ["AED", "AO"])
    @pytest.mark.parametrize("attention", ATTENTIONS)
    def test_attention_is_a_distribution_over_the_source(self, make_model, batch, architecture, attention):
        trace = make_model(architecture, attention=attention).trace(batch)
        assert close(trace.attention.sum(-1), batch.target_mask.double())
        assert (trace.attention >= 0).all()
        assert close(trace.contexts, trace.attention @ trace.values)

    @pytest.mark.parametrize("architecture", ["AED", "AO"])
    @pytest.mark.parametrize(("attention", "scale"), [("dot", 1.0), ("scaled_dot", 6**-0.5), ("additive", None)])
    def test_scores_are_scaled_products_of_queries_and_keys(self, make_model, batch, architecture, attention, scale):
        trace = make_model(architecture, attention=attention).trace(batch)
        products = trace.queries @ trace.keys.transpose(1, 2)
        if scale is None:
            assert trace.score_scale is None
            assert not close(trace.scores, products)
        else:
            assert trace.score_scale == pytest.approx(scale, rel=1e-15)
            assert close(trace.scores, scale * products)
        own = (trace.queries, trace.keys, trace.values), (trace.decoder_states, *(trace.encoder_states,) * 2)
        assert all(close(a, b) for a, b in zip(*own, strict=True)) == (attention == "dot")

    @pytest.mark.parametrize("decoder_input", DECODER_INPUTS)
    @pytest.mark.parametrize("chunk", [1, 3, 6])
    def test_in_chunks_is_the_same(self, model, batch, decoder_input, chunk):
        whole, chunked = model.trace(batch, decoder_input), model.trace(batch, decoder_input, chunk)
        for name, value in vars(whole).items():
            other = getattr(chunked, name)
            if isinstance(value, torch.Tensor):
                assert other.shape == value.shape
                assert close(other.double(), value.double()), name
            else:
                assert other == value, name

    def test_picks_samples(self, model, batch):
        trace = model.trace(batch)
        picked = trace[torch.tensor([4, 1])]
        assert len(picked) == 2
        assert torch.equal(picked.decoder_states[0], trace.decoder_states[4])
        assert torch.equal(picked.encoder_mask[1], trace.encoder_mask[1])
        assert picked.score_scale == trace.score_scale


def test_scores_on_padding_have_no_weight_however_large():
    weights = attend(torch.tensor([[[0.0, 1.0, 1e9]]]), torch.tensor([[True, True, False]]))
    expected = 1 / (1 + math.e)
    assert torch.allclose(weights, torch.tensor([[[expected, 1 - expected, 0.0]]]))
    assert weights[0, 0, 2] == 0


# ---- generation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", DECODER_INPUTS)
def test_generate_agrees_with_the_forward_pass(make_model, task, way):
    """Under predicted inputs, or constant ones where trained on them; what follows an end of sentence is padding."""
    early = late = 0
    for architecture, cell in product(ARCHITECTURES, CELLS):
        model = make_model(architecture, cell, decoder_input=way)
        model.readout_bias.data[EOS] += 1  # so that sentences end at different steps
        source = task.sample(30, seed=0)
        target, lengths = torch.full((30, 12), EOS), torch.full((30,), 12)
        free = Batch(source.source, source.source_lengths, target, lengths, torch.full((30, 12), -1))
        said = model.trace(free, "constant" if way == "constant" else "predicted").logits.argmax(-1).tolist()
        words = model.generate(source.source, source.source_lengths, 12).tolist()
        for expected, generated in zip(said, words, strict=True):
            end = expected.index(EOS) + 1 if EOS in expected else 12
            assert generated == (expected[:end] + [PAD] * 12)[: len(generated)]
            assert len(generated) >= end
            early, late = early + (end < 12), late + (end == 12)
    assert early > 20  # the test has seen both kinds
    assert late > 20


def test_generate_stops_when_every_sentence_has_ended(make_model, batch):
    model = make_model("AED")
    model.readout_bias.data[EOS] += 1000
    assert model.generate(batch.source, batch.source_lengths, 9).tolist() == [[EOS]] * 7
    model.readout_bias.data[EOS] -= 2000
    words = model.generate(batch.source, batch.source_lengths, 9)
    assert words.shape == (7, 9)
    assert not (words == EOS).any()


def test_generate_takes_sentences_of_ones_own(make_model, task):
    model = make_model("AO")
    words = model.generate(*task.encode(["A B C", "B"]), max_length=4)
    assert words.shape[0] == 2
    assert all(isinstance(task.target_vocabulary.decode(row), list) for row in words)


# ---- seeds, precision, bad input ---------------------------------------------------------------------------------


def test_the_seed_decides_the_weights(make_model, model):
    config = model.config
    same, other = (make_model(config.architecture, config.cell, seed=seed) for seed in (0, 1))
    for name, value in model.state_dict().items():
        assert torch.equal(value, same.state_dict()[name])
        assert name == "readout_bias" or not torch.equal(value, other.state_dict()[name])


def test_the_global_random_state_is_left_alone(task, batch):
    before = torch.get_rng_state()
    model = EncoderDecoder(ModelConfig(hidden_size=6, attention="scaled_dot"), task, seed=0)
    model.trace(batch)
    model.generate(batch.source, batch.source_lengths, 5)
    assert torch.equal(torch.get_rng_state(), before)


def test_single_precision_is_close_to_double(model, task, batch):
    single = EncoderDecoder(model.config, task, seed=1)
    single.load_state_dict(model.state_dict())
    trace = single.trace(batch, "teacher")
    assert trace.logits.dtype == torch.float32
    assert torch.allclose(trace.logits.double(), model.trace(batch, "teacher").logits, rtol=0, atol=2e-4)


class TestBadInput:
    def test_a_batch_of_a_larger_vocabulary(self, make_model):
        other = OneToOne(num_words=9, min_length=2, max_length=5).sample(20, seed=0)
        for call in (make_model("AED"), make_model("AED").trace):
            with pytest.raises(ValueError, match=r"source must hold word ids in 0 … 5.*another task"):
                call(other)

    @pytest.mark.parametrize("decoder_input", DECODER_INPUTS)
    @pytest.mark.parametrize("word", [-1, 6])
    def test_a_target_word_outside_the_vocabulary(self, make_model, batch, decoder_input, word):
        target = batch.target.clone()
        target[2, 1] = word
        wrong = Batch(batch.source, batch.source_lengths, target, batch.target_lengths, batch.alignment)
        model = make_model("AO", decoder_input=decoder_input)
        for call in (model, model.trace):
            with pytest.raises(ValueError, match=r"target must hold word ids in 0 … 5"):
                call(wrong)

    @pytest.mark.parametrize(
        ("source", "lengths", "message"),
        [
            (torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), r"B ≥ 1, got \(0, 3\)"),
            (torch.full((2, 3), 3.0), torch.tensor([3, 3]), r"source must be integer word ids .*float32"),
            (torch.full((3,), 3), torch.tensor([3, 3, 3]), r"source must be integer word ids \[B, steps\]"),
            (torch.full((2, 3), 3), torch.tensor([3, 0]), r"source_lengths must lie in 1 … 3, got 0 … 3"),
            (torch.full((2, 3), 3), torch.tensor([3, 4]), r"source_lengths must lie in 1 … 3, got 3 … 4"),
            (torch.full((2, 3), 3), torch.tensor([3.0, 3.0]), r"source_lengths must be integers \[2\]"),
            (torch.full((2, 3), 3), torch.tensor([3]), r"source_lengths must be integers \[2\]"),
            (torch.full((2, 3), 6), torch.tensor([3, 3]), r"source must hold word ids in 0 … 5, got 6 … 6"),
            (torch.full((2, 3), -1), torch.tensor([3, 3]), r"source must hold word ids in 0 … 5, got -1 … -1"),
        ],
    )
    def test_sources_that_are_none(self, make_model, source, lengths, message):
        with pytest.raises(ValueError, match=message):
            make_model("AED").generate(source, lengths, max_length=4)

    @pytest.mark.parametrize("max_length", [0, -1, 2.5])
    def test_a_bad_max_length(self, make_model, batch, max_length):
        with pytest.raises(ValueError, match="max_length must be an integer ≥ 1"):
            make_model("AED").generate(batch.source, batch.source_lengths, max_length)

    @pytest.mark.parametrize("way", ["true", ""])
    def test_a_bad_decoder_input(self, make_model, batch, way):
        with pytest.raises(ValueError, match="decoder_input must be one of predicted, teacher, constant, got"):
            make_model("AED").trace(batch, way)

    @pytest.mark.parametrize("chunk", [0, -5, 1.5])
    def test_a_bad_chunk(self, make_model, batch, chunk):
        with pytest.raises(ValueError, match="chunk must be an integer ≥ 1"):
            make_model("AED").trace(batch, chunk=chunk)

    def test_a_bad_seed(self, task):
        with pytest.raises(ValueError, match="seed must be an integer ≥ 0, got -1"):
            EncoderDecoder(ModelConfig(), task, seed=-1)


# ---- dropout -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["VED", "AED", "AO"])
def test_dropout_is_drawn_from_its_generator_and_from_nothing_else(task, batch, architecture):
    config = ModelConfig(architecture, hidden_size=32, decoder_input="teacher", dropout=0.5)
    model = EncoderDecoder(config, task, seed=0)
    state = torch.random.get_rng_state()
    plain, again = model.decode(batch)[1], model.decode(batch)[1]
    first, same = (model.decode(batch, dropout=torch.Generator().manual_seed(3))[1] for _ in range(2))
    other = model.decode(batch, dropout=torch.Generator().manual_seed(4))[1]
    assert torch.equal(plain, again)
    assert torch.equal(first, same)
    assert not torch.allclose(first, plain)
    assert not torch.allclose(first, other)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_dropout_keeps_the_mean(task, batch):
    model = EncoderDecoder(ModelConfig("AED", hidden_size=8, dropout=0.25), task, seed=0)
    drop = model._dropout(torch.Generator().manual_seed(0))
    values = drop(torch.full((200, 500), 3.0))
    assert set(values.unique().tolist()) == {0.0, 4.0}
    assert values.mean().item() == pytest.approx(3, abs=0.02)


def test_without_dropout_a_generator_changes_nothing(task, batch):
    model = EncoderDecoder(ModelConfig("AED", hidden_size=8), task, seed=0)
    assert torch.equal(model.decode(batch)[1], model.decode(batch, dropout=torch.Generator())[1])


@pytest.mark.parametrize("architecture", ["VED", "AED", "AO"])
def test_masked_logits_are_those_of_the_masked_steps(task, batch, architecture):
    model = EncoderDecoder(ModelConfig(architecture, hidden_size=8), task, seed=0)
    mask = batch.target_mask
    torch.testing.assert_close(model.readout(*model.decode(batch, mask=mask)), model(batch)[mask])


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_of_units_lies_below_one(share):
    with pytest.raises(ValueError, match="dropout must lie in 0 … 1"):
        ModelConfig(dropout=share)


def test_a_setting_that_came_later_is_named_only_where_it_is_used():
    """So configurations of networks that were trained before keep their hash."""
    assert "dropout" not in ModelConfig().settings()
    assert ModelConfig(dropout=0.2).settings() == {**ModelConfig().settings(), "dropout": 0.2}
