"""Corpora of English sentences and their French translations, from three kinds of sources."""

from howattend.tasks.corpora import command
from howattend.tasks.corpora.build import build, folder, load, path
from howattend.tasks.corpora.corpus import Corpus
from howattend.tasks.corpora.hub import HubDataset
from howattend.tasks.corpora.lexicon import Lexicon, ibm1
from howattend.tasks.corpora.local import LocalFiles
from howattend.tasks.corpora.open_default import OpenDefault
from howattend.tasks.corpora.pairs import MAX_LENGTH, SPLITS
from howattend.tasks.corpora.source import Source
from howattend.tasks.corpora.tokens import SLOT, TAG, clean, tokenise

__all__ = [
    "MAX_LENGTH",
    "SLOT",
    "SPLITS",
    "TAG",
    "Corpus",
    "HubDataset",
    "Lexicon",
    "LocalFiles",
    "OpenDefault",
    "Source",
    "build",
    "clean",
    "command",
    "folder",
    "ibm1",
    "load",
    "path",
    "tokenise",
]
