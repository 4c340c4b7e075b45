"""`a3c_torch_policy` and `a3c_tf_policy`, whose policies A2C had, too."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.torch_utils import apply_grad_clipping

from rllib_compat.algorithms.old_stack_policies import A2CTorchPolicy
from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import ValueNetworkMixin, tower_mean

__all__ = [
    "ValueNetworkMixin",
    "actor_critic_loss",
    "add_advantages",
    "add_value_function_fetch",
    "apply_grad_clipping",
    "loss_and_entropy_stats",
    "model_value_predictions",
    "postprocess_advantages",
    "setup_mixins",
    "stats",
    "torch_optimizer",
    "vf_preds_fetches",
]

actor_critic_loss = A2CTorchPolicy.loss
add_advantages = postprocess_advantages = A2CTorchPolicy.postprocess_trajectory
vf_preds_fetches = model_value_predictions = A2CTorchPolicy.extra_action_out
setup_mixins = mixins.setup(
    mixins.EntropyCoeffSchedule, mixins.LearningRateSchedule, ValueNetworkMixin
)


def stats(policy: Any, train_batch: object) -> dict[str, float]:
    """What of the last loss goes into the results, and where the schedules are."""
    del train_batch
    told = {name: tower_mean(policy, name) for name in ("policy_loss", "policy_entropy", "vf_loss")}
    return {**told, "cur_lr": policy.cur_lr, "entropy_coeff": float(policy.entropy_coeff)}


loss_and_entropy_stats = stats


def add_value_function_fetch(policy: Any) -> dict[str, Any]:
    """The values of the last forward pass, which the advantages need."""
    return {SampleBatch.VF_PREDS: policy.model.value_function()}


def torch_optimizer(policy: Any, config: Any) -> torch.optim.Optimizer:
    """Adam over all weights of the policy's model."""
    weights = policy.model.parameters()
    return torch.optim.Adam(weights, config["lr"])
