"""The old gym API over the installed gymnasium: `from rllib_compat import gym`.

For code of its time that makes environments itself and steps them: `gym.make(…)` gives one with
`reset() → obs`, a `step` of four values, `seed()` and `render(mode)`. All other names, `Env` and
`spaces` among them, are gymnasium's own.
"""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium  # noqa: TID253 - this module is nothing without it

from rllib_compat.runtime.envs import resolve_env_name


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
        obs, reward, terminated, truncated, info = self.env.step(action)
        if truncated:
            info = {**info, "TimeLimit.truncated": not terminated}
        return obs, reward, terminated or truncated, info

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seeds the environment; gymnasium does that with the next reset."""
        self._seed = seed
        return [seed]

    def render(self, mode: str = "human", **_: Any) -> Any:
        """Renders in the mode that is asked for now, and not when the environment was made."""
        self.unwrapped.render_mode = mode
        return self.unwrapped.render()


def make(name: str, **kwargs: Any) -> OldApi:
    """Makes the environment of that name, or of the next version that gymnasium has."""
    return OldApi(gymnasium.make(resolve_env_name(name)[0], **kwargs))


def __getattr__(name: str) -> Any:
    if hasattr(gymnasium, name):
        return getattr(gymnasium, name)
    try:
        return importlib.import_module(f"gymnasium.{name}")
    except ImportError as error:
        raise AttributeError(f"neither gymnasium nor {__name__} has {name!r}") from error
