"""`ppo_torch_policy` and `ppo_tf_policy`; what were functions are methods of Ray's policy today."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.ppo.ppo_torch_policy import PPOTorchPolicy
from ray.rllib.evaluation.postprocessing import compute_gae_for_sample_batch
from ray.rllib.utils.torch_utils import explained_variance

from rllib_compat.algorithms.objectives import clipped_surrogate
from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import ValueNetworkMixin

__all__ = [
    "PPOLoss",
    "ValueNetworkMixin",
    "clip_gradients",
    "compute_and_clip_gradients",
    "kl_and_loss_stats",
    "postprocess_ppo_gae",
    "ppo_surrogate_loss",
    "setup_config",
    "setup_mixins",
    "vf_preds_fetches",
]

ppo_surrogate_loss = PPOTorchPolicy.loss
kl_and_loss_stats = PPOTorchPolicy.stats_fn
clip_gradients = compute_and_clip_gradients = mixins.compute_and_clip_gradients
postprocess_ppo_gae = compute_gae_for_sample_batch
vf_preds_fetches = PPOTorchPolicy.extra_action_out
setup_mixins = mixins.setup(
    ValueNetworkMixin,
    mixins.KLCoeffMixin,
    mixins.EntropyCoeffSchedule,
    mixins.LearningRateSchedule,
)


def setup_config(policy: object, obs_space: object, action_space: object, config: Any) -> None:
    """Writes `vf_share_layers` into the model's config, where it has been since Ray 1.0."""
    if "vf_share_layers" in config:
        config["model"]["vf_share_layers"] = config["vf_share_layers"]


class PPOLoss:
    """PPO's loss as an object (`agents/ppo/ppo_torch_policy.py` of Ray 0.8).

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
        surrogate = clipped_surrogate(ratio, advantages, clip_param)
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
