"""Worker processes over the plan: unattended, resumable, with what is left of it in hours."""

from __future__ import annotations

import contextlib
import math
import numbers
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import connection, get_context
from pathlib import Path

import pandas as pd
import torch
from tqdm import tqdm

from howattend import files
from howattend._progress import bar_options
from howattend._validation import require_count
from howattend.runs import RunConfig
from howattend.sweep import components, rows, work
from howattend.sweep import plan as plans
from howattend.sweep.plan import Job, Plan

Say = Callable[[str], None]

_PATIENCE = 120  # seconds that a worker has to save its checkpoint


@dataclass
class _Worker:
    """A process, what it is at, and how far it is."""

    process: object
    pipe: connection.Connection
    job: Job | None = None
    step: int = 0


def run(
    plan: Plan, workers: int | None = None, minutes: float | None = None, *, again: bool = False, say: Say | None = None
) -> bool:
    """Train and measure all that is left of a plan; whether all of it is done.

    Each worker is a process of one thread. Ctrl-C, or SIGTERM, lets each save its checkpoint and raises
    KeyboardInterrupt; the same call then goes on. A network that fails to train is recorded as such. An error in one,
    such as a missing corpus, is said, and the others go on.

    Args:
        plan: of :func:`~howattend.sweep.full_plan`, or a part of it.
        workers: processes; None: one a core.
        minutes: stop after so long, as with Ctrl-C but without the exception.
        again: measure the claims of finished networks anew, from the weights that are at hand, and train nothing;
            networks without weights here are named and left as they are.
        say: called with each line of progress; None prints.

    Raises OSError where a folder cannot be written to, before anything is trained.
    """
    workers = os.cpu_count() or 1 if workers is None else require_count(workers, "workers")
    if minutes is not None and not (isinstance(minutes, numbers.Real) and minutes > 0):
        raise ValueError(f"minutes must be a number greater than 0, got {minutes!r}")
    with _alone():
        sweep = _Sweep(plan, again, say or _print)
        until = math.inf if minutes is None else time.monotonic() + 60 * minutes
        with _interrupts() as interrupted:
            try:
                sweep.go(workers, lambda: interrupted.is_set() or time.monotonic() > until)
            finally:
                sweep.stop()
        if interrupted.is_set():
            raise KeyboardInterrupt
        sweep.refresh()
        sweep.say(sweep.summary())
        return not sweep.left


class _Sweep:
    """The state of one call of :func:`run`."""

    def __init__(self, plan: Plan, again: bool, say: Say) -> None:
        self.plan, self.again, self.say = plan, again, say
        self.total = sum(len(entry.seeds) for entry in plan.wanted)
        self.workers: list[_Worker] = []
        self.attempted: set[tuple[str, int]] = set()  # in this call: an error does not come again and again
        self.begun = time.monotonic()
        self.estimated = 0.0  # core-seconds of what this call has finished, as they were estimated
        self.refresh()

    def refresh(self) -> None:
        """Read what is recorded, and estimate what is left."""
        self.table = rows.read_runs()
        self.left = plans.left_over(self.plan, trained(self.table))
        self.seconds_left = sum(estimate(job.config, self.table) for job in self.left)

    # ---- what to do -----------------------------------------------------------------------------------------------

    def next_job(self) -> Job | None:
        """The next network to train or, if there is none, to measure; each once in this call."""
        busy = {worker.job.key for worker in self.workers if worker.job}
        return next((job for job in self._candidates() if job.key not in busy | self.attempted), None)

    def _candidates(self) -> Iterator[Job]:
        if self.again:
            wanted = {entry.name for entry in self.plan.wanted}
            yield from (
                Job(config, seed, name) for (name, seed), config in work.chosen(self.plan).items() if name in wanted
            )
            return
        yield from plans.jobs(self.plan, trained(self.table))
        yield from unmeasured(self.plan)

    # ---- the loop -------------------------------------------------------------------------------------------------

    def go(self, workers: int, stops: Callable[[], bool]) -> None:
        """Until nothing is left, or ``stops`` says so."""
        self.say(self.summary())
        options = {"bar_format": "{desc} {percentage:3.0f}%|{bar}| {postfix}", **bar_options(not self.again)}
        with tqdm(total=self.total, initial=self.total - len(self.left), desc="sweep", **options) as bar:
            while not stops():
                self._assign(workers)
                busy = [worker for worker in self.workers if worker.job]
                if not busy:
                    return
                for pipe in connection.wait([worker.pipe for worker in busy], timeout=1):
                    self._hear(next(worker for worker in busy if worker.pipe is pipe))
                bar.n = self.total - len(self.left)
                bar.set_postfix_str(self.now())
            self.say("stopping; what is under way goes on from here the next time")

    def _assign(self, workers: int) -> None:
        while len([worker for worker in self.workers if worker.job]) < workers and (job := self.next_job()):
            idle = next((worker for worker in self.workers if not worker.job), None)
            if idle is None:
                idle = _start(self.plan, self.again)
                self.workers.append(idle)
            idle.job, idle.step = job, 0
            idle.pipe.send(job)

    def _hear(self, worker: _Worker) -> None:
        try:
            kind, content = worker.pipe.recv()
        except (EOFError, OSError):
            kind, content = "ended", "its process ended; start the sweep again to go on with it"
            self.workers.remove(worker)
        if kind == "step":
            worker.step = content
            return
        job, worker.job = worker.job, None
        self.attempted.add(job.key)
        if kind == "done":
            self.estimated += estimate(job.config, self.table)
            self.refresh()
            self.say(f"{content}; {self.progress()}")
        else:
            self.say(f"{job.config.name} seed {job.seed} failed: {content}")

    def stop(self) -> None:
        """End all workers; those that are at a training save its checkpoint first."""
        for worker in self.workers:
            if worker.job and hasattr(os, "setsid"):  # elsewhere Ctrl-C has reached them, too
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker.process.pid, signal.SIGINT)
            elif not worker.job:
                with contextlib.suppress(OSError):
                    worker.pipe.send(None)
        for worker in self.workers:
            worker.process.join(_PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
        self.workers.clear()

    # ---- progress -------------------------------------------------------------------------------------------------

    def now(self) -> str:
        """What is under way."""
        at = [
            f"{worker.job.config.name} seed {worker.job.seed} at {worker.step / worker.job.config.train.steps:.0%}"
            for worker in self.workers
            if worker.job
        ]
        return ", ".join([*at, self.remaining()])

    def remaining(self) -> str:
        """How long the rest takes: from measured seconds a step, and how much longer than these this call has taken."""
        if not self.left:
            return "none left to train"
        busy = [worker for worker in self.workers if worker.job]
        done = sum(
            estimate(worker.job.config, self.table) * worker.step / worker.job.config.train.steps for worker in busy
        )
        spent = (time.monotonic() - self.begun) * max(1, len(self.workers))
        slower = spent / (self.estimated + done) if self.estimated > 0 else 1.0
        return f"about {_duration((self.seconds_left - done) * slower / max(1, len(self.workers)))} left"

    def progress(self) -> str:
        return f"{self.total - len(self.left)} of {self.total} networks, {self.remaining()}"

    def summary(self) -> str:
        """Where the sweep stands."""
        failed = int((~self.table["trained"].astype(bool)).sum())
        return f"{self.progress()}; {len(self.table)} recorded, of which {failed} did not train"


def unmeasured(plan: Plan) -> Iterator[Job]:
    """Networks that are trained and of which claims are not recorded."""
    networks, wanted = work.chosen(plan), {entry.name for entry in plan.wanted}
    for seed in sorted({seed for _, seed in networks}):
        for name in dict.fromkeys(row.parts["run"] for row in work.due(plan, seed, networks)):
            if name in wanted:
                yield Job(networks[name, seed], seed, name)


def overview(plan: Plan) -> pd.DataFrame:
    """The plan as a table: what is done of each entry, and core-hours that are left of it."""
    table = rows.read_runs()
    done, lines = trained(table), []
    for entry in plan.entries if plan.named is None else plan.wanted:
        chosen, _ = plans.resolve(entry, done)
        found = [done[chosen.hash, seed] for seed in entry.seeds if (chosen.hash, seed) in done] if chosen else []
        left = plans.left_over(Plan((entry,), frozenset({entry.name})), done)
        lines.append(
            {
                "group": entry.group,
                "run": entry.name,
                "L2": f"{chosen.train.l2:g}" if chosen else "to choose",
                "seeds": len(entry.seeds),
                "done": len(found),
                "did not train": len(found) - sum(found),
                "core-hours left": round(sum(estimate(job.config, table) for job in left) / 3600, 2),
                "": "" if entry.unattended else "only where it is named",
            }
        )
    return pd.DataFrame(lines)


def trained(table: pd.DataFrame) -> dict[tuple[str, int], bool]:
    """Whether each recorded network reached its bar, by configuration hash and seed."""
    return dict(zip(zip(table["config_hash"], table["seed"], strict=True), table["trained"], strict=True))


def estimate(config: RunConfig, table: pd.DataFrame) -> float:
    """Core-seconds of a training: from the most alike that are recorded, or a guess."""
    table = table[(table["clock"] == "core") & (table["seconds"] > 0)]
    model = config.model.resolve(config.task.default_decoder_input)
    alike = {"architecture": model.architecture, "cell": model.cell, "decoder_input": model.decoder_input}
    alike |= {"attention": model.attention if model.has_attention else "none", "task": config.task.name}
    # Ever less alike, from all five down to the architecture alone.
    for used in range(len(alike), 0, -1):
        some = table
        for column, value in list(alike.items())[:used]:
            some = some[some[column] == value]
        if len(some):
            return float((some["seconds"] / some["steps"]).mean()) * config.train.steps
    return plans.step_seconds(config) * config.train.steps


def _duration(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _print(line: str) -> None:
    tqdm.write(f"{time.strftime('%H:%M')} {line}", file=sys.stdout)
    sys.stdout.flush()


# ---- processes ----------------------------------------------------------------------------------------------------


def _start(plan: Plan, again: bool) -> _Worker:
    context = get_context("spawn")  # torch's threads do not survive a fork
    mine, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, plan, again), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, mine)


def _work(pipe: connection.Connection, plan: Plan, again: bool) -> None:
    """One worker: jobs come in, steps and results go out, until None comes or the other end is gone."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C in the terminal reaches the parent alone, which tells each worker once
    signal.signal(signal.SIGINT, signal.default_int_handler)  # behind nohup it would be ignored
    torch.set_num_threads(1)
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError):
        while (job := pipe.recv()) is not None:
            pipe.send(_outcome(pipe, plan, job, again))


def _outcome(pipe: connection.Connection, plan: Plan, job: Job, again: bool) -> tuple[str, str]:
    try:
        return "done", work.do(plan, job, lambda step: pipe.send(("step", step)), again=again)
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever it is, the other networks go on
        return "failed", f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Set by Ctrl-C and by SIGTERM, which then do not break in anywhere; a second one does."""
    interrupted, before = threading.Event(), {}
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # signals do not reach this thread
        return

    def handle(number: int, frame: object) -> None:
        interrupted.set()
        signal.signal(number, before[number])

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, handle)
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold the sweep's cache folder alone: two sweeps would train the same networks.

    The system lets go of it when the process ends, however it ends; file locks that a killed sweep left are removed.
    """
    path = files.cache_folder() / "sweep" / "running"
    _try(path.parent, "HOWATTEND_CACHE")
    for place in (rows.runs_path(), rows.rows_path(""), components.path("", 0)):
        _try(place.parent, "HOWATTEND_DATA")
    with path.open("w") as stream:
        try:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows
            pass
        except BlockingIOError:
            raise RuntimeError(f"another sweep is running with {path.parent}; let it end, or stop it") from None
        for lock in (rows.runs_path().with_name("sweep_runs.csv.lock"), *rows.rows_path("").parent.glob("*.lock")):
            lock.unlink(missing_ok=True)
        yield


def _try(folder: Path, variable: str) -> None:
    """OSError, with what to do, where a folder cannot be made or written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"{folder} cannot be written to ({error.strerror}); make room there, or set {variable} to another folder"
        ) from None
