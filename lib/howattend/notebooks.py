"""The book's notebooks as they are stored: their normal form, what they depend on, what can be wrong with them."""

from __future__ import annotations

import ast
import base64
import copy
import hashlib
import json
import os
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import nbformat
import yaml
from nbformat import NotebookNode

from howattend.files import replacing

MAX_BYTES = 2_000_000  # a committed chapter: beyond this a repository of figures grows too fast
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}

_LANGUAGE = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3"}
_NOTEBOOK_CHURN = {"papermill", "widgets", "vscode", "interpreter", "celltoolbar", "orig_nbformat"}
_CELL_CHURN = {"papermill", "execution", "ExecuteTime", "collapsed", "scrolled", "trusted", "vscode"}
_PICTURES = {  # shown outside of their chapter
    ("one-to-one", "fig-paths"): "one-to-one.png",
    ("model-features", "fig-three-tasks"): "three-tasks.png",
    ("ledger", "fig-ledger"): "ledger.png",
}
_PAPERMILL_TAGS = {"injected-parameters", "papermill-error-cell-tag"}
_NOT_INPUTS = {"book.py", "notebooks.py", "__main__.py"}  # they change no output of a chapter
_DATA = (".csv", ".json", ".npz", ".tsv")  # what chapters read of data/


class BookError(RuntimeError):
    """A chapter could not be executed, or the pages not be built; the message says which and where."""


def chapters(root: Path) -> dict[str, Path]:
    """Notebooks of the book, by name, in the order of _toc.yml; BookError where a listed page is missing."""
    found: dict[str, Path] = {}

    def visit(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                visit(item)
        elif isinstance(node, dict):
            for key, value in node.items():
                if key not in ("root", "file"):
                    visit(value)
                elif (root / f"{value}.ipynb").is_file():
                    found[Path(value).name] = root / f"{value}.ipynb"
                elif not (root / f"{value}.md").is_file():
                    raise BookError(f"_toc.yml lists {value}, but there is neither {value}.ipynb nor {value}.md")

    toc = root / "_toc.yml"
    if not toc.is_file():
        raise BookError(f"{root} is not the repository of the book: it has no _toc.yml; go there or give --root")
    visit(yaml.safe_load(toc.read_text(encoding="utf-8")))
    return found


def read(path: Path) -> NotebookNode:
    """A notebook as it is stored, without the random cell ids that nbformat.read would give it."""
    try:
        return nbformat.v4.reads(path.read_text(encoding="utf-8"))
    except (ValueError, AttributeError) as error:
        raise BookError(f"{path} is no notebook ({error}); restore it, or resolve the merge conflict in it") from None


def to_text(notebook: NotebookNode) -> str:
    """The notebook's JSON: the same text for the same content, with a newline at its end."""
    return nbformat.v4.writes(notebook) + "\n"


def normalise(notebook: NotebookNode) -> NotebookNode:
    """A copy of the notebook without all that changes from one execution to the next; doing it again changes nothing.

    Removes papermill's and editors' metadata, papermill's injected cells, stderr (warnings name this machine's paths)
    and versions; joins stdout that came in pieces; numbers the executed code cells from 1; gives cells without an id,
    or with one that is taken, a stable one.
    """
    notebook = copy.deepcopy(notebook)
    kept = {key: value for key, value in notebook.metadata.items() if key not in _NOTEBOOK_CHURN}
    notebook.metadata = nbformat.from_dict({**kept, "kernelspec": KERNELSPEC, "language_info": _LANGUAGE})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.cells = [cell for cell in notebook.cells if not _PAPERMILL_TAGS & set(cell.metadata.get("tags", []))]
    count, taken = 0, set()
    for cell in notebook.cells:
        for key in [key for key in cell.metadata if key in _CELL_CHURN or (key == "tags" and not cell.metadata.tags)]:
            del cell.metadata[key]
        cell.source = cell.source.replace("\r\n", "\n")
        cell.id = _cell_id(cell, taken)
        taken.add(cell.id)
        if cell.cell_type == "code":
            cell.outputs = _outputs(cell.outputs)
            if cell.execution_count is not None:  # one that was never run must not look as if it had been
                cell.execution_count = count = count + 1
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
    return notebook


def _cell_id(cell: NotebookNode, taken: Collection[str]) -> str:
    """The cell's own id where it has one, else one from its source."""
    if cell.get("id") and cell.id not in taken:
        return cell.id
    base = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
    return next(name for name in (base, *(f"{base}-{n}" for n in range(2, len(taken) + 3))) if name not in taken)


def _outputs(outputs: Sequence[NotebookNode]) -> list[NotebookNode]:
    """Outputs without stderr; stdout that a kernel flushed in pieces, which depends on time, is one piece."""
    joined: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and output.name == "stderr":
            continue
        if output.output_type == "stream" and joined and joined[-1].output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def write_pictures(root: Path, name: str, notebook: NotebookNode) -> None:
    """Write the chapter's figures that the README and the opening page show, where they are not as drawn."""
    for path, picture in pictures(root, name, notebook).items():
        if not path.is_file() or path.read_bytes() != picture:
            with replacing(path) as temporary:
                temporary.write_bytes(picture)


def pictures(root: Path, name: str, notebook: NotebookNode) -> dict[Path, bytes]:
    """The same as paths and PNG bytes, as the executed chapter has them."""
    return {
        root / "book" / "_static" / file: base64.b64decode(output.data["image/png"])
        for (chapter, cell_id), file in _PICTURES.items()
        if chapter == name
        for cell in notebook.cells
        if cell.id == cell_id
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    }


def inputs_digest(root: Path) -> str:
    """sha256 over what can change a chapter's outputs: the library, the manifest of weights, results, words, sentences.

    Line ends do not count, so that a checkout on Windows has the same digest.
    """
    library = [path for path in (root / "lib" / "howattend").rglob("*") if path.suffix in (".py", ".toml")]
    library = [path for path in library if path.parent.name != "howattend" or path.name not in _NOT_INPUTS]
    data = [root / "data" / "weights" / "manifest.json"]
    for folder in ("results", "sentences", "vocabularies"):
        data += (path for path in (root / "data" / folder).rglob("*") if path.suffix in _DATA)
    digest = hashlib.sha256()
    for path in sorted((path for path in library + data if path.is_file()), key=lambda path: path.as_posix()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def code_digest(notebook: NotebookNode) -> str:
    """sha256 over the sources of the code cells: tells outputs that are older than their code."""
    sources = [cell.source for cell in normalise(notebook).cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def parameters_of(notebook: NotebookNode) -> dict[str, object]:
    """Names and default values that the cell tagged ``parameters`` assigns; defaults that are no literal are None."""
    found: dict[str, object] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", []):
            for node in ast.parse(cell.source).body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                value = getattr(node, "value", None)
                found |= dict.fromkeys(names, value.value if isinstance(value, ast.Constant) else None)
    return found


def parse_parameters(pairs: Sequence[Sequence[str]]) -> dict[str, object]:
    """Parameters as given on the command line, ``-p NAME VALUE``: numbers, true/false and none are read as such."""
    words = {"true": True, "false": False, "none": None}

    def value(text: str) -> object:
        if text.lower() in words:
            return words[text.lower()]
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text

    return {name: value(text) for name, text in pairs}


def check(root: Path) -> list[str]:
    """What is wrong with the committed chapters, one line each; empty when all are executed, normal and fresh."""
    root = root.resolve()
    listed = chapters(root)
    unlisted = sorted(set((root / "book").glob("*.ipynb")) - set(listed.values()))
    problems = [f"{path.stem}: not listed in _toc.yml" for path in unlisted]
    inputs = inputs_digest(root)
    for name, path in listed.items():
        problems += [f"{name}: {problem}" for problem in _problems(path, inputs, root)]
    return problems


def _problems(path: Path, inputs: str, root: Path) -> Iterator[str]:
    if path.stat().st_size >= MAX_BYTES:
        size, limit = path.stat().st_size / 1e6, MAX_BYTES / 1e6
        yield f"has {size:.1f} MB and must stay below {limit:.0f}: draw fewer or smaller figures"
    notebook = read(path)
    if "papermill" in notebook.metadata or any("papermill" in cell.metadata for cell in notebook.cells):
        yield "has papermill's metadata: make chapters"
    for position, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type != "code":
            continue
        text = json.dumps(cell.outputs)
        if cell.execution_count is None:
            yield f"cell {position} was never executed: make chapters"
        if any(output.output_type == "error" for output in cell.outputs):
            yield f"cell {position} ends in an error"
        if " at 0x" in text:
            yield f"cell {position} prints a memory address, which changes: give the value a name"
        if str(root) in text or f"{tempfile.gettempdir()}{os.sep}" in text:
            yield f"cell {position} prints a path of this machine"
    if to_text(normalise(notebook)) != path.read_text(encoding="utf-8"):
        yield "is not in normal form: make chapters"
    recorded = notebook.metadata.get("howattend", {})
    if recorded.get("code") != code_digest(notebook):
        yield "its code has changed since it was executed: make chapters"
    if recorded.get("inputs") != inputs:
        yield "the library or its data have changed since it was executed: make chapters"
