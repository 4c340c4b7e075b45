"""Operators that end a plan: when an iteration is over, and what its result holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rllib_compat.execution.common import (
    AGENT_STEPS_SAMPLED_COUNTER,
    STEPS_TRAINED_THIS_ITER_COUNTER,
    _get_shared_metrics,
    counted,
)

# How many steps an iteration has at least, and how long it takes: the names of all Rays.
_STEPS = ("timesteps_per_iteration", "min_sample_timesteps_per_iteration")
_SECONDS = ("min_iter_time_s", "min_time_s_per_iteration", "min_time_s_per_reporting")

# Ray 0.8.5 ran plans only where this was set, and then wanted more steps than were asked for.
_WANTS_MORE = "use_exec_api"

# A key of the result → the plan's counter.
_COUNTED = {
    "timesteps_this_iter": STEPS_TRAINED_THIS_ITER_COUNTER,
    "agent_timesteps_total": AGENT_STEPS_SAMPLED_COUNTER,
}


def StandardMetricsReporting(  # noqa: N802
    train_op: Any,
    workers: object,
    config: Mapping[str, Any],
    selected_workers: Sequence[Any] | None = None,
    by_steps_trained: bool = False,
) -> Any:
    """A result for each iteration.

    Args:
        train_op: What trains; its items mean nothing.
        workers: `trainer.workers`.
        config: How long an iteration is.
        selected_workers: Means nothing any more: the episodes of all workers are told.
        by_steps_trained: Whether an iteration ends after so many steps that were learned from, and
            not after so many that were sampled.
    """
    steps, seconds = _first(config, _STEPS), _first(config, _SECONDS)
    if steps and config.get(_WANTS_MORE):
        steps += 1
    result = CollectMetrics(
        workers, selected_workers=selected_workers, by_steps_trained=by_steps_trained
    )
    ended = train_op.filter(OncePerTimestepsElapsed(steps, by_steps_trained))
    return ended.filter(OncePerTimeInterval(seconds)).for_each(result)


def _first(config: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value that one of the names has, or 0."""
    return next((config[name] for name in names if config.get(name)), 0)


class CollectMetrics:
    """A result: what the plan counted, timed and noted. The algorithm adds the episodes.

    Args:
        workers: `trainer.workers`.
        *_: How episodes were collected; the algorithm does it.
        by_steps_trained: Whether `timesteps_total` counts steps that were learned from.
        **__: The same as `*_`, by name.
    """

    def __init__(
        self, workers: Any, *_: object, by_steps_trained: bool = False, **__: object
    ) -> None:
        self.workers = workers
        self.by_steps_trained = by_steps_trained

    def __call__(self, _: object) -> dict[str, Any]:
        """The result. What the plan noted as `custom_metrics` is told once, with the episodes'."""
        plan = _get_shared_metrics()
        own = plan.info.pop("custom_metrics", {})
        return {
            "timesteps_total": counted(trained=self.by_steps_trained),
            "num_healthy_workers": len(self.workers.remote_workers()),
            **{name: plan.counters[counter] for name, counter in _COUNTED.items()},
            "timers": {name: round(value, 3) for name, value in _times(plan.timers)},
            "info": {**plan.info, **plan.counters},
            "custom_metrics": dict(own),
        }


def _times(timers: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """How many milliseconds everything takes in the mean, and how many steps a second it does."""
    for name, timer in timers.items():
        yield f"{name}_time_ms", timer.mean * 1000
        if timer.has_units_processed():
            yield f"{name}_throughput", timer.mean_throughput


class Every:
    """Is true for an item if an interval has passed since it was last true; for `filter`.

    The first interval starts where the clock says 0. Without an interval all items pass.

    Args:
        interval: How long it is, in the clock's unit.
        clock: Says what time it is; a count of steps is one, too.
    """

    def __init__(self, interval: float | None, clock: Callable[[], float]) -> None:
        self._interval = interval or 0
        self._clock = clock
        self._last: float = 0

    def __call__(self, item: object) -> bool:
        """Whether the interval has passed."""
        del item
        now = self._clock()
        passed = self._interval <= 0 or now - self._last >= self._interval
        if passed:
            self._last = now
        return passed


class OncePerTimeInterval(Every):
    """Is true once in a while, and at first; for `filter`.

    Args:
        delay: How many seconds lie between.
    """

    def __init__(self, delay: float | None = None) -> None:
        super().__init__(delay, time.time)
        self.delay = delay or 0.0


class OncePerTimestepsElapsed(Every):
    """Is true once in so many steps; for `filter`.

    Args:
        delay_steps: How many.
        by_steps_trained: Whether steps count that were learned from, and not those sampled.
    """

    def __init__(self, delay_steps: int | None, by_steps_trained: bool = False) -> None:
        super().__init__(delay_steps, partial(counted, trained=by_steps_trained))
        self.delay_steps = delay_steps or 0
        self.by_steps_trained = by_steps_trained
