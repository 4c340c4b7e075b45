"""`build_torch_policy` of Ray 0.8 – 1.x, and `build_policy_class` since Ray 1.2."""

from __future__ import annotations

import inspect
import logging
from typing import Any

from ray.rllib.policy import policy_template

from rllib_compat.ray_versions import old_policies

__all__ = ["build_policy_class", "build_torch_policy"]

logger = logging.getLogger(__name__)


def build_torch_policy(name: str, *, loss_fn: object, **parts: object) -> type:
    """A policy class for torch, which the old API stack trains.

    Args:
        name: The class's name.
        loss_fn: The loss of (policy, model, dist_class, train_batch).
        **parts: Other arguments of `build_policy_class`.
    """
    return build_policy_class(name, "torch", loss_fn=loss_fn, **parts)


def build_policy_class(name: str, framework: str = "torch", **parts: Any) -> type:
    """A policy class, which the old API stack trains.

    A policy may be made by hand, with the config of any Ray: missing keys have the values of
    `get_default_config`, and then those of the installed Ray.

    Args:
        name: The class's name.
        framework: `torch`.
        **parts: `loss_fn`, the loss of (policy, model, dist_class, train_batch), and other
            arguments of Ray's function.
    """
    given = old_policies.adapt_policy_functions(_known(name, parts))
    built: Any = policy_template.build_policy_class(name, framework, **given)
    make, defaults = built.__init__, parts.get("get_default_config")

    def make_whole(self: Any, obs_space: Any, action_space: Any, config: dict[str, Any]) -> None:
        more = defaults() if defaults else {}
        make(self, obs_space, action_space, old_policies.whole_config(config, more))

    def with_updates(**overrides: Any) -> type:
        return build_policy_class(**{"name": name, "framework": framework, **parts, **overrides})

    built.__init__, built.with_updates = make_whole, staticmethod(with_updates)
    return built  # type: ignore[no-any-return]


def _known(name: str, parts: dict[str, Any]) -> dict[str, Any]:
    known = inspect.signature(policy_template.build_policy_class).parameters
    for part in parts.keys() - known.keys():
        if parts[part] is not None:
            logger.warning("`%s=…` of the policy %s is not called any more.", part, name)
    return {part: value for part, value in parts.items() if part in known}
