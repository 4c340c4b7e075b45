"""Tune's schedulers, with `reward_attr` of Ray 0.5 – 0.8: the metric that shall be high."""

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
    """The class, whose objects may be made with `reward_attr`."""

    @functools.wraps(cls.__init__)
    def init(self: Any, *args: object, reward_attr: str | None = None, **kwargs: object) -> None:
        if reward_attr is not None:
            kwargs.update(metric=reward_attr, mode="max")
        cls.__init__(self, *args, **kwargs)

    return type(cls.__name__, (cls,), {"__module__": __name__, "__init__": init})


AsyncHyperBandScheduler = _with_reward_attr(schedulers.AsyncHyperBandScheduler)
ASHAScheduler = AsyncHyperBandScheduler
HyperBandForBOHB = _with_reward_attr(schedulers.HyperBandForBOHB)
HyperBandScheduler = _with_reward_attr(schedulers.HyperBandScheduler)
MedianStoppingRule = _with_reward_attr(schedulers.MedianStoppingRule)
PopulationBasedTraining = _with_reward_attr(schedulers.PopulationBasedTraining)
