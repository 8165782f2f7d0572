"""Build a corpus once, and find it again."""

from __future__ import annotations

import json
from pathlib import Path

from howattend import files
from howattend.tasks.corpora.corpus import Corpus
from howattend.tasks.corpora.pairs import SPLITS, deal
from howattend.tasks.corpora.source import Source


def folder(source: Source) -> Path:
    """Where a source's corpus lies: a folder for each of its settings, in the cache folder."""
    return files.cache_folder() / "corpora" / f"{source.kind}-{files.canonical_hash(source.settings())[:12]}"


def path(source: Source) -> Path:
    """A corpus's file."""
    return folder(source) / "corpus.safetensors"


def load(source: Source) -> Corpus:
    """A corpus that was built before.

    Raises:
        FileNotFoundError: where it was not; the message says what to do.
        ValueError: where its file is damaged, or the source's own files have changed since.
    """
    if not path(source).exists():
        raise FileNotFoundError(
            f"this corpus has not been built here ({path(source)} is missing); build it, once, with: {source.command}"
        )
    corpus = Corpus.load(path(source))
    if changed := _changed(source, corpus):
        raise ValueError(f"{', '.join(changed)} changed since the corpus was built; build it anew: {source.command}")
    return corpus


def _changed(source: Source, corpus: Corpus) -> list[str]:
    """The files that are not what they were; one that has gone is not missed, the corpus has all that is needed."""
    recorded = corpus.record["fingerprint"]
    return [name for name, state in source.fingerprint().items() if recorded.get(name) != state]


def build(source: Source, *, progress: bool = True) -> Corpus:
    """The corpus of a source: the one built before, or a new one, with its table of licences beside it.

    Interrupted at any point, the same call starts again and finds no half of anything, but keeps what it had fetched.

    Raises:
        ValueError: where the source yields too few sentence pairs, and what its ``read`` raises.
    """
    try:
        return load(source)
    except (FileNotFoundError, ValueError):  # missing, damaged or outdated
        pass
    record = {"settings": source.settings(), "fingerprint": source.fingerprint()}
    pairs = source.read(progress)
    dealt = deal(pairs)
    if missing := [split for split in SPLITS if split not in {name for _, name in dealt}]:
        raise ValueError(
            f"the source yields too few sentence pairs for a corpus: {len(pairs)} pairs of sentences of 1 to 15 words, "
            f"{len(dealt)} without repetitions, none of them for {' and '.join(missing)}; name a larger source, and "
            "check that its first language is English and its second French"
        )
    corpus = Corpus.of(dealt, json.loads(json.dumps({**record, "provenance": source.provenance()})), progress)
    # The corpus last: where it is, all is.
    files.write_text(folder(source) / "provenance.md", corpus.provenance())
    corpus.save(path(source))
    return corpus
