"""The old API of environments: base classes, wrappers, and today's classes with it.

Classes of gymnasium's environments and wrappers get the old API when they are asked for
(`make_old_class`), so that old code can derive from them: their `reset` returns the observation
alone, their `step` four values. RLlib's kinds of environments are among them.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import gymnasium

from rllib_compat.gym.error import Error
from rllib_compat.gym.seeding import np_random

if TYPE_CHECKING:
    from gymnasium import Space


class Env(gymnasium.Env[Any, Any]):
    """`gym.Env` until 0.25: `reset() → obs`, a `step` of four values, and `seed()`."""

    is_old_api = True
    reward_range = (-float("inf"), float("inf"))

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode, and returns the first observation; subclasses say how.

        Those of gym 0.26, which was gymnasium already, call it with `seed` and `options`.
        """
        return super().reset(**kwargs)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seeds the environment's own random numbers."""
        made, used = np_random(seed)
        self.np_random: Any = made
        return [used]

    def render(self, mode: str = "human", **_: object) -> Any:
        """Draws the environment."""
        raise NotImplementedError


class GoalEnv(Env):
    """An environment with a goal: it observes a dict of three parts, and has `compute_reward`."""

    def reset(self, **kwargs: Any) -> Any:
        """Checks the observation space; subclasses call it first.

        Raises:
            Error: It is no Dict, or lacks a part.
        """
        parts = getattr(self.observation_space, "spaces", {})
        for name in ("observation", "achieved_goal", "desired_goal"):
            if name not in parts:
                raise Error(f"A GoalEnv's observation_space is a Dict with the part {name!r}.")
        return super().reset(**kwargs)


def _inherited_space(name: str) -> property:
    """The space of the environment inside, unless the wrapper has set its own."""

    def get(self: Any) -> Any:
        own = self.__dict__.get("_spaces", {})
        return own[name] if name in own else getattr(self.env, name)

    def set_own(self: object, space: Space[Any]) -> None:
        self.__dict__.setdefault("_spaces", {})[name] = space

    return property(get, set_own)


class Wrapper(Env):
    """`gym.Wrapper`: passes everything on to the environment inside.

    Args:
        env: An environment of the old API, or one of gymnasium.
    """

    def __init__(self, env: Any) -> None:
        self.env = OldApi(env) if is_todays(env) and type(self) is not OldApi else env
        self._spaces: dict[str, Any] = {}
        self.metadata = getattr(env, "metadata", {})
        self.reward_range = getattr(env, "reward_range", Env.reward_range)

    def __str__(self) -> str:
        return f"<{type(self).__name__}{self.env}>"

    @classmethod
    def class_name(cls) -> str:
        """The name of the class."""
        return cls.__name__

    observation_space: Any = _inherited_space("observation_space")
    action_space: Any = _inherited_space("action_space")

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """What the environment inside was registered as."""
        return getattr(self.env, "spec", None)

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return self.env.unwrapped

    def reset(self, **kwargs: Any) -> Any:
        return self.env.reset(**kwargs)

    def step(self, action: object) -> Any:
        return self.env.step(action)

    def seed(self, seed: int | None = None) -> Any:
        return getattr(self.env, "seed", lambda _: [seed])(seed)

    def render(self, mode: str = "human", **kwargs: Any) -> Any:
        return self.env.render(mode=mode, **kwargs)

    def close(self) -> None:
        getattr(self.env, "close", lambda: None)()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)


def _of_time_limit(name: str) -> property:
    """What old code reads and sets of gymnasium's `TimeLimit`, which is the outermost wrapper."""

    def get(self: Any) -> Any:
        return getattr(self.env, name)

    def set_inside(self: Any, value: object) -> None:
        setattr(self.env, name, value)

    return property(get, set_inside)


class OldApi(Wrapper):
    """A gymnasium environment with the methods that gym had until 0.25.

    Args:
        env: The environment. A class of gymnasium becomes old by `OldApi(TheClass())`.
    """

    _seed: int | None = None

    _max_episode_steps = _of_time_limit("_max_episode_steps")
    _elapsed_steps = _of_time_limit("_elapsed_steps")

    def reset(self, *, seed: int | None = None, options: Any = None, **_: object) -> Any:
        """Starts an episode; returns the observation alone."""
        if seed is None:
            seed, self._seed = self._seed, None
        return self.env.reset(seed=seed, options=options)[0]

    def step(self, action: object) -> Any:
        """Takes one step.

        Returns:
            Observation, reward, done, info. As gym's TimeLimit did, info has a truncation as
            `TimeLimit.truncated`.
        """
        return four_values(self.env.step(action))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        inside = self.env
        try:
            return getattr(inside, "get_wrapper_attr", partial(getattr, inside))(name)
        except AttributeError:
            return _of_tables(self.unwrapped, name)

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seeds the environment: one of gymnasium's own as gym's, any other at the next reset."""
        inner = self.unwrapped
        if type(inner).__module__.startswith("gymnasium.envs."):
            inner.np_random, used = np_random(seed)
            return [used]
        self._seed = seed
        return [seed]

    def render(self, mode: str = "human", **_: object) -> Any:
        """Renders in the mode that is asked for now, and not when the environment was made."""
        self.unwrapped.render_mode = mode
        return self.unwrapped.render()


#: Attributes of gym's environments by tables → what they are in gymnasium's.
_OF_TABLES = {"nS": "observation_space.n", "nA": "action_space.n", "isd": "initial_state_distrib"}


def _of_tables(env: Any, name: str) -> Any:
    if name not in _OF_TABLES or not hasattr(env, "P"):
        raise AttributeError(f"{type(env).__name__!r} object has no attribute {name!r}")
    return attrgetter(_OF_TABLES[name])(env)


class ObservationWrapper(Wrapper):
    """Changes observations by its method `observation`."""

    def reset(self, **kwargs: Any) -> Any:
        return self.observation(self.env.reset(**kwargs))

    def step(self, action: object) -> Any:
        obs, *more = self.env.step(action)
        return (self.observation(obs), *more)

    def observation(self, observation: object) -> Any:
        raise NotImplementedError


class RewardWrapper(Wrapper):
    """Changes rewards by its method `reward`."""

    def step(self, action: object) -> Any:
        obs, reward, *more = self.env.step(action)
        return (obs, self.reward(reward), *more)

    def reward(self, reward: object) -> Any:
        raise NotImplementedError


class ActionWrapper(Wrapper):
    """Changes actions by its method `action`."""

    def step(self, action: object) -> Any:
        return super().step(self.action(action))

    def action(self, action: object) -> Any:
        raise NotImplementedError


def four_values(result: tuple[Any, ...]) -> Any:
    """The result of a step as it was, whichever it is."""
    if len(result) == 4:
        return result
    obs, reward, terminated, truncated, info = result
    if truncated:
        info = {**info, "TimeLimit.truncated": not terminated}
    return obs, reward, bool(terminated or truncated), info


def is_todays(env: object) -> bool:
    """Whether an environment has gymnasium's API, and not gym's."""
    if getattr(env, "is_old_api", False) or not isinstance(env, gymnasium.Env):
        return False
    return "seed" in inspect.signature(env.reset).parameters


@cache
def make_old_class(name: str, today: type, place: str, kind: type | None = None) -> type:
    """The class of an environment or wrapper with the old API.

    `place` is the module in which pickle finds it again, `kind` one of the classes below that give
    the old API; None: that of gym.
    """
    members = {"__module__": place, "__qualname__": name, "__doc__": today.__doc__, "todays": today}
    if issubclass(today, gymnasium.Wrapper):
        return type(name, (_OldWrapper,), members)
    return type(name, (kind or _OldEnv, today), members)


class _OldMethods:
    """The methods of `gym.Env` around those of an environment of gymnasium."""

    is_old_api = True
    todays: type
    _np_random: Any

    @property
    def np_random(self) -> Any:
        """The random numbers of this environment."""
        if self._np_random is None:
            self.seed()
        return self._np_random

    @np_random.setter
    def np_random(self, value: Any) -> None:
        self._np_random = value

    def reset(self, *, seed: Any = None, **kwargs: object) -> Any:
        if seed is not None:
            self.seed(seed)
        return self.todays.reset(self, **kwargs)[0]  # type: ignore[attr-defined]

    def step(self, action: object) -> Any:
        return four_values(self.todays.step(self, action))  # type: ignore[attr-defined]

    def seed(self, seed: int | None = None) -> list[int | None]:
        self.np_random, used = np_random(seed)
        return [used]

    def render(self, mode: str = "human", **_: object) -> Any:
        self.render_mode = mode
        return self.todays.render(self)  # type: ignore[attr-defined]


class _OldEnv(_OldMethods, Env):  # type: ignore[misc]  # of `render_mode`
    """`gym.Env` around the methods of one of gymnasium."""

    def __getattr__(self, name: str) -> Any:
        return _of_tables(self, name)


class OldEnvWithoutLimit(_OldEnv):
    """An environment that ends by itself, also where that counts as a truncation today."""

    def step(self, action: object) -> Any:
        step = self.todays.step(self, action)  # type: ignore[attr-defined]
        obs, reward, terminated, truncated, info = step
        return obs, reward, bool(terminated or truncated), info


class OldMultiAgentEnv(_OldMethods):
    """RLlib's `MultiAgentEnv` until Ray 2.2."""

    num_agents: Any = None  # a property today, which Ray's own examples can't set

    def step(self, action_dict: object) -> Any:
        """Takes one step: observations, rewards, dones, infos by agent."""
        step = self.todays.step(self, action_dict)  # type: ignore[attr-defined]
        obs, rewards, terminated, truncated, infos = step
        dones = {agent: bool(end or truncated.get(agent)) for agent, end in terminated.items()}
        return obs, rewards, dones, infos


class OldVectorEnv:
    """RLlib's `VectorEnv` until Ray 2.2."""

    todays: type

    def vector_reset(self) -> Any:
        """Resets all, and returns their observations."""
        return self.todays.vector_reset(self)[0]  # type: ignore[attr-defined]

    def reset_at(self, index: int) -> Any:
        """Resets one, and returns its observation."""
        return self.todays.reset_at(self, index)[0]  # type: ignore[attr-defined]

    def vector_step(self, actions: object) -> Any:
        """Steps all: lists of observations, rewards, dones, infos."""
        step = self.todays.vector_step(self, actions)  # type: ignore[attr-defined]
        return tuple(map(list, zip(*map(four_values, zip(*step, strict=True)), strict=True)))


class _OldWrapper(Wrapper):
    """A wrapper of gymnasium around an old environment."""

    todays: type

    def __init__(self, env: Any, *args: object, **kwargs: object) -> None:
        super().__init__(OldApi(self.todays(AsTodays(env), *args, **kwargs)))


class AsTodays(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An old environment as one of gymnasium."""

    def __init__(self, env: Any) -> None:
        super().__init__(env.env if type(env) is OldApi else env)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Starts an episode: the observation, and its info."""
        if not getattr(self.env, "is_old_api", False):
            return self.env.reset(seed=seed, options=options)
        if seed is not None:
            self.env.seed(seed)  # type: ignore[attr-defined]
        return self.env.reset(), {}

    def step(self, action: object) -> Any:
        """Takes one step, of gymnasium's five values."""
        result: Any = self.env.step(action)
        if len(result) == 5:
            return result
        obs, reward, done, info = result
        truncated = bool(info.get("TimeLimit.truncated", False))
        return obs, reward, bool(done) and not truncated, truncated, info
