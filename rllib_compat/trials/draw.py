"""Curves of trials as a picture; those of several seeds as one, and smoothed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.files import disk_errors
from rllib_compat.neutral.errors import CheckpointError, CompatError, TargetExistsError
from rllib_compat.neutral.extras import import_optional
from rllib_compat.neutral.text import printable
from rllib_compat.trials.read import Point, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EVALUATION = "evaluation/"
#: More pictures in one are too small to be read.
MOST_PANELS = 24
_LONGEST_LABEL = 60
_LARGEST = 1e100
#: Of a line; a panel is 900 pixels wide.
_MOST_POINTS = 2000


@np.errstate(all="ignore")  # files may hold any number
def combine(trials: Sequence[Trial], label: str) -> Trial:
    """The mean of trials, with a band of one standard deviation to each side.

    It is drawn where all of them have logged something, at the places of the one with most points.
    One trial keeps its own least and greatest values.
    """
    if len(trials) == 1:
        return replace(trials[0], label=label)
    names = dict.fromkeys(name for trial in trials for name in trial.curves)
    notes = [note for trial in trials for note in trial.notes]
    made = Trial(trials[0].path, notes=notes, label=label)
    for name in names:
        rows = [np.asarray(trial.curves[name]) for trial in trials if name in trial.curves]
        start, end = max(r[0, 0] for r in rows), min(r[-1, 0] for r in rows)
        places = max(rows, key=len)[:, 0]
        places = places[(start <= places) & (places <= end)]
        values = [np.interp(places, row[:, 0], row[:, 1]) for row in rows]
        mean, spread = np.mean(values, axis=0), np.std(values, axis=0)
        made.curves[name] = list(map(Point, places, mean, mean - spread, mean + spread))
    return made


@np.errstate(all="ignore")
def smooth(trial: Trial, points: int) -> Trial:
    """The same with the mean of so many points up to each in its place."""
    curves = {}
    for name, curve in trial.curves.items():
        if not curve:
            continue
        rows = np.asarray(curve, float)
        starts = np.maximum(np.arange(len(rows)) - points + 1, 0)
        means = [rows[a : b + 1, 1:].mean(0) for b, a in enumerate(starts)]
        curves[name] = [Point(x, *values) for x, values in zip(rows[:, 0], means, strict=True)]
    return replace(trial, curves=curves)


def panels(trials: Sequence[Trial]) -> list[str]:
    """What there is to draw: the names of curves, without those of evaluations beside them."""
    names = (name.removeprefix(_EVALUATION) for trial in trials for name in trial.curves)
    return list(dict.fromkeys(names))


def draw(trials: Sequence[Trial], out: Path, *, axis: str, overwrite: bool = False) -> None:
    """Draws trials over each other, a panel a name.

    Lines are means over an iteration's episodes, shades go from the least to the greatest, and
    dashed lines are evaluations.

    Args:
        trials: The trials.
        out: The picture to write; its suffix selects the format (png, svg, pdf).
        axis: What is drawn along, as `read_trial` was given.
        overwrite: Whether `out` may be there already.

    Raises:
        CompatError: matplotlib is not installed, or has no such format.
        TargetExistsError: `out` is there already.
        CheckpointError: There is nothing to draw.
    """
    names = panels(trials)
    if not names:
        raise CheckpointError(
            "The results have no returns, lengths or recorded data.",
            where=", ".join(str(trial.path) for trial in trials),
            fix="Pass --data PATH for another number in the results.",
        )
    if out.exists() and not overwrite:
        raise TargetExistsError("The file exists already.", where=str(out), fix="Pass --overwrite.")
    figure = _figure()
    kinds = figure.canvas.get_supported_filetypes()
    if (kind := out.suffix.lstrip(".").lower()) not in kinds:
        raise CompatError(
            f"matplotlib cannot write {out.suffix or 'a file without a suffix'}.",
            where=str(out),
            fix=f"Use one of the suffixes {', '.join(sorted(kinds))}.",
        )
    names = names[:MOST_PANELS]
    columns = min(len(names), 2 if len(names) < 7 else 3)
    rows = math.ceil(len(names) / columns)
    figure.set_size_inches(6 * columns, 3.6 * rows + 0.35 * len(trials))
    labels = _labels(trials)
    handles: dict[str, Any] = {}
    for index, name in enumerate(names):
        axes = figure.add_subplot(rows, columns, index + 1)
        for number, trial in enumerate(trials):
            for before, style in (("", "-"), (_EVALUATION, "--")):
                points = trial.curves.get(before + name)
                if points:
                    (line,) = _plot(axes, points, f"C{number}", style)
                    handles.setdefault(labels[number] + (" (evaluation)" if before else ""), line)
        axes.set_title(_text(name), fontsize="medium")
        axes.set_xlabel({"hours": "hours of training"}.get(axis, axis))
        axes.grid(alpha=0.3)
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", fontsize="small"
    )
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(out) as file:
            figure.savefig(file, format=kind, dpi=150)


def _plot(axes: Axes, points: Sequence[Point], color: str, style: str) -> Any:
    # matplotlib computes distances of values, which have to be finite; what is not drawn is a gap.
    rows = np.asarray(points, float)
    rows = _binned(np.where(np.abs(rows) < _LARGEST, rows, math.nan))
    x, mean, low, high = rows.T
    if np.isfinite(low).any():
        axes.fill_between(x, low, high, color=color, alpha=0.12, linewidth=0)
    marker = "o" if len(points) < 30 else ""
    return axes.plot(x, mean, style, color=color, marker=marker, markersize=3)


def _binned(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """No more rows than a panel has room for: of those that meet in one, mean, least and greatest.

    Args:
        rows: x, mean, low and high of each point.
    """
    if len(rows) <= _MOST_POINTS:
        return rows
    size = math.ceil(len(rows) / _MOST_POINTS)
    starts = np.arange(0, len(rows), size)
    counts = np.diff([*starts, len(rows)])
    with np.errstate(invalid="ignore"):
        x, mean = (np.add.reduceat(rows[:, i], starts) / counts for i in (0, 1))
        low, high = (
            extreme.reduceat(rows[:, i], starts) for extreme, i in ((np.fmin, 2), (np.fmax, 3))
        )
    return np.stack([x, mean, low, high], axis=1)


def _labels(trials: Sequence[Trial]) -> list[str]:
    """The trials' folders, with as many of those above as it takes to make them differ."""
    parts = [trial.path.absolute().parent.parts for trial in trials]
    depth = 1
    while depth < 6 and len({part[-depth:] for part in parts}) < len(parts):
        depth += 1
    names = (str(Path(*part[-depth:])) for part in parts)
    return [
        _text(trial.label or name, _LONGEST_LABEL)
        for trial, name in zip(trials, names, strict=True)
    ]


def _text(text: str, longest: int = 80) -> str:
    """A name of strangers as a label: matplotlib takes dollars for formulas, and hides `_…`."""
    shown = printable(text)
    shown = shown if len(shown) <= longest else f"…{shown[1 - longest :]}"
    return f" {shown}".replace("$", r"\$")


def _figure() -> Any:
    import_optional("matplotlib", extra="plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    return figure
