"""Observations of integers as floats: Ray's modules take no others, as its old models did.

Ray's filter asks a space of integers for infinite bounds, so it needs the space of floats, too.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2

from rllib_compat.neutral.public import public
from rllib_compat.runtime.integers import with_floats


@public("rllib_compat.adapters")
class FloatSpace(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Makes float32 of observations of integers, and says so of their space."""

    def recompute_output_observation_space(
        self,
        input_observation_space: gym.Space[Any],
        input_action_space: gym.Space[Any],  # noqa: ARG002 (Ray passes it by name)
    ) -> gym.Space[Any]:
        """The same space with floats in the place of integers."""
        return with_floats(input_observation_space)

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            seen = np.asarray(episode.get_observations(-1))
            if not np.issubdtype(seen.dtype, np.integer):
                continue
            # Without it, the episode would refuse what is not of its space.
            episode.observation_space = with_floats(episode.observation_space)
            episode.set_observations(at_indices=-1, new_data=seen.astype(np.float32))
        return batch
