"""Ray's DQN, which replays columns in the place of episodes."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms import dqn

from rllib_compat.algorithms.config import GivesEnvRunners
from rllib_compat.algorithms.replaying import ReplaysColumns
from rllib_compat.ray_versions import learners


class DQN(ReplaysColumns, dqn.DQN):  # type: ignore[misc]  # Ray has no types
    """Ray's DQN with a replay buffer of columns."""

    @classmethod
    def get_default_config(cls) -> DQNConfig:
        """The config that it starts from."""
        return DQNConfig()


class DQNConfig(GivesEnvRunners, dqn.DQNConfig):  # type: ignore[misc]
    """The config of Ray's DQN, with all its settings.

    Args:
        algo_class: The algorithm, if it is a subclass of `DQN`.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or DQN)

    def get_default_learner_class(self) -> Any:
        """Ray's learner, which takes columns."""
        return learners.taking_arrays(super().get_default_learner_class())
