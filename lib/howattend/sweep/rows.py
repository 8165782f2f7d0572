"""What the sweep records: a row a network in sweep_runs.csv, and a run's claims, of all seeds, in sweep/NAME.csv."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from howattend import claims, csv_files, files
from howattend.claims import Measurement

#: One row a trained network. ``seconds`` are those of the processor, one thread, evaluation included (``clock`` is
#: "core"); of shipped networks, which were trained before the sweep, those of the wall clock of a busy machine
#: ("wall"), an upper bound. ``flops`` are torch's count of the matrix products of the first training step, forward and
#: backward, times the steps. ``measured_with`` is the :func:`~howattend.sweep.digest.measuring_digest` of the oldest
#: measurement among the network's rows.
RUN_COLUMNS = {
    **dict.fromkeys(("run", "task", "architecture", "cell", "attention", "decoder_input"), csv_files.text()),
    "l2": csv_files.number(0),
    "steps": csv_files.whole(1),
    "seed": csv_files.whole(),
    "accuracy": csv_files.number(0, 1, empty=True),  # of a training that diverged
    "bar": csv_files.number(0),
    "trained": csv_files.truth(),
    "seconds": csv_files.number(0),
    "clock": csv_files.one_of("core", "wall"),
    "flops": csv_files.number(0),
    "parameters": csv_files.whole(1),
    **dict.fromkeys(("python", "torch", "numpy", "howattend"), csv_files.text()),
    **dict.fromkeys(("config_hash", "weights_sha256"), csv_files.hexadecimal(64)),
    "measured_with": csv_files.hexadecimal(12, empty=True),
}
_KEYS = ["claim", "run", "seed"]
#: Of a configuration's hash in rows of claims, of which there are thousands: enough to tell hundreds of configurations
#: apart. sweep_runs.csv has all 64.
_DIGITS = 8
_CLAIM_COLUMNS = {**claims.KINDS, "config_hash": csv_files.hexadecimal(_DIGITS)}


def runs_path() -> Path:
    """Where the trained networks are listed."""
    return files.data_folder() / "results" / "sweep_runs.csv"


def rows_path(name: str) -> Path:
    """Where the claims of a run's seeds are kept."""
    return files.data_folder() / "results" / "sweep" / f"{name}.csv"


def read_runs() -> pd.DataFrame:
    """Every recorded network, with the columns of :data:`RUN_COLUMNS`; no rows where nothing is recorded yet."""
    return csv_files.read(runs_path(), RUN_COLUMNS, _contradiction, missing_ok=True)


def _contradiction(row: Mapping[str, object]) -> str | None:
    diverged = math.isnan(row["accuracy"])
    return "trained is True without an accuracy" if row["trained"] and diverged else None


def read_rows(names: Iterable[str] | None = None) -> pd.DataFrame:
    """The claims of all seeds of some runs (None: of all), with the columns of ``claims.COLUMNS``.

    Hashes are those of the recorded networks where a row's, of which 8 digits are stored, begins one of them.
    """
    names = [path.stem for path in sorted(rows_path("").parent.glob("*.csv"))] if names is None else list(names)
    tables = [csv_files.read(rows_path(name), _CLAIM_COLUMNS) for name in names if rows_path(name).exists()]
    if not tables:
        return csv_files.empty(_CLAIM_COLUMNS)
    table, known = pd.concat(tables, ignore_index=True), read_runs()["config_hash"]
    whole = dict(zip(known.str[:_DIGITS], known, strict=True))
    return table.assign(config_hash=[whole.get(digits[:_DIGITS], digits) for digits in table["config_hash"]])


def record_run(row: Mapping[str, object]) -> None:
    """Add a network, in the place of one of the same name and seed."""
    keys, new = ["run", "seed"], pd.DataFrame([row])[list(RUN_COLUMNS)]
    with _held(runs_path()):
        table = _merged(read_runs(), new, keys)
        csv_files.write(runs_path(), table.sort_values(keys, kind="stable"))


def record_claims(measured: Iterable[Measurement]) -> None:
    """Add measurements, in the place of those of the same claim, run and seed."""
    order = {claim: place for place, claim in enumerate(claims.CLAIMS)}  # of the ledger: a new run moves no line
    for name, new in claims.tidy(measured).groupby("run", sort=False):
        with _held(rows_path(name)):
            table = _merged(read_rows([name]), new, _KEYS)
            table = table.assign(place=table["claim"].map(order).fillna(len(order)))
            table = table.sort_values(["seed", "place"], kind="stable").drop(columns="place")
            csv_files.write(rows_path(name), table.assign(config_hash=table["config_hash"].str[:_DIGITS]))


def record_code(name: str, seed: int, digest: str) -> None:
    """Note by which code a network was measured."""
    with _held(runs_path()):
        table = read_runs()
        table.loc[(table["run"] == name) & (table["seed"] == seed), "measured_with"] = digest
        csv_files.write(runs_path(), table)


def _held(path: Path) -> contextlib.AbstractContextManager[None]:
    return files.locked(path, seconds=300)  # on a machine so busy that others take long, too


def _merged(old: pd.DataFrame, new: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Old rows and new ones, which displace those of the same keys."""
    if not len(old):
        return new
    known = pd.MultiIndex.from_frame(new[keys]).unique()
    kept = old[~pd.MultiIndex.from_frame(old[keys]).isin(known)]
    return pd.concat([kept, new], ignore_index=True) if len(kept) else new
