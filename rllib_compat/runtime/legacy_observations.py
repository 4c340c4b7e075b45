"""What RLlib made of raw Atari frames, an Atari's memory and a MultiDiscrete, as a connector."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2

from rllib_compat.neutral.public import public
from rllib_compat.runtime.preprocessors import LegacyPreprocessor


@public("rllib_compat.adapters")
class LegacyObservations(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Preprocesses observations, or the parts of them that a preprocessor changes.

    Args:
        preprocessor: What is made of them.
    """

    def __init__(self, preprocessor: LegacyPreprocessor, **ray: Any) -> None:
        super().__init__(preprocessor=preprocessor, **ray)
        self._preprocessor = preprocessor

    def recompute_output_observation_space(
        self,
        input_observation_space: gym.Space[Any],
        input_action_space: gym.Space[Any],  # noqa: ARG002 (Ray passes it by name)
    ) -> gym.Space[Any]:
        """The same space with floats in the place of what is changed."""
        space: gym.Space[Any] = space_after(self._preprocessor, input_observation_space)
        return space

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            space = self.input_observation_space
            if episode.agent_id is not None:
                space = space[episode.agent_id]
            made = self._made(space, episode.get_observations(-1))
            # Without it, the episode would refuse what is not of its space.
            episode.observation_space = space_after(self._preprocessor, space)
            episode.set_observations(at_indices=-1, new_data=made)
        return batch

    def _made(self, space: Any, observation: Any) -> Any:
        if isinstance(space, gym.spaces.Dict):
            return {key: self._made(part, observation[key]) for key, part in space.items()}
        if isinstance(space, gym.spaces.Tuple):
            return tuple(map(self._made, space, observation))
        if self._shape(space) is None:
            return observation
        return self._preprocessor(np.asarray(observation))

    def _shape(self, space: Any) -> tuple[int, ...] | None:
        return _shape_after(self._preprocessor, space)


def space_after(preprocessor: LegacyPreprocessor, space: Any) -> Any:
    """The space of what a preprocessor makes of a space's observations."""
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({k: space_after(preprocessor, v) for k, v in space.items()})
    if isinstance(space, gym.spaces.Tuple):
        return gym.spaces.Tuple([space_after(preprocessor, part) for part in space])
    shape = _shape_after(preprocessor, space)
    # RLlib said -1 to 1 of all that it preprocessed, and did not keep to it.
    return space if shape is None else gym.spaces.Box(-np.inf, np.inf, shape, np.float32)


def changes(preprocessor: LegacyPreprocessor, space: Any) -> bool:
    """Whether a space has anything that a preprocessor changes."""
    return space is not None and space_after(preprocessor, space) != space


def _shape_after(preprocessor: LegacyPreprocessor, space: Any) -> tuple[int, ...] | None:
    """The shape of what a preprocessor makes of arrays of a space; None: it changes nothing."""
    if isinstance(space, gym.spaces.MultiDiscrete):
        return None if preprocessor.encodes_choices else space.shape
    known = isinstance(space, gym.spaces.Box) and preprocessor.changes(space.shape)
    return preprocessor.shape(space.shape) if known else None
