"""Classes of today's environments and wrappers with the old API: `CartPoleEnv` and the like.

They are made when they are asked for, so that old code can derive from them: their `reset` returns
the observation alone, their `step` four values. RLlib's kinds of environments are among them.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import gymnasium

from rllib_compat.gym.core import OldApi, Wrapper, four_values


@cache
def old_class(name: str, today: type, place: str, kind: type | None = None) -> type:
    """The class of an environment or wrapper with the old API.

    Args:
        name: Its name.
        today: Today's class.
        place: The module in which pickle finds it again.
        kind: One of the classes below that gives the old API; None for that of gym.
    """
    members = {"__module__": place, "__qualname__": name, "__doc__": today.__doc__, "todays": today}
    if issubclass(today, gymnasium.Wrapper):
        return type(name, (_OldWrapper,), members)
    return type(name, (kind or _OldEnv, today), members)


class _OldEnv:
    """`gym.Env` around the methods of one of gymnasium."""

    is_old_api = True
    todays: type
    _old_seed: int | None = None

    def reset(self, **kwargs: Any) -> Any:
        """Starts an episode, and returns the first observation."""
        given, kept, self._old_seed = kwargs.pop("seed", None), self._old_seed, None
        seed = kept if given is None else given
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


class OldEnvWithoutLimit(_OldEnv):
    """An environment that ends by itself, also where that counts as a truncation today."""

    def step(self, action: Any) -> Any:
        """Takes one step: observation, reward, done, info."""
        step = self.todays.step(self, action)  # type: ignore[attr-defined]
        obs, reward, terminated, truncated, info = step
        return obs, reward, bool(terminated or truncated), info


class OldMultiAgentEnv(_OldEnv):
    """RLlib's `MultiAgentEnv` until Ray 2.2."""

    num_agents: Any = None  # a property today, which Ray's own examples can't set

    def step(self, action_dict: Any) -> Any:
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

    def vector_step(self, actions: Any) -> Any:
        """Steps all: lists of observations, rewards, dones, infos."""
        step = self.todays.vector_step(self, actions)  # type: ignore[attr-defined]
        return tuple(map(list, zip(*map(four_values, zip(*step, strict=True)), strict=True)))


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
