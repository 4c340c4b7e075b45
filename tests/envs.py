"""An environment for tests in which what is observed doesn't matter."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium


class SampledEnv(gymnasium.Env[Any, Any]):
    """Observes something of its space in each step.

    Attributes:
        length: How many steps an episode has.
        liked: The action that each step's reward is 1 for; None: all are.
    """

    length: ClassVar[int] = 10
    liked: ClassVar[int | None] = None

    def __init__(self, config: object = None) -> None:
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[Any, Any]:
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        assert self.action_space.contains(action), action
        self.steps += 1
        reward = 1.0 if self.liked is None else float(action == self.liked)
        return self.observation_space.sample(), reward, self.steps >= self.length, False, {}
