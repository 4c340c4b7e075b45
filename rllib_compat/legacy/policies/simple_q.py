"""`simple_q_torch_policy` and `simple_q_tf_policy`; their models are those of DQN."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.dqn.dqn_torch_policy import (
    extra_action_out_fn,
    get_distribution_inputs_and_class,
)
from ray.rllib.models.catalog import ModelCatalog
from ray.rllib.models.torch.torch_action_dist import TorchCategorical

from rllib_compat.algorithms.objectives import huber, td_targets
from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import TargetNetworkMixin, tower_mean
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "TargetNetworkMixin",
    "build_q_losses",
    "build_q_model_and_distribution",
    "build_q_models",
    "compute_q_values",
    "extra_action_out_fn",
    "get_distribution_inputs_and_class",
    "make_q_models",
    "setup_late_mixins",
    "stats_fn",
]

setup_late_mixins = mixins.setup(TargetNetworkMixin)


def build_q_models(policy: Policy, obs_space: object, action_space: Any, config: Any) -> Any:
    """A model with an output for each action; that of the target is kept in `target_models`."""
    made = [
        ModelCatalog.get_model_v2(
            obs_space=obs_space,
            action_space=action_space,
            num_outputs=int(action_space.n),
            model_config=config["model"],
            framework="torch",
            name=name,
        )
        for name in ("q_func", "target_q_func")
    ]
    policy.target_models = {made[0]: made[1]}
    return made[0]


def make_q_models(policy: Policy) -> Any:
    """The same of a policy, as Ray 2.x had it."""
    return build_q_models(policy, policy.observation_space, policy.action_space, policy.config)


def build_q_model_and_distribution(policy: Policy, *arguments: object) -> Any:
    """The model, and the class of action distributions."""
    return build_q_models(policy, *arguments), TorchCategorical


def compute_q_values(
    policy: Policy,
    model: Any,
    obs: Any,
    explore: object = None,
    is_training: object = None,
) -> Any:
    """The values of all actions."""
    values, _ = model({"obs": obs, "obs_flat": obs}, [], None)
    return values


def build_q_losses(policy: Policy, model: Any, dist_class: object, train_batch: Any) -> Any:
    """The mean of Huber's loss of the errors; TD errors are kept in `model.tower_stats`."""
    values = compute_q_values(policy, model, train_batch["obs"])
    with torch.no_grad():
        after = compute_q_values(policy, policy.target_models[model], train_batch["new_obs"])
        ended = train_batch["terminateds"].float()
        targets = td_targets(
            train_batch["rewards"], ended, after.max(1).values, policy.config["gamma"]
        )
    taken = values.gather(1, train_batch["actions"].long().unsqueeze(1)).squeeze(1)
    errors = taken - targets
    loss = huber(errors).mean()
    model.tower_stats |= {"loss": loss, "td_error": errors}
    return loss


def stats_fn(policy: Policy, batch: object) -> dict[str, float]:
    """The statistics of the last loss, for the results."""
    return {"loss": tower_mean(policy, "loss")}
