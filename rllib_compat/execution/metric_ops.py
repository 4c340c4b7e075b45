"""Operators that end a plan: when an iteration is over, and what its result holds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rllib_compat.execution.common import STEPS_SAMPLED_COUNTER, _get_shared_metrics

# How many steps an iteration has at least, and how long it takes: the names of all Rays.
_STEPS = ("timesteps_per_iteration", "min_sample_timesteps_per_iteration")
_SECONDS = ("min_iter_time_s", "min_time_s_per_iteration", "min_time_s_per_reporting")


def StandardMetricsReporting(  # noqa: N802
    train_op: Any,
    workers: Any,
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
        by_steps_trained: Means nothing any more: steps are counted that were sampled.
    """
    del by_steps_trained
    steps = next((config[name] for name in _STEPS if config.get(name)), 0)
    seconds = next((config[name] for name in _SECONDS if config.get(name)), 0)
    return (
        train_op.filter(OncePerTimestepsElapsed(steps))
        .filter(OncePerTimeInterval(seconds))
        .for_each(CollectMetrics(workers, selected_workers=selected_workers))
    )


class CollectMetrics:
    """A result: what the plan counted, timed and noted. The algorithm adds the episodes.

    Args:
        workers: `trainer.workers`.
        *_: How episodes were collected; the algorithm does it.
        **__: The same.
    """

    def __init__(self, workers: Any, *_: Any, **__: Any) -> None:
        self.workers = workers

    def __call__(self, _: Any) -> dict[str, Any]:
        """The result."""
        metrics = _get_shared_metrics()
        timers: dict[str, float] = {}
        for name, timer in metrics.timers.items():
            timers[f"{name}_time_ms"] = round(timer.mean * 1000, 3)
            if timer.has_units_processed():
                timers[f"{name}_throughput"] = round(timer.mean_throughput, 3)
        return {
            "num_healthy_workers": len(self.workers.remote_workers()),
            "timesteps_total": metrics.counters[STEPS_SAMPLED_COUNTER],
            "timers": timers,
            "info": {**metrics.info, **metrics.counters},
        }


class OncePerTimeInterval:
    """Is true once in a while; for `filter`.

    Args:
        delay: How many seconds lie between.
    """

    def __init__(self, delay: float | None) -> None:
        self.delay = delay or 0
        self.last_called = 0.0

    def __call__(self, item: Any) -> bool:
        """Whether it is time."""
        del item
        now = time.time()
        if self.delay > 0 and now - self.last_called <= self.delay:
            return False
        self.last_called = now
        return True


class OncePerTimestepsElapsed:
    """Is true once in so many sampled steps; for `filter`.

    Args:
        delay_steps: How many.
        by_steps_trained: Means nothing any more.
    """

    def __init__(self, delay_steps: int | None, by_steps_trained: bool = False) -> None:
        del by_steps_trained
        self.delay_steps = delay_steps or 0
        self.last_called = 0

    def __call__(self, item: Any) -> bool:
        """Whether there were so many."""
        del item
        now = _get_shared_metrics().counters[STEPS_SAMPLED_COUNTER]
        if self.delay_steps > 0 and now - self.last_called < self.delay_steps:
            return False
        self.last_called = now
        return True
