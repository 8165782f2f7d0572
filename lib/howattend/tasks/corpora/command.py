"""``python -m howattend corpus``."""

from __future__ import annotations

import argparse
from dataclasses import fields

from howattend import files
from howattend.tasks.corpora.build import build, path
from howattend.tasks.corpora.hub import HubDataset
from howattend.tasks.corpora.local import LocalFiles
from howattend.tasks.corpora.open_default import OpenDefault
from howattend.tasks.corpora.pairs import SPLITS
from howattend.tasks.corpora.source import Source
from howattend.tasks.corpora.tokens import TOKENISERS

_SETTINGS = ("packages", "config", "revision", "columns", "max_pairs", "tokeniser")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options; without any it builds the open default."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--packages", nargs="+", metavar="NAME", help="of the open default, only these packages")
    source.add_argument(
        "--hub",
        nargs="?",
        const=HubDataset.repository,
        metavar="REPOSITORY",
        help=f"a data set of the Hugging Face hub, or a local folder laid out like one ({HubDataset.repository})",
    )
    source.add_argument(
        "--files", nargs="+", metavar="PATH", help="a file of two columns, or an English and a French one"
    )
    parser.add_argument("--config", metavar="NAME", help="the configuration of the hub's data set")
    parser.add_argument("--revision", help="its branch, tag or commit (default: main)")
    parser.add_argument(
        "--columns",
        nargs=2,
        metavar=("ENGLISH", "FRENCH"),
        help="names of the columns of a data set or file; numbers from 0 where a text file has no line of names",
    )
    parser.add_argument(
        "--max-pairs", type=int, metavar="N", help="of a data set or file, only the first N sentence pairs"
    )
    parser.add_argument("--tokeniser", choices=TOKENISERS, help='"plain" is the rule of the paper\'s tools')


def chosen_source(options: argparse.Namespace) -> Source:
    """The source that the options describe; ValueError where one belongs to another kind of source."""
    given = {name: getattr(options, name) for name in _SETTINGS if getattr(options, name) is not None}
    kind: type[Source] = OpenDefault
    if options.files is not None:
        kind, given["paths"] = LocalFiles, tuple(options.files)
    elif options.hub is not None:
        kind, given["repository"] = HubDataset, options.hub
        if options.hub != HubDataset.repository:
            given.setdefault("config", None)
    if foreign := sorted(given.keys() - {field.name for field in fields(kind)}):
        options = ", ".join("--" + name.replace("_", "-") for name in foreign)
        raise ValueError(
            f"{options} cannot be used here: --config and --revision go with --hub, --columns and --max-pairs with "
            "--hub or --files"
        )
    return kind(**given)


def main(options: argparse.Namespace) -> int:
    """Build the corpus, or find it, and say where it is and what it holds; returns the exit status."""
    source = chosen_source(options)
    corpus = build(source)
    print(f"{path(source)}\nsha256 {files.file_hash(path(source))}\n")
    for name, row in corpus.summary().items():
        pairs = " + ".join(f"{row[split]} {split}" for split in SPLITS)
        print(
            f"{name:10s}  {sum(row[split] for split in SPLITS)} pairs = {pairs}; words a sentence: "
            f"{row['English words']:.2f} English, {row['French words']:.2f} French, ratio {row['French/English']:.3f}"
        )
    print(f"\n{len(corpus.source_words)} English and {len(corpus.target_words)} French words occur\n")
    print(corpus.provenance(), end="")
    return 0
