"""Operators at the end of a plan: they end iterations, and create results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rllib_compat.execution.common import (
    AGENT_STEPS_SAMPLED_COUNTER,
    STEPS_TRAINED_THIS_ITER_COUNTER,
    _get_shared_metrics,
    steps_so_far,
)

# The keys of all Rays for the smallest number of steps and the shortest time of an iteration.
_STEPS = ("timesteps_per_iteration", "min_sample_timesteps_per_iteration")
_SECONDS = ("min_iter_time_s", "min_time_s_per_iteration", "min_time_s_per_reporting")

# The key of Ray 0.8.5 that enabled plans, whose iterations then had at least one more step.
_PLAN_KEY = "use_exec_api"

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
    """Returns the flow of results, one for each iteration.

    Args:
        train_op: The flow of updates, whose items are ignored.
        workers: `trainer.workers`.
        config: The config, with the length of an iteration.
        selected_workers: Ignored: results have the episodes of all workers.
        by_steps_trained: Whether the length of an iteration is in trained steps instead of sampled
            ones.
    """
    steps, seconds = _first(config, _STEPS), _first(config, _SECONDS)
    if steps and config.get(_PLAN_KEY):
        steps += 1
    result = CollectMetrics(
        workers, selected_workers=selected_workers, by_steps_trained=by_steps_trained
    )
    ended = train_op.filter(OncePerTimestepsElapsed(steps, by_steps_trained))
    return ended.filter(OncePerTimeInterval(seconds)).for_each(result)


def _first(config: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Returns the first value of the names that is set, or 0."""
    return next((config[name] for name in names if config.get(name)), 0)


class CollectMetrics:
    """An operator that creates a result of the plan's metrics; the algorithm adds the episodes.

    Args:
        workers: `trainer.workers`.
        *_: Ignored: arguments for the collection of episodes.
        by_steps_trained: Whether `timesteps_total` counts trained steps.
        **__: Ignored, likewise.
    """

    def __init__(
        self, workers: Any, *_: object, by_steps_trained: bool = False, **__: object
    ) -> None:
        self.workers = workers
        self.by_steps_trained = by_steps_trained

    def __call__(self, _: object) -> dict[str, Any]:
        """Returns the result. The plan's `custom_metrics` are in one result only."""
        plan = _get_shared_metrics()
        own = plan.info.pop("custom_metrics", {})
        return {
            "timesteps_total": steps_so_far(trained=self.by_steps_trained),
            "num_healthy_workers": len(self.workers.remote_workers()),
            **{name: plan.counters[counter] for name, counter in _COUNTED.items()},
            "timers": {name: round(value, 3) for name, value in _times(plan.timers)},
            "info": {**plan.info, **plan.counters},
            "custom_metrics": dict(own),
        }


def _times(timers: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields the mean time of each timer in ms, and its throughput in steps per second."""
    for name, timer in timers.items():
        yield f"{name}_time_ms", timer.mean * 1000
        if timer.has_units_processed():
            yield f"{name}_throughput", timer.mean_throughput


class IntervalFilter:
    """A predicate for `filter` that is true once in an interval.

    The first interval starts when the clock is 0. Without an interval, all items pass.

    Args:
        interval: The interval in the clock's unit.
        clock: Returns the time, or a count of steps.
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


class OncePerTimeInterval(IntervalFilter):
    """A predicate for `filter` that is true for the first item and then once in an interval."""

    def __init__(self, delay: float | None = None) -> None:
        super().__init__(delay, time.time)
        self.delay = delay or 0.0


class OncePerTimestepsElapsed(IntervalFilter):
    """A predicate for `filter` that is true once in a number of steps."""

    def __init__(self, delay_steps: int | None, by_steps_trained: bool = False) -> None:
        super().__init__(delay_steps, partial(steps_so_far, trained=by_steps_trained))
        self.delay_steps = delay_steps or 0
        self.by_steps_trained = by_steps_trained
