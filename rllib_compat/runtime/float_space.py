"""Lets Ray's filter take images: it asks a space of integers for infinite bounds."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2

from rllib_compat.neutral.public import public


@public("rllib_compat.adapters")
class FloatSpace(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Says of integers that they are float32; the filter behind it makes them that."""

    def recompute_output_observation_space(
        self,
        input_observation_space: gym.Space[Any],
        input_action_space: gym.Space[Any],  # noqa: ARG002 (Ray passes it by name)
    ) -> gym.Space[Any]:
        """The same space with floats in the place of integers."""
        return _with_floats(input_observation_space)

    def __call__(self, *, batch: dict[str, Any], **_: Any) -> Any:
        """Changes nothing."""
        return batch


def has_integers(space: Any) -> bool:
    """Whether a space is a Box of integers, or has one for an agent."""
    if isinstance(space, gym.spaces.Dict):
        return any(has_integers(part) for part in space.spaces.values())
    return isinstance(space, gym.spaces.Box) and np.issubdtype(space.dtype, np.integer)


def _with_floats(space: gym.Space[Any]) -> gym.Space[Any]:
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({k: _with_floats(part) for k, part in space.spaces.items()})
    if not has_integers(space):
        return space
    assert isinstance(space, gym.spaces.Box)
    return gym.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), space.shape, np.float32
    )
