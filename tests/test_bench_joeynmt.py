"""The benchmark beside JoeyNMT: what of it holds without JoeyNMT, and with it where it is installed."""

import importlib
import math
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
import torch

from howattend.tasks import BOS, EOS, PAD, OneToOne, Vocabulary


@pytest.fixture
def bench(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    return importlib.import_module("bench_joeynmt")


@pytest.fixture
def joey(bench):
    """The benchmark, where JoeyNMT can be imported: the tests that ask for it are skipped elsewhere."""
    if (reason := bench.missing()) is not None:
        pytest.skip(reason)
    return bench


def requirements(path):
    """Package → version of the lines that pin one."""
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    pairs = [line.lower().replace("_", "-").split("==") for line in lines if "==" in line]
    return dict(pairs)


# ---- the optional dependency -----------------------------------------------------------------------------------------


def test_without_joeynmt_it_says_in_one_line_how_to_install_it_and_stops_nothing(bench, root, monkeypatch, capsys):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(bench.metadata, "version", absent)
    monkeypatch.setattr(sys, "argv", ["bench_joeynmt.py"])
    monkeypatch.setattr(bench, "run", lambda rounds: pytest.fail("measured without a peer"))
    bench.main()  # returns: python -m howattend bench goes on
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    assert "joeynmt is not installed" in printed and bench.HOW in printed
    assert (root / bench.HOW.split()[-1]).is_file()


def test_another_version_is_no_peer(bench, monkeypatch):
    monkeypatch.setattr(bench.metadata, "version", lambda name: "2.2.1")
    assert "must be 2.3.0, got 2.2.1" in bench.missing()


def test_what_it_cannot_import_is_said(bench, monkeypatch):
    monkeypatch.setattr(bench.metadata, "version", lambda name: bench.VERSION)
    monkeypatch.setitem(sys.modules, "joeynmt", None)
    assert "joeynmt cannot be imported" in bench.missing() and bench.HOW in bench.missing()


def test_fewer_rounds_than_an_interval_needs_are_refused(bench, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench_joeynmt.py", "--rounds", "5"])
    with pytest.raises(SystemExit) as stopped:
        bench.main()
    assert stopped.value.code == 2
    assert "at least 6, got 5" in capsys.readouterr().err


def test_nothing_but_the_benchmark_needs_joeynmt(bench, root):
    own = requirements(root / "benchmarks" / "requirements-joeynmt.txt")
    assert own["joeynmt"] == bench.VERSION
    held = requirements(root / "constraints.txt") | requirements(root / "requirements.txt")
    shared = set(own) & set(held)
    assert shared <= {"importlib-metadata"}
    assert all(own[name] == held[name] for name in shared)
    elsewhere = [root / name for name in ("pyproject.toml", ".ci/run", "Makefile")]
    for path in (*elsewhere, *(root / ".github").rglob("*.yml")):
        assert "joeynmt" not in path.read_text(encoding="utf-8").lower()


# ---- what is measured ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", [False, True])
def test_words_keep_their_order_behind_joeynmts_special_words(bench, unknown):
    vocabulary = Vocabulary.of_words("cab", unknown)
    ids = bench.joey_ids(torch.arange(len(vocabulary)), vocabulary).tolist()
    named = dict(zip(vocabulary.words, ids, strict=True))
    assert [named[word] for word in ("<pad>", "<bos>", "<eos>", "c", "a", "b")] == [1, 2, 3, 4, 5, 6]
    assert not unknown or named["<unk>"] == 0


@pytest.mark.parametrize("count", range(6, 41))
def test_the_interval_of_the_median_is_the_narrowest_that_covers_95_percent(bench, count):
    """It lies between the k-th values from either end with probability Σ C(count, i) / 2^count, i = k … count − k."""
    median, low, high = bench.median_interval(torch.randperm(count).numpy() + 1.0)
    place = round(low)
    assert (median, high) == ((count + 1) / 2, count + 1 - place)

    def coverage(place):
        return sum(math.comb(count, i) for i in range(place, count - place + 1)) / 2**count

    assert coverage(place) >= 0.95 > coverage(place + 1)


def test_five_values_have_no_such_interval(bench):
    assert bench.median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) == (3.0, -math.inf, math.inf)


def planted(bench, order, losses):
    """Networks whose steps write down their name, and whose losses are given."""

    def network(name):
        left = iter(losses[name])

        def step(i):
            order.append((name, i))
            return next(left)

        return bench.Network(torch.nn.Identity(), step)

    return {("ours", name): network(name) for name in losses}


def test_networks_take_turns_and_none_is_always_first(bench):
    order, rounds, names = [], 3, "abc"
    falling = {name: [9.0 - number for number in range(4 * (rounds + 1))] for name in names}
    table = bench.seconds(planted(bench, order, falling), rounds)
    assert table.shape == (rounds, 3) and bool((table >= 0).all(axis=None))
    blocks = [order[start : start + 4] for start in range(0, len(order), 4)]
    assert all([i for _, i in block] == [0, 1, 2, 3] for block in blocks)
    assert "".join(block[0][0] for block in blocks) == "abcbcacababc"


def test_a_step_that_learns_nothing_is_not_timed(bench):
    losses = {"a": [1.0] * 8, "b": [1.0] * 4 + [1.1] * 4}
    with pytest.raises(AssertionError, match=r"ours b does not learn: loss 1\.000, later 1\.100"):
        bench.seconds(planted(bench, [], losses), rounds=1)


# ---- with JoeyNMT ----------------------------------------------------------------------------------------------------

TASK = OneToOne(num_words=3, min_length=2, max_length=5)
foreign = pytest.mark.filterwarnings("ignore")  # of JoeyNMT's own and its dependencies'


@foreign
def test_the_batches_hold_the_same_pairs(joey):
    ours = TASK.sample(7, seed=3)
    theirs = joey.joey_batch(ours, TASK)
    order = theirs.indices
    assert theirs.src_length.tolist() == sorted(ours.source_lengths.tolist(), reverse=True)
    assert torch.equal(theirs.src, joey.joey_ids(ours.source, TASK.source_vocabulary)[order])
    assert torch.equal(theirs.trg, joey.joey_ids(ours.target, TASK.target_vocabulary)[order])
    assert theirs.ntokens == int(ours.target_lengths.sum())
    fed = torch.full_like(ours.target, BOS)
    fed[:, 1:] = ours.target[:, :-1]
    fed[fed == EOS] = PAD  # feeds nothing that counts
    assert torch.equal(theirs.trg_input, joey.joey_ids(fed, TASK.target_vocabulary)[order])


@foreign
@pytest.mark.parametrize("defaults", [False, True])
def test_the_network_has_the_sizes_and_the_parts_that_are_said(joey, defaults):
    n, words = 6, 4 + 3
    model = joey.joey_model(TASK, n, 0.0, 0.0, defaults)
    assert model.decoder.input_feeding is defaults
    assert hasattr(model.decoder, "bridge_layer") is defaults
    half = n // 2
    encoder = 2 * (3 * half * (n + half) + 6 * half)
    decoder = 3 * n * (2 * n + n * defaults) + 6 * n
    luong = n * n + (2 * n * n + n)  # keys, attentional vector
    bridge = (n * n + n) * defaults
    assert sum(p.numel() for p in model.parameters()) == 3 * words * n + encoder + decoder + luong + bridge


@foreign
def test_its_step_is_one_of_training_on_the_mean_over_words(joey):
    torch.manual_seed(0)
    model, config = joey.joey_model(TASK, 6, 0.0, 0.0, defaults=False), SimpleNamespace(clip_norm=1.0)
    batch = joey.joey_batch(TASK.sample(7, seed=3), TASK)
    with torch.no_grad():
        logits = model._encode_decode(**vars(batch))[0]
    wanted = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.trg.flatten(), ignore_index=joey.PAD)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = [joey.joey_step(model, adam, batch, config) for _ in range(20)]
    assert losses[0] == pytest.approx(float(wanted), rel=1e-5)
    assert losses[-1] < losses[0] - 0.1


@foreign
def test_a_unidirectional_encoder_of_this_version_fails(joey):
    """The reason why the peer is bidirectional with half the width."""
    from joeynmt.encoders import RecurrentEncoder

    encoder = RecurrentEncoder(hidden_size=6, emb_size=6, bidirectional=False)
    with pytest.raises(IndexError):
        encoder(torch.zeros(2, 3, 6), torch.tensor([3, 2]), torch.ones(2, 1, 3, dtype=torch.bool))


@foreign
def test_every_network_of_the_smaller_setting_takes_a_step(joey):
    networks = joey.build(joey.SETTINGS[0])
    assert {key for one, other, _ in joey.SETTINGS[0].pairs for key in (("ours", one), ("JoeyNMT", other))} == set(
        networks
    )
    for network in networks.values():
        assert network.step(0) == pytest.approx(math.log(7), abs=1.5)  # before training: a guess among the words
