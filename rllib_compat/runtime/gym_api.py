"""Adapts single-agent environments of the old gym API to gymnasium."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rllib_compat.neutral import spaces
from rllib_compat.neutral.errors import LegacyEnvError, ObservationError
from rllib_compat.runtime.policy_mapping import ONLY_AGENT
from rllib_compat.runtime.preprocessors import LegacyPreprocessor, flatten_lists, has_lists

if TYPE_CHECKING:
    from gymnasium import Space

    from rllib_compat.runtime.env_settings import EnvSettings


class LegacyEnvWrapper:
    """A wrapper around a legacy environment, which has the attributes that the wrapper lacks.

    Attributes:
        env: The legacy environment.
        wraps_legacy_env: True, which distinguishes adapters from other environments.
    """

    env: Any
    wraps_legacy_env = True

    def render(self, mode: str | None = None) -> Any:
        """Renders the wrapped environment, whose `render` takes the mode."""
        return self.env.render() if mode is None else self.env.render(mode=mode)

    def close(self) -> None:
        """Closes the wrapped environment, if it can be closed."""
        getattr(self.env, "close", lambda: None)()

    def __getattr__(self, name: str) -> Any:
        if name in ("env", "__setstate__"):
            raise AttributeError(name)
        return getattr(self.env, name)


def metadata_of(env: object) -> dict[str, Any]:
    """Returns a legacy environment's metadata, with the keys that gymnasium requires."""
    return {"render_modes": [], **(getattr(env, "metadata", None) or {})}


# A method that only one kind of RLlib's environments has → that kind, and its replacement.
OTHER_KINDS = {
    "send_actions": "RLlib's BaseEnv; write a gymnasium.Env or a MultiAgentEnv",
}


def adapt_single_agent(env: object, settings: EnvSettings) -> gymnasium.Env[Any, Any]:
    """Wraps `env`, unless it is a gymnasium environment and no setting needs an adapter."""
    if settings.plain and isinstance(env, gymnasium.Env) and has_gymnasium_api(env):
        if settings.old_stack:
            return _cast_in_place(env, settings)
        if not has_lists(spaces.from_object(env.observation_space)):
            if not settings.checks_observations:
                return env
            check = ObservationCheck(settings, env)
            space, cast = adapt_observation_space(env.observation_space, settings, check)
            return gymnasium.wrappers.TransformObservation(env, cast, space)
    return GymAdapter(env, settings)


def _cast_in_place(env: gymnasium.Env[Any, Any], settings: EnvSettings) -> gymnasium.Env[Any, Any]:
    """Has an environment's methods cast its observations; the object stays the user's own.

    Callbacks and custom policies of the old API stack expect that.
    """
    _, cast = adapt_observation_space(
        env.observation_space, settings, ObservationCheck(settings, env)
    )

    def casting(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: object, **kwargs: object) -> tuple[Any, ...]:
            obs, *rest = method(*args, **kwargs)
            return cast(obs), *rest

        return call

    env.reset, env.step = casting(env.reset), casting(env.step)  # type: ignore[method-assign]
    return env


class GymAdapter(LegacyEnvWrapper, gymnasium.Env[Any, Any]):
    """A gymnasium environment around an environment of the old API.

    Attributes that gymnasium lacks are the wrapped environment's.

    Args:
        env: The environment: `reset() -> obs`, a `step` with four values, spaces of any gym.
        settings: Horizon, reward clipping and the like.

    Raises:
        LegacyEnvError: The environment has no API of gym or gymnasium.
    """

    def __init__(self, env: Any, settings: EnvSettings) -> None:
        check(env, "reset", "step", "observation_space", "action_space")
        self.env = env
        self.observation_space, self._cast = adapt_observation_space(
            env.observation_space, settings, ObservationCheck(settings, env)
        )
        self.action_space = to_gymnasium(env.action_space, "action_space")
        self.metadata = metadata_of(env)
        self.render_mode = getattr(env, "render_mode", None)
        self._settings = settings
        self._length = 0
        self.last_raw_obs: Any = None
        # The unclipped rewards of this episode by agent, if rewards are clipped for the learner.
        self.unclipped: dict[str, float] = {}
        # The observation and info at a soft horizon, where the next episode continues.
        self._continue_from: tuple[Any, dict[str, Any]] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode."""
        self._length, self.unclipped = 0, {}
        if self._continue_from is not None:
            (obs, info), self._continue_from = self._continue_from, None
        else:
            obs, info = reset(self.env, seed, options)
        self.last_raw_obs = obs
        return self._cast(obs), info

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one step, and returns gymnasium's five values."""
        obs, reward, terminated, truncated, info = step(self.env, action)
        self.last_raw_obs = obs
        obs, info = self._cast(obs), dict(info or {})
        self._length += 1
        if self._settings.no_done_at_end and terminated:
            terminated, truncated = False, True
        if self._length == self._settings.horizon and not terminated and not truncated:
            truncated = True
            if self._settings.soft_horizon:
                self._continue_from = (obs, info)
        if limit := self._settings.clip_rewards:
            self.unclipped[ONLY_AGENT] = self.unclipped.get(ONLY_AGENT, 0.0) + float(reward)
            reward = clip(float(reward), limit)
        return obs, float(reward), terminated, truncated, info


def reset(env: Any, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, Any]:
    """Resets an environment of any gym API, by its signature and return values."""
    if not takes_seed(env):
        if seed is not None and hasattr(env, "seed"):
            env.seed(seed)
        result = env.reset()
        # gymnasium's `reset(self, **_)` has no parameter `seed`, and returns two values, too.
        if not isinstance(env, gymnasium.Env):
            return result, {}
    else:
        result = env.reset(seed=seed, options=options)
    # gym 0.22 – 0.25 took a seed and still returned the observation alone.
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
        return result
    return result, {}


def step(env: Any, action: Any) -> tuple[Any, Any, bool, bool, Any]:
    """Steps an environment of any gym API; gym's TimeLimit marks truncated episodes."""
    result = env.step(action)
    if len(result) == 5:
        obs, reward, terminated, truncated, info = result
        return obs, reward, bool(terminated), bool(truncated), info
    if len(result) != 4:
        raise LegacyEnvError(
            f"{type(env).__name__}.step() returned {len(result)} values instead of 4 or 5.",
            where="$.env",
            fix="return (obs, reward, done, info), or gymnasium's five values",
        )
    obs, reward, done, info = result
    truncated = bool(done and info and info.get("TimeLimit.truncated", False))
    return obs, reward, bool(done) and not truncated, truncated, info


def takes_seed(env: object) -> bool:
    """Whether the innermost environment's `reset` takes `seed` and `options`."""
    *_, innermost = _layers(env)
    return takes(innermost.reset, "seed", "options")


def takes(method: Callable[..., Any], *names: str) -> bool:
    """Whether a method has parameters with all these names."""
    return set(names) <= inspect.signature(method).parameters.keys()


def has_gymnasium_api(env: object) -> bool:
    """Whether `reset` and `step` have gymnasium's API, through all wrappers."""
    return takes_seed(env) and not any(
        getattr(layer, "is_old_api", False) for layer in _layers(env)
    )


def _layers(env: object) -> Iterator[Any]:
    yield env
    while hasattr(env, "env"):
        env = env.env
        yield env


def clip(reward: float, limit: bool | float | None) -> float:
    """Clips a reward for the learner."""
    if limit is True:
        return float(np.sign(reward))
    return float(np.clip(reward, -limit, limit)) if limit else reward


def caster(space: gymnasium.Space[Any], *, encodes: bool = True) -> Any:
    """Returns a function that casts observations to a space: gym allowed lists and any dtype.

    Args:
        space: The space.
        encodes: Whether a MultiDiscrete becomes one-hot, which has no place for other choices.
    """
    if encodes and isinstance(space, gymnasium.spaces.MultiDiscrete):
        return partial(cast_choices, space)
    if isinstance(space, gymnasium.spaces.Discrete):
        return partial(require_choice, space)
    if isinstance(space, _ARRAYS):
        return partial(cast_array, space.dtype, space.shape)
    if isinstance(space, gymnasium.spaces.Tuple):
        casts = [caster(part, encodes=encodes) for part in space.spaces]
        return lambda obs: tuple(cast(part) for cast, part in zip(casts, obs, strict=True))
    if isinstance(space, gymnasium.spaces.Dict):
        by_key = {key: caster(part, encodes=encodes) for key, part in space.spaces.items()}
        return lambda obs: {**obs, **{key: cast(obs[key]) for key, cast in by_key.items()}}
    return lambda obs: obs


_ARRAYS = gymnasium.spaces.Box, gymnasium.spaces.MultiBinary, gymnasium.spaces.MultiDiscrete


def cast_array(dtype: Any, shape: Any, obs: Any) -> Any:
    """Casts an observation to an array of a space.

    Raises:
        ValueError: It has another shape, text, or values that are no integers of the space's dtype.
    """
    given = np.asarray(obs)
    if given.dtype.kind in "US":
        raise ValueError("it is text")
    made = given.astype(dtype, copy=False)
    if made.shape != shape:
        raise ValueError(f"its shape is {made.shape}")
    if made is not given and dtype.kind in "iu" and not np.array_equal(made, given):
        raise ValueError(f"{dtype} can't represent its values")
    return made


def cast_choices(space: Any, obs: Any) -> Any:
    """Casts an observation to an array of a MultiDiscrete that a one-hot encoding takes.

    Raises:
        ValueError: It has another shape, or choices that the space does not have.
    """
    made = cast_array(space.dtype, space.shape, obs)
    if (made >= space.start + space.nvec).any():
        raise ValueError(f"the last choices are {space.start + space.nvec - 1}")
    return made


def require_choice(space: Any, obs: Any) -> Any:
    """Returns an observation that a one-hot encoding takes: below 0, that counts from the end.

    Of an array of one choice, that is the choice.

    Raises:
        ValueError: It is no integer, or none of the choices.
    """
    given = np.asarray(obs)
    if given.dtype.kind not in "biu" or given.size != 1:
        raise ValueError("it is no integer")
    if given >= space.start + space.n:
        raise ValueError(f"the last choice is {space.start + space.n - 1}")
    return given.item() if given.ndim else obs


class ObservationCheck:
    """Says which observations to compare with their space: those that the config's Ray compared.

    Args:
        settings: The settings of the environment.
        env: The environment of one agent, whose first observations Ray also checked.
    """

    def __init__(self, settings: EnvSettings, env: object = None) -> None:
        self._interval = 100 if settings.checks_every_100th else None
        is_tried = env is not None and not getattr(env, "_skip_env_checking", False)
        self._first = 2 if is_tried and settings.checks_first_two else 0
        self._count = -1

    def is_due(self) -> bool:
        """Whether to check the next observation."""
        self._count += 1
        return self._count < self._first or (
            self._interval is not None and self._count % self._interval == 0
        )


class ObservationCaster:
    """Casts the observations of an environment to their space, and checks some of them.

    Args:
        space: The gymnasium space that the environment declares.
        cast: Casts an observation to it.
        check: Says which to compare with the space.
        agent: The id of the agent whose observations these are, if there are several.
    """

    def __init__(
        self,
        space: gymnasium.Space[Any],
        cast: Callable[[Any], Any],
        check: ObservationCheck,
        agent: Hashable = None,
    ) -> None:
        self._space, self._cast, self._check, self._agent = space, cast, check, agent

    def __call__(self, obs: Any) -> Any:
        """Returns the observation as the space has it.

        Raises:
            ObservationError: It has another shape or structure; or, where it is checked, it is
                outside of the space.
        """
        try:
            made = self._cast(obs)
        except KeyError as error:
            raise self._misfit(obs, f"does not fit it (there is no {error})") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise self._misfit(obs, f"does not fit it ({error})") from error
        if self._check.is_due():
            is_array = isinstance(self._space, gymnasium.spaces.Discrete) and np.ndim(obs) > 0
            if is_array or not self._space.contains(made):
                raise self._misfit(obs, "is outside of it")
        return made

    def _misfit(self, obs: object, how: str) -> ObservationError:
        whose = "An observation" if self._agent is None else f"An observation of {self._agent!r}"
        return ObservationError(
            f"The environment's observation_space is {self._space}. {whose} {how}: "
            f"{textwrap.shorten(repr(obs), 200)}.",
            where="$.env → observation_space",
            fix="make observation_space hold all that reset() and step() return",
        )


def adapt_observation_space(
    space: Space[Any], settings: EnvSettings, check: ObservationCheck, agent: Hashable = None
) -> tuple[gymnasium.Space[Any], ObservationCaster]:
    """Returns the gymnasium space of observations, and what casts them to it.

    Lists of varying length become vectors, except on the old API stack, which has a preprocessor
    for them and custom models that unpack them.
    """
    record = spaces.from_object(space)
    encodes = LegacyPreprocessor(legacy_ray=settings.legacy_ray).encodes_choices
    if record is None or settings.old_stack or not has_lists(record):
        made = to_gymnasium(space, "observation_space")
        return made, ObservationCaster(made, caster(made, encodes=encodes), check, agent)
    made = spaces.to_gymnasium(record)
    cast = caster(made, encodes=encodes)
    return made, ObservationCaster(made, lambda obs: cast(flatten_lists(record, obs)), check, agent)


def to_gymnasium(space: object, name: str) -> gymnasium.Space[Any]:
    """Converts a space of any gym to gymnasium's."""
    if isinstance(space, gymnasium.Space):
        return space
    record = spaces.from_object(space)
    if record is None:
        raise LegacyEnvError(
            f"The {name} {space!r} is not a space of gym or gymnasium.",
            where=f"$.env → {name}",
            fix="use Box, Discrete, MultiDiscrete, MultiBinary, Tuple, Dict or RLlib's Repeated",
        )
    return spaces.to_gymnasium(record)


def check(env: object, *names: str) -> None:
    """Checks that `env` has the attributes that an environment needs.

    Raises:
        LegacyEnvError: It lacks one of `names`, or is of an unsupported kind.
    """
    other = next((what for method, what in OTHER_KINDS.items() if hasattr(env, method)), None)
    missing = [name for name in names if getattr(env, name, None) is None]
    if other or missing:
        raise LegacyEnvError(
            f"{type(env).__name__} is {other}."
            if other
            else f"{type(env).__name__} has no {' and no '.join(missing)}.",
            where="$.env",
            fix="pass an environment with reset(), step(), observation_space and action_space",
        )
