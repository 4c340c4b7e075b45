"""Learners inside of env runners, for algorithms whose workers compute gradients themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ray.rllib.core import COMPONENT_RL_MODULE

from rllib_compat.algorithms.sampling import sample_at_least
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import learners, training_steps
from rllib_compat.runtime.policies import local_learner

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm

    from rllib_compat.ray_versions.types import EnvRunner, Learner

#: Module → name of an array → weights.
Weights = Mapping[str, Mapping[str, Any]]


def get_weights(learner: Learner) -> Weights:
    """The weights of all modules of a learner."""
    return {name: module.get_state() for name, module in _modules(learner).items()}


def _modules(learner: Learner) -> dict[str, Any]:
    names = learner.module.keys()
    return {name: learner.module[name].unwrapped() for name in names}


def sync_module(env_runner: EnvRunner) -> None:
    """Gives an env runner's module the weights of its learner's."""
    modules = _modules(local_learner(env_runner))
    weights = {name: part.get_state(inference_only=True) for name, part in modules.items()}
    env_runner.set_state({COMPONENT_RL_MODULE: weights})


def set_weights(env_runner: EnvRunner, weights: Weights) -> None:
    """Gives weights to an env runner and to its learner.

    Raises:
        ConfigError: They are of modules that its learner has not.
    """
    learner = local_learner(env_runner)
    modules = _modules(learner)
    if others := weights.keys() ^ modules.keys():
        raise ConfigError(
            f"The learner lacks modules of the env runners, or has others: {sorted(others)}.",
            where="policies",
            fix="Define all policies in the config: if env runners train, none can be added later.",
        )
    for name, module in modules.items():
        module.set_state(weights[name])
    learners.copy_weights_seq_no(learner, env_runner)
    sync_module(env_runner)


def sync_local_env_runner(algorithm: Algorithm) -> None:
    """Gives the algorithm's own env runner the weights of its learner: it acts, and is saved."""
    if algorithm.env_runner is not None:
        (weights,) = training_steps.foreach_learner(algorithm, get_weights)[:1]
        algorithm.env_runner.set_state({COMPONENT_RL_MODULE: weights})


def sample_fragment(env_runner: EnvRunner) -> list[Any]:
    """Samples one fragment from each environment of an env runner."""
    config = env_runner.config
    length = config.get_rollout_fragment_length(env_runner.worker_index or 0)
    return sample_at_least(env_runner, length * config.num_envs_per_env_runner)
