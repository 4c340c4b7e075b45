"""Converts all checkpoints below a folder or an address with several workers, and logs them.

A checkpoint that was converted and has not changed is skipped, so an interrupted run continues.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

from rllib_compat.conversion import workers
from rllib_compat.conversion.archive_log import DiskTable, Outcome, open_log
from rllib_compat.formats.layouts import search
from rllib_compat.formats.manifest import NAME as MANIFEST
from rllib_compat.formats.paths import is_address, local_path
from rllib_compat.formats.stores import Store, join_place, remove_copies
from rllib_compat.neutral.errors import CompatError, UnknownLayoutError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.origins import describe_place
from rllib_compat.trials import read_returns

if TYPE_CHECKING:
    from rllib_compat.conversion.convert import Conversion
    from rllib_compat.conversion.given import Given
    from rllib_compat.neutral.report import Finding

#: The time limit of a conversion in s.
LIMIT = 3600.0
#: The largest size of a trial's results in bytes for its curve, and the number of points.
_MOST_RESULTS, _POINTS = 64 << 20, 60
#: The memory in bytes of a process that has imported Ray.
_BASE_MEMORY = 400 << 20
#: How many rows of each kind the log has of a checkpoint, and characters of a text.
_MOST_DETAILS, _LONGEST = 20, 300


@frozen
class Job:
    """A checkpoint to convert.

    Attributes:
        old: The checkpoint: a path or an address.
        new: The folder to write, likewise.
        name: The path of the checkpoint below the folder.
        version: The sizes and times of its files, which change with them.
        given: The facts of this checkpoint; None: the common ones.
        before: Its version when an earlier run converted it; None: not known.
    """

    old: str | Path
    new: str | Path
    name: PurePosixPath
    version: str = ""
    given: Given | None = None
    before: str | None = None

    def outcome(self, status: str, message: str, **more: Any) -> Outcome:
        """Returns the outcome of the job."""
        places = describe_place(self.old), describe_place(self.new)
        return Outcome(*places, status, message, name=str(self.name), version=self.version, **more)


class Jobs:
    """The checkpoints below a folder, in the order of their paths; the list is a temporary file.

    Args:
        folder: The folder or address of the checkpoints.
        out: The output folder.
        found: For each, its path below `folder`, the new one's path below `out`, and its version.
    """

    def __init__(
        self,
        folder: str | Path,
        out: str | Path,
        found: Iterable[tuple[PurePosixPath, PurePath, str]],
    ) -> None:
        self._folder, self._out, self._rows = folder, out, DiskTable()
        for name, target, version in found:
            self._rows.set(str(name), json.dumps([str(target), version]))

    def __iter__(self) -> Iterator[Job]:
        for name, row in self._rows.items():
            target, version = json.loads(row)
            old = join_place(self._folder, name)
            yield Job(old, join_place(self._out, target), PurePosixPath(name), version)

    def __len__(self) -> int:
        return len(self._rows)


def find_jobs(folder: str | Path, out: str | Path) -> Jobs:
    """Finds the checkpoints below a folder.

    Args:
        folder: The path or address to search. Links to folders are not followed.
        out: The output folder, in which each gets a folder by its path below `folder`.

    Raises:
        UnknownLayoutError: The folder does not exist, or has no checkpoint.
    """
    folder, out = (p if is_address(p) else local_path(p) for p in (folder, out))
    found = _find_here(folder, out) if isinstance(folder, Path) else _find_in_store(folder, out)
    itself = PurePosixPath(folder.resolve() if isinstance(folder, Path) else Store.of(folder).path)
    jobs = Jobs(folder, out, _with_targets(found, itself.name))
    if not jobs:
        raise UnknownLayoutError(
            "There is no checkpoint below this folder.",
            where=describe_place(folder),
            fix="Pass a folder with `checkpoint-N` files or checkpoint folders below it.",
        )
    return jobs


def _with_targets(
    found: Iterator[tuple[PurePosixPath, str, bool]], itself: str
) -> Iterator[tuple[PurePosixPath, PurePath, str]]:
    """Yields each checkpoint with the path of the new one below the output folder.

    The only checkpoint file of a folder gets the folder's name. A checkpoint with others below it
    gets another name, so that none is inside another. Checkpoints of a folder are consecutive, so
    the previous and the next one show whether a checkpoint is the only one.
    """
    before, here = None, next(found, None)
    while here is not None:
        after = next(found, None)
        name, version, is_folder = here
        beside = {above for other in (before, after) if other for above in other[0].parents}
        target = name
        if is_folder and (name in beside or not name.parts):
            target = name / f"{name.name or itself} itself"
        elif not is_folder and name.parent not in beside and len(name.parts) > 1:
            target = name.parent
        yield name, target, version
        before, here = here, after


def _find_here(folder: Path, out: str | Path) -> Iterator[tuple[PurePosixPath, str, bool]]:
    """Yields local checkpoints: path below the folder, version, and whether it is a folder."""
    if not folder.is_dir():
        there = folder.exists()
        raise UnknownLayoutError(
            "It is a file, not a folder." if there else "No such folder.",
            where=str(folder),
            fix="Leave out --recursive." if there else "Check the path.",
        )
    skip = out.absolute() if isinstance(out, Path) else None
    for path in search.find_checkpoints(folder, skip=skip):
        is_folder = path.is_dir()
        files = [path]
        if is_folder:
            with suppress(OSError):
                files = [entry for entry in path.iterdir() if entry.is_file()]
        found = [file.stat() for file in files if file.exists()]
        version = _version([(stat.st_size, stat.st_mtime_ns) for stat in found])
        yield PurePosixPath(path.relative_to(folder).as_posix()), version, is_folder


def _find_in_store(address: str, out: str | Path) -> Iterator[tuple[PurePosixPath, str, bool]]:
    skip = None if isinstance(out, Path) else Store.of(out).path
    for name, files in search.find_in_store(Store.of(address), skip=skip):
        version = _version([(info.size, info.mtime_ns or 0) for info in files])
        is_folder = [info.base_name for info in files] != [name.name]
        yield name, version, is_folder


def _version(files: Sequence[tuple[int, int]]) -> str:
    return f"{sum(size for size, _ in files)}:{max((time for _, time in files), default=0)}"


def convert_many(
    jobs: Iterable[Job],
    log: str | Path,
    *,
    processes: int = 1,
    ray_address: str | None = None,
    limit: float = LIMIT,
    at_start: Callable[[], None] | None = None,
    **options: object,
) -> Iterator[Outcome]:
    """Converts checkpoints, and yields the outcome of each as soon as it is ready.

    Args:
        jobs: The checkpoints.
        log: The log file in the output folder, with a line of JSON for each.
        processes: The number of processes on this machine.
        ray_address: The address of a cluster to use instead, for `ray.init`.
        limit: The time limit of a conversion in s.
        at_start: Called first in a worker, possibly several times.
        **options: Other arguments of `convert`.

    Raises:
        TargetExistsError: Another run writes into the same folder.
    """
    with open_log(None if options.get("dry_run") else log) as (logged, write):
        known = (replace(job, before=logged.get(str(job.name))) for job in jobs)
        work = partial(_convert, options=options, at_start=at_start)
        run: Callable[..., Iterator[Outcome]] = partial(
            workers.run_in_processes, processes=processes
        )
        if ray_address is not None:
            run = partial(workers.run_on_ray, address=ray_address, memory=_memory)
        for outcome in run(work, known, _died, limit=limit):
            write(outcome)
            yield outcome


def _is_converted(new: str | Path) -> bool:
    """Whether a new folder is complete: an incomplete conversion has no manifest."""
    if isinstance(new, Path):
        return (new / MANIFEST).is_file()
    return Store.of(new).read(MANIFEST) is not None


def _memory(job: Job) -> int:
    """The memory of a conversion in bytes, as measured: it has two copies of all at its peak."""
    size = int(job.version.partition(":")[0] or 0)  # without the folders in it
    return _BASE_MEMORY + 5 * size


def _died(job: Job, why: str) -> Outcome:
    return job.outcome("failed", why, reason=why)


def _convert(
    job: Job,
    options: Mapping[str, Any],
    at_start: Callable[[], None] | None,
) -> Outcome:
    if at_start is not None:
        at_start()
    from rllib_compat.conversion.convert import convert
    from rllib_compat.neutral.checkpoint import size_of
    from rllib_compat.neutral.report import Severity

    began = time.monotonic()
    try:
        there = not options.get("overwrite") and _is_converted(job.new)
        if there and job.before in (None, job.version):
            return job.outcome("already converted", "it was not converted again")
        if isinstance(job.new, Path) and not options.get("dry_run"):
            job.new.parent.mkdir(parents=True, exist_ok=True)
        known = dict(options) if job.given is None else {**options, "given": job.given}
        if there:  # an older version
            known["overwrite"] = True
        done = convert(job.old, job.new, **known)
    except CompatError as error:
        reason, fix = error.found.partition("\n")[0], error.fix or ""
        seconds = time.monotonic() - began
        return job.outcome(
            "refused", error.for_command_line(), seconds=seconds, reason=reason, fix=fix
        )
    except Exception as error:  # a failure does not stop the others; the log has it
        said = f"{type(error).__name__}: {error}"
        return job.outcome("failed", said, seconds=time.monotonic() - began, reason=said)
    finally:
        remove_copies()
    facts, checkpoint = dict(done.report.facts), done.checkpoint
    networks = sorted({network.summary for network in done.networks.values()})
    environment = checkpoint.config.get("env")
    facts |= {
        "environment": None if environment is None else str(environment)[:_LONGEST],
        "networks": "; ".join(networks)[:_LONGEST],
        "env steps": checkpoint.counters.env_steps,
        "parameters": sum(size_of(policy.weights) for policy in checkpoint.policies.values()),
    }
    attention = done.report.at_least(Severity.WARNING)
    return job.outcome(
        "converted" if done.target else "would be converted",
        str(facts.pop("result", "")),
        seconds=time.monotonic() - began,
        facts=facts,
        warnings=len(attention),
        largest_difference=done.largest_difference,
        details=_details(done, attention),
        curve=_curve(checkpoint.source.path.parent),
    )


def _details(done: Conversion, attention: Iterable[Finding]) -> list[str]:
    """What needs attention, the proof, and what is assumed; of each the first lines."""
    every = (
        [f"{row.path}: {row.message}" for row in attention],
        [
            f"proof: {row.policy_id}.{row.output} is off by {row.absolute:.2e} "
            f"({row.inputs} {row.kind} inputs)"
            for row in done.differences
        ],
        [f"assumed: {a.policy_id}.{a.what} = {a.value} ({a.source})" for a in done.assumptions],
    )
    more = (f"{len(rows) - _MOST_DETAILS} more of these" for rows in every)
    kept = (
        [*rows[:_MOST_DETAILS], said] if len(rows) > _MOST_DETAILS else rows
        for rows, said in zip(every, more, strict=True)
    )
    return [row[:_LONGEST] for rows in kept for row in rows]


@lru_cache(maxsize=16)  # checkpoints of a trial follow each other
def _curve(folder: Path) -> list[tuple[float, float]]:
    """Returns a few points of the trial's mean return; empty without results."""
    points = read_returns(folder, largest=_MOST_RESULTS)
    step = max(len(points) // _POINTS, 1)
    return [(point.x, point.mean) for point in [*points[:-1:step], *points[-1:]]]
