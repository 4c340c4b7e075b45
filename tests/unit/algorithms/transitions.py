"""Recorded transitions, as learners take them."""

import numpy as np
import torch
from ray.rllib.core.columns import Columns
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from rllib_compat.ray_versions import episodes


def episodes_of(batch, outputs=lambda i: {}):
    """An episode a transition.

    Args:
        batch: Columns by the old Ray's names.
        outputs: The extra model outputs of the transition of a number.
    """
    made = [
        SingleAgentEpisode(
            observations=[batch["obs"][i], batch["new_obs"][i]],
            actions=[batch["actions"][i]],
            rewards=[float(batch["rewards"][i])],
            terminated=bool(batch["dones"][i]),
            len_lookback_buffer=0,
            extra_model_outputs=outputs(i),
        )
        for i in range(len(batch["obs"]))
    ]
    return [episodes.to_numpy(episode) for episode in made]


def columns_of(batch, *, weights=None, n_step=1):
    """The transitions as today's replay buffers give them; until Ray 2.47, learners take tensors.

    Args:
        batch: Columns by the old Ray's names.
        weights: How much each counts; None: all as much.
        n_step: How many steps each looks ahead.
    """
    rows = len(batch["obs"])
    columns = {
        Columns.OBS: batch["obs"],
        Columns.NEXT_OBS: batch["new_obs"],
        Columns.ACTIONS: batch["actions"],
        Columns.REWARDS: batch["rewards"],
        Columns.TERMINATEDS: batch["dones"],
        Columns.TRUNCATEDS: np.zeros(rows, bool),
        "weights": np.ones(rows, np.float32) if weights is None else weights,
        "n_step": np.full(rows, n_step, np.float32),
    }
    return {name: torch.from_numpy(column) for name, column in columns.items()}
