"""Feeds damaged and hostile checkpoints to the doors of the package, many in one process.

    python -m tests.security.fuzz --mutants 100000 --seed 1
    python -m tests.security.fuzz --mutants 3000 --seed 2 --door optimizers

The seeds are small checkpoints of the museum and what `convert --to msgpack` makes of them. It
prints counts as JSON and ends with 1 if anything but a `CompatError` was raised, a mutant took
longer than 5 seconds of the processor, or memory grew by more than 20 times its size and 100 MB.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_compat.errors import CompatError
from rllib_compat.formats import manifest
from tests.legacy.cases import MUSEUM
from tests.security.mutate import Files, mutate

LONGEST = 5.0
_HANGS_AFTER = 30
_LARGEST_SEED = 150_000


class Hang(BaseException):
    """A mutant took so long that it was given up."""


@dataclass
class Figures:
    """What came of a run.

    Attributes:
        mutants: How many were tried.
        read: How many were read all the same.
        refused: How often each error of ours was raised.
        uncaught: Everything else that was raised, by its place, with a mutant's number.
        slow: The mutants that took longer than 5 seconds.
        large: The mutants that took more memory than 20 times their size and 100 MB.
        worst_seconds: The longest that a mutant took.
        worst_growth: The most bytes by which one mutant raised the process's peak of memory.
    """

    mutants: int = 0
    read: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    uncaught: dict[str, list[Any]] = field(default_factory=dict)
    slow: list[int] = field(default_factory=list)
    large: list[int] = field(default_factory=list)
    worst_seconds: float = 0.0
    worst_growth: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.uncaught or self.slow or self.large)


def _inspect(path: Path, _: Path) -> None:
    from rllib_compat import inspect

    found = inspect(path)
    json.dumps(found.to_dict(), default=str)


def _convert(path: Path, target: Path) -> None:
    from rllib_compat import convert

    convert(path, target / "new", to="msgpack", inputs=2)


def _names(path: Path, _: Path) -> None:
    from rllib_compat.formats import list_globals

    list_globals(path)


def _verify(path: Path, target: Path) -> None:
    """As the new one of a pair; a tree as the new one is read by the same reader as an old one."""
    from rllib_compat import verify

    if not (path / "learner_group").exists():
        verify(path, path, inputs=2)
    del target


def _config(path: Path, _: Path) -> None:
    """Every file of the checkpoint that `rllib-compat config` would take."""
    from rllib_compat.config import read_experiments, translate

    for file in (p for p in path.rglob("*") if p.suffix in (".json", ".yaml", ".pkl")):
        for experiment in read_experiments(str(file)):
            translate(experiment.config, algorithm="PPO", on_unknown="pass").to_python()


def _optimizers(path: Path, _: Path) -> None:
    """As far as the states of optimizers are handed to Ray."""
    import torch  # noqa: F401 - while warming up: no mutant is charged with it

    from rllib_compat import Given
    from rllib_compat.conversion.complete import complete
    from rllib_compat.conversion.identify import identify_networks
    from rllib_compat.formats import read_checkpoint
    from rllib_compat.networks import plan_optimizers
    from rllib_compat.networks.optimizers import torch_slots

    checkpoint, networks = identify_networks(complete(read_checkpoint(path), Given()), Given())
    plans, findings = plan_optimizers(checkpoint.policies, networks)
    for policy_id, states in plans.items():
        for state in states.values():
            torch_slots(state, networks[policy_id])
    for finding in findings:
        str(finding)


DOORS: dict[str, Callable[[Path, Path], None]] = {
    "inspect": _inspect,
    "convert": _convert,
    "names": _names,
    "verify": _verify,
    "config": _config,
    "optimizers": _optimizers,
}

#: How often each is taken, in a hundred.
_SHARES = {"inspect": 56, "convert": 15, "names": 12, "verify": 6, "config": 7, "optimizers": 4}

#: What of a file is changed where a door looks at one part of it alone.
_PARTS = {"optimizers": "optimizer"}


def _files_of(folder: Path) -> Files:
    names = (p for p in sorted(folder.rglob("*")) if p.is_file())
    # By its manifest, a mutant would be refused before anything of it was read.
    skipped = ("expected", "recipe", "case.json", "result.json", "progress.csv", manifest.NAME)
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in names
        if not p.name.startswith(skipped) and p.suffix != ".npz"
    }


@functools.cache
def seeds(most: int = 40) -> tuple[Files, ...]:
    """Small checkpoints of all layouts: of the museum, and of our own making."""
    found = []
    for release in sorted(p for p in MUSEUM.iterdir() if p.is_dir() and p.name[0].isdigit()):
        cases = sorted((sum(map(len, _files_of(c).values())), c) for c in release.iterdir())
        largest = _LARGEST_SEED if release.name != "2.40.0" else 3 * _LARGEST_SEED
        found += [_files_of(case) for size, case in cases[:3] if size <= largest]
    return tuple(found[:most]) + tuple(_own(found[::5]))


def _own(found: list[Files]) -> Iterator[Files]:
    from rllib_compat import convert

    for files in found:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lay_down(files, folder / "old")
            try:
                convert(_checkpoint_in(folder / "old"), folder / "new", to="msgpack", prove=False)
            except CompatError:
                continue
            yield _files_of(folder / "new")


def lay_down(files: Files, folder: Path) -> None:
    """Writes files below a folder; names that can't be are left out."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:
            continue


def _checkpoint_in(folder: Path) -> Path:
    """What a person would give: the trial's folder, or the one checkpoint folder in it."""
    inner = [
        p for p in folder.iterdir() if p.is_dir() and p.name.startswith(("checkpoint", "ckpt"))
    ]
    return inner[0] if len(inner) == 1 else folder


@functools.cache
def _seeds_with(part: str) -> tuple[Files, ...]:
    return tuple(s for s in seeds() if any(part.encode() in data for data in s.values()))


def mutant(seed: int, number: int, door: str | None = None) -> tuple[Files, str]:
    """The files of one mutant, and the door that it goes to; the same each time."""
    rng = random.Random(f"{seed}/{number}")
    chosen = door or rng.choices(list(_SHARES), list(_SHARES.values()))[0]
    part = _PARTS.get(chosen, "")
    files, others = rng.choice(_seeds_with(part)), rng.choice(seeds())
    return mutate(files, rng, others, part), chosen


def run(mutants: int, seed: int, first: int = 0, door: str | None = None) -> Figures:
    """Tries mutants one after another; at one door, or at each its share."""
    figures = Figures()
    place = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about the numbers in damaged arrays
        _warm_up(Path(name) / "warm")
        for number in range(first, first + mutants):
            folder = Path(name) / "mutant"
            files, taken = mutant(seed, number, door)
            lay_down(files, folder / "old")
            _try(figures, number, folder, taken, sum(map(len, files.values())))
            shutil.rmtree(folder)
            figures.mutants += 1
    return figures


def _warm_up(folder: Path) -> None:
    """Lets every door import what it needs, so that no mutant is charged with it."""
    lay_down(seeds()[0], folder / "old")
    for door in DOORS.values():
        with contextlib.suppress(CompatError):
            door(_checkpoint_in(folder / "old"), folder)


def _try(figures: Figures, number: int, folder: Path, door: str, size: int) -> None:
    before, start = peak(), time.process_time()
    old = signal.signal(signal.SIGPROF, _raise_hang)
    signal.setitimer(signal.ITIMER_PROF, _HANGS_AFTER)
    try:
        DOORS[door](_checkpoint_in(folder / "old"), folder)
        figures.read += 1
    except CompatError as error:
        figures.refused[type(error).__name__] += 1
        str(error)
    except (Hang, Exception) as error:  # whatever it is: that is what is looked for
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "rllib_compat" in frame.filename] or frames
        place = f"{ours[-1].filename.rpartition('rllib_compat/')[2]}:{ours[-1].lineno}"
        key = f"{type(error).__name__} at {place}"
        known = figures.uncaught.setdefault(key, [0, number, door, str(error)[:150]])
        known[0] += 1
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
    seconds, growth = time.process_time() - start, peak() - before
    figures.worst_seconds = max(figures.worst_seconds, seconds)
    figures.worst_growth = max(figures.worst_growth, growth)
    if seconds > LONGEST:
        figures.slow.append(number)
    if growth > 20 * size + 100_000_000:
        figures.large.append(number)


def _raise_hang(*_: object) -> None:
    raise Hang


def peak() -> int:
    """The most memory that the process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--door", choices=DOORS, help="the only door that is tried")
    parser.add_argument("--keep", type=Path, help="write mutant --first to this folder, and end")
    given = parser.parse_args()
    if given.keep:
        lay_down(mutant(given.seed, given.first, given.door)[0], given.keep)
        return 0
    start = time.monotonic()
    figures = run(given.mutants, given.seed, given.first, given.door)
    told = {**vars(figures), "seconds": round(time.monotonic() - start, 1), "peak": peak()}
    print(json.dumps(told, indent=1))
    return not figures.is_clean


if __name__ == "__main__":
    sys.exit(main())
