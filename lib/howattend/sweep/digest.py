"""A digest of the code that measures: rows remember by which they were measured."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import tokenize
from pathlib import Path

import howattend

#: What a measured number depends on, beside the network: from the test set to the claim. Not how networks are trained,
#: which shows in their weights' hash, and not the corpora, which have a fingerprint of their own.
_CODE = (
    *("analysis.py", "alignment.py", "decomposition.py", "interventions.py", "sweep/measuring.py"),
    *("claims", "measured", "models", "statistics", "tasks"),
)
_APART = {"corpora"}


@functools.cache
def measuring_digest() -> str:
    """The first 12 digits of a sha256 over the modules that measurements depend on, and the claims' criteria.

    Comments, docstrings and white space are left out: they change no number.
    """
    library, digest = Path(howattend.__file__).parent, hashlib.sha256()
    for part in _CODE:
        paths = [library / part] if part.endswith(".py") else (library / part).rglob("*")
        for path in sorted(path for path in paths if path.suffix in (".py", ".toml") and not _APART & set(path.parts)):
            text = path.read_text(encoding="utf-8")
            digest.update(f"{path.relative_to(library).as_posix()}\n".encode())
            digest.update((code_of(text) if path.suffix == ".py" else text).encode())
    return digest.hexdigest()[:12]


def code_of(source: str) -> str:
    """Python source without comments, without strings that nothing is done with, and without white space."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "".join("".join(lines).split())
