"""The functions that PPO's policy for torch was made of, for policies that call them in their own.

Today they are methods of the policy's class.
"""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy

__all__ = ["kl_and_loss_stats", "ppo_surrogate_loss", "vf_preds_fetches"]


def ppo_surrogate_loss(policy: Any, model: Any, dist_class: Any, train_batch: Any) -> Any:
    """PPO's loss of a batch, for a policy of PPO's."""
    return PPOTorchPolicy.loss(policy, model, dist_class, train_batch)


def kl_and_loss_stats(policy: Any, train_batch: Any) -> Any:
    """What of the last loss goes into the results."""
    return PPOTorchPolicy.stats_fn(policy, train_batch)


def vf_preds_fetches(
    policy: Any, input_dict: Any, state_batches: Any, model: Any, action_dist: Any
) -> Any:
    """What is computed besides actions: the values."""
    return PPOTorchPolicy.extra_action_out(policy, input_dict, state_batches, model, action_dist)
