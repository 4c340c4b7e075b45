"""What became of an archive: a line of JSON for each checkpoint, beside the new ones."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from rllib_compat.formats.files import disk_errors, read_lines
from rllib_compat.formats.paths import is_address, local_path
from rllib_compat.formats.stores import Store
from rllib_compat.neutral.errors import CompatError, TargetExistsError, UnknownLayoutError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.origins import describe_place

#: Only POSIX has it.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

#: The file in the output folder that has a line of JSON for each conversion. In a store, each run
#: has one of its own, with the time in its name.
LOG = "conversions.jsonl"
#: In a store, what says that a run is writing: which one, and when it last said so, in seconds.
_RUNNING = "conversions.running"
#: Seconds between two writes of the log to a store, and between two signs of life there; after
#: which a silent run counts as dead; and after which one that starts sees all that start with it.
_INTERVAL, _DEAD, _SETTLE = 60.0, 600.0, 2.0


@frozen
class Outcome:
    """What became of one checkpoint.

    Attributes:
        old: The checkpoint.
        new: The folder that was to be made.
        status: `converted`, `already converted`, `would be converted` (of a dry run), `refused`
            (with the reason) or `failed` (a crash).
        message: What the conversion said last, or the error.
        seconds: How long it took.
        facts: The head of the report: algorithm, Ray, layout, …
        warnings: How many rows of the report need attention.
        largest_difference: The largest absolute difference of the proof; None without one.
        reason: Why it was refused or failed, in one line.
        fix: What to do about it.
        name: The path of the checkpoint below the folder.
        version: As in `Job`.
        details: The rows of the report that need attention, and what is assumed.
        curve: Some points of what the trial has logged: env steps and mean return.
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
        """Whether the new checkpoint is there, or would be."""
        return self.status.endswith("converted")


def read_log(folder: str | Path) -> list[Outcome]:
    """What became of each checkpoint in the end, by the logs in an output folder.

    Args:
        folder: Its path or address.

    Raises:
        UnknownLayoutError: There is no log.
    """
    here = None if is_address(folder) else local_path(folder) / LOG
    if here is None:
        lines = _lines_in_store(Store.of(str(folder)))
    else:
        lines = (line for _, line in read_lines(here)) if here.is_file() else iter(())
    last: dict[str, Outcome] = {}
    for outcome in _outcomes(lines):
        if outcome.status != "already converted" or outcome.name not in last:
            last[outcome.name] = outcome
    if not last:
        raise UnknownLayoutError(
            f"There is no log ({LOG}) of converted checkpoints.",
            where=describe_place(folder),
            fix="pass the output folder of `rllib-compat convert --recursive`",
        )
    return list(last.values())


def _outcomes(lines: Iterable[bytes]) -> Iterator[Outcome]:
    names = [field.name for field in fields(Outcome)]
    for line in lines:
        with suppress(ValueError, TypeError):  # a line that a killed run has begun
            row = json.loads(line)
            yield Outcome(**{name: row[name] for name in names if name in row})


def _versions(lines: Iterable[bytes]) -> dict[str, str]:
    """The version of each checkpoint that was converted, by a log."""
    return {o.name: o.version for o in _outcomes(lines) if o.status == "converted"}


def _lines_in_store(folder: Store) -> Iterator[bytes]:
    stem, ending = LOG.split(".")
    for info in folder.entries():
        if info.base_name.startswith(stem) and info.base_name.endswith(ending):
            yield from (folder.read(info.base_name, whole=True) or b"").splitlines()


@contextmanager
def open_log(
    log: str | Path | None,
) -> Iterator[tuple[Mapping[str, str], Callable[[Outcome], object]]]:
    """Opens a log for one run.

    Args:
        log: Its path or address; None for a dry run, which writes nothing.

    Yields:
        The version of each checkpoint that earlier runs have converted, by its name; and what adds
        a line.

    Raises:
        TargetExistsError: Another run writes there.
    """
    if log is None:
        yield {}, lambda _: None
        return
    with _log_here(log) if isinstance(log, Path) else _log_in_store(log) as (logged, write):
        yield logged, lambda outcome: write(json.dumps(asdict(outcome), default=str) + "\n")


@contextmanager
def _log_here(log: Path) -> Iterator[tuple[Mapping[str, str], Callable[[str], object]]]:
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
def _log_in_store(log: str) -> Iterator[tuple[Mapping[str, str], Callable[[str], object]]]:
    """A log in a store, where nothing can be added to a file: it is written anew once a minute."""
    folder = Store.of(log).parent
    stem, ending = LOG.split(".")
    own = f"{stem}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}.{ending}"
    lines, written = list[str](), 0.0

    def write(line: str) -> None:
        nonlocal written
        lines.append(line)
        if lost.is_set():
            raise _other_run(folder.shown)
        if time.monotonic() - written > _INTERVAL:
            save()
            written = time.monotonic()

    def save() -> None:
        folder.write(own, "".join(lines).encode("utf-8"))

    with _only_run(folder, own) as lost:
        logged = _versions(_lines_in_store(folder))
        save()
        try:
            yield logged, write
        finally:
            save()


@contextmanager
def _only_run(folder: Store, own: str) -> Iterator[threading.Event]:
    """Keeps other runs out of a folder in a store, which has no locks.

    Of several that start at once, the last one that has signed goes on. Each reads who has signed
    before it signs again, so if two go on all the same, one of them soon sees the other.

    Args:
        folder: The folder.
        own: The name of this run.

    Yields:
        What is set when another run has signed.
    """
    if _signed(folder):
        raise _other_run(folder.shown)
    _sign(folder, own)
    time.sleep(_SETTLE)
    if _signed(folder) != own:
        raise _other_run(folder.shown)
    ended, lost = threading.Event(), threading.Event()

    def sign_again() -> None:
        while not ended.wait(_INTERVAL):
            with suppress(CompatError):  # a store that is away for a while
                if _signed(folder) not in (own, None):
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
        if _signed(folder) == own:
            folder.remove(_RUNNING)


def _sign(folder: Store, own: str) -> None:
    folder.write(_RUNNING, f"{time.time()} {own}".encode("ascii"))


def _signed(folder: Store) -> str | None:
    """The run that writes in a folder of a store."""
    with suppress(ValueError):
        at, name = (folder.read(_RUNNING) or b"").decode("ascii").split(" ")
        if time.time() - float(at) < _DEAD:
            return name
    return None


def _other_run(where: str) -> TargetExistsError:
    return TargetExistsError(
        "Another run is writing to this folder.",
        where=where,
        fix="wait until it has ended, or pass another folder; in a store, a run that was killed "
        f"counts as running for {_DEAD / 60:.0f} minutes",
    )
