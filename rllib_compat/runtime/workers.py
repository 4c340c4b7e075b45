"""The rollout worker of Ray 0.6 – 2.x, as a view on today's env runner, here or in an actor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.ray_versions import connectors as ray_connectors
from rllib_compat.ray_versions import env_runners, episodes
from rllib_compat.registry.legacy_api import GONE, missing
from rllib_compat.runtime.policies import LegacyPolicy
from rllib_compat.runtime.policy_mapping import ONLY_POLICY, MappingFn, resolve_policy_id
from rllib_compat.runtime.user_envs import LegacyBaseEnv, list_environments, user_env, with_user_api

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


class LegacyPolicies(Mapping[str, LegacyPolicy]):
    """The policies of a runner by id; each is made when it is asked for.

    Args:
        env_runner: The runner; its module may be replaced at any time.
    """

    def __init__(self, env_runner: EnvRunner) -> None:
        self._env_runner = env_runner

    def __getitem__(self, policy_id: str) -> LegacyPolicy:
        modules = self._modules()
        policy_id = resolve_policy_id(policy_id, modules)
        return LegacyPolicy(policy_id, modules[policy_id], self._env_runner.config)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __len__(self) -> int:
        return len(self._modules())

    def _modules(self) -> dict[str, Any]:
        module = self._env_runner.module
        return dict(module.items()) if hasattr(module, "items") else {ONLY_POLICY: module}


class LegacyWorker:
    """The rollout worker around an env runner. What it does not know itself, the runner answers.

    Args:
        env_runner: A `SingleAgentEnvRunner` or `MultiAgentEnvRunner`.
    """

    def __init__(self, env_runner: Any) -> None:
        self.env_runner = env_runner

    @property
    def policy_map(self) -> LegacyPolicies:
        """The policies by id."""
        return LegacyPolicies(self.env_runner)

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        for adapter in episodes.callbacks_of(self.env_runner):
            if hasattr(adapter, "legacy"):
                return adapter.legacy[0] if adapter.legacy else None
        return None

    @property
    def base_env(self) -> LegacyBaseEnv:
        """All environments of this worker."""
        env = self.env_runner.env
        return LegacyBaseEnv(getattr(env, "unwrapped", env))

    @property
    def env(self) -> Any:
        """The first of the user's own environments, or None; with gym's API if it is by name."""
        made = next(iter(self.base_env.wrapped_environments()), None)
        own = user_env(made)
        # What gymnasium made ends in time by its own wrappers.
        return with_user_api(made if made is not None and own is made.unwrapped else own)

    @property
    def multiagent(self) -> bool:
        """Whether there are other policies than the default one."""
        return set(self.policy_map) != {ONLY_POLICY}

    @property
    def policy_config(self) -> dict[str, Any]:
        """The config of the runner as a dict."""
        return dict(self.env_runner.config.to_dict())

    def get_policy(self, policy_id: str = ONLY_POLICY) -> LegacyPolicy | None:
        """The policy of that id, or None."""
        return self.policy_map.get(policy_id)

    def for_policy(
        self, func: Callable[..., Any], policy_id: str = ONLY_POLICY, **kwargs: object
    ) -> Any:
        """Calls `func(policy)`."""
        policy = self.policy_map[policy_id]
        return func(policy, **kwargs)

    def foreach_policy(self, func: Callable[..., Any], **kwargs: object) -> list[Any]:
        """Calls `func(policy, policy_id)` for all policies."""
        return [func(self.policy_map[name], name, **kwargs) for name in self.policy_map]

    def foreach_trainable_policy(self, func: Callable[..., Any], **kwargs: object) -> list[Any]:
        """Calls `func(policy, policy_id)` for the policies that are trained."""
        return [
            func(self.policy_map[policy_id], policy_id, **kwargs)
            for policy_id in self.get_policies_to_train()
        ]

    foreach_policy_to_train = foreach_trainable_policy

    def is_policy_to_train(self, policy_id: str, batch: object = None) -> bool:
        """Whether a policy learns."""
        to_train = self.env_runner.config.policies_to_train
        if callable(to_train):
            return bool(to_train(policy_id, batch))
        return to_train is None or policy_id in to_train

    def get_policies_to_train(self, batch: object = None) -> list[str]:
        """The ids of the policies that learn."""
        return [policy for policy in self.policy_map if self.is_policy_to_train(policy, batch)]

    @property
    def policies_to_train(self) -> list[str]:
        """The ids of the policies that learn."""
        return self.get_policies_to_train()

    def set_policies_to_train(self, policies_to_train: Any = None) -> None:
        """Sets which policies learn: ids, or a function of (policy id, batch).

        The learners hear of it where `trainer.workers.foreach_worker` has called this.
        """
        if policies_to_train is not None:
            ids = policies_to_train if callable(policies_to_train) else list(policies_to_train)
            self.env_runner.config.multi_agent(policies_to_train=ids)

    set_is_policy_to_train = set_policies_to_train

    def set_policy_mapping_fn(self, policy_mapping_fn: Callable[..., str] | None = None) -> None:
        """Sets which policy an agent has, from the next episode on."""
        if policy_mapping_fn is not None:
            mapping = MappingFn(policy_mapping_fn)
            self.env_runner.config.multi_agent(policy_mapping_fn=mapping)

    @property
    def policy_mapping_fn(self) -> Callable[..., str]:
        """Which policy an agent has, as (agent id, episode) says."""
        found: Callable[..., str] = self.env_runner.config.policy_mapping_fn
        return found

    def foreach_env(self, func: Callable[[Any], Any]) -> list[Any]:
        """Calls `func(env)` for all of the user's environments."""
        return [func(env) for env in self.base_env.get_sub_environments()]

    def foreach_env_with_context(self, func: Callable[[Any, Any], Any]) -> list[Any]:
        """Calls `func(env, env_context)` for all of the user's environments."""
        context = self.env_runner.config.env_config
        index = getattr(self.env_runner, "worker_index", 0)
        return [
            func(env, env_context(context, worker_index=index, vector_index=number))
            for number, env in enumerate(self.base_env.get_sub_environments())
        ]

    def get_weights(self, policies: Any = None) -> dict[str, Any]:
        """The weights by policy."""
        return {
            policy_id: policy.get_weights()
            for policy_id, policy in self.policy_map.items()
            if policies is None or policy_id in policies
        }

    def set_weights(self, weights: Mapping[str, Any], global_vars: object = None) -> None:  # noqa: ARG002
        """Sets weights by policy in this worker alone, until the learners send theirs."""
        for policy_id, values in weights.items():
            self.policy_map[policy_id].set_weights(values)

    def earlier_chunks(self, episode_id: object) -> list[Any]:
        """The chunks of an ongoing episode that earlier samples have returned."""
        return env_runners.earlier_chunks(self.env_runner, episode_id)

    def keeps_observations(self) -> bool:
        """Whether no connector replaces the observations of the environment."""
        connectors = ray_connectors.env_to_module(self.env_runner).connectors
        return not any(map(ray_connectors.replaces_observations, connectors))

    def action_space(self, policy_id: str) -> Any:
        """The action space of a policy."""
        return self.policy_map[policy_id].action_space

    def sub_environments(self) -> list[Any]:
        """The environments as this package wrapped them."""
        env = self.env_runner.env
        unwrapped = getattr(env, "unwrapped", env)
        return [e.unwrapped for e in list_environments(unwrapped)]

    def __getattr__(self, name: str) -> Any:
        if name in GONE["worker"] or name.startswith("_") or name == "env_runner":
            raise missing(self, "worker", name)
        return getattr(self.env_runner, name)


def env_context(config: Mapping[str, Any], *, worker_index: int, vector_index: int) -> Any:
    """The env context that an environment was made with."""
    from ray.rllib.env.env_context import EnvContext

    return EnvContext(dict(config), worker_index, vector_index)


def as_legacy(env_runner: EnvRunner) -> Any:
    """The legacy view of an env runner; the old API stack's is a rollout worker itself."""
    return LegacyWorker(env_runner) if hasattr(env_runner, "module") else env_runner


class RemoteWorker:
    """A remote worker: `worker.foreach_env.remote(f)` runs there, and gives a reference.

    Args:
        actor: The actor of an env runner.
    """

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def __getattr__(self, name: str) -> RemoteMethod:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteMethod(self.actor, name)


class RemoteMethod:
    """One method of a remote worker."""

    def __init__(self, actor: Any, name: str) -> None:
        self._actor = actor
        self._name = name

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it there.

        Returns:
            A reference to the result, for `ray.get`.
        """
        return self._actor.apply.remote(partial(_call, self._name, args, kwargs))


# A function of the module, so that it is pickled by name.
def _call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], env_runner: EnvRunner) -> Any:
    worker = as_legacy(env_runner)
    if name == "apply":  # of old, it gave its function the worker
        function, *rest = args
        return function(worker, *rest, **kwargs)
    return getattr(worker, name)(*args, **kwargs)
