"""The classes that old environments derive from: `Env`, and wrappers around old environments."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium

from rllib_compat.gym.seeding import np_random


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
        self.np_random, used = np_random(seed)
        return [used]

    def render(self, mode: str = "human", **_: Any) -> Any:
        """Draws the environment."""
        raise NotImplementedError


GoalEnv = Env


class OldApi(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A gymnasium environment with the methods that gym had until 0.25.

    Args:
        env: The environment. A class of gymnasium becomes old by `OldApi(TheClass())`.
    """

    is_old_api = True

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._seed: int | None = None

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode.

        Returns:
            The observation alone.
        """
        if seed is None:
            seed, self._seed = self._seed, None
        return self.env.reset(seed=seed, options=options)[0]

    def step(self, action: Any) -> Any:
        """Takes one step.

        Returns:
            Observation, reward, done, info. As gym's TimeLimit did, info tells a truncation by
            `TimeLimit.truncated`.
        """
        return four_values(self.env.step(action))

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seeds the environment; gymnasium does that with the next reset."""
        self._seed = seed
        return [seed]

    def render(self, mode: str = "human", **_: Any) -> Any:
        """Renders in the mode that is asked for now, and not when the environment was made."""
        self.unwrapped.render_mode = mode
        return self.unwrapped.render()


class Wrapper(Env):
    """`gym.Wrapper`: passes everything on to the environment inside.

    Args:
        env: An environment of the old API, or one of gymnasium.
    """

    def __init__(self, env: Any) -> None:
        self.env = env if getattr(env, "is_old_api", False) or not _is_todays(env) else OldApi(env)
        self._spaces: dict[str, Any] = {}
        self.metadata = getattr(env, "metadata", {})

    @property
    def observation_space(self) -> Any:
        """That of the environment inside, unless the wrapper has set its own."""
        return self._own_space("observation_space")

    @observation_space.setter
    def observation_space(self, space: Any) -> None:
        self.__dict__.setdefault("_spaces", {})["observation_space"] = space

    @property
    def action_space(self) -> Any:
        """That of the environment inside, unless the wrapper has set its own."""
        return self._own_space("action_space")

    @action_space.setter
    def action_space(self, space: Any) -> None:
        self.__dict__.setdefault("_spaces", {})["action_space"] = space

    @property
    def spec(self) -> Any:  # type: ignore[override]
        """What the environment inside was registered as."""
        return getattr(self.env, "spec", None)

    @property
    def unwrapped(self) -> Any:
        """The innermost environment."""
        return self.env.unwrapped

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode, and returns the first observation."""
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        """Takes one step: observation, reward, done, info."""
        return self.env.step(action)

    def seed(self, seed: int | None = None) -> Any:
        """Seeds the environment inside."""
        return getattr(self.env, "seed", lambda _: [seed])(seed)

    def render(self, mode: str = "human", **kwargs: Any) -> Any:
        """Draws the environment inside."""
        return self.env.render(mode=mode, **kwargs)

    def close(self) -> None:
        """Closes the environment inside."""
        getattr(self.env, "close", lambda: None)()

    def _own_space(self, name: str) -> Any:
        own = self.__dict__.get("_spaces", {})
        return own[name] if name in own else getattr(self.env, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)


class ObservationWrapper(Wrapper):
    """Changes observations by its method `observation`."""

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode, and returns the changed observation."""
        return self.observation(self.env.reset(**kwargs))

    def step(self, action: Any) -> Any:
        """Takes one step."""
        obs, *more = self.env.step(action)
        return (self.observation(obs), *more)

    def observation(self, observation: Any) -> Any:
        """The changed observation."""
        raise NotImplementedError


class RewardWrapper(Wrapper):
    """Changes rewards by its method `reward`."""

    def step(self, action: Any) -> Any:
        """Takes one step."""
        obs, reward, *more = self.env.step(action)
        return (obs, self.reward(reward), *more)

    def reward(self, reward: Any) -> Any:
        """The changed reward."""
        raise NotImplementedError


class ActionWrapper(Wrapper):
    """Changes actions by its method `action`."""

    def step(self, action: Any) -> Any:
        """Takes one step with the changed action."""
        return super().step(self.action(action))

    def action(self, action: Any) -> Any:
        """The changed action."""
        raise NotImplementedError


def four_values(result: Any) -> Any:
    """The result of a step as it was, whichever it is."""
    if len(result) == 4:
        return result
    obs, reward, terminated, truncated, info = result
    if truncated:
        info = {**info, "TimeLimit.truncated": not terminated}
    return obs, reward, bool(terminated or truncated), info


def _is_todays(env: Any) -> bool:
    return isinstance(env, gymnasium.Env) and "seed" in inspect.signature(env.reset).parameters
