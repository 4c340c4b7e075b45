"""Sends mutants through the doors, one after another, and counts what came of it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_compat.errors import CompatError
from tests.fuzz import seeds
from tests.fuzz.doors import DOORS, Told
from tests.fuzz.mutate import Files, mutate
from tests.security.canary import Seen, watched

LONGEST = 5.0
#: After so many seconds of the processor, or of the clock, a mutant is given up.
_HANGS_AFTER, _WAITS_AFTER = 30, 120
_KEPT = b"of somebody else"


class Hang(BaseException):
    """A mutant took so long that it was given up."""


@dataclass
class Figures:
    """What came of a run.

    Attributes:
        mutants: How many were tried.
        read: How many were read all the same.
        refused: How often each error of ours was raised.
        uncaught: Everything else that was raised, by its place: how often, a mutant's number, its
            door, and what was said.
        slow: The mutants that took longer than 5 seconds of the processor.
        large: The mutants that took more memory than 20 times their size and 100 MB.
        executed: What was run, or looked up by name.
        imported: Modules of strangers that were imported.
        outside: What was written, moved or removed outside of the folder for it, or overwritten.
        worst_seconds: The longest that a mutant took.
        worst_growth: The most bytes by which one mutant raised the process's peak of memory.
    """

    mutants: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    uncaught: dict[str, list[Any]] = field(default_factory=dict)
    slow: list[tuple[str, int]] = field(default_factory=list)
    large: list[tuple[str, int]] = field(default_factory=list)
    executed: dict[str, int] = field(default_factory=dict)
    imported: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    worst_seconds: float = 0.0
    worst_growth: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        seen = (self.executed, self.imported, self.outside)
        return not (self.uncaught or self.slow or self.large or any(seen))


def mutant(seed: int, number: int, door: str | None = None) -> tuple[Files, str]:
    """The files of one mutant, and the door that it goes to; the same each time."""
    rng = random.Random(f"{seed}/{number}")
    chosen = door or rng.choices(list(DOORS), [one.share for one in DOORS.values()])[0]
    taken = DOORS[chosen]
    files, others = rng.choice(taken.seeds()), rng.choice(taken.seeds())
    return (mutate(files, rng, others, taken.part) if taken.files_change else files), chosen


def run(mutants: int, seed: int, first: int = 0, door: str | None = None) -> Figures:
    """Tries mutants one after another; at one door, or at each its share."""
    figures = Figures()
    before = Path.cwd(), tempfile.tempdir, sys.path[:], sys.dont_write_bytecode
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about the numbers in damaged arrays
        kept = Path(name) / "canary" / "kept"
        kept.parent.mkdir()
        kept.write_bytes(_KEPT)
        # Ray makes an empty folder for each algorithm, matplotlib its cache: below the home.
        old_home = os.environ["HOME"]
        os.environ["HOME"] = str(Path(name) / "home")
        logging.disable(logging.CRITICAL)
        sys.dont_write_bytecode = True  # of what a fresh environment imports for the first time
        try:
            _warm_up(Path(name) / "warm", [door] if door else [n for n in DOORS if DOORS[n].share])
            for number in range(first, first + mutants):
                files, taken = mutant(seed, number, door)
                with _folder(Path(name) / "mutant", files) as folder:
                    one = _forked if DOORS[taken].forked else _try
                    one(figures, seed, number, folder, taken, sum(map(len, files.values())))
                if kept.read_bytes() != _KEPT or len(list(kept.parent.iterdir())) > 1:
                    figures.outside[f"canary by {taken}"] = number
                figures.mutants += 1
        finally:
            logging.disable(logging.NOTSET)
            os.environ["HOME"] = old_home
            os.chdir(before[0])
            tempfile.tempdir, sys.path[:], sys.dont_write_bytecode = before[1:]
    return figures


@contextlib.contextmanager
def _folder(folder: Path, files: Files) -> Iterator[Path]:
    """Lays a mutant down, and makes its folder the working directory."""
    seeds.lay_down(files, folder / "old")
    (folder / "tmp").mkdir()
    tempfile.tempdir = str(folder / "tmp")
    os.chdir(folder / "old")
    try:
        yield folder
    finally:
        os.chdir(folder.parent)
        shutil.rmtree(folder, ignore_errors=True)


def _warm_up(folder: Path, doors: list[str]) -> None:
    """Lets every door import what it needs, so that no mutant is charged with it."""
    for name in doors:
        door = DOORS[name]
        for last in range(0 if door.forked else 2):
            laid = _folder(folder / f"{name}-{last}", door.seeds()[-last])
            with laid as place, contextlib.suppress(CompatError, Told):
                door.act(place / "old", place / "new", random.Random(last))


def _try(figures: Figures, seed: int, number: int, folder: Path, door: str, size: int) -> None:
    before, start = peak(), time.process_time()
    rng, taken = random.Random(f"{seed}/{number}/{door}"), DOORS[door]
    allowed = [folder / "new", folder / "tmp", folder.parent / "home"]
    allowed += [folder / "old"] if taken.in_place else []
    seen = None
    try:
        with watched(folder.parent / "code", *allowed) as seen, _alarms():
            taken.act(folder / "old", folder / "new", rng)
        figures.read += 1
    except CompatError as error:
        figures.refused[type(error).__name__] += 1
        str(error)
    except (Hang, Exception) as error:  # whatever it is: that is what is looked for
        key = f"{type(error).__name__} at {_place(error)}"
        known = figures.uncaught.setdefault(key, [0, number, door, str(error)[:150]])
        known[0] += 1
    if seen is not None:
        _note(figures, number, door, seen)
    seconds, growth = time.process_time() - start, peak() - before
    figures.worst_seconds = max(figures.worst_seconds, seconds)
    figures.worst_growth = max(figures.worst_growth, growth)
    if seconds > LONGEST:
        figures.slow.append((door, number))
    if growth > 20 * size + 100_000_000:
        figures.large.append((door, number))


def _note(figures: Figures, number: int, door: str, seen: Seen) -> None:
    # Python asks `uname` what machine it runs on, for `doctor`.
    executed = [name for name in seen.executed if "'uname'" not in name]
    if DOORS[door].rays_pickles:  # of files that were written just now
        executed = [name for name in executed if not name.startswith("pickle.find_class")]
    figures.executed |= {f"{name} by {door}": number for name in executed}
    figures.imported |= {f"{name} by {door}": number for name in seen.imported}
    figures.outside |= {f"{name} by {door}": number for name in seen.outside}


def _place(error: BaseException) -> str:
    """The last line of the package that an error went through."""
    if isinstance(error, Told):
        return error.place
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/rllib_compat/" in frame.filename] or frames
    return f"{ours[-1].filename.rpartition('rllib_compat/')[2]}:{ours[-1].lineno}"


def _forked(figures: Figures, seed: int, number: int, folder: Path, door: str, size: int) -> None:
    """The same in a process of its own, for what changes the process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.close(read_end)
        own = Figures()
        try:
            _try(own, seed, number, folder, door, size)
        except BaseException as error:
            own.uncaught[f"{type(error).__name__} at {_place(error)}"] = [1, number, door, ""]
        os.write(write_end, json.dumps(vars(own)).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        told = json.loads(pipe.read() or "{}")
    os.waitpid(child, 0)
    if not told:
        figures.uncaught[f"a process that ended by {door}"] = [1, number, door, ""]
        return
    figures.read += told["read"]
    figures.refused.update(told["refused"])
    figures.slow += told["slow"]
    figures.large += told["large"]
    for name in ("uncaught", "executed", "imported", "outside"):
        getattr(figures, name).update(told[name])
    for name in ("worst_seconds", "worst_growth"):
        setattr(figures, name, max(getattr(figures, name), told[name]))


@contextlib.contextmanager
def _alarms() -> Iterator[None]:
    """Ends what computes or waits for too long."""
    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, _HANGS_AFTER),
        (signal.ITIMER_REAL, signal.SIGALRM, _WAITS_AFTER),
    )
    old = [signal.signal(number, _raise_hang) for _, number, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, old, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def _raise_hang(*_: object) -> None:
    raise Hang


def peak() -> int:
    """The most memory that the process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
