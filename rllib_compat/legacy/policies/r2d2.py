"""`r2d2_torch_policy` and `r2d2_tf_policy`; what they share with DQN's is Ray's."""

from __future__ import annotations

from typing import Any

import torch
from ray.rllib.algorithms.dqn.dqn_torch_policy import (
    adam_optimizer,
    build_q_model_and_distribution,
    compute_q_values,
    extra_action_out_fn,
    get_distribution_inputs_and_class,
)
from ray.rllib.models.torch.torch_action_dist import TorchCategorical
from ray.rllib.utils.torch_utils import apply_grad_clipping, sequence_mask

from rllib_compat.algorithms import r2d2
from rllib_compat.algorithms.objectives import huber
from rllib_compat.legacy.policies import mixins
from rllib_compat.legacy.policies.mixins import TargetNetworkMixin, tower_mean
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions.types import Policy

__all__ = [
    "ComputeTDErrorMixin",
    "TargetNetworkMixin",
    "adam_optimizer",
    "before_loss_init",
    "build_q_stats",
    "build_r2d2_model",
    "build_r2d2_model_and_distribution",
    "extra_action_out_fn",
    "get_distribution_inputs_and_class",
    "grad_process_and_td_error_fn",
    "h_function",
    "h_inverse",
    "r2d2_loss",
    "setup_early_mixins",
    "setup_late_mixins",
]

grad_process_and_td_error_fn = apply_grad_clipping
setup_early_mixins = mixins.setup(mixins.LearningRateSchedule)
#: The statistics of the loss, for the results.
_STATS = ("total_loss", "mean_q", "min_q", "max_q", "mean_td_error")


def h_function(x: torch.Tensor, epsilon: float = 1.0) -> torch.Tensor:
    """Scales values down, so that large ones stay near each other."""
    return r2d2.rescale(x, epsilon)


def h_inverse(x: torch.Tensor, epsilon: float = 1.0) -> Any:
    """Undoes `h_function`."""
    return r2d2.original(x, epsilon)


def build_r2d2_model_and_distribution(
    policy: Policy, obs_space: object, action_space: object, config: Any
) -> Any:
    """The model, which has a state, and the class of action distributions.

    Raises:
        ConfigError: The model has no state.
    """
    # A key of Ray 2.x.
    config = {"categorical_distribution_temperature": 1.0, **config}
    model, _ = build_q_model_and_distribution(policy, obs_space, action_space, config)
    if len(model.get_initial_state()) == 0 and "state_in_0" not in model.view_requirements:
        raise ConfigError(
            "R2D2's model has no state.",
            where="model",
            fix='Set "use_lstm" or "use_attention" in the config\'s "model".',
        )
    return model, TorchCategorical


def build_r2d2_model(
    policy: Policy, obs_space: object, action_space: object, config: object
) -> Any:
    """The model alone."""
    return build_r2d2_model_and_distribution(policy, obs_space, action_space, config)[0]


def r2d2_loss(policy: Policy, model: Any, _: object, train_batch: Any) -> Any:
    """Huber's loss of the errors of sequences, without their first `burn_in` and their last steps.

    Raises:
        ConfigError: The config asks for values as distributions.
    """
    config, lengths = policy.config, train_batch["seq_lens"]
    if config["num_atoms"] > 1:
        raise ConfigError(
            "R2D2 had no values as distributions.", where="num_atoms", fix="Set num_atoms to 1."
        )
    states = [train_batch[name] for name in sorted(train_batch) if name.startswith("state_in_")]

    def in_sequences(column: Any) -> Any:
        return column.reshape(len(lengths), -1, *column.shape[1:])

    values, targets = (
        in_sequences(
            compute_q_values(policy, network, train_batch, states, lengths, False, True)[0]
        )
        for network in (model, policy.target_models[model])
    )
    goals = r2d2.r2d2_targets(
        values,
        targets,
        in_sequences(train_batch["rewards"]),
        in_sequences(train_batch["terminateds"]).bool(),
        config["gamma"] ** config["n_step"],
        double_q=config["double_q"],
        h_epsilon=config["h_function_epsilon"] if config["use_h_function"] else None,
    )
    taken = in_sequences(train_batch["actions"]).long().unsqueeze(-1)
    taken = values.gather(-1, taken).squeeze(-1)[:, :-1]
    steps = values.shape[1]
    learned = sequence_mask(lengths, steps)[:, :-1]
    if config["burn_in"] < steps:
        learned[:, : config["burn_in"]] = False
    count, errors = learned.sum(), (taken - goals) * learned
    weights = in_sequences(train_batch["weights"])[:, :-1]
    loss = (weights * huber(errors))[learned].sum() / count
    stats = loss, taken[learned].sum() / count, taken.min(), taken.max(), errors.sum() / count
    model.tower_stats |= {**dict(zip(_STATS, stats, strict=True)), "td_error": errors.mean(-1)}
    return loss


def build_q_stats(policy: Policy, batch: object) -> dict[str, Any]:
    """The statistics of the last loss, for the results."""
    return {"cur_lr": policy.cur_lr, **{name: tower_mean(policy, name) for name in _STATS}}


class ComputeTDErrorMixin:
    """Gives a policy `compute_td_error` by this loss."""

    def __init__(self) -> None:
        mixins.ComputeTDErrorMixin.__init__(self, r2d2_loss)


def before_loss_init(policy: Any, obs_space: object, action_space: object, config: object) -> None:
    """Gives the policy `compute_td_error` and `update_target`."""
    ComputeTDErrorMixin.__init__(policy)
    TargetNetworkMixin.__init__(policy)


setup_late_mixins = before_loss_init
