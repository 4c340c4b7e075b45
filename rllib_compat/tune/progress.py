"""The progress of trials: a line for results while they run, and a summary at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ray.tune import Callback

if TYPE_CHECKING:
    from ray.tune.experiment import Trial

#: The shortest time in s between two lines of a trial.
SECONDS = 5.0

COLUMNS = ("trial", "iteration", "steps", "seconds", "reward", "min", "max", "length")
_WIDTHS = (34, 9, 11, 8, 9, 9, 9, 8)
_KEYS = (
    "training_iteration",
    "timesteps_total",
    "time_total_s",
    "episode_reward_mean",
    "episode_reward_min",
    "episode_reward_max",
    "episode_len_mean",
)


class Progress(Callback):  # type: ignore[misc]  # Ray has no types
    """A callback that prints a line for a trial's results."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print = print_line
        self._printed: dict[str, float] = {}

    def on_trial_result(
        self,
        iteration: int,  # noqa: ARG002
        trials: list[Trial],  # noqa: ARG002
        trial: Trial,
        result: Mapping[str, Any],
        **_: object,
    ) -> None:
        """Prints a line, unless the trial's last one is too recent."""
        if not self._printed:
            self._print(line(COLUMNS))
        now = time.monotonic()
        done = result.get("done")
        if done or now - self._printed.get(trial.trial_id, -SECONDS) >= SECONDS:
            self._printed[trial.trial_id] = now
            self._print(line((str(trial), *numbers(result))))

    def on_trial_error(
        self,
        iteration: int,  # noqa: ARG002
        trials: list[Trial],  # noqa: ARG002
        trial: Trial,
        **_: object,
    ) -> None:
        """Prints that the trial has failed, and the path of its error file."""
        self._print(f"{trial} failed: {trial.error_file}")


def numbers(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Formats a result for all columns but the first."""
    return tuple(_shown(value) for value in _values(result).values())


def _values(result: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of all columns; offline training has episodes only in evaluations."""
    evaluation = result.get("evaluation") or {}
    return {
        key: evaluation.get(key) if _is_missing(result.get(key)) else result[key] for key in _KEYS
    }


def _is_missing(value: object) -> bool:
    return value is None or value != value  # NaN


def line(cells: tuple[str, ...]) -> str:
    """Formats cells as a line: the first left-aligned, numbers right-aligned."""
    first, *rest = zip(cells, _WIDTHS, strict=True)
    shown = [f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in rest)]
    return " ".join(shown)


def summary(trial: Trial) -> dict[str, Any]:
    """Returns the outcome of a trial as plain data."""
    result = trial.last_result or {}
    checkpoint = trial.checkpoint.path if trial.checkpoint else None
    return {
        "trial": str(trial),
        "env": str((trial.config or {}).get("env", "")),
        "status": trial.status,
        "stopped_by": stopped_by(trial.stopping_criterion, result),
        **_values(result),
        "folder": trial.path,
        "checkpoint": checkpoint,
        "error_file": trial.error_file,
    }


def stopped_by(criteria: object, result: Mapping[str, Any]) -> str | None:
    """Returns the stop criterion that a result has met, such as `timesteps_total ≥ 10000`."""
    for name, value in criteria.items() if isinstance(criteria, Mapping) else ():
        reached = _nested(result, name)
        if isinstance(reached, (int, float)) and reached >= value:
            return f"{name} ≥ {value:g}"
    return None


def _nested(result: Mapping[str, Any], name: str) -> Any:
    if name in result:
        return result[name]
    found: Any = result
    for part in name.split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _shown(value: object) -> str:
    if _is_missing(value):
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
