"""What old policies made of the steps of an episode before they learned from them.

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
    """Estimates how much better the actions of one chunk of an episode were than expected.

    Args:
        rewards: The rewards, one a step.
        values: What was expected before each step; zeros without a critic.
        last_value: What is expected after the last step: 0 where the episode ended.
        gamma: The discount factor.
        lambda_: The weight of later steps; 1 makes the discounted return minus `values`.

    Returns:
        As many advantages, in float32.
    """
    after = np.append(values[1:], last_value)
    surprises = rewards.astype(np.float64) + gamma * after - values
    found, ahead = np.empty(len(rewards)), 0.0
    for step in reversed(range(len(rewards))):
        found[step] = ahead = surprises[step] + gamma * lambda_ * ahead
    return found.astype(np.float32)


def postprocess(
    batch: MutableMapping[str, Any],
    config: AlgorithmConfig,
    value_after: Callable[[MutableMapping[str, Any]], float],
) -> None:
    """Adds what is learned from to the steps of one chunk of an episode, in place.

    Args:
        batch: The steps.
        config: The algorithm's config. One with a critic has advantages and value targets, if who
            sampled had the critic, too; one that replays rewards of `n_step` steps, and weights.
        value_after: Tells what is expected after the last step.
    """
    rewards = np.asarray(batch["rewards"])
    if has_advantages(config):
        critic = bool(getattr(config, "use_critic", True))
        if critic and "vf_preds" not in batch:
            return  # advantages without the critic's values would be others
        values = np.asarray(batch["vf_preds"]) if critic else np.zeros(len(rewards))
        gae = critic and bool(getattr(config, "use_gae", True))
        lambda_, last = (float(config.lambda_), value_after(batch)) if gae else (1.0, 0.0)
        made = advantages(rewards, values, last, config.gamma, lambda_)
        targets = (made + values).astype(np.float32) if critic else np.zeros_like(made)
        batch["advantages"], batch["value_targets"] = made, targets
    elif hasattr(config, "n_step"):
        if isinstance(config.n_step, int) and config.n_step > 1:
            look_ahead(batch, config.n_step, config.gamma)
        if "weights" not in batch:
            batch["weights"] = np.ones(len(rewards), np.float32)


def has_advantages(config: AlgorithmConfig) -> bool:
    """Whether an algorithm learns from advantages, which postprocessing has computed."""
    return hasattr(config, "use_gae") or hasattr(config, "use_critic")


def look_ahead(batch: MutableMapping[str, Any], n_step: int, gamma: float) -> None:
    """Makes each step one of `n_step` steps, in place, as replay buffers took them.

    Rewards become discounted sums, and `new_obs` and `dones` those of the last of these steps. Near
    the end of the batch there are fewer of them, as ever.

    Args:
        batch: The steps of one chunk of an episode.
        n_step: How many.
        gamma: The discount factor.
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
