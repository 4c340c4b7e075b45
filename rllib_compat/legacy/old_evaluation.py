"""Functions of `ray.rllib.evaluation` that old code calls by themselves."""

from __future__ import annotations

from typing import Any

from ray.rllib.evaluation.postprocessing import discount_cumsum

__all__ = ["discount", "get_global_worker"]


def discount(rewards: Any, gamma: float) -> Any:
    """The discounted sums of rewards, from each step to the last."""
    return discount_cumsum(rewards, gamma)


def get_global_worker() -> None:
    """None, as it was in every process that was no rollout worker."""
