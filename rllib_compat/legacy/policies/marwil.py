"""`marwil_torch_policy` and `marwil_tf_policy`, whose policies BC had, too."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.marwil.marwil_torch_policy import MARWILTorchPolicy

from rllib_compat.legacy.policies.mixins import ValueNetworkMixin
from rllib_compat.ray_versions import old_policies
from rllib_compat.ray_versions.types import Policy

__all__ = ["ValueNetworkMixin", "marwil_loss", "postprocess_advantages", "setup_mixins", "stats"]

_START = "moving_average_sqd_adv_norm_start"

marwil_loss = MARWILTorchPolicy.loss
stats = MARWILTorchPolicy.stats_fn


def postprocess_advantages(policy: Policy, sample_batch: object, *_: object, **__: object) -> Any:
    """Adds each step's discounted return; the critic estimates the return after the last step."""
    after = old_policies.value_after(policy, sample_batch)
    return old_policies.with_returns(policy, sample_batch, after)


def setup_mixins(policy: Any, obs_space: object, action_space: object, config: Any) -> None:
    """Lets the policy predict values, and begins the moving average of squared advantages."""
    ValueNetworkMixin.__init__(policy, config)
    if config["beta"]:
        old_policies.begin_moving_average(policy, config.get(_START, 100.0))
