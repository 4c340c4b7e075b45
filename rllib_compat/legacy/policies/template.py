"""`build_torch_policy` of Ray 0.8 – 1.x."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from ray.rllib.policy.policy_template import build_policy_class

from rllib_compat.ray_versions import old_policies

__all__ = ["build_torch_policy"]

logger = logging.getLogger(__name__)


def build_torch_policy(name: str, *, loss_fn: Any, **parts: Any) -> type:
    """A policy class for torch, which the old API stack trains.

    Args:
        name: The class's name.
        loss_fn: The loss of (policy, model, dist_class, train_batch).
        **parts: What else `build_policy_class` takes.
    """
    given = _known(build_policy_class, name, {"loss_fn": loss_fn, **parts})
    built: type = build_policy_class(name, "torch", **old_policies.adapt_policy_functions(given))

    def with_updates(**overrides: Any) -> type:
        return build_torch_policy(**{"name": name, "loss_fn": loss_fn, **parts, **overrides})

    built.with_updates = staticmethod(with_updates)  # type: ignore[attr-defined]
    return built


def _known(builder: Any, name: str, parts: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(builder).parameters
    for part in parts.keys() - known.keys():
        if parts[part] is not None:
            logger.warning("`build_torch_policy(%s=…)` of %s is not called any more.", part, name)
    return {part: value for part, value in parts.items() if part in known}
