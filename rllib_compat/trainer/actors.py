"""Computes actions with a checkpoint of any Ray, for an evaluation.

A checkpoint that can continue training is loaded as an `Algorithm`, with its connectors; one of an
algorithm that Ray has removed, as its modules. Neither starts Ray.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from packaging.version import InvalidVersion, Version

from rllib_compat.config import default_config
from rllib_compat.conversion.config import make_env_settings
from rllib_compat.formats.layouts.folder import as_mapping
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import CompatError, ConfigError, MissingInformationError
from rllib_compat.neutral.report import Report
from rllib_compat.ray_versions import algorithms, startup
from rllib_compat.runtime.envs import adapt_env
from rllib_compat.runtime.policy_mapping import MappingFn
from rllib_compat.trainer.inference import ComputedAction, Inference, Request, Struct, fit_action
from rllib_compat.trainer.running import RunningAlgorithm

if TYPE_CHECKING:
    import gymnasium
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.core.rl_module import RLModule

    from rllib_compat.conversion.convert import Conversion
    from rllib_compat.conversion.given import Given

# How many inputs the old and the new network are compared on; `convert` compares on more.
INPUTS = 100
# Keys of the training's config that an evaluation in this process replaces.
EVALUATION: Mapping[str, Any] = {
    "evaluation_interval": None,
    "output": None,
    # Ray checks another length against the size of a batch.
    "rollout_fragment_length": "auto",
    "num_envs_per_worker": 1,
}


class Actor(Protocol):
    """Computes actions for agents.

    Attributes:
        env: The environment's name or class, as `AlgorithmConfig.environment` has it.
        env_config: The environment's context.
        explore: Whether the config says that actions are sampled.
    """

    env: Any
    env_config: Mapping[str, Any]
    explore: bool

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy of an agent in an episode."""

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""


@contextmanager
def load_actor(path: str | Path, given: Given) -> Iterator[tuple[Actor, Report]]:
    """A checkpoint of any Ray as an actor, and the report of its conversion.

    Raises:
        CheckpointError: It can't be read or converted.
    """
    from rllib_compat.conversion.convert import convert

    given = replace(
        given, num_env_runners=0, num_gpus=0, overrides={**given.overrides, **EVALUATION}
    )
    with tempfile.TemporaryDirectory(prefix="rllib-compat-") as folder:
        target = Path(folder) / "converted"
        done = convert(path, target, given=given, inputs=INPUTS)
        if not done.trains_on:
            yield ModuleActor(target, done, given), done.report
            return
        with startup.without_cluster():
            algorithm = algorithms.load_algorithm(target)
            try:
                yield AlgorithmActor(algorithm), done.report
            finally:
                algorithms.stop_algorithm(algorithm)


class AlgorithmActor:
    """An algorithm as an actor."""

    def __init__(self, algorithm: Algorithm) -> None:
        self._inference = Inference(RunningAlgorithm(algorithm))
        self._config = config = algorithm.config
        evaluation = config.evaluation_config if isinstance(config.evaluation_config, dict) else {}
        self.env = evaluation.get("env", config.env)
        self.env_config: Mapping[str, Any] = {
            **config.env_config,
            **evaluation.get("env_config", {}),
        }
        self.explore = bool(evaluation.get("explore", config.explore))

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy of an agent, by the config's function."""
        return str(self._config.policy_mapping_fn(agent, episode))

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""
        (computed,) = self._inference.compute([request], policy_id, explore=explore)
        return computed


class ModuleActor:
    """The modules of an algorithm that Ray has removed, as an actor."""

    def __init__(self, target: Path, done: Conversion, given: Given) -> None:
        from rllib_compat.networks import rl_modules

        checkpoint = done.checkpoint
        config = {**checkpoint.config, **given.overrides}
        self._config = {**_defaults_of_its_ray(checkpoint), **config}
        mapping = given.overrides.get("multiagent", {}).get("policy_mapping_fn")
        self._mapping = MappingFn(mapping) if mapping is not None else None
        self._modules = {
            p: loaded.module for p, loaded in rl_modules.load(target, checkpoint.policies).items()
        }
        self._inputs = {p: network.inputs for p, network in done.networks.items()}
        env = config.get("env") if given.env is None else given.env
        if isinstance(env, str) or callable(env):
            env = adapt_env(make_env_settings(env, checkpoint))
        self.env = env
        self.env_config: Mapping[str, Any] = dict(as_mapping(config.get("env_config")))
        evaluation = as_mapping(config.get("evaluation_config"))
        self.explore = bool(evaluation.get("explore", config.get("explore", True)))

    def policy_of(self, agent: object, episode: object) -> str:
        """The policy of an agent: by the caller's function, the only one, or that of its name."""
        if self._mapping is not None:
            return str(self._mapping(agent, episode))
        if len(self._modules) == 1:
            return next(iter(self._modules))
        if str(agent) in self._modules:
            return str(agent)
        raise CompatError(
            f"No policy is called {agent!r}, and the mapping of agents to policies was code.",
            where="$.multiagent.policy_mapping_fn",
            fix="give --policy-mapping-fn module:function",
        )

    def act(self, policy_id: str, request: Request, *, explore: bool) -> ComputedAction:
        """Computes one action."""
        import torch
        import tree

        module = self._modules[policy_id]
        obs = self._preprocess(policy_id, module.observation_space, request.observation)
        states = module.get_initial_state()
        batch: dict[str, Any] = {"obs": torch.from_numpy(obs)[None]}
        if states:
            before = list(request.state or [np.asarray(s) for s in tree.flatten(states)])
            batch["obs"] = batch["obs"][None]
            tensors = [torch.from_numpy(np.asarray(s, np.float32))[None] for s in before]
            batch["state_in"] = tree.unflatten_as(states, tensors)
        with torch.no_grad():
            forward = module.forward_exploration if explore else module.forward_inference
            out = dict(forward(batch))
            action = (
                out["actions"] if "actions" in out else _sample_action(module, out, explore=explore)
            )
        action = tree.map_structure(lambda a: np.asarray(a)[(0, 0) if states else 0], action)
        after = [np.asarray(s)[0] for s in tree.flatten(out.get("state_out", []))]
        space = module.action_space
        fit = fit_action(action, space, unsquash=self._normalizes(space), clip=True)
        return ComputedAction(fit, after, {}, action)

    def _preprocess(
        self, policy_id: str, space: gymnasium.Space[Any], observation: Struct
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        import gymnasium

        if isinstance(space, gymnasium.spaces.Box):
            obs = np.asarray(observation, np.float32, order="C")
        else:
            obs = np.asarray(gymnasium.spaces.flatten(space, observation), np.float32)
        if obs.shape != tuple(self._inputs[policy_id]):
            raise CompatError(
                f"The network takes {tuple(self._inputs[policy_id])}, and the environment gives "
                f"{obs.shape}.",
                where=f"policies.{policy_id}",
                fix="give the environment with the wrappers that it was trained with: --env",
            )
        return obs

    def _normalizes(self, space: gymnasium.Space[Any]) -> bool:
        """Whether actions are scaled from [-1, 1]; for a Box, the config determines it."""
        import gymnasium

        if not isinstance(space, gymnasium.spaces.Box):
            return False
        if "normalize_actions" not in self._config:
            raise MissingInformationError(
                "Whether actions are scaled to their space was a default, and which one depends "
                "on the Ray that trained it.",
                where="$.normalize_actions",
                fix="give it with --config",
            )
        return bool(self._config["normalize_actions"])


def _defaults_of_its_ray(checkpoint: LegacyCheckpoint) -> dict[str, Any]:
    """The defaults that the config started from, if the file names its Ray."""
    ray = checkpoint.source.ray_version
    try:
        return default_config(str(checkpoint.algorithm), str(Version(ray))) if ray else {}
    except (ConfigError, InvalidVersion):  # several releases, not one
        return {}


def _sample_action(module: RLModule, out: Mapping[str, Any], *, explore: bool) -> Any:
    """An action from the distribution's inputs: a sample, or the best."""
    if explore:
        distribution = module.get_exploration_action_dist_cls()
        return distribution.from_logits(out["action_dist_inputs"]).sample()
    distribution = module.get_inference_action_dist_cls()
    return distribution.from_logits(out["action_dist_inputs"]).to_deterministic().sample()
