"""Progress bars."""

from __future__ import annotations

import sys


def bar_options(progress: bool) -> dict[str, object]:
    """A bar in terminals and in notebooks, whose streams are no terminals; none in log files."""
    if not progress:
        return {"disable": True}
    in_notebook = type(sys.stderr).__module__.startswith("ipykernel")
    return {} if in_notebook else {"disable": None}  # {}: as the environment's TQDM_DISABLE says
