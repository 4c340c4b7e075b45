"""Random: actions drawn from the action space, and nothing learned (`contrib/RandomAgent`).

It was in Ray 0.5 – 1.x, and as `algorithms/random_agent` in 2.4 – 2.10.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ray.rllib.algorithms.algorithm import Algorithm

from rllib_compat.algorithms.base import (
    GradientFreeLearner,
    RemovedAlgorithm,
    RemovedAlgorithmConfig,
    register,
)
from rllib_compat.algorithms.sampling import on_env_runners
from rllib_compat.networks.modules.graph_module import RandomModule

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


class Random(RemovedAlgorithm, Algorithm):  # type: ignore[misc]  # Ray has no types
    """Plays complete episodes at random, and reports their returns."""

    def training_step(self) -> None:
        """Plays the episodes of one iteration, on all env runners."""
        remote = self.env_runner_group.num_remote_workers()
        share = -(-self.config.rollouts_per_iteration // max(1, remote))
        on_env_runners(self, partial(_play, episodes=share))


def _play(env_runner: EnvRunner, episodes: int) -> tuple[Any]:
    env_runner.sample(num_episodes=episodes)
    return (env_runner.get_metrics(),)


class RandomConfig(RemovedAlgorithmConfig):
    """The config of Random."""

    default_module_class = RandomModule
    default_learner_class = GradientFreeLearner
    least = {"rollouts_per_iteration": 1}
    settings = {
        "rollouts_per_iteration": "How many episodes an iteration has; with several env runners, "
        "at least so many, the same number on each."
    }

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class)
        # What is drawn is an action already: nothing has to be stretched to the action space.
        self.environment(normalize_actions=False, clip_actions=False)


register(Random, RandomConfig)
