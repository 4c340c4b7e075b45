"""All checkpoints below a folder: a table for `inspect`, and the best one for `evaluate`."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rllib_compat.cli import output
from rllib_compat.cli.answers import Answers, examples
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CheckpointError, CompatError

T = TypeVar("T")

#: How many lines the table may take where it is not asked for all.
_LINES = 39
_COLUMNS = ("checkpoint", "Ray", "algorithm", "environment", "env steps", "return", "verdict")
_READY, _NEEDS, _UNREADABLE = "ready", "needs", "unreadable"


def show(folder: Path, known: Answers, *, as_json: bool, everything: bool) -> int:
    """Prints a row for each checkpoint below a folder, and counts; 1 if any can't be read."""
    from rllib_compat.formats.layouts import search

    last = functools.cache(_returns)
    rows = [_row(path, folder, known, last) for path in search.find_checkpoints(folder)]
    if as_json:
        output.emit_json([dict(zip(_COLUMNS, row, strict=True)) for row in rows])
    else:
        output.table(
            "", _COLUMNS, [_cells(row) for row in rows], most=None if everything else _LINES
        )
        counts = Counter(row[-1] for row in rows)
        shown = ", ".join(f"{count} {what}" for what, count in counts.most_common())
        output.say(f"checkpoints: {shown}")
    return int(any(row[-1] == _UNREADABLE for row in rows))


def find_best(folder: Path) -> Path:
    """The checkpoint below a folder whose iteration had the highest mean return.

    Raises:
        CheckpointError: The results of the trials have no return of any of them.
    """
    from rllib_compat.formats import layouts

    last, returns = functools.cache(_returns), dict[Path, float]()
    for path in layouts.search.find_checkpoints(folder):
        iteration = _tried(_iteration, path)
        if iteration in last(path.parent):
            returns[path] = last(path.parent)[iteration]
    ranked = sorted(returns, key=lambda path: returns[path], reverse=True)
    best = next((path for path in ranked if _tried(layouts.read, path) is not None), None)
    if best is None:
        raise CheckpointError(
            "No checkpoint in it belongs to a result of its trial.",
            where=str(folder),
            fix="Leave --best out, and give the path of a checkpoint.",
        )
    output.progress(
        f"{best.relative_to(folder)}: of {len(returns)} checkpoints the one with the highest mean "
        f"return, {returns[best]:.6g}"
    )
    return best


def _iteration(path: Path) -> int | None:
    from rllib_compat.formats.layouts import read, v0_1

    # A file of version 0.1 has all policies in it, and its iteration beside it.
    return v0_1.read_iteration(path, Budget()) if path.is_file() else read(path).counters.iteration


def _tried(read: Callable[[Path], T], path: Path) -> T | None:
    """What a function says of a checkpoint; None where it can't be read, with a line about it."""
    try:
        return read(path)
    except CompatError as error:
        output.progress(f"{path}: {error.found}")
        return None


def _row(path: Path, folder: Path, known: Answers, last: Any) -> tuple[Any, ...]:
    from rllib_compat import inspect
    from rllib_compat.conversion import prepare

    name = path.relative_to(folder)
    given = known.given(name)
    found = _tried(lambda path: inspect(path, given=given), path)
    if found is None:
        return str(name), None, None, None, None, None, _UNREADABLE
    verdict = _READY
    try:
        if given.model is None:  # your module has to take the weights, whatever is found here
            prepare(found.checkpoint, given, to="onnx")  # as strict as for Ray, and needs no Ray
    except CompatError as error:
        verdict = f"{_NEEDS} {_short(error)}"
    return (
        str(name),
        found.ray_version,
        found.algorithm,
        found.environment,
        found.counters.env_steps,
        last(path.parent).get(found.counters.iteration),
        verdict,
    )


def _short(error: CompatError) -> str:
    """The option that a checkpoint needs, or else the reason for which none helps."""
    name, _ = next(examples(error.fix or ""), ("", ""))
    return f"--{name}" if name else f"attention: {output.cut_text(error.found, 30)}"


def _returns(folder: Path) -> dict[float, float]:
    """The mean return of each iteration of the trial that a folder is in."""
    from rllib_compat.trials import read_returns

    return {point.x: point.mean for point in read_returns(folder, axis="iterations")}


def _cells(row: Sequence[Any]) -> list[str]:
    return [
        "" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
        for cell in row
    ]
