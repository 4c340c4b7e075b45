"""Ray's SAC, which replays columns in the place of episodes."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms import sac

from rllib_compat import ray_versions
from rllib_compat.algorithms.config import GivesEnvRunners
from rllib_compat.algorithms.replaying import ReplaysColumns


class SAC(ReplaysColumns, sac.SAC):  # type: ignore[misc]  # Ray has no types
    """Ray's SAC with a replay buffer of columns."""

    @classmethod
    def get_default_config(cls) -> SACConfig:
        """The config that it starts from."""
        return SACConfig()


class SACConfig(GivesEnvRunners, sac.SACConfig):  # type: ignore[misc]
    """The config of Ray's SAC, with all its settings.

    Args:
        algo_class: The algorithm, if it is a subclass of `SAC`.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or SAC)

    def get_default_learner_class(self) -> Any:
        """Ray's learner, which takes columns."""
        return ray_versions.taking_arrays(super().get_default_learner_class())
