"""Sentence pairs, and how they are dealt to the splits so that no test sentence was seen in training."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from howattend.tasks.corpora.tokens import clean, is_translation, tokenise

MAX_LENGTH = 15  # words of a sentence, as in the paper
SPLITS = ("train", "validation", "test")
_HELD_OUT = {"validation": 0.04, "test": 0.08}  # shares


class Pair(NamedTuple):
    """A sentence and its translation, each as its words with single spaces between them."""

    source: str
    target: str
    register: str  # "catalogues", "verses" or "text"
    origin: str  # the package, data set or file
    group: str  # what must stay within one split: a verse, or the words of the source


def make_pair(
    source: str, target: str, register: str, origin: str, tokeniser: str, verse: str | None = None
) -> Pair | None:
    """The pair of two lines of text; None where they are no sentence and its translation of 1 to 15 words each."""
    source, target = clean(source), clean(target)
    words, translated = tokenise(source, "en", tokeniser), tokenise(target, "fr", tokeniser)
    fit = 1 <= len(words) <= MAX_LENGTH and 1 <= len(translated) <= MAX_LENGTH
    if not fit or not is_translation(source, target):
        return None
    source = " ".join(words)
    return Pair(source, " ".join(translated), register, origin, word_key(source) if verse is None else verse)


def word_key(sentence: str) -> str:
    """A sentence without its punctuation: "save as ..." and "save as :" are the same to the splits."""
    return " ".join(re.findall(r"\w+", sentence))


def split_of(group: str) -> str:
    """The split of a group: it depends on the group alone, so another source of pairs moves none of them."""
    share = int.from_bytes(_digest(group)[:8], "big") / 2**64
    for split, held_out in _HELD_OUT.items():
        if share < held_out:
            return split
        share -= held_out
    return "train"


def deal(pairs: Iterable[Pair]) -> list[tuple[Pair, str]]:
    """The pairs of the corpus with their splits, one a source sentence, in the order of a hash of the source.

    - A verse is in one split with all its translations. Where the same words (punctuation aside) are a sentence of
      verses of different splits, on either side, all these pairs are left out; likewise where a message has the words
      of a verse of another split. So no source of the test split, and no target of its verses, occurs in training.
    - Of several translations of a source the most frequent one stays, of equals the one that came first.
    """
    pairs = list(pairs)
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    splits: dict[str, str] = {}
    for pair in pairs:
        split = splits.setdefault(pair.group, split_of(pair.group))
        for key in _keys(pair):
            seen[key].add(split)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        if all(len(seen[key]) == 1 for key in _keys(pair)):
            counts[pair.source][pair.target] += 1
            first.setdefault((pair.source, pair.target), pair)
    chosen = [first[source, max(counted, key=counted.__getitem__)] for source, counted in counts.items()]
    chosen.sort(key=lambda pair: _digest(pair.source))
    return [(pair, splits[pair.group]) for pair in chosen]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _keys(pair: Pair) -> list[tuple[str, str]]:
    """What may not occur in two splits. A message's translation may: that many messages share one is no leak."""
    keys = [("source", word_key(pair.source))]
    if pair.register == "verses":
        keys.append(("target", word_key(pair.target)))
    return keys
