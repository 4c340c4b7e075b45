"""Postprocessing of trajectories, as old policies did it before training.

Sources: `ray/rllib/evaluation/postprocessing.py`, and the `postprocess_trajectory` of each
algorithm's policies (0.5 – 2.x).
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AlgorithmConfig

Array = np.ndarray[Any, np.dtype[Any]]


def advantages(
    rewards: Array, values: Array, last_value: float, gamma: float, lambda_: float
) -> Array:
    """Computes the advantages of one chunk of an episode (GAE).

    Args:
        rewards: The rewards, one a step.
        values: The value of each observation; zeros without a critic.
        last_value: The value after the last step: 0 if the episode ended.
        gamma: The discount factor.
        lambda_: The weight of later steps; 1 gives the discounted return minus `values`.

    Returns:
        An advantage for each step, in float32.
    """
    after = np.append(values[1:], last_value)
    td_errors = rewards.astype(np.float64) + gamma * after - values
    found, ahead = np.empty(len(rewards)), 0.0
    for step in reversed(range(len(rewards))):
        found[step] = ahead = td_errors[step] + gamma * lambda_ * ahead
    return found.astype(np.float32)


def postprocess(
    batch: MutableMapping[str, Any],
    config: AlgorithmConfig,
    value_after: Callable[[MutableMapping[str, Any]], float],
) -> None:
    """Adds the columns for training to one chunk of an episode, in place.

    Args:
        batch: The steps.
        config: The algorithm's config. With a critic, advantages and value targets are added, if
            the
        batch has `vf_preds`. With a replay buffer, rewards become those of `n_step` steps, and
        weights are added.
        value_after: Returns the value after the last step.
    """
    rewards = np.asarray(batch["rewards"])
    if has_advantages(config):
        critic = bool(getattr(config, "use_critic", True))
        if critic and "vf_preds" not in batch:
            return  # advantages need the critic's values
        values = np.asarray(batch["vf_preds"]) if critic else np.zeros(len(rewards))
        gae = critic and bool(getattr(config, "use_gae", True))
        lambda_, last = (float(config.lambda_), value_after(batch)) if gae else (1.0, 0.0)
        made = advantages(rewards, values, last, config.gamma, lambda_)
        targets = (made + values).astype(np.float32) if critic else np.zeros_like(made)
        batch["advantages"], batch["value_targets"] = made, targets
    elif hasattr(config, "n_step"):
        if isinstance(config.n_step, int) and config.n_step > 1:
            apply_n_step(batch, config.n_step, config.gamma)
        if "weights" not in batch:
            batch["weights"] = np.ones(len(rewards), np.float32)


def has_advantages(config: AlgorithmConfig) -> bool:
    """Whether an algorithm learns from the advantages of postprocessing."""
    return hasattr(config, "use_gae") or hasattr(config, "use_critic")


def apply_n_step(batch: MutableMapping[str, Any], n_step: int, gamma: float) -> None:
    """Converts steps to transitions of `n_step` steps, in place, as for replay buffers.

    Rewards become discounted sums, and `new_obs` and `dones` those of the last of these steps.
    Transitions near the end of the batch have fewer steps, as in old Rays.
    """
    count = len(batch["rewards"])
    last = np.minimum(np.arange(count) + n_step - 1, count - 1)
    rewards = np.asarray(batch["rewards"], np.float32)
    sums = rewards.copy()
    for ahead in range(1, n_step):
        sums[: count - ahead] += np.float32(gamma**ahead) * rewards[ahead:]
    batch["rewards"] = sums
    columns = dict(batch.items())  # `batch["dones"]` is `terminateds` since Ray 2.1
    for name in {"new_obs", "dones", "terminateds", "truncateds"} & columns.keys():
        batch[name] = np.asarray(columns[name])[last]
