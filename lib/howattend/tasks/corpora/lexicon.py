"""Word translation probabilities from sentence pairs: IBM model 1 (Brown et al. 1993)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_FLOOR = 1e-5  # the probability of a word that no word of the sentence explains


@dataclass(frozen=True, eq=False)
class Lexicon:
    """p(target word | source word), fitted to sentence pairs; a source has one more word, "none", that every sentence
    begins with and that may be translated into anything.

    ``source`` and ``target`` [K] are word numbers and ``probability`` [K] theirs; the number of "none" is −1.
    """

    source: np.ndarray
    target: np.ndarray
    probability: np.ndarray
    scores: np.ndarray  # [M] mean over a pair's target words of the log-probability given its best source word


def ibm1(source: np.ndarray, target: np.ndarray, iterations: int = 4) -> Lexicon:
    """Fit IBM model 1 by expectation–maximisation, from equal probabilities.

    Args:
        source: word numbers [M, T], −1 behind the end of a sentence.
        target: word numbers [M, S], likewise.
        iterations: of expectation–maximisation.
    """
    # Word 0 is "none". A cell is a pair of a source word and a target word of one sentence pair.
    source = np.pad(source, ((0, 0), (1, 0)), constant_values=-1) + 1
    words = int(target.max()) + 1
    valid = source > 0
    valid[:, 0] = True
    sentence, first, second = np.nonzero(valid[:, :, None] & (target >= 0)[:, None, :])
    codes = source[sentence, first].astype(np.int64) * words + target[sentence, second]
    place = sentence * target.shape[1] + second  # of the target word
    codes, entry = np.unique(codes, return_inverse=True)
    known, produced = codes // words, codes % words
    probability = np.ones(len(codes))
    for _ in range(iterations):
        weight = probability[entry]
        expected = np.bincount(entry, weight / np.bincount(place, weight)[place])
        probability = expected / np.bincount(known, expected)[known]
    best = np.full(target.size, _FLOOR)
    np.maximum.at(best, place, probability[entry])
    logs = np.where(target >= 0, np.log(best).reshape(target.shape), 0.0)
    scores = logs.sum(1) / (target >= 0).sum(1)
    return Lexicon(known - 1, produced, probability, scores)
