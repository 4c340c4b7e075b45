"""The environments that user code gets from trainers and workers, with the API that it expects.

Environments of gym's names are created by gymnasium, whose `reset` and `step` return more values.
Unchanged old code expects gym's, unless it imports gymnasium itself. Environments in other
processes (`remote_worker_envs`) have methods with `.remote`, as the actors of old Rays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.ray_versions import environments
from rllib_compat.registry.legacy_api import GONE, missing, names_with
from rllib_compat.runtime.policy_mapping import ONLY_AGENT

#: An environment variable that is set if user code imports gymnasium; Ray's workers inherit it.
TODAYS_GYM = "RLLIB_COMPAT_TODAYS_GYM"


class OldGymApi:
    """Whether user code in this process was written for gym.

    Attributes:
        wrapper: Wraps a gymnasium environment in gym's API; None if user code expects gymnasium's.
    """

    wrapper: ClassVar[Callable[[Any], Any] | None] = None


def with_user_api(env: object) -> Any:
    """Returns an environment with the API that user code was written for."""
    from rllib_compat.runtime.gym_api import has_gymnasium_api

    if OldGymApi.wrapper is None or os.environ.get(TODAYS_GYM):
        return env
    made_by_name = getattr(getattr(env, "unwrapped", env), "spec", None) is not None
    return OldGymApi.wrapper(env) if made_by_name and has_gymnasium_api(env) else env


def user_env(env: Any) -> Any:
    """Returns the user's own object inside gymnasium's and this package's wrappers."""
    unwrapped = getattr(env, "unwrapped", env)
    return unwrapped.env if getattr(unwrapped, "wraps_legacy_env", False) else unwrapped


def list_environments(env: Any) -> list[Any]:
    """Lists the environments of an env runner; those in other processes as `RemoteEnv`s."""
    if hasattr(env, "parent_pipes"):
        return [RemoteEnv(env, index) for index in range(env.num_envs)]
    return environments.sub_environments(env)


class RemoteEnv:
    """One environment of gymnasium's `AsyncVectorEnv`: `env.method.remote(…)` calls a method."""

    # Attributes of this package's adapters, which are in the other process.
    spec = last_raw_obs = unclipped = None

    def __init__(self, vector: Any, index: int) -> None:
        self._vector, self._index = vector, index

    @property
    def unwrapped(self) -> RemoteEnv:
        """This object."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("env", "wraps_legacy_env", "is_old_api"):
            raise AttributeError(name)
        return RemoteMethod(partial(self._call, name))

    def _call(self, name: str, /, *args: object, **kwargs: object) -> Any:
        """Calls a method between two steps, waits, and returns a reference to the result.

        Raises:
            LegacyEnvError: The method has raised an error, and the environment's process has ended.
        """
        import ray

        pipe = self._vector.parent_pipes[self._index]
        pipe.send(("_call", (name, args, kwargs)))
        result, success = pipe.recv()
        if not success:
            _, kind, value, trace = self._vector.error_queue.get()
            raise LegacyEnvError(
                f"{name}() raised {kind.__name__}: {value}\n{trace}",
                where=f"environment {self._index}, in its own process",
                fix="correct the method; with remote_worker_envs=False the error is raised here",
            )
        return ray.put(result)


class RemoteMethod:
    """A method in another process: `remote(…)` calls it, and returns a reference to the result."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call


#: Values by the index of an environment and by agent.
Values = dict[int, dict[Any, Any]]


class _Step(NamedTuple):
    """The return values of one environment's step, each by agent."""

    observations: dict[Any, Any]
    rewards: dict[Any, float]
    dones: dict[Any, bool]
    infos: dict[Any, Any]


class LegacyBaseEnv:
    """All environments of an env runner.

    Args:
        env: gymnasium's vector environment, or Ray's multi-agent one.
        stepped: Called when user code resets or steps an environment itself.
    """

    def __init__(self, env: Any, stepped: Callable[[], None] = lambda: None) -> None:
        self._env = env
        self._stepped = stepped
        self._results: dict[int, _Step] = {}

    @property
    def envs(self) -> list[Any]:
        """The user's own environments."""
        return self.get_unwrapped()

    @property
    def num_envs(self) -> int:
        """The number of environments."""
        return len(self.get_sub_environments())

    def get_sub_environments(self, as_dict: bool = False) -> Any:
        """Returns the user's own environments, without this package's wrappers."""
        envs = [user_env(env) for env in self.wrapped_environments()]
        return dict(enumerate(envs)) if as_dict else envs

    def wrapped_environments(self) -> list[Any]:
        """Returns the environments with all wrappers."""
        return list_environments(self._env)

    def get_unwrapped(self) -> list[Any]:
        """Returns `get_sub_environments()`, by its older name."""
        return list(self.get_sub_environments())

    @property
    def vector_env(self) -> Any:
        """The vector environment that the env runner steps."""
        return self._env

    def to_base_env(self, *_: object, **__: object) -> LegacyBaseEnv:
        """Returns this object."""
        return self

    # Spaces

    @property
    def observation_space(self) -> Any:
        """The observation space of one environment."""
        return getattr(self._env, "single_observation_space", None) or self._env.observation_space

    @property
    def action_space(self) -> Any:
        """The action space of one environment."""
        return getattr(self._env, "single_action_space", None) or self._env.action_space

    def get_agent_ids(self) -> set[Any]:
        """Returns the ids of all agents; that of a single one is `agent0`."""
        return set(_agents(next(iter(self.wrapped_environments()), None)) or [ONLY_AGENT])

    def observation_space_sample(self, agent_id: Iterable[Any] | None = None) -> Values:
        """Samples an observation for each agent of each environment."""
        return self._samples(self.observation_space, agent_id)

    def action_space_sample(self, agent_id: Iterable[Any] | None = None) -> Values:
        """Samples an action for each agent of each environment."""
        return self._samples(self.action_space, agent_id)

    def observation_space_contains(self, x: Values) -> bool:
        """Whether all observations are in the space."""
        return _all_in(self.observation_space, x)

    def action_space_contains(self, x: Values) -> bool:
        """Whether all actions are in the space."""
        return _all_in(self.action_space, x)

    def _samples(self, space: object, agents: Iterable[Any] | None) -> Values:
        ids = self.get_agent_ids() if agents is None else set(agents)
        return {n: {a: _of_agent(space, a).sample() for a in ids} for n in range(self.num_envs)}

    # Steps by user code

    def try_reset(self, env_id: int | None = None, **how: object) -> Values:
        """Resets an environment, or all; the env runner resets them again for its next sample.

        Returns:
            The initial observations.
        """
        self._stepped()
        envs = self.wrapped_environments()
        numbers = range(len(envs)) if env_id is None else [env_id]
        return {n: _by_agent(envs[n], envs[n].reset(**how)[0]) for n in numbers}

    def send_actions(self, action_dict: Values) -> None:
        """Steps environments with the actions of their agents; `poll` returns the results."""
        self._stepped()
        envs = self.wrapped_environments()
        for number, actions in action_dict.items():
            env = envs[number]
            values = env.step(dict(actions) if _agents(env) else actions[ONLY_AGENT])
            observations, rewards, ended, cut, infos = (_by_agent(env, value) for value in values)
            dones = {agent: bool(ended[agent] or cut.get(agent)) for agent in ended}
            dones.setdefault("__all__", all(dones.values()))
            self._results[number] = _Step(observations, rewards, dones, infos)

    def poll(self) -> tuple[Values, ...]:
        """Returns the results of environments since the last call; the first call resets them.

        Returns:
            Observations, rewards, dones and infos, and off-policy actions, which are empty.
        """
        results, self._results = self._results, {}
        if not results:
            for number, first in self.try_reset().items():
                dones = dict.fromkeys([*first, "__all__"], False)
                infos: dict[Any, Any] = {agent: {} for agent in first}
                results[number] = _Step(first, dict.fromkeys(first, 0.0), dones, infos)
        parts = ({n: step[part] for n, step in results.items()} for part in range(4))
        return (*parts, {})

    last = poll

    @property
    def new_obs(self) -> list[Any]:
        """The observations that `poll` has not returned yet."""
        return [step.observations for step in self._results.values()]

    @property
    def cur_rewards(self) -> list[Any]:
        """The rewards that `poll` has not returned yet."""
        return [step.rewards for step in self._results.values()]

    @property
    def cur_dones(self) -> list[Any]:
        """The dones that `poll` has not returned yet."""
        return [step.dones for step in self._results.values()]

    @property
    def cur_infos(self) -> list[Any]:
        """The infos that `poll` has not returned yet."""
        return [step.infos for step in self._results.values()]

    def try_render(self, env_id: int | None = None) -> Any:
        """Renders an environment; None: the first."""
        return self.wrapped_environments()[env_id or 0].render()

    def stop(self) -> None:
        """Closes all environments."""
        self._env.close()

    def __dir__(self) -> list[str]:
        return names_with(self, "base_env", self._env)

    def __getattr__(self, name: str) -> Any:
        if name in GONE["base_env"] or name.startswith("_"):
            raise missing(self, "base_env", name)
        return getattr(self._env, name)


class OldStackBaseEnv:
    """The `BaseEnv` of a worker of the old API stack, with methods that Ray has removed.

    Args:
        env: Ray's `BaseEnv`, which has all other attributes.
    """

    def __init__(self, env: Any) -> None:
        self._env = env

    def get_sub_environments(self, as_dict: bool = False) -> Any:
        """Returns the user's own environments, without this package's wrappers."""
        envs = [user_env(env) for env in self._env.get_sub_environments()]
        return dict(enumerate(envs)) if as_dict else envs

    def get_unwrapped(self) -> list[Any]:
        """Returns `get_sub_environments()`, by its older name."""
        return list(self.get_sub_environments())

    envs = property(get_unwrapped)

    @property
    def num_envs(self) -> int:
        """The number of environments."""
        return len(self.get_unwrapped())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._env, name)


def _agents(env: object) -> list[Any]:
    """Returns the agents of a multi-agent environment, else an empty list."""
    return list(getattr(getattr(env, "unwrapped", None), "possible_agents", None) or [])


def _by_agent(env: Any, value: Any) -> dict[Any, Any]:
    return dict(value) if _agents(env) else {ONLY_AGENT: value}


def _of_agent(space: object, agent: object) -> Any:
    """Returns the agent's part of a space, if it has one."""
    by_agent = getattr(space, "spaces", None)
    return by_agent[agent] if isinstance(by_agent, Mapping) and agent in by_agent else space


def _all_in(space: object, values: Values) -> bool:
    return all(
        _of_agent(space, agent).contains(value)
        for by_agent in values.values()
        for agent, value in by_agent.items()
    )
