"""The players of rock, paper, scissors in `ray.rllib.examples.policy`, as in Ray 1.13.0.

They are policies of Ray's old API stack, which learn nothing.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from ray.rllib.policy.policy import Policy
from ray.rllib.policy.view_requirement import ViewRequirement

__all__ = ["PAPER", "ROCK", "SCISSORS", "AlwaysSameHeuristic", "BeatLastHeuristic"]

ROCK, PAPER, SCISSORS = _MOVES = range(3)


class _Player(Policy):  # type: ignore[misc]  # Ray has no types
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.exploration = self._create_exploration()

    def learn_on_batch(self, samples: Any) -> None:
        """Learns nothing."""

    def get_weights(self) -> None:
        """Has none."""

    def set_weights(self, weights: Any) -> None:
        """Has none."""


class AlwaysSameHeuristic(_Player):
    """Draws a move for each episode and shows no other."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.view_requirements["state_in_0"] = ViewRequirement(
            "state_out_0", shift=-1, space=Box(0, 100, (), np.int32)
        )

    def get_initial_state(self) -> list[int]:
        """The move."""
        return [random.choice(_MOVES)]  # noqa: S311 - a game

    def compute_actions(
        self,
        obs_batch: Any,  # noqa: ARG002
        state_batches: Any = None,
        *_: Any,
        **__: Any,
    ) -> Any:
        """The moves, which are the states."""
        return state_batches[0], state_batches, {}


class BeatLastHeuristic(_Player):
    """Shows what would have beaten the other's last move, which it observes as it is or one-hot."""

    def compute_actions(self, obs_batch: Any, *_: Any, **__: Any) -> Any:
        """The moves."""
        one_hot = not isinstance(self.observation_space, Discrete)
        seen = [int(np.argmax(o)) if one_hot else int(o) for o in obs_batch]
        return [self._answer(move) for move in seen], [], {}

    def _answer(self, move: int) -> int:
        return (move + 1) % 3 if move in _MOVES else random.choice(_MOVES)  # noqa: S311 - a game
