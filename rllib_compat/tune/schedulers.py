"""Tune's schedulers with the arguments of Ray 0.5 – 0.8.

They take `reward_attr`, the metric to maximize, by default the mean return.
"""

from __future__ import annotations

import functools
from typing import Any

from ray.tune import schedulers

__all__ = [
    "ASHAScheduler",
    "AsyncHyperBandScheduler",
    "HyperBandForBOHB",
    "HyperBandScheduler",
    "MedianStoppingRule",
    "PopulationBasedTraining",
]


def _with_reward_attr(cls: Any) -> Any:
    """Derives a scheduler class that takes `reward_attr`, or no metric."""

    @functools.wraps(cls.__init__)
    def init(self: Any, *args: object, reward_attr: str | None = None, **kwargs: object) -> None:
        if reward_attr is not None:
            kwargs.update(metric=reward_attr, mode="max")
        cls.__init__(self, *args, **kwargs)

    def set_search_properties(
        self: Any, metric: str | None, mode: str | None, **spec: object
    ) -> bool:
        if (metric, mode, self.metric, getattr(self, "_mode", None)) == (None,) * 4:
            metric, mode = "episode_reward_mean", "max"
        return bool(cls.set_search_properties(self, metric, mode, **spec))

    members = {"__init__": init, "set_search_properties": set_search_properties}
    return type(cls.__name__, (cls,), {"__module__": __name__, **members})


AsyncHyperBandScheduler = _with_reward_attr(schedulers.AsyncHyperBandScheduler)
ASHAScheduler = AsyncHyperBandScheduler
HyperBandForBOHB = _with_reward_attr(schedulers.HyperBandForBOHB)
HyperBandScheduler = _with_reward_attr(schedulers.HyperBandScheduler)
MedianStoppingRule = _with_reward_attr(schedulers.MedianStoppingRule)
PopulationBasedTraining = _with_reward_attr(schedulers.PopulationBasedTraining)


def __getattr__(name: str) -> Any:
    return getattr(schedulers, name)
