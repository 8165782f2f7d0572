"""Edits of encoder states: what they leave alone bit for bit, what they change, and that decoding follows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from howattend import interventions as iv
from howattend.decomposition import StreamingDecomposition, decompose
from howattend.models import Trace
from howattend.tasks import EOS, ExtendedSCAN, Role

ATTENDING = [("AED", "gru"), ("AED", "lstm"), ("AO", "gru"), ("AO", "ff")]


@pytest.fixture(params=ATTENDING, ids="-".join)
def model(request, make_model):
    return make_model(*request.param)


def components_of(model, batch):
    trace = model.trace(batch)
    return decompose(trace.encoder_states, trace.encoder_tokens, trace.encoder_mask, model.source_words)


def equal(first: Trace, second: Trace):
    return all(
        torch.equal(value, getattr(second, name)) if isinstance(value, torch.Tensor) else value == getattr(second, name)
        for name, value in vars(first).items()
    )


def checkerboard(batch):
    rows, steps = batch.source.shape
    return (torch.arange(rows)[:, None] + torch.arange(steps)) % 2 == 0


class TestNothing:
    @pytest.mark.parametrize("decoder_input", [None, "teacher", "predicted", "constant"])
    def test_no_edit_changes_nothing(self, model, batch, decoder_input):
        found = iv.decode_with(model, batch, [], decoder_input=decoder_input)
        assert equal(found.trace, model.trace(batch, decoder_input))
        assert torch.equal(found.words, found.trace.logits.argmax(-1).masked_fill(~batch.target_mask, 0))
        assert found.attention is found.trace.attention

    @pytest.mark.parametrize("part", iv.PARTS)
    @pytest.mark.parametrize("chunk", [1024, 3])
    def test_an_edit_of_no_step_changes_nothing(self, model, batch, part, chunk):
        nowhere = torch.zeros_like(batch.source_mask)
        found = iv.decode_with(model, batch, iv.remove(components_of(model, batch), part, nowhere), chunk=chunk)
        assert equal(found.trace, model.trace(batch, chunk=chunk))

    def test_swapping_a_word_by_itself_or_one_that_does_not_stand_there_changes_nothing(self, model, batch):
        components = components_of(model, batch)
        assert equal(iv.decode_with(model, batch, iv.swap_word(components, 3, 3)).trace, model.trace(batch))
        others = batch.source != 4
        assert equal(iv.decode_with(model, batch, iv.swap_word(components, 4, 3, others)).trace, model.trace(batch))

    def test_the_start_counts_as_untouched_if_the_last_state_is(self, make_model, batch):
        model = make_model("AED", "lstm")
        found = iv.decode_with(model, batch, iv.swap_word(components_of(model, batch), 3, 4), edit_start=True)
        without = iv.decode_with(model, batch, iv.swap_word(components_of(model, batch), 3, 4))
        assert equal(found.trace, without.trace)  # the last state is the end of sentence's, which is not word 3

    def test_neither_batch_nor_components_are_written_to(self, model, batch):
        components, source = components_of(model, batch), batch.source.clone()
        before = [part.nan_to_num() for part in (components.temporal, components.input, components.delta)]
        iv.decode_with(model, batch, [iv.remove(components, part) for part in iv.PARTS])
        assert torch.equal(batch.source, source)
        after = [part.nan_to_num() for part in (components.temporal, components.input, components.delta)]
        assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


class TestStates:
    @pytest.mark.parametrize("part", iv.PARTS)
    def test_one_component_is_gone_where_asked_and_the_rest_is_bit_equal(self, model, batch, part):
        components, where, before = components_of(model, batch), checkerboard(batch), model.trace(batch)
        found = iv.decode_with(model, batch, iv.remove(components, part, where)).trace
        chosen = where & batch.source_mask
        parts = {
            "temporal": components.temporal.expand_as(before.encoder_states),
            "input": components.input_at(batch.source, batch.source_mask),
            "delta": components.delta,
        }
        left = sum(value for name, value in parts.items() if name != part)
        assert torch.allclose(found.encoder_states[chosen], left[chosen], rtol=0, atol=1e-12)
        assert torch.equal(found.encoder_states[~chosen], before.encoder_states[~chosen])
        assert not torch.equal(found.encoder_states, before.encoder_states)
        assert torch.equal(found.encoder_tokens, before.encoder_tokens)
        assert torch.equal(found.decoder_mask, before.decoder_mask)

    def test_a_word_gets_anothers_component(self, model, batch):
        components, before = components_of(model, batch), model.trace(batch)
        found = iv.decode_with(model, batch, iv.swap_word(components, 3, 5)).trace
        here = batch.source == 3
        moved = before.encoder_states + components.input[5] - components.input[3]
        assert torch.allclose(found.encoder_states[here], moved[here], rtol=0, atol=1e-12)
        assert torch.equal(found.encoder_states[~here], before.encoder_states[~here])

    def test_word_ids_may_be_numpys(self, model, batch):
        components, word = components_of(model, batch), batch.source.numpy()[0, 0]
        found = iv.decode_with(model, batch, iv.swap_word(components, word, np.uint8(EOS)))
        assert equal(found.trace, iv.decode_with(model, batch, iv.swap_word(components, int(word), EOS)).trace)

    def test_edits_add_up_in_any_order(self, model, batch):
        components = components_of(model, batch)
        edits = [iv.remove(components, part) for part in iv.PARTS]
        nothing_left = iv.decode_with(model, batch, edits).trace
        assert nothing_left.encoder_states.abs().max() < 1e-12
        uniform = batch.source_mask / batch.source_mask.sum(1, keepdim=True)
        expected = uniform[:, None] * batch.target_mask[..., None]
        assert torch.allclose(nothing_left.attention, expected.double(), atol=1e-9)
        backwards = iv.decode_with(model, batch, edits[::-1]).trace
        assert torch.allclose(nothing_left.logits, backwards.logits, atol=1e-9)
        pair = [edits[1], iv.swap_word(components, 3, 4)]
        assert torch.allclose(
            iv.decode_with(model, batch, pair).trace.logits, iv.decode_with(model, batch, pair[::-1]).trace.logits
        )

    def test_swapping_there_and_back_is_nothing_but_rounding(self, model, batch):
        components = components_of(model, batch)
        both = [iv.swap_word(components, 3, 4), iv.Edit(iv.swap_word(components, 4, 3).addend, None, 3)]
        found, before = iv.decode_with(model, batch, both).trace, model.trace(batch)
        assert torch.allclose(found.encoder_states, before.encoder_states, rtol=0, atol=1e-12)

    def test_streamed_components_and_those_of_another_batch_will_do(self, model, task, batch):
        trace = model.trace(batch)
        streaming = StreamingDecomposition(task.source_steps, model.source_words, 6)
        streaming.update(trace.encoder_states, trace.encoder_tokens, trace.encoder_mask)
        streamed = iv.decode_with(model, batch, iv.remove(streaming.components(), "delta")).trace
        whole = iv.decode_with(model, batch, iv.remove(components_of(model, batch), "delta")).trace
        assert torch.allclose(streamed.logits, whole.logits)
        other = components_of(model, task.sample(200, seed=8))
        found = iv.decode_with(model, batch, iv.remove(other, "delta")).trace.encoder_states
        expected = other.temporal + other.input_at(batch.source, batch.source_mask)
        mask = batch.source_mask
        assert torch.allclose(found[mask], expected[mask], rtol=0, atol=1e-12)

    def test_chunks_cut_the_mask_with_the_batch(self, model, batch):
        components, where = components_of(model, batch), checkerboard(batch)
        edits = [iv.remove(components, "delta", where), iv.swap_word(components, 3, 4, ~where)]
        whole, chunked = (iv.decode_with(model, batch, edits, chunk=chunk).trace for chunk in (1024, 2))
        assert torch.allclose(whole.encoder_states, chunked.encoder_states)
        assert torch.allclose(whole.logits, chunked.logits)

    def test_learned_keys_and_values_are_those_of_the_edited_states(self, make_model, batch):
        model = make_model("AED", attention="scaled_dot")
        found = iv.decode_with(model, batch, iv.remove(components_of(model, batch), "input")).trace
        assert torch.allclose(found.keys, model.attention.keys(found.encoder_states))
        assert torch.allclose(found.values, model.attention.values(found.encoder_states))


class TestDecoding:
    def test_attention_and_output_follow_from_the_edited_states(self, model, batch):
        """Teacher-forced, the decoder's states do not depend on attention, so the rest can be computed here."""
        before = model.trace(batch, "teacher")
        edit = iv.remove(components_of(model, batch), "input")
        found = iv.decode_with(model, batch, edit, decoder_input="teacher").trace
        assert torch.equal(found.decoder_states, before.decoder_states)
        scores = found.decoder_states @ found.encoder_states.mT
        weights = scores.masked_fill(~batch.source_mask[:, None], -torch.inf).softmax(-1)
        mask = batch.target_mask
        assert torch.allclose(found.attention[mask], weights[mask])
        logits = model.readout(weights @ found.encoder_states, found.decoder_states)
        assert torch.allclose(found.logits[mask], logits[mask])

    def test_free_running_feeds_what_the_edited_states_say(self, make_model, batch):
        model = make_model("AED")
        before = model.trace(batch, "predicted")
        found = iv.decode_with(
            model, batch, iv.remove(components_of(model, batch), "temporal"), decoder_input="predicted"
        )
        assert not torch.equal(found.words, before.logits.argmax(-1).masked_fill(~batch.target_mask, 0))
        both = batch.target_mask[:, 1:]
        assert torch.equal(found.trace.decoder_tokens[:, 1:][both], found.words[:, :-1][both])

    def test_the_decoder_starts_from_the_unedited_state_unless_asked(self, make_model, batch):
        for cell in ("gru", "lstm"):
            model = make_model("AED", cell)
            edit = iv.remove(components_of(model, batch), "input")
            before = model.trace(batch, "teacher").decoder_states
            attended = iv.decode_with(model, batch, edit, decoder_input="teacher").trace
            started = iv.decode_with(model, batch, edit, decoder_input="teacher", edit_start=True).trace
            assert torch.equal(attended.decoder_states, before)
            assert torch.equal(attended.encoder_states, started.encoder_states)
            assert not torch.allclose(started.decoder_states, before)

    def test_without_attention_an_edit_acts_through_the_start_alone(self, make_model, batch):
        model = make_model("VED")
        edit = iv.remove(components_of(model, batch), "input", batch.source == EOS)
        started = iv.decode_with(model, batch, edit, edit_start=True)
        assert started.attention is None
        assert not torch.allclose(started.trace.logits, model.trace(batch).logits)
        with pytest.raises(ValueError, match="edit_start=True"):
            iv.decode_with(model, batch, edit)

    def test_without_attention_an_edit_of_earlier_steps_alone_is_refused(self, make_model, batch):
        model = make_model("VED")
        components, word = components_of(model, batch), int(batch.source[0, 0])
        everywhere = iv.decode_with(model, batch, iv.remove(components, "input"), edit_start=True)
        at_ends = iv.decode_with(model, batch, iv.remove(components, "input", batch.source == EOS), edit_start=True)
        assert torch.equal(everywhere.trace.logits, at_ends.trace.logits)  # earlier steps have no effect
        for edit in (
            iv.remove(components, "input", batch.source != EOS),
            iv.swap_word(components, word, EOS),
            [iv.remove(components, "input"), iv.swap_word(components, word, EOS)],
        ):
            with pytest.raises(ValueError, match=r"must change a sentence's last step.*\d+ states, all of them"):
                iv.decode_with(model, batch, edit, edit_start=True)
        nothing = iv.decode_with(model, batch, iv.remove(components, "input", batch.source < 0), edit_start=True)
        assert equal(nothing.trace, model.trace(batch))

    def test_accuracy_is_that_of_the_words(self, model, batch):
        found = iv.decode_with(model, batch, [])
        mask = batch.target_mask
        assert found.word_accuracy(batch) == pytest.approx(
            float((found.words[mask] == batch.target[mask]).double().mean())
        )
        assert replace(found, words=batch.target).word_accuracy(batch) == 1

    def test_what_is_made_alike_is_attended_alike(self, make_model):
        """Without temporal and delta components a state is its word's; "walk" with run's component is a "run"."""
        task = ExtendedSCAN(and_rate=0, phrases=("verb",), verbs=("walk", "run", "jump"), min_length=4, max_length=4)
        model = make_model("AO", decoder_input="constant")
        batch = task.pairs(["walk run walk walk", "run walk run run"])
        components = components_of(model, batch)
        walk, run = (task.source_vocabulary.id(word) for word in ("walk", "run"))
        alike = [iv.remove(components, "temporal"), iv.remove(components, "delta")]
        words_only = iv.decode_with(model, batch, alike).trace
        swapped = iv.decode_with(model, batch, [*alike, iv.swap_word(components, walk, run)]).trace
        verbs = task.parse(batch).role[0] == Role.VERB
        assert (swapped.attention[..., verbs].std(-1) < 1e-12).all()
        assert (words_only.attention[..., verbs].std(-1) > 1e-6).all()
        assert torch.allclose(swapped.logits[0], swapped.logits[1])  # the two sentences have become one
        assert not torch.allclose(words_only.logits[0], words_only.logits[1])


class TestBadInput:
    def test_a_part_that_there_is_not(self, model, batch):
        with pytest.raises(ValueError, match="part must be one of temporal, input, delta, got 'word'"):
            iv.remove(components_of(model, batch), "word")

    @pytest.mark.parametrize("word", [-1, 6, True, "A", 1.0, np.int64(6), np.float32(1)])
    def test_a_word_outside_the_vocabulary(self, model, batch, word):
        with pytest.raises(ValueError, match=r"word must be a word id in 0 … 5"):
            iv.swap_word(components_of(model, batch), word, 3)
        with pytest.raises(ValueError, match=r"by must be a word id in 0 … 5"):
            iv.swap_word(components_of(model, batch), 3, word)

    def test_a_word_that_never_occurred(self, model, batch):
        with pytest.raises(ValueError, match="word 0 never occurred"):
            iv.swap_word(components_of(model, batch), 3, 0)

    def test_a_mask_of_another_shape_or_kind(self, model, batch):
        components = components_of(model, batch)
        with pytest.raises(ValueError, match=r"where must have shape \[B, T\] with B = 7, T = 6, got \[7, 5\]"):
            iv.decode_with(model, batch, iv.remove(components, "input", batch.source_mask[:, :5]))
        with pytest.raises(TypeError, match="where must be bool"):
            iv.decode_with(model, batch, iv.remove(components, "input", batch.source))

    def test_components_of_something_else(self, model, batch, task):
        trace = model.trace(batch)
        short = decompose(trace.encoder_states[:, :4], trace.encoder_tokens[:, :4], trace.encoder_mask[:, :4], 6)
        with pytest.raises(ValueError, match="6 steps and 6 units, got 4 and 6"):
            iv.decode_with(model, batch, iv.remove(short, "temporal"))

    def test_components_that_lack_an_edited_step(self, model, batch, task):
        shortest = batch[batch.source_lengths == batch.source_lengths.min()]
        components = components_of(model, shortest)
        with pytest.raises(ValueError, match="decompose a larger batch"):
            iv.decode_with(model, batch, iv.remove(components, "temporal"))

    def test_ao_has_no_start_to_edit(self, make_model, batch):
        with pytest.raises(ValueError, match="AO's decoder starts from nothing"):
            iv.decode_with(make_model("AO"), batch, [], edit_start=True)


def test_components_of_a_batch_that_lacks_the_last_word(model, task):
    """They end with the last word that occurs, unless told how many there are."""
    batch = task.sample(64, seed=0)
    few = batch[(batch.source < batch.source.max()).all(1)]
    components = decompose(model.trace(few).encoder_states, few.source, few.source_mask)
    for part in ("input", "delta"):
        with pytest.raises(ValueError, match=r"must have a row for every edited word, but have .* num_words="):
            iv.decode_with(model, batch, iv.remove(components, part))


class TestShift:
    def test_one_vector_is_added_where_asked(self, model, batch):
        by, where, before = torch.arange(6.0), checkerboard(batch), model.trace(batch)
        found = iv.decode_with(model, batch, iv.shift(by, where)).trace
        chosen = where & batch.source_mask
        moved = before.encoder_states + by.double()
        assert torch.allclose(found.encoder_states[chosen], moved[chosen], rtol=0, atol=1e-12)
        assert torch.equal(found.encoder_states[~chosen], before.encoder_states[~chosen])

    def test_there_and_back_is_nothing_but_rounding_and_nowhere_is_nothing(self, model, batch):
        by, before = torch.arange(6.0), model.trace(batch)
        found = iv.decode_with(model, batch, [iv.shift(by), iv.shift(-by)]).trace
        assert torch.allclose(found.logits, before.logits)
        nowhere = torch.zeros_like(batch.source_mask)
        assert equal(iv.decode_with(model, batch, iv.shift(by, nowhere)).trace, before)

    def test_what_is_no_vector_of_the_states(self, model, batch):
        for by in (torch.zeros(2, 6), torch.tensor([0.0, torch.nan]), torch.tensor(1.0)):
            with pytest.raises(ValueError, match=r"by must be a finite vector \[n\]"):
                iv.shift(by)
        with pytest.raises(ValueError, match="by must have the 6 units of the states, got 5"):
            iv.decode_with(model, batch, iv.shift(torch.zeros(5)))
