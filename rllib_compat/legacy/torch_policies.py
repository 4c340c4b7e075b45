"""What policies for torch were made of, for those of users that call or replace a part.

`build_torch_policy` of Ray 0.8 – 1.x, and the functions of PPO's policy, which are methods of its
class today.
"""

from __future__ import annotations

import inspect
import logging
from typing import Any

import torch
from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.policy.policy_template import build_policy_class
from ray.rllib.utils.torch_utils import explained_variance

from rllib_compat.ray_versions import old_policies

__all__ = [
    "PPOLoss",
    "build_torch_policy",
    "kl_and_loss_stats",
    "ppo_surrogate_loss",
    "vf_preds_fetches",
]

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


def ppo_surrogate_loss(
    policy: object, model: object, dist_class: object, train_batch: object
) -> Any:
    """PPO's loss of a batch, for a policy of PPO's."""
    return PPOTorchPolicy.loss(policy, model, dist_class, train_batch)


def kl_and_loss_stats(policy: object, train_batch: object) -> Any:
    """What of the last loss goes into the results."""
    return PPOTorchPolicy.stats_fn(policy, train_batch)


def vf_preds_fetches(
    policy: object, input_dict: object, state_batches: object, model: object, action_dist: object
) -> Any:
    """What is computed besides actions: the values."""
    return PPOTorchPolicy.extra_action_out(policy, input_dict, state_batches, model, action_dist)


class PPOLoss:
    """PPO's loss as an object (`agents/ppo/ppo_torch_policy.py` of Ray 0.8).

    Args:
        dist_class: The class of action distributions.
        model: The policy's model; statistics for the results are kept with it.
        value_targets: Of each step, as all that follow.
        advantages: How much better the action was than expected.
        actions: What was done.
        prev_logits: What the distribution was made of when it was done.
        prev_actions_logp: The log probability of the action then.
        vf_preds: The value that was predicted then.
        curr_action_dist: The distribution now.
        value_fn: The value that is predicted now.
        cur_kl_coeff: How much the change of the distribution costs.
        valid_mask: Which steps count.
        entropy_coeff: How much entropy is worth.
        clip_param: How far the probabilities' ratio counts.
        vf_clip_param: How far a change of the predicted value counts.
        vf_loss_coeff: The weight of the value loss.
        use_gae: Whether there is a value loss.

    Attributes:
        loss: The loss.
    """

    def __init__(
        self,
        dist_class: Any,
        model: Any,
        value_targets: Any,
        advantages: torch.Tensor,
        actions: Any,
        prev_logits: Any,
        prev_actions_logp: Any,
        vf_preds: Any,
        curr_action_dist: Any,
        value_fn: Any,
        cur_kl_coeff: object,
        valid_mask: Any,
        entropy_coeff: object = 0,
        clip_param: float = 0.1,
        vf_clip_param: float = 0.1,
        vf_loss_coeff: float = 1.0,
        use_gae: bool = True,
    ) -> None:
        def mean(values: Any) -> Any:
            return values.mean() if valid_mask is None else values[valid_mask].mean()

        ratio = torch.exp(curr_action_dist.logp(actions) - prev_actions_logp)
        clipped = torch.clamp(ratio, 1 - clip_param, 1 + clip_param)
        surrogate = torch.min(advantages * ratio, advantages * clipped)
        kl = dist_class(prev_logits, model).kl(curr_action_dist)
        entropy = curr_action_dist.entropy()
        value_loss = torch.zeros_like(surrogate)
        if use_gae:
            change = torch.clamp(value_fn - vf_preds, -vf_clip_param, vf_clip_param)
            value_loss = torch.max(
                (value_fn - value_targets) ** 2, (vf_preds + change - value_targets) ** 2
            )
        self.mean_kl, self.mean_entropy = mean(kl), mean(entropy)
        self.mean_policy_loss, self.mean_vf_loss = -mean(surrogate), mean(value_loss)
        self.loss = mean(
            -surrogate + cur_kl_coeff * kl + vf_loss_coeff * value_loss - entropy_coeff * entropy
        )
        model.tower_stats |= {
            "total_loss": self.loss,
            "mean_policy_loss": self.mean_policy_loss,
            "mean_vf_loss": self.mean_vf_loss,
            "vf_explained_var": explained_variance(value_targets, value_fn),
            "mean_entropy": self.mean_entropy,
            "mean_kl_loss": self.mean_kl,
        }
