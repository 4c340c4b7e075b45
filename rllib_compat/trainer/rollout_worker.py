"""`RolloutWorker` and `collect_metrics`, for code that makes its workers itself, until Ray 2.0."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ray

from rllib_compat.config import translate
from rllib_compat.runtime import evaluation
from rllib_compat.runtime.env_runners import CompatRolloutWorker
from rllib_compat.runtime.envs import make_env
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.trainer.workers import ToTrain

logger = logging.getLogger(__name__)

#: An argument → the key of the config.
_KEYS = {
    "batch_mode": "batch_mode",
    "batch_steps": "rollout_fragment_length",
    "callbacks": "callbacks",
    "clip_actions": "clip_actions",
    "clip_rewards": "clip_rewards",
    "compress_observations": "compress_observations",
    "env_config": "env_config",
    "episode_horizon": "horizon",
    "model_config": "model",
    "no_done_at_end": "no_done_at_end",
    "num_envs": "num_envs_per_worker",
    "observation_filter": "observation_filter",
    "preprocessor_pref": "preprocessor_pref",
    "remote_worker_envs": "remote_worker_envs",
    "rollout_fragment_length": "rollout_fragment_length",
    "seed": "seed",
    "soft_horizon": "soft_horizon",
}
#: What it sampled at once where nobody said.
_FRAGMENT = 100


class RolloutWorker(CompatRolloutWorker):
    """A worker of the old API stack that takes the arguments of Ray 0.8 – 1.x.

    Args:
        env_creator: Makes the environment from its context.
        policy_spec: The policy's class, or policies by id as `multiagent.policies` has them.
        policy: The same, by its name of Ray 0.8.
        policy_mapping_fn: Which policy an agent has.
        policies_to_train: Which policies learn.
        policy_config: The config of the policies.
        worker_index: Its number; environments are told.
        num_workers: How many there are.
        **arguments: Those of `_KEYS`; others mean nothing any more.
    """

    def __init__(
        self,
        env_creator: Callable[..., Any],
        policy_spec: type | Mapping[str, Any] | None = None,
        policy_mapping_fn: Callable[..., str] | None = None,
        policies_to_train: ToTrain = None,
        *,
        policy: type | Mapping[str, Any] | None = None,
        policy_config: Mapping[str, Any] | None = None,
        worker_index: int = 0,
        num_workers: int = 0,
        **arguments: object,
    ) -> None:
        policy_spec = policy_spec if policy_spec is not None else policy
        config = {"rollout_fragment_length": _FRAGMENT, **(policy_config or {}), "env": env_creator}
        for name, value in arguments.items():
            if name in _KEYS:
                config[_KEYS[name]] = value
            elif value:
                logger.warning("`RolloutWorker(%s=…)` means nothing any more.", name)
        if isinstance(policy_spec, Mapping):
            agents = {
                "policies": policy_spec,
                "policy_mapping_fn": policy_mapping_fn,
                "policies_to_train": policies_to_train,
            }
            config["multiagent"] = {key: value for key, value in agents.items() if value}
            policy_spec = None
        translation = translate(config, algorithm="PPO", api_stack="old", on_unknown="warn")
        translation.report.warn(logger)
        super().__init__(
            env_creator=partial(make_env, translation.env_settings),
            config=translation.algorithm_config,
            default_policy_class=policy_spec,
            worker_index=worker_index,
            num_workers=num_workers,
        )

    def sample(self, **kwargs: object) -> Any:
        """Samples a fragment: of a single policy for all, without its name, as it was."""
        batch = super().sample(**kwargs)
        by_policy = getattr(batch, "policy_batches", {})
        return by_policy[ONLY_POLICY] if set(by_policy) == {ONLY_POLICY} else batch

    @classmethod
    def as_remote(
        cls,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: int | None = None,
        object_store_memory: int | None = None,  # noqa: ARG003 - Ray reserves none for actors
        resources: Mapping[str, float] | None = None,
    ) -> Any:
        """The class as a Ray actor.

        Args:
            num_cpus: What each worker reserves, as all that follow.
            num_gpus: The same.
            memory: The same, in bytes.
            object_store_memory: Means nothing any more.
            resources: Resources by name.
        """
        asked = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "resources": dict(resources or {}) or None,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return ray.remote(**given)(cls) if given else ray.remote(cls)


def collect_metrics(
    local_worker: Any = None,
    remote_workers: Sequence[Any] = (),
    to_be_collected: Sequence[Any] = (),
    timeout_seconds: float = 180,
) -> dict[str, Any]:
    """What the episodes of workers were like since the last call.

    Args:
        local_worker: A worker in this process.
        remote_workers: Workers that are actors.
        to_be_collected: What an earlier call could not wait for.
        timeout_seconds: How long.
    """
    from ray.rllib.evaluation.metrics import summarize_episodes

    if any(hasattr(worker, "actor") for worker in remote_workers) or hasattr(
        local_worker, "env_runner"
    ):  # those of a trainer
        return evaluation.collect_metrics(
            local_worker, remote_workers, to_be_collected, timeout_seconds
        )
    told = ray.get([w.get_metrics.remote() for w in remote_workers], timeout=timeout_seconds)
    if local_worker is not None:
        told.append(local_worker.get_metrics())
    episodes = [episode for of_worker in told for episode in of_worker]
    return dict(summarize_episodes(episodes, new_episodes=episodes))
