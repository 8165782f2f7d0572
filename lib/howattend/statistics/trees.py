"""Whether states form a tree: clusters found without labels, cut at each depth, against the prefixes they should be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from ._arrays import Sizes, distinct, integers, numbers, whole


@dataclass(frozen=True)
class PrefixPurity:
    """Purity of a dendrogram's clusters by prefix, and what the same clusters give for shuffled prefixes (V4)."""

    purity: NDArray[np.float64]  # [D], by the first 1 … D words; 1: each cluster holds a single prefix
    null: NDArray[np.float64]  # [D], mean over permutations of the prefixes among the states
    clusters: NDArray[np.int64]  # [D], how many clusters the dendrogram was cut into


def prefix_purity(
    states: ArrayLike, words: ArrayLike, limit: int = 2000, draws: int = 100, seed: int = 0
) -> PrefixPurity:
    """How far states fall apart by prefix: by the first word, within these by the second, and so on (V4).

    The states are clustered hierarchically (Ward: each merger adds the least to the squared distances within clusters),
    which knows nothing of words. At depth d the dendrogram is cut into as many clusters as there are prefixes of d
    words, and the purity is the share of states that carry the most common prefix of their cluster. States of a tree
    have purity 1 at every depth; states that know their last word only are at the null as soon as that word is not in
    the prefix. States in which all words are there, but none weighs more than the others, are in between at best: that
    a word can be read out of them makes no branch.

    Args:
        states: [P, n], not all the same.
        words: the first D words [P, D] of each state's sentence, as ids.
        limit: of more states than this the first ones are taken: the cost is quadratic. At least twice as many as
            there are prefixes of D words, or each state would be a cluster.
        draws: permutations of the null.
        seed: of these.
    """
    sizes: Sizes = {}
    states = numbers("states", states, "P n", sizes)
    words = integers("words", words, "P D", sizes)
    limit, draws = whole("limit", limit, 2), whole("draws", draws, 1)
    rng = np.random.default_rng(whole("seed", seed, 0))
    states, words = distinct("states", states[:limit]), words[:limit]
    prefixes = [np.unique(words[:, :depth], axis=0, return_inverse=True)[1].ravel() for depth in _depths(words)]
    counts = np.array([labels.max() + 1 for labels in prefixes])
    if counts[0] < 2:
        raise ValueError("words holds one first word only: every cluster is pure")
    if 2 * counts[-1] > len(states):
        raise ValueError(
            f"words has {counts[-1]} prefixes of {len(counts)} words in {len(states)} states: there must be at least "
            "two states a prefix on average; take fewer words or more states"
        )
    dendrogram = linkage(states, method="ward")
    purity, null = np.empty(len(counts)), np.empty(len(counts))
    for depth, (labels, count) in enumerate(zip(prefixes, counts, strict=True)):
        cut = fcluster(dendrogram, count, criterion="maxclust") - 1
        purity[depth] = _purity(cut, labels)
        null[depth] = np.mean([_purity(cut, rng.permutation(labels)) for _ in range(draws)])
    return PrefixPurity(purity, null, counts)


def _depths(words: NDArray[np.integer]) -> range:
    return range(1, words.shape[1] + 1)


def _purity(clusters: NDArray[np.integer], labels: NDArray[np.integer]) -> float:
    table = np.zeros((clusters.max() + 1, labels.max() + 1), np.int64)
    np.add.at(table, (clusters, labels), 1)
    return float(table.max(axis=1).sum() / len(labels))
