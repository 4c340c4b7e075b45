"""Random: actions drawn from the action space, and nothing learned (`contrib/RandomAgent`).

It was in Ray 0.5 – 1.x, and as `algorithms/random_agent` in 2.4 – 2.10.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import NotProvided
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rllib_compat.algorithms.base import GradientFreeLearner, RemovedAlgorithmConfig, register
from rllib_compat.algorithms.sampling import on_env_runners
from rllib_compat.networks.modules.graph_module import RandomModule
from rllib_compat.neutral.errors import ConfigError


class Random(Algorithm):  # type: ignore[misc]  # Ray has no types
    """Plays whole episodes at random, and tells what came of them."""

    @classmethod
    def get_default_config(cls) -> RandomConfig:
        """The config that it starts from."""
        return RandomConfig()

    def training_step(self) -> None:
        """Plays the episodes of one iteration, on all env runners."""
        remote = self.env_runner_group.num_remote_workers()
        share = -(-self.config.rollouts_per_iteration // max(1, remote))
        on_env_runners(self, partial(_play, episodes=share))


def _play(env_runner: Any, episodes: int) -> tuple[Any]:
    env_runner.sample(num_episodes=episodes)
    return (env_runner.get_metrics(),)


class RandomConfig(RemovedAlgorithmConfig):
    """The config of Random.

    Args:
        algo_class: The algorithm, if it is a subclass of `Random`.
    """

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or Random)
        self.rollouts_per_iteration = 10
        # What is drawn is an action already: nothing has to be stretched to the action space.
        self.environment(normalize_actions=False, clip_actions=False)

    def training(self, *, rollouts_per_iteration: Any = NotProvided, **kwargs: Any) -> RandomConfig:
        """Sets how much it plays.

        Args:
            rollouts_per_iteration: How many episodes an iteration has; with several env runners, at
                least so many, the same number on each.
            **kwargs: What every algorithm has.

        Returns:
            The config itself.
        """
        super().training(**kwargs)
        self.set_given(locals())
        return self

    def get_default_learner_class(self) -> type:
        """The learner, which does nothing."""
        return GradientFreeLearner

    def get_default_rl_module_spec(self) -> Any:
        """Describes the module."""
        return RLModuleSpec(module_class=RandomModule)

    def validate(self) -> None:
        """Checks all settings against each other.

        Raises:
            ConfigError: It can't run so.
        """
        super().validate()
        self.require_new_api_stack()
        if self.rollouts_per_iteration < 1:
            raise ConfigError(
                f"An iteration has at least one episode, not {self.rollouts_per_iteration}.",
                where="rollouts_per_iteration",
                fix="The default is 10.",
            )


register(Random)
