"""What policies were mixed with, and what set that up before the loss was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ray.rllib.policy import torch_mixins
from ray.rllib.policy.torch_mixins import (
    EntropyCoeffSchedule,
    KLCoeffMixin,
    LearningRateSchedule,
)

__all__ = [
    "EntropyCoeffSchedule",
    "KLCoeffMixin",
    "LearningRateSchedule",
    "TargetNetworkMixin",
    "ValueNetworkMixin",
]


class ValueNetworkMixin(torch_mixins.ValueNetworkMixin):  # type: ignore[misc]  # Ray has no types
    """Ray's; until Ray 1.x it took the spaces, too: (obs_space, action_space, config)."""

    def __init__(self, *arguments: Any) -> None:
        torch_mixins.ValueNetworkMixin.__init__(self, arguments[-1])


class TargetNetworkMixin(torch_mixins.TargetNetworkMixin):  # type: ignore[misc]
    """Ray's; in some modules until Ray 1.x it took spaces and config."""

    def __init__(self, *_: object) -> None:
        torch_mixins.TargetNetworkMixin.__init__(self)


#: What each mixin takes out of a config.
_ARGUMENTS: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    EntropyCoeffSchedule: lambda c: (c["entropy_coeff"], c.get("entropy_coeff_schedule")),
    KLCoeffMixin: lambda config: (config,),
    LearningRateSchedule: lambda config: (config["lr"], config.get("lr_schedule")),
    TargetNetworkMixin: lambda _: (),
    ValueNetworkMixin: lambda config: (config,),
}


def setup(*mixins: type) -> Callable[[Any, object, object, Any], None]:
    """A function of (policy, obs_space, action_space, config) that sets up mixins."""

    def setup_mixins(policy: Any, obs_space: object, action_space: object, config: Any) -> None:
        del obs_space, action_space
        for mixin in mixins:
            mixin.__init__(policy, *_ARGUMENTS[mixin](config))  # type: ignore[misc]

    return setup_mixins


def tower_mean(policy: Any, name: str) -> float:
    """The mean over GPUs of what a loss has left in `model.tower_stats`."""
    found = policy.get_tower_stats(name)
    return float(sum(float(value) for value in found) / len(found))
