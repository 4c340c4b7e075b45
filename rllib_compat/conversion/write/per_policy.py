"""Settings that each policy has its own value of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def set_for_policies(config: AlgorithmConfig, key: str, values: Mapping[str, Any]) -> None:
    """Sets the most common value for all, and the others as overrides of their modules.

    Args:
        config: The config.
        key: An argument of `training()`.
        values: The value of each policy.
    """
    (common, _), *_ = Counter(values.values()).most_common(1)
    config.training(**{key: common})
    per_module = dict(config.algorithm_config_overrides_per_module)
    for policy_id, value in values.items():
        if value != common:
            per_module[policy_id] = {
                **per_module.get(policy_id, {}),
                **config.overrides(**{key: value}),
            }
    if per_module:
        config.rl_module(algorithm_config_overrides_per_module=per_module)
