"""`gym.envs.registration`: environments of the old API in gymnasium's registry."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rllib_compat.gym.core import OldApi, Wrapper
from rllib_compat.runtime.atari import game_spec
from rllib_compat.runtime.envs import resolve_env_name

__all__ = ["EnvSpec", "make", "register", "registry", "spec"]


class TimeLimit(Wrapper):
    """Ends an episode after a number of steps, and says so in the info."""

    def __init__(self, env: Any, max_episode_steps: int | None = None) -> None:
        super().__init__(env)
        self._max_episode_steps = max_episode_steps
        self._elapsed_steps = 0

    def reset(self, **kwargs: object) -> Any:
        """Starts an episode."""
        self._elapsed_steps = 0
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
        """Takes one step."""
        self._elapsed_steps += 1
        *start, done, info = super().step(action)
        if self._elapsed_steps < (self._max_episode_steps or math.inf):
            return (*start, done, info)
        return (*start, True, {**info, "TimeLimit.truncated": not done})


class OldEntryPoint:
    """Makes an environment of the old API, named `module:name` or not, for gymnasium's registry."""

    is_old_api = True

    def __init__(self, entry_point: Any, max_episode_steps: int | None) -> None:
        self.entry_point = entry_point
        self.max_episode_steps = max_episode_steps

    def __call__(self, **kwargs: Any) -> Any:
        creator = self.entry_point
        if isinstance(creator, str):
            module, _, name = creator.partition(":")
            creator = getattr(importlib.import_module(module), name)
        env = creator(**kwargs)
        return TimeLimit(env, self.max_episode_steps) if self.max_episode_steps else env


def register(
    id: str,  # noqa: A002
    entry_point: Any = None,
    *,
    max_episode_steps: int | None = None,
    kwargs: dict[str, Any] | None = None,
    **_: object,
) -> None:
    """Registers an environment of the old API."""
    gymnasium.register(
        id,
        OldEntryPoint(entry_point, max_episode_steps),
        kwargs=kwargs or {},
        disable_env_checker=True,
        order_enforce=False,
    )


def make(name: Any, **kwargs: Any) -> Any:
    """Makes the environment of that name, or of the next version that gymnasium has."""
    found, _ = resolve_env_name(name) if isinstance(name, str) else (name, None)
    env = gymnasium.make(game_spec(found) or found, **kwargs)
    entry = getattr(env.spec, "entry_point", None)
    if env.spec is not None and isinstance(entry, OldEntryPoint):
        # gymnasium does not get the limit, as its own wrapper would end episodes by its own API.
        env.unwrapped.spec = replace(env.spec, max_episode_steps=entry.max_episode_steps)
    return env if getattr(env, "is_old_api", False) else OldApi(env)


def spec(name: str) -> EnvSpec:
    """What is registered under a name."""
    found, _ = resolve_env_name(name)
    return game_spec(found) or gymnasium.spec(found)


class _Registry(dict[str, EnvSpec]):
    """gymnasium's registry, with the attributes that gym's had."""

    @property
    def env_specs(self) -> Any:
        """The registry itself."""
        return gymnasium.registry

    def all(self) -> Any:
        """All that is registered."""
        return gymnasium.registry.values()

    def __missing__(self, name: str) -> EnvSpec:
        return gymnasium.registry[name]

    def __contains__(self, name: object) -> bool:
        return name in gymnasium.registry


registry = _Registry()
