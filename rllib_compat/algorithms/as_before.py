"""Lets the algorithm of a trainer learn as it did in the config's Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray.rllib.algorithms import ppo

from rllib_compat.algorithms.ppo import PPO, OldPPOLearner
from rllib_compat.algorithms.ways import Ways
from rllib_compat.runtime.learners import put_before

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

#: Where the classes are that a learner class of nobody else is made of.
_OURS = ("ray", "rllib_compat", "builtins", "abc")


def learn_as_before(config: AlgorithmConfig, ways: Ways) -> None:
    """Gives Ray's PPO the passes and the loss of an old Ray's, in place.

    Several learners go on as today, for they have to make equally many minibatches; so does a
    learner class of the user's own.

    Args:
        config: A config of the new API stack.
        ways: Those of its Ray.
    """
    parts = (part.__module__.partition(".")[0] for part in config.learner_class.__mro__)
    if config.algo_class is ppo.PPO and config.num_learners <= 1 and set(parts) <= set(_OURS):
        put_before(OldPPOLearner, "Old", config, ways=ways)
        config.algo_class = PPO
