"""Ray's DQN, which replays columns in the place of episodes; and Ray's configs that let it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ray.rllib.algorithms import dqn, sac

from rllib_compat.algorithms.base import OwnEnvRunnersConfig
from rllib_compat.algorithms.off_policy import OffPolicyAlgorithm, reason_in_config
from rllib_compat.algorithms.sac import SAC
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import configs, learners

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


class DQN(OffPolicyAlgorithm, dqn.DQN):  # type: ignore[misc]  # Ray has no types
    """Ray's DQN with a replay buffer of columns."""

    @classmethod
    def get_default_config(cls) -> DQNConfig:
        """The config that it starts from."""
        return DQNConfig()


class DQNConfig(OwnEnvRunnersConfig, dqn.DQNConfig):  # type: ignore[misc]
    """The config of Ray's DQN, with all its settings."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class=algo_class or DQN)

    def get_default_learner_class(self) -> Any:
        """Ray's learner, which takes columns."""
        return learners.array_batch_learner(super().get_default_learner_class())


#: An algorithm of Ray → the same one, which replays columns.
REPLAYING = {dqn.DQN: DQN, sac.SAC: SAC}


def may_replay_columns(config: AlgorithmConfig) -> bool:
    """Whether a config is one of Ray's DQN or SAC, and says nothing that takes episodes."""
    return config.algo_class in REPLAYING and reason_in_config(config) is None


def replay_columns(config: AlgorithmConfig) -> AlgorithmConfig:
    """Lets the algorithm of a config replay columns in the place of episodes, in place.

    What it learns is the same; how it is set up, too. DDPG and TD3 of this package do it anyway.

    Raises:
        ConfigError: Its algorithm is another one, or runs on the old API stack.
    """
    if issubclass(config.algo_class, OffPolicyAlgorithm):
        return config
    if config.algo_class not in REPLAYING or not config.enable_env_runner_and_connector_v2:
        raise ConfigError(
            "replay_columns=True is only for DQN, SAC, DDPG and TD3 on the new API stack, not for "
            f"this {config.algo_class.__name__}.",
            where="replay_columns",
            fix="set replay_columns=False",
        )
    learner_class = config.learner_class
    if not issubclass(learner_class, learners.ArrayBatchLearner):
        configs.set_learner_class(config, learners.array_batch_learner(learner_class))
    config.algo_class = REPLAYING[config.algo_class]
    return config
