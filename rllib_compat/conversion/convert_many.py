"""All checkpoints below a folder: found, and converted by processes that each convert many.

A process imports Ray once, which takes longer than most conversions. One that dies (of memory, of
a signal) takes only its own checkpoint with it. What has been converted is not converted again,
so a run that was cut off goes on where it was.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.formats.files import disk_errors
from rllib_compat.formats.layouts import search
from rllib_compat.formats.manifest import NAME as MANIFEST
from rllib_compat.formats.paths import local_path
from rllib_compat.neutral.errors import CompatError, UnknownLayoutError
from rllib_compat.neutral.frozen import frozen

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from rllib_compat.conversion.given import Given

#: The file in the output folder that has a line of JSON for each conversion.
LOG = "conversions.jsonl"
#: Seconds that a process has to clean up.
_PATIENCE = 10


@frozen
class Job:
    """One checkpoint to convert.

    Attributes:
        old: The checkpoint.
        new: The folder to make.
        given: What is known of this one; None: what is known of all.
    """

    old: Path
    new: Path
    given: Given | None = None


@frozen
class Outcome:
    """What became of one checkpoint.

    Attributes:
        old: The checkpoint.
        new: The folder that was to be made.
        status: `converted`, `already converted`, `refused` (with the reason) or `failed` (a crash).
        message: What the conversion said last, or the error.
        seconds: How long it took.
        facts: The head of the report: algorithm, Ray, layout, …
        warnings: How many rows of the report need attention.
        largest_difference: The largest absolute difference of the proof; None without one.
        reason: Why it was refused or failed, in one line.
        fix: What to do about it.
    """

    old: str
    new: str
    status: str
    message: str = ""
    seconds: float = 0.0
    facts: Mapping[str, Any] | None = None
    warnings: int = 0
    largest_difference: float | None = None
    reason: str = ""
    fix: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the new checkpoint is there."""
        return self.status in ("converted", "already converted")


def find_jobs(folder: str | Path, out: str | Path) -> list[Job]:
    """Finds the checkpoints below a folder, in the order of their paths.

    Args:
        folder: Where to look. Links to folders are not followed.
        out: The folder in which each gets a folder of its own, by its path below `folder`.

    Raises:
        UnknownLayoutError: There is no such folder, or no checkpoint in it.
    """
    folder, out = local_path(folder), local_path(out)
    if not folder.is_dir():
        there = folder.exists()
        raise UnknownLayoutError(
            "It is a file, not a folder." if there else "No such folder.",
            where=str(folder),
            fix="Leave out --recursive." if there else "Check the path.",
        )
    found = list(search.find_checkpoints(folder, skip=out.absolute()))
    if not found:
        raise UnknownLayoutError(
            "There is no checkpoint below this folder.",
            where=str(folder),
            fix="Give a folder that has `checkpoint-N` files or checkpoint folders below it.",
        )
    below = Counter(above for old in found for above in old.parents)
    return [Job(old, out / _name(old, folder, below)) for old in found]


def _name(old: Path, folder: Path, below: Counter[Path]) -> Path:
    """The path below the output folder; a file that is all there is below a folder takes its name.

    One that has others below it has a name of its own there, so that no checkpoint is written into
    the folder of another.
    """
    takes_it = old.is_file() and below[old.parent] == 1 and old.parent != folder
    relative = (old.parent if takes_it else old).relative_to(folder)
    if old.is_dir() and (below[old] or not relative.parts):
        return relative / f"{old.resolve().name} itself"
    return relative


def convert_many(
    jobs: Sequence[Job],
    log: Path,
    *,
    processes: int = 1,
    at_start: Callable[[], None] | None = None,
    **options: object,
) -> Iterator[Outcome]:
    """Converts checkpoints, and yields what became of each as soon as it is done.

    Args:
        jobs: The checkpoints.
        log: A file that gets a line of JSON for each.
        processes: How many are converted at once.
        at_start: What each process calls before anything else.
        **options: What `convert` takes beside the paths.
    """
    with disk_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)
    # A folder without a manifest is no conversion that came to its end; `convert` refuses it.
    again = options.get("overwrite")
    there = [job for job in jobs if not again and (job.new / MANIFEST).is_file()]
    done = {job.new for job in there}
    waiting = [job for job in reversed(jobs) if job.new not in done]
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with disk_errors(log), open(os.open(log, flags, 0o666), "a", encoding="utf-8") as lines:  # noqa: PTH123
        workers = [_Worker(options, at_start) for _ in range(min(processes, len(waiting)))]
        for outcome in _outcomes(there, waiting, workers):
            lines.write(json.dumps(asdict(outcome), default=str) + "\n")
            lines.flush()
            yield outcome


def _outcomes(
    there: Sequence[Job], waiting: list[Job], workers: Sequence[_Worker]
) -> Iterator[Outcome]:
    for job in there:
        yield Outcome(str(job.old), str(job.new), "already converted", "it was not converted again")
    try:
        for worker in workers:
            worker.give(waiting.pop())
        while busy := [worker for worker in workers if worker.job is not None]:
            for ready in wait([worker.connection for worker in busy]):
                worker = next(w for w in busy if w.connection is ready)
                yield worker.take()
                if waiting:
                    worker.give(waiting.pop())
    finally:
        for worker in workers:
            worker.stop()


class _Worker:
    """A process that converts one checkpoint after the other."""

    def __init__(
        self, options: Mapping[str, Any], at_start: Callable[[], None] | None = None
    ) -> None:
        self._options = dict(options)
        self._at_start = at_start
        self.job: Job | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # Ray and torch don't survive a fork
        self.connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_work, args=(theirs, self._options, self._at_start), daemon=True
        )
        with _safe_path():
            self._process.start()
        theirs.close()  # so that the end of the process ends the connection

    def give(self, job: Job) -> None:
        """Lets the process convert a checkpoint; a process that has died is replaced."""
        if not self._process.is_alive():
            self.stop()
            self._start()
        self.job = job
        self.connection.send(job)

    def take(self) -> Outcome:
        """What became of the checkpoint."""
        assert self.job is not None
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            died = f"the process died with exit code {self._process.exitcode}"
            outcome = Outcome(str(self.job.old), str(self.job.new), "failed", died, reason=died)
        self.job = None
        return outcome

    def stop(self) -> None:
        """Ends the process; an unfinished conversion leaves nothing behind."""
        self.connection.close()
        self._process.terminate()
        self._process.join(_PATIENCE)
        self._process.kill()
        self._process.join()


@contextmanager
def _safe_path() -> Iterator[None]:
    """Has Python processes that are started in the block import nothing from where they start.

    Before they are told the path of this one, they would (Python 3.10 does not know the variable).
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if before is not None:
            os.environ["PYTHONSAFEPATH"] = before


def _work(
    connection: Connection, options: Mapping[str, Any], at_start: Callable[[], None] | None
) -> None:
    """What a process does: convert, and answer, until the connection ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's affair
    signal.signal(signal.SIGTERM, _end)
    if at_start is not None:
        at_start()
    while True:
        try:
            job: Job = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(_convert(job, options))


def _end(*_: object) -> None:
    """Ends a process by an exception, so that it removes what it had begun to write."""
    raise SystemExit(1)


def _convert(job: Job, options: Mapping[str, Any]) -> Outcome:
    from rllib_compat.conversion.convert import convert
    from rllib_compat.neutral.report import Severity

    old, new, began = str(job.old), str(job.new), time.monotonic()
    try:
        job.new.parent.mkdir(parents=True, exist_ok=True)
        known = options if job.given is None else {**options, "given": job.given}
        done = convert(job.old, job.new, **known)
    except CompatError as error:
        reason, fix = error.found.partition("\n")[0], error.fix or ""
        seconds = time.monotonic() - began
        return Outcome(
            old, new, "refused", error.for_command_line(), seconds, reason=reason, fix=fix
        )
    except Exception as error:  # one failure stops nothing; the log has its name
        said = f"{type(error).__name__}: {error}"
        return Outcome(old, new, "failed", said, time.monotonic() - began, reason=said)
    facts = dict(done.report.facts)
    return Outcome(
        old,
        new,
        "converted",
        str(facts.pop("result", "")),
        time.monotonic() - began,
        facts,
        len(done.report.at_least(Severity.WARNING)),
        done.largest_difference,
    )
