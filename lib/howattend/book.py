"""Executes and builds the book.

``build`` makes the HTML pages in _build/ and touches nothing else; ``refresh`` rewrites the committed notebooks of
book/; ``check`` says what is wrong with them; ``run_tests`` is ``make test``. Chapters run through papermill in
processes of their own, on a kernel that is this interpreter, wherever the user's Jupyter would find another.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
from nbformat import NotebookNode

from howattend import chapter_times, notebooks
from howattend.files import write_text
from howattend.notebooks import BookError, chapters, check, normalise, parse_parameters, read, to_text

__all__ = [
    "BookError",
    "build",
    "build_html",
    "chapters",
    "check",
    "normalise",
    "parse_parameters",
    "refresh",
    "run_tests",
]

MAX_TEST_WORKERS = 8  # each may hold a kernel with torch, so memory ends before cores do


def build(
    root: Path,
    names: Sequence[str] = (),
    *,
    workers: int | None = None,
    parameters: Mapping[str, object] | None = None,
    execute: bool = True,
) -> Path:
    """Execute the chapters in a copy of the book and build the HTML pages; returns the first page's path.

    ``names`` limits the execution: the other chapters appear as they are committed, as all do without ``execute``. No
    tracked file is touched, and the pages of the last build stay until the new ones are complete. BookError names the
    chapter and cell that failed, or what Sphinx warned of.
    """
    root = root.resolve()
    selected = _selected(root, names)
    folder = root / "_build" / "book-src"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "book", folder / "book", ignore=shutil.ignore_patterns(".ipynb_checkpoints", "*.part"))
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(root / name, folder / name)
    if execute:
        with _executed(root, selected, workers, parameters or {}) as results:
            failures = []
            for name, executed, failure, _ in results:
                if failure:
                    failures.append(failure)
                else:
                    # Normal form here too: prints that a kernel flushed one by one are one output.
                    write_text(folder / selected[name].relative_to(root), to_text(normalise(read(executed))))
        if failures:
            raise BookError("\n".join(["the book was not built, because:", *failures]))
    print("building the pages …", flush=True)
    pages = build_html(folder, folder / "_build" / "html")
    target = root / "_build" / "html"
    shutil.rmtree(target, ignore_errors=True)
    pages.parent.replace(target)
    print(f"the book: {target / 'index.html'}")
    return target / "index.html"


def refresh(root: Path, names: Sequence[str] = (), *, workers: int | None = None, times: bool = False) -> list[str]:
    """Execute the chapters with default parameters and write them back to book/, normalised; returns the changed names.

    With ``times`` they run one after another, and how long each took is recorded in data/chapter_seconds.csv.

    A chapter that fails stays as it is, the others are still written; then BookError says where each failed. One thread
    a kernel, whatever the number of chapters, so that a chapter refreshed alone gives the same last bits; and no cache,
    so that what is committed does not depend on whether this machine has the translation corpus.
    """
    root = root.resolve()
    selected = _selected(root, names)
    if times and workers not in (None, 1):
        raise BookError(f"workers is {workers}; with times it must be 1, or chapters would wait for one another")
    if times:  # what is damaged is better known before the chapters run than behind
        chapter_times.read(chapter_times.path(root / "data"), missing_ok=True)
    workers, spent = 1 if times else workers, {}
    inputs = notebooks.inputs_digest(root)  # before the execution: what is edited meanwhile must not pass as seen
    failures, changed = [], []
    with _executed(root, selected, workers, {}, threads=1, bare=True) as results:
        for name, executed, failure, seconds in results:
            if failure:
                failures.append(failure)
                continue
            spent[name] = seconds
            notebook = normalise(read(executed))
            notebook.metadata["howattend"] = {"code": notebooks.code_digest(notebook), "inputs": inputs}
            text = to_text(notebook)
            if text != selected[name].read_text(encoding="utf-8"):
                write_text(selected[name], text)
                changed.append(name)
            notebooks.write_pictures(root, name, notebook)
    if times:
        _record_times(root, spent)
    print(f"changed: {', '.join(changed) or 'nothing'}")
    if failures:
        raise BookError("\n".join(["these chapters failed and stay as they are:", *failures]))
    return changed


def build_html(source: Path, pages: Path) -> Path:
    """Build the HTML pages of ``source``, executing nothing, into ``pages`` (…/_build/html); returns the first page.

    Every warning is an error (-W -n), since Sphinx reports a broken reference or a failed cell only as a warning.
    """
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(source)]
    command += ["--path-output", str(pages.parents[1]), "-W", "-n", "--keep-going"]
    result = subprocess.run(
        command,
        env={**os.environ, "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if result.returncode:
        lines = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).splitlines()  # Sphinx colours them even in a file
        said = [line for line in lines if "WARNING" in line or "ERROR" in line] or lines[-20:]
        raise BookError("\n".join(["jupyter-book could not build the pages:", *(f"    {line}" for line in said)]))
    return pages / "index.html"


def _selected(root: Path, names: Sequence[str]) -> dict[str, Path]:
    available = chapters(root)
    if unknown := [name for name in names if name not in available]:
        raise BookError(f"no chapter {', '.join(unknown)}; the chapters are {', '.join(available)}")
    return {name: path for name, path in available.items() if not names or name in names}


def _check_parameters(name: str, notebook: NotebookNode, parameters: Mapping[str, object]) -> None:
    """papermill only warns of a name it does not know, and runs with the default."""
    known = notebooks.parameters_of(notebook)
    for key, value in parameters.items():
        if key not in known:
            raise BookError(f"{name} has no parameter {key!r}; it has {', '.join(known) or 'none'}")
        if isinstance(known[key], bool) and not isinstance(value, bool):
            raise BookError(f"parameter {key!r} is {value!r}; it takes true or false")
        if type(known[key]) is int and type(value) is not int:
            raise BookError(f"parameter {key!r} is {value!r}; it takes a whole number")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _environment(threads: int) -> Iterator[dict[str, str]]:
    """Environment of a process whose kernel ``python3`` is this interpreter, free of the user's Jupyter settings."""
    import matplotlib

    with tempfile.TemporaryDirectory(prefix="howattend-", ignore_cleanup_errors=True) as folder:
        kernel = Path(folder, "jupyter", "kernels", "python3", "kernel.json")
        kernel.parent.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        quiet = {"TQDM_DISABLE": "1"}  # of the kernels only: the library's own tests look at its bars
        kernel.write_text(json.dumps({"argv": argv, "env": quiet, **notebooks.KERNELSPEC}), encoding="utf-8")
        limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        settings = {
            "JUPYTER_PATH": str(kernel.parents[2]),
            "IPYTHONDIR": str(Path(folder, "ipython")),
            "MATPLOTLIBRC": str(Path(matplotlib.get_data_path(), "matplotlibrc")),
            "PYTHONUTF8": "1",
        }
        environment = {**os.environ, **limits, **settings}
        environment.pop("MPLBACKEND", None)  # it would hide the figures
        yield environment


@contextmanager
def _stoppable() -> Iterator[None]:
    """Let a kill from outside, or a closed terminal, end this process as Ctrl-C does: with its cleaning up."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # where Python takes no signals
        yield
        return
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen) -> None:
    """End a process and all that it started: papermill's kernel sits in a session of its own, out of Ctrl-C's reach."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


@contextmanager
def _executed(
    root: Path,
    selected: Mapping[str, Path],
    workers: int | None,
    parameters: Mapping[str, object],
    threads: int | None = None,
    bare: bool = False,
) -> Iterator[Iterator[tuple[str, Path, str, tuple[float, float]]]]:
    """Executes chapters side by side; yields (name, executed notebook, failure or "", seconds) as each ends.

    The seconds are those of the wall clock, and of the cores: the latter are the chapter's own where it runs alone.

    ``bare``: with an empty cache, as on a fresh machine.
    """
    sources = {name: normalise(read(path)) for name, path in selected.items()}
    for name, notebook in sources.items():
        _check_parameters(name, notebook, parameters)
    if workers is not None and workers < 1:
        raise BookError(f"workers is {workers}; it must be 1 or more")
    workers = max(1, min(workers or _cores(), len(sources)))
    running: dict[str, subprocess.Popen] = {}
    with (
        _stoppable(),
        _environment(threads or max(1, _cores() // workers)) as environment,
        tempfile.TemporaryDirectory(prefix="howattend-", ignore_cleanup_errors=True) as temporary,
    ):
        print(f"executing {len(sources)} chapters, {workers} at a time", flush=True)
        work = Path(temporary)
        if bare:
            environment["HOWATTEND_CACHE"] = str(work / "cache")
        shutil.copytree(root / "book", work / "book")  # what a chapter should write beside itself stays out of the tree

        def start(name: str) -> subprocess.Popen:
            source, output = work / f"{name}.source.ipynb", work / f"{name}.ipynb"
            source.write_text(to_text(sources[name]), encoding="utf-8")
            command = [sys.executable, "-m", "papermill", "--kernel", "python3", "--no-progress-bar"]
            command += ["--start-timeout", "180", "--cwd", str(work / "book")]
            if parameters:
                command += ["--parameters_yaml", json.dumps(dict(parameters))]  # JSON is YAML
            with (work / f"{name}.log").open("wb") as log:
                return subprocess.Popen(
                    [*command, str(source), str(output)],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C reaches this process only, which then ends them in order
                )

        def results() -> Iterator[tuple[str, Path, str, tuple[float, float]]]:
            pending, started, done = list(sources), {}, 0
            while pending or running:
                while pending and len(running) < workers:
                    name = pending.pop(0)
                    running[name], started[name] = start(name), _now()
                for name in [name for name, process in running.items() if process.poll() is not None]:
                    failed, done = running.pop(name).returncode != 0, done + 1
                    wall, core = (after - before for after, before in zip(_now(), started[name], strict=True))
                    print(f"[{done}/{len(sources)}] {name}  {wall:.0f} s{', FAILED' if failed else ''}", flush=True)
                    failure = _failure(name, sources[name], work) if failed else ""
                    yield name, work / f"{name}.ipynb", failure, (wall, core)
                time.sleep(0.05)

        try:
            yield results()
        finally:
            for process in running.values():
                _end(process)


def _now() -> tuple[float, float]:
    """Seconds of the wall clock, and those that processes which this one started have spent until they ended."""
    spent = os.times()  # of children: zeros on Windows
    return time.monotonic(), spent.children_user + spent.children_system


def _record_times(root: Path, spent: Mapping[str, tuple[float, float]]) -> None:
    """Put times into data/chapter_seconds.csv."""
    file = chapter_times.path(root / "data")
    machine = f"{platform.system()} {platform.machine()}, {_cores()} cores, one thread a chapter"
    chapter_times.record(file, spent, machine, chapters(root))
    print(f"recorded in {file.relative_to(root)}; it is shown by: python -m howattend chapters reproducibility")


def _failure(name: str, source: NotebookNode, work: Path) -> str:
    """Which cell of a chapter failed, the first lines of its source, and the error."""
    log = (work / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    reason, cell, where = "".join(log[-1:]) or "papermill ended without a word", None, "before its first cell"
    if (work / f"{name}.ipynb").is_file():
        for tried in read(work / f"{name}.ipynb").cells:
            if tried.cell_type == "code" and tried.metadata.get("papermill", {}).get("start_time"):
                cell = tried  # the last that was begun; a dead kernel leaves no error in it
                errors = [output for output in tried.outputs if output.output_type == "error"]
                if errors:
                    reason = f"{errors[0].ename}: {errors[0].evalue}"
                    break
    lines = []
    if cell is not None:
        ids = [known.id for known in source.cells]
        where = f"cell {ids.index(cell.id) + 1} of {len(ids)}" if cell.id in ids else "the cell of its parameters"
        source_lines = cell.source.strip().splitlines()
        lines = [f"    | {line}" for line in source_lines[:5]] + ["    | …"] * (len(source_lines) > 5)
    return "\n".join([f"  {name}: {where} failed", *lines, *(f"    {line}" for line in reason.splitlines())])


def run_tests(root: Path, arguments: Sequence[str] = ()) -> int:
    """Lint, then every test and a new run of every chapter, in one pytest; returns the exit status.

    ``arguments`` go to pytest instead of the folders tests and book. pytest's closing line is the last, unless lint
    failed.
    """
    lint = [["ruff", "check", "."], ["ruff", "format", "--check", "."]]
    pytest = ["pytest", "-n", str(min(_cores(), MAX_TEST_WORKERS)), "--dist", "loadfile"]
    pytest += ["--nbval-lax", "--nbval-current-env", "--nbval-cell-timeout=300", *(arguments or ("tests", "book"))]
    with _stoppable(), _environment(threads=1) as environment:

        def status(command: list[str]) -> int:
            process = subprocess.Popen([sys.executable, "-m", *command], cwd=root, env=environment)
            try:
                return process.wait()
            finally:
                _end(process)  # pytest's kernels and browser with it

        failed = [command for command in lint if status(command)]
        tested = status(pytest)
    for command in failed:
        print(f"failed: {' '.join(command)}", flush=True)
    return tested or int(bool(failed))


def main_build(options: argparse.Namespace) -> int:
    """``python -m howattend book [CHAPTER …] [-p NAME VALUE]``"""
    build(options.root, options.names, workers=options.workers, parameters=parse_parameters(options.parameters))
    return 0


def main_refresh(options: argparse.Namespace) -> int:
    """``python -m howattend chapters [CHAPTER …] [--times]``"""
    if options.parameters:
        raise BookError("committed chapters have their default parameters: use -p with book, or edit the chapter")
    refresh(options.root, options.names, workers=options.workers, times=options.times)
    return 0


def main_test(options: argparse.Namespace) -> int:
    """``python -m howattend test [PYTEST-ARGUMENT …]``"""
    return run_tests(options.root, options.arguments)
