"""Classes of gymnasium's environments and wrappers with the old API: `CartPoleEnv` and the like.

They are made when they are asked for, so that old code can derive from them: their `reset` returns
the observation alone, their `step` four values.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium

from rllib_compat.gym.core import OldApi, Wrapper, four_values


@cache
def old_class(name: str, today: type, place: str) -> type:
    """The class of an environment or wrapper of gymnasium with the old API.

    Args:
        name: Its name.
        today: gymnasium's class.
        place: The module in which pickle finds it again.
    """
    wraps = issubclass(today, gymnasium.Wrapper)
    members = {"__module__": place, "__qualname__": name, "__doc__": today.__doc__, "todays": today}
    if wraps:
        return type(name, (_OldWrapper,), members)
    return type(name, (_OldEnv, today), members)


class _OldEnv:
    is_old_api = True
    todays: type
    _old_seed: int | None = None

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode, and returns the first observation."""
        seed, self._old_seed = kwargs.pop("seed", None) or self._old_seed, None
        return self.todays.reset(self, seed=seed, **kwargs)[0]  # type: ignore[attr-defined]

    def step(self, action: Any) -> Any:
        """Takes one step: observation, reward, done, info."""
        return four_values(self.todays.step(self, action))  # type: ignore[attr-defined]

    def seed(self, seed: int | None = None) -> list[int | None]:
        """Seeds the next reset."""
        self._old_seed = seed
        return [seed]

    def render(self, mode: str = "human", **_: Any) -> Any:
        """Draws in the mode that is asked for now."""
        self.render_mode = mode
        return self.todays.render(self)  # type: ignore[attr-defined]


class _OldWrapper(Wrapper):
    """A wrapper of gymnasium around an old environment."""

    todays: type

    def __init__(self, env: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(OldApi(self.todays(_AsTodays(env), *args, **kwargs)))


class _AsTodays(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An old environment as one of gymnasium."""

    def __init__(self, env: Any) -> None:
        super().__init__(env.env if type(env) is OldApi else env)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if not getattr(self.env, "is_old_api", False):
            return self.env.reset(seed=seed, options=options)
        if seed is not None:
            self.env.seed(seed)  # type: ignore[attr-defined]
        return self.env.reset(), {}

    def step(self, action: Any) -> Any:
        result: Any = self.env.step(action)
        if len(result) == 5:
            return result
        obs, reward, done, info = result
        truncated = bool(info.get("TimeLimit.truncated", False))
        return obs, reward, bool(done) and not truncated, truncated, info
