"""What Ray renamed or moved between Ray 2.40 and 2.60, a row each."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: The name of a method today → what it was called, until which Ray.
METHODS = {
    "aggregate": ("merge_and_log_n_dicts", "2.46"),  # MetricsLogger
    "build_algo": ("build", "2.40"),  # AlgorithmConfig
    "compute_q_values": ("_qf", "2.40"),  # modules of DQN
    "foreach_env_runner": ("foreach_worker", "2.40"),  # EnvRunnerGroup
    "probe_unhealthy_env_runners": ("probe_unhealthy_workers", "2.41"),  # EnvRunnerGroup
    "restore_env_runners": ("restore_workers", "2.41"),  # Algorithm
    "to_numpy": ("finalize", "2.40"),  # episodes, and their buffers
}

#: Where a class or module is today → where it was, until which Ray.
PLACES = {
    "ray.rllib.algorithms.cql.torch.default_cql_torch_rl_module:DefaultCQLTorchRLModule": (
        "ray.rllib.algorithms.cql.torch.cql_torch_rl_module:CQLTorchRLModule",
        "2.40",
    ),
    "ray.rllib.algorithms.dqn.dqn_catalog:DQNCatalog": (
        "ray.rllib.algorithms.dqn.dqn_rainbow_catalog:DQNRainbowCatalog",
        "2.40",
    ),
    "ray.rllib.algorithms.dqn.dqn_learner:DQNLearner": (
        "ray.rllib.algorithms.dqn.dqn_rainbow_learner:DQNRainbowLearner",
        "2.40",
    ),
    "ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module:DefaultDQNTorchRLModule": (
        "ray.rllib.algorithms.dqn.torch.dqn_rainbow_torch_rl_module:DQNRainbowTorchRLModule",
        "2.40",
    ),
    "ray.rllib.algorithms.dqn.torch.dqn_torch_learner:DQNTorchLearner": (
        "ray.rllib.algorithms.dqn.torch.dqn_rainbow_torch_learner:DQNRainbowTorchLearner",
        "2.40",
    ),
    "ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module:DefaultPPOTorchRLModule": (
        "ray.rllib.algorithms.ppo.torch.ppo_torch_rl_module:PPOTorchRLModule",
        "2.40",
    ),
    "ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module:DefaultSACTorchRLModule": (
        "ray.rllib.algorithms.sac.torch.sac_torch_rl_module:SACTorchRLModule",
        "2.40",
    ),
    "ray.rllib.callbacks.callbacks:RLlibCallback": (
        "ray.rllib.algorithms.callbacks:DefaultCallbacks",
        "2.40",
    ),
    "ray.rllib.core.distribution.torch:torch_distribution": (
        "ray.rllib.models.torch:torch_distributions",
        "2.48",
    ),
}

_BY_NAME = {place.partition(":")[2]: place for place in PLACES}


def name_of(owner: object, name: str) -> str:
    """What the installed Ray calls a method of an object, by the method's current name."""
    return name if hasattr(owner, name) else METHODS[name][0]


def method(owner: object, name: str) -> Any:
    """A method by its current name, whatever the installed Ray calls it."""
    return getattr(owner, name_of(owner, name))


def resolve(name: str) -> Any:
    """A class or module of Ray's by its current name, from where the installed Ray has it."""
    today = _BY_NAME[name]
    try:
        return _at(today)
    except ImportError:
        return _at(PLACES[today][0])


def _at(place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(f"{module}.{name}")
