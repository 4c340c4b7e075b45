"""Trials of one experiment with several seeds as one, and smoothed curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rllib_compat.trials.read import Point, Trial


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
