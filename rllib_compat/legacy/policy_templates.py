"""`build_torch_policy` of Ray 0.8 – 1.x."""

from __future__ import annotations

from typing import Any

__all__ = ["build_torch_policy"]


def build_torch_policy(name: str, *, loss_fn: Any, **parts: Any) -> type:
    """A policy class for torch, which the old API stack trains.

    Args:
        name: The class's name.
        loss_fn: The loss of (policy, model, dist_class, train_batch).
        **parts: What else `build_policy_class` takes.
    """
    from ray.rllib.policy.policy_template import build_policy_class

    built: type = build_policy_class(name, "torch", loss_fn=loss_fn, **parts)
    return built
