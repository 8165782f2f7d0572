"""A corpus of sentences of our own, of several lengths and two registers, and untrained networks on it."""

import pytest
import torch

from howattend.analysis import Run
from howattend.models import ModelConfig
from howattend.runs import RunConfig
from howattend.tasks import Translation, corpora
from howattend.tasks.corpora.pairs import deal, make_pair
from howattend.training import TrainConfig

_NOUNS = {
    **{"house": "la maison", "car": "la voiture", "door": "la porte", "chair": "la chaise", "book": "le livre"},
    **{"garden": "le jardin", "wall": "le mur", "boats": "les bateaux", "beds": "les lits"},
}
_COLOURS = {"red": "rouge", "empty": "vide", "yellow": "jaune", "rare": "rare"}
_FRAMES = {
    "the {}": "{}",
    "I see the {}.": "Je vois {}.",
    "We buy the {} now.": "Nous achetons {} maintenant.",
    "They sell the {} in the street, and run.": "Ils vendent {} dans la rue, et partent.",
}


def built(tmp_path_factory):
    """A cache folder that holds the corpus, and nothing else."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HOWATTEND_CACHE", str(folder))
        build(corpora.path(corpora.OpenDefault()))
    return folder


def build(path):
    """Write the corpus of the open default's place: catalogues are noun phrases and "I see …", verses the others."""
    pairs = [
        (frame.format(f"{colour} {noun}"), sentence.format(f"{nom} {couleur}"), frame)
        for frame, sentence in _FRAMES.items()
        for colour, couleur in _COLOURS.items()
        for noun, nom in _NOUNS.items()
    ]
    dealt = deal(
        make_pair(source, target, *(("catalogues", "app") if frame[0] in "tI" else ("verses", "bible")), "words")
        for source, target, frame in pairs
    )
    corpora.Corpus.of(dealt, {"fingerprint": {}}).save(path)


def make_config(name="translation-aed-gru", architecture="AED", size=8, num_words=16, **model):
    """A run's configuration, for which the corpus need not be there."""
    task = Translation(num_words=num_words, min_count=1)
    return RunConfig(name, task, ModelConfig(architecture, hidden_size=size, **model), TrainConfig(1), 0.4)


def make_run(name="translation-aed-gru", architecture="AED", seed=0, size=8, num_words=16, **model):
    """An untrained run. Its weights are three times the usual ones, so that different inputs make different states."""
    config = make_config(name, architecture, size, num_words, **model)
    network = config.new_model(seed).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 3
    return Run(config, network, seed)
