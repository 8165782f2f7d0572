"""Words aligned by IBM model 1 on the training split: a dictionary (T6), and where words' source words stand (T10)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from howattend import files
from howattend.tasks import Batch, Translation, corpora
from howattend.tasks.batch import length_mask

WORDS = 200  # French words of the dictionary, the most common ones of the training split
RANKS = 3  # English words kept for each
LEXICON_OF = "translation-aed-gru"  # the run whose vocabularies the stored dictionary has; AO's are the same

_COLUMNS = ["french", "rank", "english", "probability"]


def lexicon(task: Translation) -> pd.DataFrame:
    """What each of the most common French words is translated by in the training split, most probable first.

    IBM model 1 with French as its source gives p(English word | French word): the direction in which T6 asks. The other
    one, p(French | English), is highest for English words that occur once.

    Returns:
        Columns french, rank (from 1), english, probability (to three digits); at most ``RANKS`` rows a French word.
    """
    train = task.split("train")
    found = corpora.ibm1(_words(train, "target"), _words(train, "source"))
    english, rows = task.source_vocabulary.words, []
    for french in task.target_vocabulary.content_ids[:WORDS]:
        here = (found.source == french) & (found.target >= task.source_vocabulary.content_ids.start)
        probability, words = found.probability[here], found.target[here]
        for rank, index in enumerate(np.lexsort((words, -probability))[:RANKS], 1):  # of equals the more common word
            word = english[words[index]]
            rows.append((task.target_vocabulary.words[french], rank, word, round(float(probability[index]), 3)))
    return pd.DataFrame(rows, columns=_COLUMNS)


def lexicon_path() -> Path:
    """Where the dictionary of the vocabularies of ``LEXICON_OF`` is kept."""
    return files.data_folder() / "results" / "components" / "lexicon.csv"


def read_lexicon() -> pd.DataFrame:
    """The stored dictionary, as :func:`lexicon` gives it; FileNotFoundError says how to write it."""
    path = lexicon_path()
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; restore it with git checkout, or: python -m howattend measure")
    rows = pd.read_csv(path, keep_default_na=False)
    if list(rows.columns) != _COLUMNS or rows.empty:
        raise ValueError(f"{path} is damaged: its columns must be {', '.join(_COLUMNS)}; restore it with git checkout")
    return rows


def write_lexicon(task: Translation) -> Path:
    """Compute and store the dictionary of a task's vocabularies."""
    path = lexicon_path()
    files.write_text(path, lexicon(task).to_csv(index=False, lineterminator="\n"))
    return path


def aligned_steps(pairs: Batch) -> Tensor:
    """The source step [M, S] that IBM model 1, fitted to these pairs, aligns each target word with; −1 for none.

    Two words are aligned where each is the likeliest origin of the other, by a model in each direction: one model alone
    gives every word some origin, and those of words that it knows little of lie anywhere. A word that stands twice in
    its sentence is aligned with none, as the model cannot tell which; neither are ends of sentence.
    """
    source, target = _words(pairs, "source"), _words(pairs, "target")
    forth, back = _origins(source, target), _origins(target, source)
    returned = np.take_along_axis(back, np.maximum(forth, 0), axis=1)
    both = (forth >= 0) & (returned == np.arange(target.shape[1]))
    return torch.from_numpy(np.pad(np.where(both, forth, -1), ((0, 0), (0, 1)), constant_values=-1))


def _origins(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The step [M, S] of the word of a source sentence that each target word most likely comes from; −1 where this is
    "none", or a word that stands there twice, and where there is no target word.
    """
    found = corpora.ibm1(source, target)
    width = int(target.max()) + 1
    codes = (found.source + 1) * width + found.target  # ascending, as ibm1 leaves them
    steps = np.full(target.shape, -1)
    for start in range(0, len(source), 4096):  # so that the cells of a part take less memory than the model's own
        part = slice(start, start + 4096)
        known, words = source[part] >= 0, target[part] >= 0
        origins = np.pad(source[part] + 1, ((0, 0), (1, 0)))  # 0 is "none", which every sentence begins with
        wanted = origins[:, None, :] * width + np.maximum(target[part], 0)[:, :, None]
        index = np.searchsorted(codes, wanted).clip(max=len(codes) - 1)
        possible = (codes[index] == wanted) & np.pad(known, ((0, 0), (1, 0)), constant_values=True)[:, None]
        probability = np.where(possible, found.probability[index], 0.0)
        best = probability.argmax(-1)
        alone = (probability == probability.max(-1, keepdims=True)).sum(-1) == 1
        steps[part] = np.where(words & alone & (best > 0), best - 1, -1)
    return steps


def _words(pairs: Batch, side: str) -> np.ndarray:
    """Word ids [M, steps − 1] of one side, −1 at ends of sentence and behind."""
    ids, lengths = getattr(pairs, side), getattr(pairs, f"{side}_lengths")
    return ids.masked_fill(~length_mask(lengths - 1, ids.shape[1]), -1)[:, :-1].cpu().numpy()
