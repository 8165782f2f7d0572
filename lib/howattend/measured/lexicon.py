"""A dictionary of the most common French words, from the training split by IBM model 1: ground truth for T6."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from howattend import files
from howattend.tasks import Translation

WORDS = 200  # French words, the most common ones of the training split
RANKS = 3  # English words kept for each


def lexicon(task: Translation) -> pd.DataFrame:
    """What each of the most common French words is translated by in the training split, most probable first.

    IBM model 1 with French as its source gives p(English word | French word): the direction in which T6 asks. The other
    one, p(French | English), is highest for English words that occur once.

    Returns:
        Columns french, rank (from 1), english, probability; ``RANKS`` rows a French word.
    """
    raise NotImplementedError


def lexicon_path() -> Path:
    """Where the dictionary of ``translation-aed-gru``'s vocabularies is kept."""
    return files.data_folder() / "results" / "components" / "lexicon.csv"


def read_lexicon() -> pd.DataFrame:
    """The stored dictionary, as :func:`lexicon` gives it; FileNotFoundError says how to write it."""
    raise NotImplementedError
