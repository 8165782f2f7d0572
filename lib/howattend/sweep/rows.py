"""What the sweep records: a row a network in sweep_runs.csv, and a run's claims, of all seeds, in sweep/NAME.csv."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from howattend import claims, files
from howattend.claims import Measurement

#: One row a trained network. ``seconds`` are those of the processor, one thread, evaluation included (``clock`` is
#: "core"); of shipped networks, which were trained before the sweep, those of the wall clock of a busy machine
#: ("wall"), an upper bound. ``flops`` are torch's count of the matrix products of the first training step, forward and
#: backward, times the steps.
RUN_COLUMNS = {
    **dict.fromkeys(("run", "task", "architecture", "cell", "attention", "decoder_input"), str),
    **{"l2": float, "steps": int, "seed": int, "accuracy": float, "bar": float, "trained": bool},
    **{"seconds": float, "clock": str, "flops": float, "parameters": int},
    **dict.fromkeys(("python", "torch", "numpy", "howattend", "config_hash", "weights_sha256"), str),
}
_KEYS = ["claim", "run", "seed"]


def runs_path() -> Path:
    """Where the trained networks are listed."""
    return files.data_folder() / "results" / "sweep_runs.csv"


def rows_path(name: str) -> Path:
    """Where the claims of a run's seeds are kept."""
    return files.data_folder() / "results" / "sweep" / f"{name}.csv"


def read_runs() -> pd.DataFrame:
    """Every recorded network, with the columns of :data:`RUN_COLUMNS`; no rows where nothing is recorded yet."""
    path = runs_path()
    if not path.exists():
        return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in RUN_COLUMNS.items()})
    return _read(path, RUN_COLUMNS)


def read_rows(names: Iterable[str] | None = None) -> pd.DataFrame:
    """The claims of all seeds of some runs (None: of all), with the columns of ``claims.COLUMNS``."""
    names = [path.stem for path in sorted(rows_path("").parent.glob("*.csv"))] if names is None else list(names)
    kinds = {**dict.fromkeys(claims.COLUMNS, str), "seed": int, "value": float, "accuracy": float}
    tables = [_read(rows_path(name), kinds) for name in names if rows_path(name).exists()]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(claims.COLUMNS))


def _read(path: Path, kinds: Mapping[str, type]) -> pd.DataFrame:
    try:
        rows = pd.read_csv(
            path,
            keep_default_na=False,
            na_values={"value": [""], "accuracy": [""]},
            dtype={name: kind for name, kind in kinds.items() if kind is str},
        )
        if missing := [name for name in kinds if name not in rows]:
            raise ValueError(f"it has no {', '.join(missing)}")
        return rows[list(kinds)].astype(dict(kinds))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}); restore it with git checkout") from None


def record_run(row: Mapping[str, object]) -> None:
    """Add a network, in the place of one of the same name and seed."""
    _update(runs_path(), pd.DataFrame([row])[list(RUN_COLUMNS)], ["run", "seed"], read_runs)


def record_claims(measured: Iterable[Measurement]) -> None:
    """Add measurements, in the place of those of the same claim, run and seed."""
    rows = claims.tidy(measured)
    for name, some in rows.groupby("run", sort=False):
        _update(rows_path(name), some, _KEYS, lambda name=name: read_rows([name]))


def _update(path: Path, new: pd.DataFrame, keys: list[str], read) -> None:
    with files.locked(path, seconds=300):  # on a machine so busy that others take long, too
        old = read()
        known = pd.MultiIndex.from_frame(new[keys]).unique()
        kept = old[~pd.MultiIndex.from_frame(old[keys]).isin(known)] if len(old) else old
        rows = pd.concat([kept, new], ignore_index=True) if len(kept) else new
        # Runs by name and seed; claims by seed and in the order of the ledger: a new run adds lines and moves none.
        by = ["seed"] if "claim" in keys else ["run", "seed"]
        order = {claim: place for place, claim in enumerate(claims.CLAIMS)}
        rows = rows.assign(place=rows["claim"].map(order).fillna(len(order)) if "claim" in keys else 0)
        rows = rows.sort_values([*by, "place"], kind="stable").drop(columns="place")
        text = io.StringIO()
        rows.to_csv(text, index=False, float_format="%.6g", lineterminator="\n")
        files.write_text(path, text.getvalue())
