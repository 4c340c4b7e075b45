"""The curves of a trial, from the results that any Ray has logged."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rllib_compat.formats.files import disk_errors, open_regular, parse_record, read_lines, walk
from rllib_compat.formats.paths import RESULTS
from rllib_compat.formats.stores import source_path
from rllib_compat.neutral.errors import CheckpointError, CompatError, CorruptCheckpointError

#: How many folders above a checkpoint's its trial's folder may be.
_ABOVE = 3

#: Where a value was, newest Ray first. Other prefixes of paths are before it.
_EPISODES = ("", "env_runners/", "sampler_results/")
_STEPS = (
    *("num_env_steps_sampled_lifetime", "env_runners/num_env_steps_sampled_lifetime"),
    *("timesteps_total", "num_env_steps_sampled", "info/num_steps_sampled"),
)
#: What is drawn along, and what an hour or a step is worth of it.
AXES: dict[str, tuple[tuple[str, ...], float]] = {
    "steps": (_STEPS, 1.0),
    "iterations": (("training_iteration",), 1.0),
    "hours": (("time_total_s",), 3600.0),
}
_DATA = re.compile(r"(evaluation/)?(?:env_runners/|sampler_results/)?custom_metrics/(.+)_mean")


class Point(NamedTuple):
    """A value of one iteration; `low` and `high` are NaN where nothing was logged of them."""

    x: float
    mean: float
    low: float
    high: float


@dataclass
class Trial:
    """One trial.

    Attributes:
        path: The file that its results were read from.
        curves: Points by name: `episode return`, `episode length`, and what was recorded; those of
            evaluations begin with `evaluation/`.
        notes: Sentences on what was left out.
        label: What it is called in a picture; empty: by its folder.
    """

    path: Path
    curves: dict[str, list[Point]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    label: str = ""


def find_trials(path: str | Path) -> list[Path]:
    """The files with the results that a path means.

    Args:
        path: Such a file, a trial's folder, a folder with trials somewhere below it, or a
            checkpoint inside a trial's folder; or its address.

    Raises:
        CheckpointError: There are none.
    """
    path = source_path(path, only=RESULTS)
    with disk_errors(path):
        return _find_trials(path.resolve())  # the same one may be meant in several ways


def _find_trials(path: Path) -> list[Path]:
    if path.is_file() and path.name in RESULTS:
        return [path]
    if (own := _results_in(path)) is not None:
        return [own]
    if path.is_dir():
        folders = sorted(folder for folder, _, _ in walk(path))
        if below := [found for p in folders if (found := _results_in(p)) is not None]:
            return below
    if path.exists():
        for parent in list(path.parents)[:_ABOVE]:
            if (above := _results_in(parent)) is not None:
                return [above]
    raise CheckpointError(
        f"There is no {' or '.join(RESULTS)} in this folder, below it or above it.",
        where=str(path),
        fix="Pass the folder of a trial, with the results of Tune or a trainer.",
    )


def read_returns(
    path: str | Path, *, axis: str = "steps", largest: float = math.inf
) -> list[Point]:
    """The returns of the trial that a path is in; none where it has logged none, or there are more.

    Files of more bytes than the largest are not read.
    """
    with suppress(CompatError):
        file, *others = find_trials(path)
        with disk_errors(file):
            size = file.stat().st_size
        if not others and size <= largest:
            return read_trial(file, axis=axis).curves.get("episode return", [])
    return []


def read_trial(file: Path, *, axis: str = "steps", more: tuple[str, ...] = ()) -> Trial:
    """Reads a trial's results.

    Where a trial was set back to a checkpoint, only what counted in the end is read.

    Args:
        file: Its `result.json` or `progress.csv`.
        axis: One of `AXES`.
        more: Paths of further numbers in a result, as `info/learner/default_policy/cur_lr`.

    Raises:
        CorruptCheckpointError: The file is damaged elsewhere than in its last line.
        BudgetExceededError: A line is longer than any honest one.
        CheckpointError: There is no result in it.
    """
    trial = Trial(file)
    with disk_errors(file):
        rows = _json_rows(file, trial) if file.suffix == ".json" else _csv_rows(file)
        iterations: dict[float, list[tuple[str, Point]]] = {}
        for number, row in enumerate(rows, 1):
            iteration = _number(_first(row, ("training_iteration",)))
            iteration = number if math.isnan(iteration) else iteration
            while iterations and next(reversed(iterations)) >= iteration:  # they ascend
                iterations.popitem()
            iterations[iteration] = list(_points(row, axis, more))
    if not iterations:
        raise CheckpointError(
            "The file has no results.",
            where=str(file),
            fix="Pass the folder of a trial that has trained at least one iteration.",
        )
    for points in iterations.values():
        for name, point in points:
            trial.curves.setdefault(name, []).append(point)
    missing = [name for name in more if name not in trial.curves]
    if missing:
        trial.notes.append(f"{file}: there is no number {', '.join(missing)} in it")
    return trial


def _points(
    row: Mapping[str, Any], axis: str, more: tuple[str, ...]
) -> Iterator[tuple[str, Point]]:
    paths, unit = AXES[axis]
    x = _number(_first(row, paths)) / unit
    if math.isnan(x):
        return
    for name, places in _CURVES.items():
        mean = _number(_first(row, places[0]))
        if not math.isnan(mean):
            yield name, Point(x, mean, *(_number(_first(row, part)) for part in places[1:]))
    seen = set()
    for path, value in _leaves(row):
        if (match := _DATA.fullmatch(path)) is None:
            continue
        name = (match[1] or "") + match[2]
        if name not in seen and not math.isnan(mean := _number(value)):
            seen.add(name)
            start = path.removesuffix("_mean")
            yield (
                name,
                Point(x, mean, *(_number(_first(row, (start + s,))) for s in ("_min", "_max"))),
            )
    for path in more:
        if not math.isnan(value := _number(_first(row, (path,)))):
            yield path, Point(x, value, math.nan, math.nan)


def _places(before: str, keys: tuple[str, ...], part: str) -> tuple[str, ...]:
    return tuple(f"{before}{place}{key}_{part}" for place in _EPISODES for key in keys)


#: What is always drawn, and where its mean, least and greatest value may be.
_CURVES = {
    before + name: tuple(_places(before, keys, part) for part in ("mean", "min", "max"))
    for before in ("", "evaluation/")
    for name, keys in (
        ("episode return", ("episode_reward", "episode_return")),
        ("episode length", ("episode_len", "episode_len")),
    )
}


def _results_in(folder: Path) -> Path | None:
    files = (folder / name for name in RESULTS)
    return next((file for file in files if file.is_file() and file.stat().st_size), None)


def _json_rows(file: Path, trial: Trial) -> Iterator[Mapping[str, Any]]:
    waiting: tuple[str, bytes] | None = None
    for following in read_lines(file):
        if waiting is not None:
            yield parse_record(waiting[1], waiting[0])
        waiting = following
    if waiting is None:
        return
    where, last = waiting
    try:
        yield parse_record(last, where)
    except CorruptCheckpointError:
        if last.endswith(b"\n"):
            raise
        trial.notes.append(f"{file}: its last line is cut off and left out")


def _csv_rows(file: Path) -> Iterator[Mapping[str, Any]]:
    with io.TextIOWrapper(open_regular(file), encoding="utf-8", newline="") as stream:
        try:
            yield from csv.DictReader(stream)
        except (csv.Error, UnicodeDecodeError) as error:
            raise CorruptCheckpointError(f"Not CSV: {error}", where=str(file)) from error


def _first(row: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """The value of the first path that has one; a row of CSV has paths as its keys."""
    for path in paths:
        value: Any = row.get(path)
        if value is None and "/" in path and path[: path.index("/")] in row:
            value = row
            rest = path
            while rest and isinstance(value, dict):
                # A name may have a slash in it.
                name, _, after = rest.partition("/")
                value, rest = (value[rest], "") if rest in value else (value.get(name), after)
        if value is not None and value != "":
            return value
    return None


def _leaves(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """All paths of a row that may lead to what was recorded, with their values."""
    for name, value in row.items():
        if not isinstance(value, dict):
            yield f"{before}{name}", value
        elif name in ("evaluation", "env_runners", "sampler_results", "custom_metrics"):
            yield from _leaves(value, f"{before}{name}/")


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        return math.nan
