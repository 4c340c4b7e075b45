"""Connectors whose spaces tell what they were made of, as `original_space` of old Rays did.

Networks for observations of several parts cut the flat vector again, and have convolutions for the
images in it.
"""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
from ray.rllib.connectors.connector_v2 import ConnectorV2

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import connectors


def with_original(made: Any, seen: Any) -> Any:
    """Lets a space that a connector has made tell the one before all connectors.

    Args:
        made: The space, or a Dict of one for each agent; it is changed.
        seen: What the connector got, likewise.
    """
    if isinstance(made, gym.spaces.Dict) and isinstance(seen, gym.spaces.Dict):
        for agent, space in made.spaces.items():
            with_original(space, seen[agent])
    elif made is not None and made is not seen:
        made.original_space = getattr(seen, "original_space", seen)
    return made


_FlattenObservations: Any = connectors.flatten_observations()


@public("rllib_compat.adapters")
class FlattenObservations(_FlattenObservations):  # type: ignore[misc]  # Ray has no types
    """Makes flat vectors of observations."""

    def recompute_output_observation_space(
        self, input_observation_space: Any, input_action_space: Any
    ) -> Any:
        """The space of the vectors."""
        made = super().recompute_output_observation_space(
            input_observation_space, input_action_space
        )
        return with_original(made, input_observation_space)


@public("rllib_compat.adapters")
class OriginalSpace(ConnectorV2):  # type: ignore[misc]
    """Stands behind connectors that forget what a space was made of, and changes nothing else.

    Args:
        original: The space before all connectors, or a Dict of one for each agent.
    """

    def __init__(self, *spaces: Any, original: Any, **kwargs: Any) -> None:
        self._original = original  # before the base class, which asks for the space that goes out
        super().__init__(*spaces, original=original, **kwargs)

    def recompute_output_observation_space(
        self,
        input_observation_space: Any,
        input_action_space: Any,  # noqa: ARG002 (Ray passes it by name)
    ) -> Any:
        """The same space, which tells the original."""
        return with_original(copy.deepcopy(input_observation_space), self._original)

    def __call__(self, *, batch: Any, **_: Any) -> Any:
        """The batch as it came."""
        return batch
