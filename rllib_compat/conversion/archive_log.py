"""The log of an archive's conversion: a line of JSON for each checkpoint."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from rllib_compat.formats.files import disk_errors, read_lines
from rllib_compat.formats.paths import is_address, local_path
from rllib_compat.formats.stores import Store
from rllib_compat.neutral.errors import CompatError, TargetExistsError, UnknownLayoutError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.origins import describe_place

#: Available only on POSIX.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

#: The log file in the output folder, with a line of JSON for each conversion. In a store, each run
#: has its own files, with the time and a number in their names.
LOG = "conversions.jsonl"
#: The file in a store that marks a running conversion: its name, and the last time in s.
_RUNNING = "conversions.running"
#: The times in s between two writes of the log to a store, and between two updates of the mark;
#: after which a run without updates counts as ended; and after which a new run sees all others.
_INTERVAL, _DEAD, _SETTLE = 60.0, 600.0, 2.0
#: The number of lines after which the log is written to a store at once.
_MOST_LINES = 2000


_ADD = "INSERT INTO texts VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
_REPLACE = _ADD.replace("NOTHING", "UPDATE SET text = excluded.text")


class DiskTable:
    """A table of texts by name, in insertion order, in a temporary file: it may exceed memory.

    The system removes the file.
    """

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        self._rows.execute("PRAGMA journal_mode = OFF")
        self._rows.execute("CREATE TABLE texts (name BLOB UNIQUE, text TEXT)")
        weakref.finalize(self, self._rows.close)

    def set(self, name: str, text: str, *, replace: bool = True) -> None:
        """Adds a text, or replaces the one with this name."""
        self._rows.execute(_REPLACE if replace else _ADD, (_key(name), text))

    def get(self, name: str) -> str | None:
        """Returns the text of a name, or None."""
        found = self._rows.execute("SELECT text FROM texts WHERE name = ?", (_key(name),))
        return next((str(text) for (text,) in found), None)

    def items(self) -> Iterator[tuple[str, str]]:
        """Yields the names and their texts."""
        for name, text in self._rows.execute("SELECT name, text FROM texts ORDER BY rowid"):
            yield name.decode("utf-8", "surrogatepass"), text

    def __len__(self) -> int:
        return int(self._rows.execute("SELECT COUNT(*) FROM texts").fetchone()[0])


def _key(name: str) -> bytes:
    """Encodes a name, which may have characters that are not valid text."""
    return name.encode("utf-8", "surrogatepass")


@frozen
class Outcome:
    """The outcome of one checkpoint.

    Attributes:
        old: The checkpoint.
        new: The new folder.
        status: `converted`, `already converted`, `would be converted` (of a dry run), `refused`
            (with the reason) or `failed` (a crash).
        message: The result line of the conversion, or the error.
        seconds: The duration in s.
        facts: The facts of the report: algorithm, Ray, layout, …
        warnings: The number of warnings in the report.
        largest_difference: The largest absolute difference of the proof; None without one.
        reason: Why it was refused or failed, in one line.
        fix: What to do.
        name: The path of the checkpoint below the folder.
        version: As in `Job`.
        details: The warnings of the report, and the assumptions.
        curve: Some points of the trial's curve: env steps and mean return.
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
    name: str = ""
    version: str = ""
    details: Sequence[str] = ()
    curve: Sequence[tuple[float, float]] = ()

    @property
    def is_done(self) -> bool:
        """Whether the new checkpoint exists, or would without a dry run."""
        return self.status.endswith("converted")


class Outcomes:
    """The last outcome of each checkpoint, in a temporary file.

    The outcome "already converted" does not replace another.
    """

    def __init__(self) -> None:
        self._lines = DiskTable()

    def add(self, outcome: Outcome) -> None:
        """Adds an outcome."""
        done = outcome.status != "already converted"
        self._lines.set(outcome.name or outcome.old, _line(outcome), replace=done)

    def __iter__(self) -> Iterator[Outcome]:
        return _outcomes(line for _, line in self._lines.items())

    def __len__(self) -> int:
        return len(self._lines)


def read_log(folder: str | Path) -> Outcomes:
    """Returns the last outcome of each checkpoint in the logs of an output folder.

    Raises:
        UnknownLayoutError: There is no log.
    """
    here = None if is_address(folder) else local_path(folder) / LOG
    if here is None:
        lines = _lines_in_store(Store.of(str(folder)))
    else:
        lines = (line for _, line in read_lines(here)) if here.is_file() else iter(())
    last = Outcomes()
    for outcome in _outcomes(lines):
        last.add(outcome)
    if not last:
        raise UnknownLayoutError(
            f"There is no log ({LOG}) of converted checkpoints.",
            where=describe_place(folder),
            fix="Pass the output folder of `rllib-compat convert --recursive`.",
        )
    return last


def _line(outcome: Outcome) -> str:
    return json.dumps(vars(outcome), default=str) + "\n"


def _outcomes(lines: Iterable[str | bytes]) -> Iterator[Outcome]:
    names = [field.name for field in fields(Outcome)]
    for line in lines:
        with suppress(ValueError, TypeError):  # an incomplete line of a killed run
            row = json.loads(line)
            yield Outcome(**{name: row[name] for name in names if name in row})


def _versions(lines: Iterable[bytes]) -> DiskTable:
    """Returns the version of each converted checkpoint in a log."""
    versions = DiskTable()
    for outcome in _outcomes(lines):
        if outcome.status == "converted":
            versions.set(outcome.name, outcome.version)
    return versions


def _lines_in_store(folder: Store) -> Iterator[bytes]:
    stem, ending = LOG.split(".")
    for info in folder.entries():
        if info.base_name.startswith(stem) and info.base_name.endswith(ending):
            yield from (folder.read(info.base_name, whole=True) or b"").splitlines()


@contextmanager
def open_log(
    log: str | Path | None,
) -> Iterator[tuple[DiskTable, Callable[[Outcome], object]]]:
    """Opens a log for one run; None is for a dry run, which writes nothing.

    Yields:
        The version of each checkpoint that earlier runs have converted, by its name; and a function
        that adds a line.

    Raises:
        TargetExistsError: Another run is writing to the folder.
    """
    if log is None:
        yield DiskTable(), lambda _: None
        return
    with _log_here(log) if isinstance(log, Path) else _log_in_store(log) as (logged, write):
        yield logged, lambda outcome: write(_line(outcome))


@contextmanager
def _log_here(log: Path) -> Iterator[tuple[DiskTable, Callable[[str], object]]]:
    with disk_errors(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(log, flags, 0o666), "a", encoding="utf-8") as lines:  # noqa: PTH123
            if fcntl is not None:
                try:
                    fcntl.flock(lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise _other_run(str(log.parent)) from None

            def write(line: str) -> None:
                lines.write(line)
                lines.flush()

            yield _versions(line for _, line in read_lines(log)), write


@contextmanager
def _log_in_store(log: str) -> Iterator[tuple[DiskTable, Callable[[str], object]]]:
    """Opens a log in a store, where files cannot be appended to: each minute has its own file."""
    folder = Store.of(log).parent
    stem, ending = LOG.split(".")
    own = f"{stem}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
    lines, written, number = list[str](), time.monotonic(), count(1)

    def write(line: str) -> None:
        lines.append(line)
        if lost.is_set():
            raise _other_run(folder.shown)
        if len(lines) >= _MOST_LINES or time.monotonic() - written > _INTERVAL:
            save()

    def save() -> None:
        nonlocal written
        if lines:
            folder.write(f"{own}-{next(number):05d}.{ending}", [line.encode() for line in lines])
            lines.clear()
        written = time.monotonic()

    with _only_run(folder, own) as lost:
        try:
            yield _versions(_lines_in_store(folder)), write
        finally:
            save()


@contextmanager
def _only_run(folder: Store, own: str) -> Iterator[threading.Event]:
    """Keeps other runs from writing to a folder in a store, which has no locks.

    If several start at the same time, the last one that wrote its mark continues. Each reads the
    mark before it updates it, so if two continue nevertheless, one of them soon sees the other.

    Yields:
        An event that is set when another run has written its mark.
    """
    if _active_run(folder):
        raise _other_run(folder.shown)
    _sign(folder, own)
    time.sleep(_SETTLE)
    if _active_run(folder) != own:
        raise _other_run(folder.shown)
    ended, lost = threading.Event(), threading.Event()

    def sign_again() -> None:
        while not ended.wait(_INTERVAL):
            with suppress(CompatError):  # the store may be unavailable for a while
                if _active_run(folder) not in (own, None):
                    lost.set()
                    return
                _sign(folder, own)

    thread = threading.Thread(target=sign_again, daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        ended.set()
        thread.join()
        if _active_run(folder) == own:
            folder.remove(_RUNNING)


def _sign(folder: Store, own: str) -> None:
    folder.write(_RUNNING, [f"{time.time()} {own}".encode("ascii")])


def _active_run(folder: Store) -> str | None:
    """Returns the run that is writing to a folder of a store."""
    with suppress(ValueError):
        at, name = (folder.read(_RUNNING) or b"").decode("ascii").split(" ")
        if time.time() - float(at) < _DEAD:
            return name
    return None


def _other_run(where: str) -> TargetExistsError:
    return TargetExistsError(
        "Another run is writing to this folder.",
        where=where,
        fix="Wait until it has ended, or pass another folder; in a store, a run that was killed "
        f"counts as running for {_DEAD / 60:.0f} minutes.",
    )
