"""`gym.envs.registration`: environments of the old API in gymnasium's registry."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import math
from dataclasses import fields
from typing import Any

import gymnasium
from gymnasium.envs import registration

from rllib_compat.gym.core import OldApi, Wrapper, is_todays
from rllib_compat.runtime.atari import game_spec
from rllib_compat.runtime.envs import resolve_env_name

__all__ = ["EnvRegistry", "EnvSpec", "load", "make", "register", "registry", "spec"]


class TimeLimit(Wrapper):
    """Ends an episode after a number of steps, and says so in the info."""

    def __init__(self, env: Any, max_episode_steps: int | None = None) -> None:
        super().__init__(env)
        self._max_episode_steps = max_episode_steps
        self._elapsed_steps = 0

    def reset(self, **kwargs: object) -> Any:
        self._elapsed_steps = 0
        return super().reset(**kwargs)

    def step(self, action: object) -> Any:
        self._elapsed_steps += 1
        *start, done, info = super().step(action)
        if self._elapsed_steps < (self._max_episode_steps or math.inf):
            return (*start, done, info)
        return (*start, True, {**info, "TimeLimit.truncated": not done})


def load(name: str) -> Any:
    """The object of a name `module:name`."""
    module, _, attribute = name.partition(":")
    if module.startswith("gym.envs.") and importlib.util.find_spec("gym") is None:
        module = f"rllib_compat.{module}"
    if module.startswith("rllib_compat.gym.envs."):
        importlib.import_module("rllib_compat.gym.envs")  # which makes its modules
    return getattr(importlib.import_module(module), attribute)


class OldEntryPoint:
    """Makes an environment of the old API, named `module:name` or not, for gymnasium's registry."""

    is_old_api = True

    def __init__(self, entry_point: Any) -> None:
        self.entry_point = entry_point

    def __call__(self, **kwargs: Any) -> Any:
        entry = self.entry_point
        return (load(entry) if isinstance(entry, str) else entry)(**kwargs)


class EnvSpec(registration.EnvSpec):
    """What is registered under a name; `make` gives an environment of the old API."""

    @property
    def _kwargs(self) -> dict[str, Any]:
        return self.kwargs

    def make(self, **kwargs: Any) -> Any:
        """Makes the environment."""
        entry = self.entry_point
        if isinstance(entry, str) and entry.startswith("gymnasium.envs."):
            entry = f"rllib_compat.gym{entry.removeprefix('gymnasium')}"
            folder = entry.split(".")[3]
            if folder not in ("box2d", "classic_control", "mujoco", "toy_text"):
                return OldApi(gymnasium.make(self, **kwargs))
        own = copy.deepcopy(self)
        steps = kwargs.pop("max_episode_steps", None)
        own.kwargs.update(kwargs)
        env: Any = OldEntryPoint(entry)(**own.kwargs)
        getattr(env, "unwrapped", env).spec = own
        if limit := steps or self.max_episode_steps:
            return TimeLimit(env, limit)
        return OldApi(env) if is_todays(env) else env


def register(
    id: str,  # noqa: A002
    entry_point: Any = None,
    reward_threshold: float | None = None,
    nondeterministic: bool = False,
    max_episode_steps: int | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    **_: object,
) -> None:
    """Registers an environment of the old API."""
    gymnasium.registry[id] = EnvSpec(
        id,
        OldEntryPoint(entry_point),
        reward_threshold,
        nondeterministic,
        max_episode_steps,
        order_enforce=False,
        disable_env_checker=True,
        kwargs=kwargs or {},
    )


def make(name: Any, **kwargs: Any) -> Any:
    """Makes the environment of that name, or of the next version that gymnasium has."""
    known = name if isinstance(name, registration.EnvSpec) else _find(name)
    return _with_old_make(known).make(**kwargs)


def spec(name: str) -> Any:
    """What is registered under a name."""
    known = _with_old_make(_find(name))
    gymnasium.registry[known.id] = known  # what old code changes in it holds for `make`
    return known


def _with_old_make(known: registration.EnvSpec) -> EnvSpec:
    if isinstance(known, EnvSpec):
        return known
    return EnvSpec(**{f.name: getattr(known, f.name) for f in fields(known) if f.init})


def _find(name: str) -> registration.EnvSpec:
    """The row of gymnasium's registry for a name `module:name` or a name."""
    module, _, name = name.rpartition(":")
    if module:
        importlib.import_module(module)
    found, _note = resolve_env_name(name)
    return game_spec(found) or gymnasium.spec(found)


class EnvRegistry(dict[str, registration.EnvSpec]):
    """gymnasium's registry, with the attributes that gym's had."""

    make = staticmethod(make)
    register = staticmethod(register)
    spec = staticmethod(spec)

    @property
    def env_specs(self) -> Any:
        """The registry itself."""
        return gymnasium.registry

    def all(self) -> Any:
        """All that is registered."""
        return gymnasium.registry.values()

    def __missing__(self, name: str) -> registration.EnvSpec:
        return gymnasium.registry[name]

    def __contains__(self, name: object) -> bool:
        return name in gymnasium.registry


registry = EnvRegistry()
