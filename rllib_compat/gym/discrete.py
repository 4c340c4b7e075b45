"""`gym.envs.toy_text.discrete` until gym 0.21: an environment by its table of transitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from rllib_compat.gym.core import Env

__all__ = ["DiscreteEnv", "categorical_sample"]


def categorical_sample(prob_n: Sequence[float], np_random: Any) -> int:
    """An index, drawn by the probabilities of all."""
    return int(np.searchsorted(np.cumsum(prob_n), np_random.random(), side="right"))


class DiscreteEnv(Env):
    """States and actions are numbers.

    Args:
        nS: The number of states.
        nA: The number of actions.
        P: State → action → rows of probability, next state, reward, done.
        isd: The probability of each state to be the first.
    """

    def __init__(
        self,
        nS: int,  # noqa: N803 - gym's names
        nA: int,  # noqa: N803
        P: Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]],  # noqa: N803
        isd: Sequence[float],
    ) -> None:
        self.nS, self.nA, self.P, self.isd = nS, nA, P, isd
        self.lastaction: int | None = None
        self.action_space, self.observation_space = Discrete(nA), Discrete(nS)
        self.seed()
        self.s = categorical_sample(isd, self.np_random)

    def reset(self, **_: object) -> Any:
        """Draws the first state."""
        self.lastaction = None
        self.s = categorical_sample(self.isd, self.np_random)
        return self.s

    def step(self, a: Any) -> Any:
        """Draws one of the transitions; its probability is in the info."""
        rows = self.P[self.s][a]
        chosen = rows[categorical_sample([row[0] for row in rows], self.np_random)]
        probability, self.s, reward, done = chosen
        self.lastaction = a
        return int(self.s), reward, done, {"prob": probability}
