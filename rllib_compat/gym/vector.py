"""`gym.vector` until 0.21: several environments of the old API, stepped together."""

from __future__ import annotations

import copy as copies
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from gymnasium.spaces import Space, Tuple
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

from rllib_compat.gym.core import Env
from rllib_compat.gym.registration import make as make_env

__all__ = ["AsyncVectorEnv", "SyncVectorEnv", "VectorEnv", "VectorEnvWrapper", "make"]


class VectorEnv(Env):
    """What steps several environments together; subclasses say how."""

    is_vector_env = True

    def __init__(self, num_envs: int, observation_space: Space[Any], action_space: Space[Any]):
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = Tuple((action_space,) * num_envs)
        self.closed = False
        self._actions: Any = ()

    def reset_async(self) -> None:
        """Begins a reset."""

    def reset_wait(self, **_: object) -> Any:
        """Ends a reset, and returns the first observations."""
        raise NotImplementedError

    def reset(self, **_: object) -> Any:
        """Starts all episodes, and returns the first observations."""
        self.reset_async()
        return self.reset_wait()

    def step_async(self, actions: object) -> None:
        """Begins a step."""
        self._actions = actions

    def step_wait(self, **_: object) -> Any:
        """Ends a step."""
        raise NotImplementedError

    def step(self, action: Any) -> Any:
        """Takes a step in each: observations, rewards, dones, infos.

        A finished episode is reset at once: its observation is the first of the next.
        """
        self.step_async(action)
        return self.step_wait()

    def close_extras(self, **_: object) -> None:
        """Closes what a subclass has."""

    def close(self, **kwargs: object) -> None:
        """Closes all environments, once."""
        if not self.closed:
            self.close_extras(**kwargs)
            self.closed = True


class SyncVectorEnv(VectorEnv):
    """Steps environments one after the other; spaces are by default those of the first."""

    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        copy: bool = True,
    ) -> None:
        self.env_fns = list(env_fns)
        self.envs = [create() for create in self.env_fns]
        first = self.envs[0]
        self.metadata = first.metadata
        super().__init__(
            len(self.envs),
            observation_space or first.observation_space,
            action_space or first.action_space,
        )
        if any(env.observation_space != self.single_observation_space for env in self.envs):
            raise RuntimeError(
                f"All environments need the same observation space: {self.single_observation_space}"
            )
        self.copy = copy
        self.observations = create_empty_array(self.single_observation_space, self.num_envs)

    def seed(self, seeds: Any = None) -> Any:
        """Seeds each: with its own, or with consecutive ones from a number on."""
        if seeds is None:
            seeds = [None] * self.num_envs
        elif isinstance(seeds, (int, np.integer)):
            seeds = range(int(seeds), int(seeds) + self.num_envs)
        return [env.seed(one) for env, one in zip(self.envs, seeds, strict=True)]

    def reset_wait(self, **_: object) -> Any:
        return self._together([env.reset() for env in self.envs])

    def step_wait(self, **_: object) -> Any:
        steps = [env.step(one) for env, one in zip(self.envs, self._actions, strict=True)]
        observations, rewards, dones, infos = map(list, zip(*steps, strict=True))
        for index in np.flatnonzero(dones):
            observations[index] = self.envs[index].reset()
        seen = self._together(observations)
        return seen, np.array(rewards, float), np.array(dones, bool), infos

    def call(self, name: str, *args: object, **kwargs: object) -> tuple[Any, ...]:
        """What each has by a name, called if it is a method (since gym 0.22)."""
        found = [getattr(env, name) for env in self.envs]
        return tuple(one(*args, **kwargs) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of each: to its own value, or to one for all."""
        own = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        for env, value in zip(self.envs, own, strict=True):
            setattr(env, name, value)

    def _together(self, observations: list[Any]) -> Any:
        space = self.single_observation_space
        self.observations = concatenate(space, observations, self.observations)
        return copies.deepcopy(self.observations) if self.copy else self.observations

    def close_extras(self, **_: object) -> None:
        """Closes each."""
        for env in self.envs:
            env.close()


class AsyncVectorEnv(SyncVectorEnv):
    """Steps environments in this process, with the results that processes of their own gave.

    `shared_memory`, `context`, `daemon` and `worker` said how processes were made.
    """

    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        shared_memory: bool = True,  # noqa: ARG002
        copy: bool = True,
        context: str | None = None,  # noqa: ARG002
        daemon: bool = True,  # noqa: ARG002
        worker: object = None,
    ) -> None:
        if worker is not None:
            raise NotImplementedError("Environments run in this process: `worker` is not called.")
        super().__init__(env_fns, observation_space, action_space, copy)

    def step_wait(self, **kwargs: object) -> Any:
        """Takes a step in each; infos are a tuple, as of processes."""
        *start, infos = super().step_wait(**kwargs)
        return (*start, tuple(infos))


class VectorEnvWrapper(VectorEnv):
    """Passes everything on to the environments inside."""

    def __init__(self, env: VectorEnv) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.env, name)

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return self.env.unwrapped

    def reset_async(self) -> None:
        self.env.reset_async()

    def reset_wait(self, **_: object) -> Any:
        return self.env.reset_wait()

    def step_async(self, actions: object) -> None:
        self.env.step_async(actions)

    def step_wait(self, **_: object) -> Any:
        return self.env.step_wait()

    def seed(self, seeds: Any = None) -> Any:
        return self.env.seed(seeds)

    def close(self, **kwargs: object) -> None:
        self.env.close(**kwargs)


def make(
    id: str,  # noqa: A002
    num_envs: int = 1,
    asynchronous: bool = True,
    wrappers: Any = None,
    **kwargs: object,
) -> VectorEnv:
    """Makes several environments of one name, in one wrapper or in several, the innermost first."""

    def make_one() -> Any:
        env = make_env(id, **kwargs)
        for wrap in [wrappers] if callable(wrappers) else wrappers or ():
            env = wrap(env)
        return env

    return (AsyncVectorEnv if asynchronous else SyncVectorEnv)([make_one] * num_envs)
