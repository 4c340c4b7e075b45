"""`a3c_torch_policy` and `a3c_tf_policy`, whose policies A2C had, too."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.policy.sample_batch import SampleBatch
from ray.rllib.utils.torch_utils import apply_grad_clipping, explained_variance

from rllib_compat.algorithms.old_stack_policies import A2CTorchPolicy
from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import ValueNetworkMixin, tower_mean
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "A3CLoss",
    "ValueNetworkMixin",
    "actor_critic_loss",
    "add_advantages",
    "add_value_function_fetch",
    "apply_grad_clipping",
    "clip_gradients",
    "grad_stats",
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
clip_gradients = mixins.compute_and_clip_gradients


class A3CLoss:
    """A3C's loss as an object: sums over the steps that count (`a3c_tf_policy`).

    Attributes:
        total_loss: The loss; `pi_loss`, `vf_loss` and `entropy` are its parts.
    """

    def __init__(
        self,
        action_dist: Any,
        actions: Any,
        advantages: Any,
        v_target: Any,
        vf: Any,
        valid_mask: Any,
        vf_loss_coeff: float = 0.5,
        entropy_coeff: float = 0.01,
        use_critic: bool = True,
    ) -> None:
        self.pi_loss = -(action_dist.logp(actions) * advantages)[valid_mask].sum()
        errors = (vf - v_target)[valid_mask]
        self.vf_loss = 0.5 * (errors**2).sum() if use_critic else torch.zeros(())
        self.entropy = action_dist.entropy()[valid_mask].sum()
        self.total_loss = self.pi_loss + vf_loss_coeff * self.vf_loss - entropy_coeff * self.entropy


def grad_stats(policy: Policy, train_batch: Any, grads: Any) -> dict[str, Any]:
    """The norm of gradients, and how much of the targets' variance the values explain."""
    explained = explained_variance(train_batch["value_targets"], policy.model.value_function())
    return {**mixins.grad_stats(policy, train_batch, grads), "vf_explained_var": explained}


def stats(policy: Policy, train_batch: object) -> dict[str, float]:
    """The statistics of the last loss for the results, and the values of schedules."""
    losses = {
        name: tower_mean(policy, name) for name in ("policy_loss", "policy_entropy", "vf_loss")
    }
    return {**losses, "cur_lr": policy.cur_lr, "entropy_coeff": float(policy.entropy_coeff)}


loss_and_entropy_stats = stats


def add_value_function_fetch(policy: Policy) -> dict[str, Any]:
    """The values of the last forward pass, which the advantages need."""
    return {SampleBatch.VF_PREDS: policy.model.value_function()}


def torch_optimizer(policy: Policy, config: Any) -> torch.optim.Optimizer:
    """Adam over all weights of the policy's model."""
    weights = policy.model.parameters()
    return torch.optim.Adam(weights, config["lr"])
