"""The machinery of the book: normal form, checks, execution, and the state of the committed chapters."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from howattend import book, notebooks

ROOT = Path(__file__).resolve().parents[1]
PARAMETERS = "retrain = False\nquick = False\nseed = 0\ndevice = 'cpu'"


def notebook(*sources: str) -> NotebookNode:
    """A notebook as an author leaves it: never executed, with a parameters cell."""
    cells = [new_markdown_cell("# A chapter", id="title")]
    cells.append(new_code_cell(PARAMETERS, id="parameters", metadata={"tags": ["parameters"]}))
    cells += [new_code_cell(source, id=f"code-{n}") for n, source in enumerate(sources)]
    return new_notebook(cells=cells, metadata={"kernelspec": notebooks.KERNELSPEC})


def executed(*sources: str) -> NotebookNode:
    """A notebook as papermill leaves it, with all that changes from one execution to the next."""
    made = notebook(*sources)
    made.metadata["papermill"] = {"duration": 1.5, "start_time": "2026-01-01T00:00:00"}
    made.metadata["language_info"] = {"name": "python", "version": "3.11.7"}
    made.cells.insert(2, new_code_cell("seed = 1", id="injected", metadata={"tags": ["injected-parameters"]}))
    for count, cell in enumerate(made.cells, start=7):
        cell.metadata["papermill"] = {"duration": 0.1, "status": "completed"}
        cell.metadata.setdefault("tags", [])
        if cell.cell_type == "code":
            cell.metadata["execution"] = {"iopub.status.busy": "2026-01-01T00:00:00"}
            cell.execution_count = count
            cell.outputs = [
                new_output("stream", name="stdout", text="one\n"),
                new_output("stream", name="stderr", text="/somewhere/lib.py:1: UserWarning\n"),
                new_output("stream", name="stdout", text="two\n"),
                new_output("execute_result", {"text/plain": "2"}, execution_count=count),
            ]
    return made


def store(root: Path, name: str, content: NotebookNode, *, fresh: bool = True) -> Path:
    """Write a notebook as ``refresh`` would, or with the digests left out."""
    path = root / "book" / f"{name}.ipynb"
    if fresh:
        content = notebooks.normalise(content)
        digests = {"code": notebooks.code_digest(content), "inputs": notebooks.inputs_digest(root)}
        content.metadata["howattend"] = digests
    path.write_text(notebooks.to_text(content), encoding="utf-8", newline="\n")
    return path


@pytest.fixture
def small_book(tmp_path: Path) -> Path:
    """A repository with an opening page and the places of two chapters, ``first`` and ``second``."""
    root = tmp_path / "a book"  # a path with a space
    for folder in ("book", "lib/howattend", "data/weights", "data/results"):
        (root / folder).mkdir(parents=True)
    (root / "_config.yml").write_text("title: Small\nonly_build_toc_files: true\nexecute: {execute_notebooks: 'off'}\n")
    (root / "_toc.yml").write_text(
        "format: jb-book\nroot: book/index\nchapters:\n- file: book/first\n- file: book/second\n"
    )
    (root / "book" / "index.md").write_text("# Small\n")
    (root / "lib" / "howattend" / "models.py").write_text("N = 1\n")
    (root / "data" / "weights" / "manifest.json").write_text("{}\n")
    for name in ("first", "second"):
        store(root, name, executed("1 + 1"))
    return root


# ------------------------------------------------------------------------------------------------ normal form


def test_normalise_removes_what_changes_between_executions():
    normal = notebooks.normalise(executed("1 + 1", "2 + 2"))
    assert set(normal.metadata) == {"kernelspec", "language_info"}
    assert "version" not in normal.metadata.language_info
    assert [cell.id for cell in normal.cells] == ["title", "parameters", "code-0", "code-1"]
    assert [dict(cell.metadata) for cell in normal.cells] == [{}, {"tags": ["parameters"]}, {}, {}]
    code = [cell for cell in normal.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [1, 2, 3]
    assert [output.output_type for output in code[1].outputs] == ["stream", "execute_result"]
    assert code[1].outputs[0].text == "one\ntwo\n"
    assert code[1].outputs[1].execution_count == 2
    nbformat.validate(normal)


def test_normalise_twice_is_normalise_once_and_leaves_its_argument():
    original = executed("1 + 1")
    before = notebooks.to_text(original)
    once = notebooks.normalise(original)
    assert notebooks.to_text(original) == before
    assert notebooks.to_text(notebooks.normalise(once)) == notebooks.to_text(once)


def test_normalise_does_not_number_a_cell_that_was_never_run():
    made = executed("1 + 1", "2 + 2")
    made.cells[3].execution_count = None
    assert [cell.execution_count for cell in notebooks.normalise(made).cells if cell.cell_type == "code"] == [
        1,
        None,
        2,
    ]


def test_cells_get_stable_and_unique_ids():
    made = notebook("1", "1", "1", "2")
    made.cells[3].id = made.cells[2].id
    del made.cells[4]["id"]
    ids = [cell.id for cell in notebooks.normalise(made).cells]
    assert len(set(ids)) == len(ids)
    assert ids == [cell.id for cell in notebooks.normalise(made).cells]
    nbformat.validate(notebooks.normalise(made))


# ------------------------------------------------------------------------------------------------ checks


def test_check_passes_a_good_book(small_book: Path):
    assert book.check(small_book) == []


def plant_never_run(made: NotebookNode) -> None:
    made.cells[2].execution_count = None


def plant_error(made: NotebookNode) -> None:
    made.cells[2].outputs = [new_output("error", ename="ValueError", evalue="no", traceback=[])]


def plant_address(made: NotebookNode) -> None:
    made.cells[2].outputs = [new_output("stream", text="<object at 0x7f0011223344>\n")]


def plant_size(made: NotebookNode) -> None:
    made.cells[2].outputs = [new_output("stream", text="x" * notebooks.MAX_BYTES)]


def plant_papermill(made: NotebookNode) -> None:
    made.metadata["papermill"] = {}


def plant_count(made: NotebookNode) -> None:
    made.cells[2].execution_count = 17


def plant_stderr(made: NotebookNode) -> None:
    made.cells[2].outputs.append(new_output("stream", name="stderr", text="warning\n"))


def plant_code(made: NotebookNode) -> None:
    made.cells[2].source = "3 + 3"


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (plant_never_run, "cell 3 was never executed"),
        (plant_error, "cell 3 ends in an error"),
        (plant_address, "cell 3 prints a memory address"),
        (plant_size, "must stay below 2"),
        (plant_papermill, "has papermill's metadata"),
        (plant_count, "not in normal form"),
        (plant_stderr, "not in normal form"),
        (plant_code, "its code has changed"),
    ],
)
def test_check_finds(small_book: Path, plant, said: str):
    path = small_book / "book" / "second.ipynb"
    made = notebooks.read(path)
    plant(made)
    store(small_book, "second", made, fresh=False)
    problems = book.check(small_book)
    assert any(problem.startswith("second: ") and said in problem for problem in problems), problems
    assert not any(problem.startswith("first") for problem in problems)


def test_check_finds_a_path_of_this_machine(small_book: Path):
    made = notebooks.read(small_book / "book" / "second.ipynb")
    made.cells[2].outputs = [new_output("stream", text=f"{small_book.resolve()}/data\n")]
    store(small_book, "second", made)
    assert book.check(small_book) == ["second: cell 3 prints a path of this machine"]


def test_check_finds_a_notebook_that_is_not_listed(small_book: Path):
    store(small_book, "third", executed("1"))
    assert book.check(small_book) == ["third: not listed in _toc.yml"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lib/howattend/models.py", "N = 2\n"),
        ("lib/howattend/statistics/new.py", "N = 1\n"),
        ("lib/howattend/claims.toml", "[O1]\n"),
        ("data/weights/manifest.json", '{"runs": {}}\n'),
        ("data/results/claims.csv", "claim,value\n"),
        ("data/results/components/lexicon.csv", "french,english\n"),
        ("data/vocabularies/words.json", "{}\n"),
        ("data/sentences/pairs.tsv", "english\tfrench\n"),
    ],
)
def test_check_finds_a_chapter_older_than_the_library_or_its_data(small_book: Path, name: str, content: str):
    (small_book / name).parent.mkdir(parents=True, exist_ok=True)
    (small_book / name).write_text(content)
    problems = book.check(small_book)
    assert len(problems) == 2
    assert all("have changed since it was executed: make chapters" in problem for problem in problems)


def test_freshness_ignores_line_ends_and_what_changes_no_output(small_book: Path):
    (small_book / "lib/howattend/models.py").write_bytes(b"N = 1\r\n")
    (small_book / "lib/howattend/book.py").write_text("# builds\n")
    (small_book / "data/README.md").write_text("text\n")
    path = small_book / "book" / "first.ipynb"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert book.check(small_book) == []


def test_a_broken_notebook_and_a_missing_page_are_named(small_book: Path):
    (small_book / "book" / "first.ipynb").write_text("<<<<<<< ours\n")
    with pytest.raises(book.BookError, match=r"first\.ipynb is no notebook"):
        book.check(small_book)
    (small_book / "book" / "first.ipynb").unlink()
    with pytest.raises(book.BookError, match=r"_toc\.yml lists book/first"):
        book.check(small_book)
    with pytest.raises(book.BookError, match="not the repository"):
        book.chapters(small_book / "book")


# ------------------------------------------------------------------------------------------------ parameters


def test_parameters_of_a_chapter():
    made = notebook()
    made.cells[1].source += "\nlimit: int = 3\nhalf = limit / 2  # no literal"
    expected = {"retrain": False, "quick": False, "seed": 0, "device": "cpu", "limit": 3, "half": None}
    assert notebooks.parameters_of(made) == expected
    assert notebooks.parameters_of(new_notebook()) == {}


def test_parameters_are_read_from_the_command_line():
    pairs = [["a", "True"], ["b", "false"], ["c", "none"], ["d", "3"], ["e", "1e-3"], ["f", "cuda:0"]]
    expected = {"a": True, "b": False, "c": None, "d": 3, "e": 1e-3, "f": "cuda:0"}
    assert book.parse_parameters(pairs) == expected


def test_unknown_parameters_chapters_and_workers_are_refused(small_book: Path):
    with pytest.raises(book.BookError, match="first has no parameter 'sead'; it has retrain, quick, seed, device"):
        book.build(small_book, parameters={"sead": 1})
    with pytest.raises(book.BookError, match="'retrain' is 'yes'; it takes true or false"):
        book.build(small_book, parameters={"retrain": "yes"})
    with pytest.raises(book.BookError, match="no chapter third; the chapters are first, second"):
        book.refresh(small_book, ["third"])
    with pytest.raises(book.BookError, match="workers is 0"):
        book.refresh(small_book, workers=0)


# ------------------------------------------------------------------------------------------------ execution


def contents(root: Path) -> dict[str, bytes]:
    """Every file outside _build."""
    files = (path for path in root.rglob("*") if path.is_file() and "_build" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_refresh_keeps_a_failing_chapter_and_names_its_cell(small_book: Path, capfd: pytest.CaptureFixture[str]):
    shows = f"import os, sys\nprint(sys.executable == {sys.executable!r}, os.environ['TQDM_DISABLE'])"
    store(small_book, "first", notebook(shows, "6 * 7"))
    store(small_book, "second", notebook("one = 1", "# divides\none / 0", "print('never')"), fresh=False)
    before = contents(small_book)
    said = r"(?s)second: cell 4 of 5 failed.*\| # divides\n.*\| one / 0\n.*ZeroDivisionError: division by zero"
    with pytest.raises(book.BookError, match=said):
        book.refresh(small_book)
    after = contents(small_book)
    assert {name for name in after if before.get(name) != after[name]} == {"book/first.ipynb"}
    first = notebooks.read(small_book / "book" / "first.ipynb")
    assert first.cells[2].outputs[0].text == "True 1\n"  # the kernel is this interpreter, and shows no bars
    assert first.cells[3].outputs[0].data["text/plain"] == "42"
    assert re.search(r"\[2/2\] (first|second)  \d+ s", capfd.readouterr().out)
    assert book.refresh(small_book, ["first"]) == []  # a second run changes no line
    assert not any(problem.startswith("first") for problem in book.check(small_book))


def test_a_dead_kernel_is_named_too(small_book: Path):
    store(small_book, "second", notebook("one = 1", "import os\nos._exit(3)", "two = 2"))
    with pytest.raises(book.BookError, match=r"(?s)second: cell 4 of 5 failed.*_exit.*Kernel died"):
        book.refresh(small_book, ["second"])


def test_build_passes_parameters_and_touches_no_tracked_file(small_book: Path):
    writes = "open('left-over.txt', 'w').close()\nprint(f'the seed is {seed}')"
    store(small_book, "first", notebook(writes))
    before = contents(small_book)
    page = book.build(small_book, ["first"], parameters={"seed": 5})
    assert contents(small_book) == before
    assert page == small_book.resolve() / "_build" / "html" / "index.html"
    assert page.is_file()
    assert "the seed is 5" in (page.parent / "book" / "first.html").read_text(encoding="utf-8")
    # A broken reference fails the build, and the pages of the last one stay
    (small_book / "book" / "index.md").write_text("# Small\n\n{numref}`nowhere`\n")
    with pytest.raises(book.BookError, match=r"(?s)index\.md:3.*nowhere"):
        book.build(small_book, execute=False)
    assert page.is_file()


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to a single process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_no_kernel_and_no_file(small_book: Path, number: signal.Signals):
    told = small_book.parent / "kernel.pid"
    sleeps = f"import os, time\nopen({str(told)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    store(small_book, "first", notebook(sleeps))
    before = contents(small_book)
    code = "import sys, pathlib; from howattend import book; book.refresh(pathlib.Path(sys.argv[1]), ['first'])"
    process = subprocess.Popen([sys.executable, "-c", code, str(small_book)], stderr=subprocess.DEVNULL)
    try:
        kernel = None
        while kernel is None:
            time.sleep(0.05)
            assert process.poll() is None
            if told.exists() and told.read_text():
                kernel = psutil.Process(int(told.read_text()))
        process.send_signal(number)
        assert process.wait(timeout=60) != 0
        kernel.wait(timeout=60)  # raises where the kernel lives on
    finally:
        process.kill()
        process.wait()
    assert contents(small_book) == before


# ------------------------------------------------------------------------------------------------ the real book


def test_committed_chapters_are_executed_normal_and_fresh():
    assert book.check(ROOT) == []


def test_pictures_shown_outside_of_their_chapter_are_those_of_the_chapter():
    shown = {}
    for name, path in book.chapters(ROOT).items():
        shown |= notebooks.pictures(ROOT, name, notebooks.read(path))
    assert {path.name for path in shown} == {"one-to-one.png", "three-tasks.png", "ledger.png"}
    assert all(path.read_bytes() == picture for path, picture in shown.items())


def test_every_chapter_has_the_four_parameters():
    for name, path in book.chapters(ROOT).items():
        assert {"retrain", "quick", "seed", "device"} <= set(notebooks.parameters_of(notebooks.read(path))), name


def test_cited_packages_are_pinned_and_the_package_comes_last():
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    lines = [line for line in lines if line]
    assert lines[0] == "-c constraints.txt"
    assert lines[-1] == "-e ."
    pins = lines[1:-1] + [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pins)
    assert len({line.split("==")[0].lower() for line in pins}) == len(pins)
