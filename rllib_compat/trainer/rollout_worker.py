"""`RolloutWorker` and `collect_metrics`, for code of Ray 0.5 – 2.0 that makes its own workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import ray

from rllib_compat.config import translate
from rllib_compat.ray_versions import old_policies
from rllib_compat.runtime import evaluation
from rllib_compat.runtime.env_runners import CompatRolloutWorker
from rllib_compat.runtime.envs import make_env
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.trainer.workers import LegacyWorkers, ToTrain, Workers

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
#: The default length of a fragment.
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
        worker_index: Its number, which environments get.
        num_workers: How many there are.
        nested: Whether a single policy's samples are in a batch by policies, as since Ray 2.3.
        **arguments: Those of `_KEYS`; others are ignored, with a warning.
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
        nested: bool = False,
        **arguments: object,
    ) -> None:
        self._nested = nested
        policy_spec = policy_spec if policy_spec is not None else policy
        config = {"rollout_fragment_length": _FRAGMENT, **(policy_config or {}), "env": env_creator}
        for name, value in arguments.items():
            if name in _KEYS:
                config[_KEYS[name]] = value
            elif value:
                logger.warning("`RolloutWorker(%s=…)` is ignored: Ray has none any more.", name)
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
            default_policy_class=policy_spec and old_policies.as_written(policy_spec),
            worker_index=worker_index,
            num_workers=num_workers,
        )

    def sample(self, **kwargs: object) -> Any:
        """Samples a fragment; a single policy's batch is not nested in a dict, as in old Rays."""
        batch = super().sample(**kwargs)
        by_policy = getattr(batch, "policy_batches", {})
        alone = set(by_policy) == {ONLY_POLICY} and not self._nested
        return by_policy[ONLY_POLICY] if alone else batch

    @classmethod
    def as_remote(
        cls,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory: int | None = None,
        object_store_memory: int | None = None,  # noqa: ARG003 - Ray reserves none for actors
        resources: Mapping[str, float] | None = None,
    ) -> Any:
        """The class as a Ray actor; `memory` is in bytes, and that of objects is ignored."""
        asked = {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            "memory": memory,
            "resources": dict(resources or {}) or None,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return ray.remote(**given)(cls) if given else ray.remote(cls)


class WorkerSet(Workers):
    """Workers that old code makes itself, of the old API stack: one here, the others actors.

    Args:
        env_creator: Makes the environment from its context.
        policy_class: The class of the policies.
        trainer_config: The config.
        num_workers: How many there are beside the local one.
        policy: `policy_class` by its name of Ray 0.8.
        default_policy_class: The same by its name since Ray 2.3; what workers sample is then a
            batch by policies.
        config: `trainer_config` by its name since Ray 2.3.
        validate_env: Checks each environment, from (environment, context).
        local_worker: Whether there is one here.
        **_: The trial's folder, and private arguments: ignored.
    """

    def __init__(
        self,
        env_creator: Callable[..., Any],
        policy_class: type | None = None,
        trainer_config: Mapping[str, Any] | None = None,
        num_workers: int = 0,
        *,
        policy: type | None = None,
        default_policy_class: type | None = None,
        config: Mapping[str, Any] | None = None,
        validate_env: Callable[[Any, Any], object] | None = None,
        local_worker: bool = True,
        **_: object,
    ) -> None:
        def make_env(context: object) -> Any:
            env = env_creator(context)
            if validate_env is not None:
                validate_env(env, context)
            return env

        given = dict(config or trainer_config or {})
        agents = given.pop("multiagent", None) or {}
        self._arguments = {
            "env_creator": make_env,
            "policy_spec": (
                agents.get("policies") or default_policy_class or policy_class or policy
            ),
            "policy_mapping_fn": agents.get("policy_mapping_fn"),
            "policies_to_train": agents.get("policies_to_train"),
            "policy_config": given,
            "nested": default_policy_class is not None,
        }
        self._local: Any = self._make(RolloutWorker, 0, num_workers) if local_worker else None
        self._remote: list[Any] = []
        self.add_workers(num_workers)

    def _make(self, cls: Any, index: int, num_workers: int) -> Any:
        return cls(**self._arguments, worker_index=index, num_workers=num_workers)

    def local_worker(self) -> Any:
        """The worker in this process."""
        return self._local

    def remote_workers(self) -> list[Any]:
        """The other workers: actors."""
        return list(self._remote)

    def add_workers(self, num_workers: int) -> None:
        """Makes more workers."""
        if num_workers:
            cls = RolloutWorker.as_remote(num_cpus=1)
            first, total = len(self._remote) + 1, len(self._remote) + num_workers
            self._remote += [self._make(cls.remote, first + i, total) for i in range(num_workers)]

    def reset(self, new_remote_workers: Sequence[Any]) -> None:
        """Replaces the actors."""
        self._remote = list(new_remote_workers)

    def foreach_worker(
        self, func: Callable[..., Any], *, local_worker: bool = True, **_: object
    ) -> list[Any]:
        """Calls `func(worker)` in all workers, or in the remote ones alone."""
        asked = [worker.apply.remote(func) for worker in self._remote]
        here = [func(self._local)] if local_worker and self._local is not None else []
        return [*here, *_answers(asked)]

    def sync_weights(
        self, policies: Sequence[str] | None = None, global_vars: Mapping[str, Any] | None = None
    ) -> None:
        """Sends the local worker's weights to the others."""
        weights = self._local.get_weights(policies)
        _answers([worker.set_weights.remote(weights, global_vars) for worker in self._remote])

    def stop(self) -> None:
        """Stops all workers."""
        if self._local is not None:
            self._local.stop()
        for worker in self._remote:
            worker.stop.remote()
        self._remote.clear()


WorkerSet.register(LegacyWorkers)  # those of a trainer are instances, too


def collect_metrics(
    local_worker: Any = None,
    remote_workers: Sequence[Any] = (),
    to_be_collected: Sequence[Any] = (),
    timeout_seconds: float = 180,
) -> dict[str, Any]:
    """Metrics of the workers' episodes since the last call."""
    from ray.rllib.evaluation.metrics import summarize_episodes

    if isinstance(local_worker, Workers):  # all of them, as in calls since Ray 1.13
        local_worker, remote_workers = local_worker.local_worker(), local_worker.remote_workers()
    if any(hasattr(worker, "actor") for worker in remote_workers) or hasattr(
        local_worker, "env_runner"
    ):  # those of a trainer
        return evaluation.collect_metrics(
            local_worker, remote_workers, to_be_collected, timeout_seconds
        )
    collected = _answers([w.get_metrics.remote() for w in remote_workers], timeout_seconds)
    if local_worker is not None:
        collected.append(local_worker.get_metrics())
    episodes = [episode for of_worker in collected for episode in of_worker]
    return {
        "off_policy_estimator": {},  # until Ray 1.13
        **summarize_episodes(episodes, new_episodes=episodes),
    }


def _answers(asked: list[Any], timeout: float | None = None) -> list[Any]:
    """The results of calls. Without calls, Ray is not used: `ray.get` would start it."""
    return list(ray.get(asked, timeout=timeout)) if asked else []
