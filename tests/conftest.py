"""Fixtures that several test modules share: a task and networks so small that everything about them is quick."""

import os
from itertools import product
from pathlib import Path

import pytest
import torch

from howattend import training
from howattend.models import EncoderDecoder, ModelConfig
from howattend.models.config import ARCHITECTURES, CELLS
from howattend.tasks import OneToOne


def pytest_configure():
    """One thread, here and in the processes that tests start: tiny networks gain nothing from more, and test workers
    that share a machine lose by waiting for each other's."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


@pytest.fixture(autouse=True)
def _private_cache(monkeypatch, tmp_path):
    """No test reads or writes the user's own cache folder."""
    monkeypatch.setenv("HOWATTEND_CACHE", str(tmp_path / "cache"))


def interrupt_training(monkeypatch, step):
    """Ctrl-C comes at this training step; the list that is returned grows by one with each."""
    real, steps = training.train_step, []

    def interrupted(*arguments):
        steps.append(1)
        if len(steps) == step:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(training, "train_step", interrupted)
    return steps


@pytest.fixture(scope="session")
def root():
    """The repository."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def task():
    """Three words, sentences of two to five of them: T = S = 6."""
    return OneToOne(num_words=3, min_length=2, max_length=5)


@pytest.fixture(scope="session")
def batch(task):
    """Seven sentence pairs; some, not all, are padded."""
    drawn = task.sample(7, seed=3)
    assert len(set(drawn.source_lengths.tolist())) > 1
    return drawn


@pytest.fixture(scope="session")
def make_model(task):
    """make_model(architecture, cell, seed=0, **settings of ModelConfig): a network of six units in double precision.

    Its weights are three times the usual ones, so that different inputs make it say different words.
    """

    def make(architecture="AED", cell="gru", seed=0, **settings):
        config = ModelConfig(architecture=architecture, cell=cell, hidden_size=6, **settings)
        model = EncoderDecoder(config, task, seed).double()
        for parameter in model.parameters():
            parameter.data *= 3
        return model

    return make


@pytest.fixture(params=list(product(ARCHITECTURES, CELLS)), ids="-".join)
def model(request, make_model):
    """One network of each architecture and cell."""
    return make_model(*request.param)


@pytest.fixture(scope="session")
def sentence_pairs():
    """360 English sentences of our own and their French translations, written as usual."""
    nouns = {
        **{"house": "la maison", "car": "la voiture", "door": "la porte", "chair": "la chaise", "box": "la boîte"},
        **{"sister": "la soeur", "book": "le livre", "garden": "le jardin", "bed": "le lit", "wall": "le mur"},
        **{"boat": "le bateau", "tree": "l'arbre"},
    }
    colours = {
        "red": "rouge",
        "empty": "vide",
        "yellow": "jaune",
        "large": "énorme",
        "rare": "rare",
        "famous": "célèbre",
    }
    subjects = {"I see": "Je vois", "We buy": "Nous achetons", "They sell": "Ils vendent", "You paint": "Vous peignez"}
    subjects["She wants"] = "Elle veut"
    return [
        (f"{subject} the {colour} {noun}.", f"{sujet} {nom} {couleur}.")
        for subject, sujet in subjects.items()
        for colour, couleur in colours.items()
        for noun, nom in nouns.items()
    ]
