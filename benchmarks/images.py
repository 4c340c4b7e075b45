"""An environment of images, 84 × 84 × 4, that costs nothing."""

from __future__ import annotations

from typing import Any


def env_class(gym: Any, *, old: bool, scaled: bool = False) -> Any:
    """A class of such environments, of gym's API until 0.25 or of Gymnasium's.

    With `scaled`, images are floats from 0 to 1, which Ray 2.60's own networks need.
    """
    import numpy as np

    class Images(gym.Env):  # type: ignore[misc, name-defined]
        frames = np.random.default_rng(0).integers(0, 256, (8, 84, 84, 4), np.uint8)
        frames = frames / np.float32(255) if scaled else frames
        observation_space = gym.spaces.Box(0, 1 if scaled else 255, (84, 84, 4), frames.dtype)
        action_space = gym.spaces.Discrete(4)

        def __init__(self, *_: Any, **__: Any) -> None:
            self.steps = 0

        def reset(self, **_: Any) -> Any:
            self.steps = 0
            return self.frames[0] if old else (self.frames[0], {})

        def step(self, action: Any) -> Any:
            self.steps += 1
            seen, ends = self.frames[self.steps % 8], self.steps >= 128
            rest = (1.0, ends, {}) if old else (1.0, ends, False, {})
            return (seen, *rest)

    return Images
