"""Messages of programs and their translations, from catalogues in GNU gettext's two formats and in JSON."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from tqdm import tqdm

from howattend._progress import bar_options
from howattend.tasks.corpora.pairs import Pair, make_pair
from howattend.tasks.corpora.tokens import clean, sentences

REGISTER = "catalogues"

Messages = Iterator[tuple[str, str]]


def read(wheel: Path, pattern: str, origin: str, tokeniser: str, progress: bool) -> list[Pair]:
    """The sentence pairs of all catalogues in a wheel whose path ends as the pattern, a regular expression, says.

    A message of several paragraphs or sentences is cut where its translation has as many of them. A pair counts once a
    wheel.
    """
    found: dict[Pair, None] = {}
    with ZipFile(wheel) as archive:
        names = sorted(name for name in archive.namelist() if re.search(pattern + "$", name))
        for name in tqdm(names, desc=f"reading {origin}", unit="file", **bar_options(progress)):
            for source, target in _messages(archive, name):
                for line, translation in _cut(source, target):
                    pair = make_pair(line, translation, REGISTER, origin, tokeniser)
                    if pair is not None:
                        found.setdefault(pair)
    return list(found)


def _messages(archive: ZipFile, name: str) -> Messages:
    content = archive.read(name)
    if name.endswith(".mo"):
        return read_mo(content)
    if name.endswith(".po"):
        return read_po(content.decode("utf-8"))
    english = re.sub(r"fr\.json$", "en.json", name)
    if english not in archive.namelist():  # translated, but from what?
        return iter(())
    return read_json(archive.read(english), content)


def _cut(source: str, target: str) -> Messages:
    for paragraph, translated in _together(source.split("\n\n"), target.split("\n\n")):
        yield from _together(sentences(clean(paragraph)), sentences(clean(translated)))


def _together(sources: list[str], targets: list[str]) -> Messages:
    """Parts in pairs where both sides have as many, otherwise the whole."""
    if len(sources) == len(targets):
        yield from zip(sources, targets, strict=True)
    else:
        yield " ".join(sources), " ".join(targets)


def read_mo(content: bytes) -> Messages:
    """Messages of a compiled catalogue (.mo), which holds no doubtful ones; of a plural, its plural form."""
    order = {b"\xde\x12\x04\x95": "<", b"\x95\x04\x12\xde": ">"}.get(content[:4])
    if order is None:
        raise ValueError("no compiled catalogue: it does not begin with gettext's magic number")
    count, sources, targets = struct.unpack_from(f"{order}3I", content, 8)

    def text(table: int, index: int) -> str:
        length, start = struct.unpack_from(f"{order}2I", content, table + 8 * index)
        return content[start : start + length].decode("utf-8")

    for index in range(count):
        message = text(sources, index).rpartition("\4")[2]  # a context stands before \4
        translation = text(targets, index)
        if message and translation:  # the empty message is the catalogue's header
            yield message.rpartition("\0")[2], translation.rstrip("\0").rpartition("\0")[2]


def read_po(content: str) -> Messages:
    """Messages of a catalogue's source text (.po) but for doubtful ("fuzzy") and obsolete ones; of a plural, its
    plural form."""
    for block in re.split(r"\n\s*\n", content.replace("\r\n", "\n")):
        lines = [line.strip() for line in block.split("\n")]
        if any(line.startswith("#,") and "fuzzy" in line for line in lines):
            continue
        fields: dict[str, str] = {}
        name = ""
        for line in lines:
            if line.startswith("#"):
                continue
            keyword, _, quoted = line.partition('"')
            name = keyword.strip() or name
            if quoted:
                fields[name] = fields.get(name, "") + _unescape(quoted.removesuffix('"'))
        message = fields.get("msgid_plural") or fields.get("msgid")
        forms = [fields[name] for name in sorted(fields) if name.startswith("msgstr") and fields[name]]
        if message and forms:
            yield message, forms[-1]


def _unescape(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1]), quoted)


def read_json(english: bytes, french: bytes) -> Messages:
    """Messages of two nested JSON objects, by their keys; a message that only names another one is left out."""
    translations = dict(_leaves(json.loads(french)))
    for key, message in _leaves(json.loads(english)):
        if key in translations and "[%key:" not in message + translations[key]:
            yield message, translations[key]


def _leaves(node: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, f"{path}/{key}")
    elif isinstance(node, str):
        yield path, node
