"""Spaces of integers, and the same with floats; apart from the connector, which needs Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import gymnasium as gym


def has_integers(space: Any, *, images: bool = True) -> bool:
    """Whether a space is a Box of integers, or has one for an agent.

    Args:
        space: The space.
        images: Whether those of three dimensions count: as floats they take four times the memory,
            in replay buffers, too.
    """
    import gymnasium as gym

    if isinstance(space, gym.spaces.Dict):
        return any(has_integers(part, images=images) for part in space.spaces.values())
    if not isinstance(space, gym.spaces.Box) or not np.issubdtype(space.dtype, np.integer):
        return False
    return images or len(space.shape) < 3


def with_floats(space: gym.Space[Any]) -> gym.Space[Any]:
    """The same space with floats in the place of integers."""
    import gymnasium as gym

    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({k: with_floats(part) for k, part in space.spaces.items()})
    if not has_integers(space):
        return space
    assert isinstance(space, gym.spaces.Box)
    return gym.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), space.shape, np.float32
    )
