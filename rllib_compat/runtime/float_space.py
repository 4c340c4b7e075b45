"""Observations of integers as floats: Ray's modules take no others, as its old models did.

Ray's filter asks a space of integers for infinite bounds, so it needs the space of floats, too.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2

from rllib_compat.neutral.public import public


@public("rllib_compat.adapters")
class FloatSpace(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Makes float32 of observations of integers, and says so of their space."""

    def recompute_output_observation_space(
        self,
        input_observation_space: gym.Space[Any],
        input_action_space: gym.Space[Any],  # noqa: ARG002 (Ray passes it by name)
    ) -> gym.Space[Any]:
        """The same space with floats in the place of integers."""
        return _with_floats(input_observation_space)

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            seen = np.asarray(episode.get_observations(-1))
            if not np.issubdtype(seen.dtype, np.integer):
                continue
            # Without it, the episode would refuse what is not of its space.
            episode.observation_space = _with_floats(episode.observation_space)
            episode.set_observations(at_indices=-1, new_data=seen.astype(np.float32))
        return batch


def has_integers(space: Any, *, images: bool = True) -> bool:
    """Whether a space is a Box of integers, or has one for an agent.

    Args:
        space: The space.
        images: Whether those of three dimensions count: as floats they take four times the memory,
            in replay buffers, too.
    """
    if isinstance(space, gym.spaces.Dict):
        return any(has_integers(part, images=images) for part in space.spaces.values())
    if not isinstance(space, gym.spaces.Box) or not np.issubdtype(space.dtype, np.integer):
        return False
    return images or len(space.shape) < 3


def _with_floats(space: gym.Space[Any]) -> gym.Space[Any]:
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({k: _with_floats(part) for k, part in space.spaces.items()})
    if not has_integers(space):
        return space
    assert isinstance(space, gym.spaces.Box)
    return gym.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), space.shape, np.float32
    )
