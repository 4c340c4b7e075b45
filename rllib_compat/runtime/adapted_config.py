"""Old behaviour that no call of `AlgorithmConfig` can say: connectors, learners, env runners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import replay

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


@public("rllib_compat.adapters")
def adapt_config(config: AlgorithmConfig) -> AlgorithmConfig:
    """Adds what old workers did by themselves to a config of the new API stack, in place.

    Observations are preprocessed where they are no arrays of floats, policies of DQN explore by
    noisy nets, soft Q and noise on their weights, callbacks that listen to learners are called by
    them, optimizers are what policies had, logged actions are recorded, RLlib's `VectorEnv` gets
    the env runner that takes one, replay buffers give the weights that learners ask for, and CQL's
    learner takes the batches that CQL gives it.
    """
    from rllib_compat.runtime.connectors import add_preprocessors, may_need_preprocessors
    from rllib_compat.runtime.external import record_logged_actions
    from rllib_compat.runtime.learners import give_optimizer, take_one_batch, tell_callbacks
    from rllib_compat.runtime.parameter_noise import explore_as_before
    from rllib_compat.runtime.vector_envs import allow_vector_envs

    if may_need_preprocessors(config.env):  # else it is one of gymnasium's own
        add_preprocessors(config)
        record_logged_actions(config)
        allow_vector_envs(config)
    explore_as_before(config)
    give_optimizer(config)
    tell_callbacks(config)
    take_one_batch(config)
    replay.weigh_replayed(config)
    return config
