"""Small things of `ray.rllib.utils`, `.env` and `.evaluation` that today's Ray has not."""

from __future__ import annotations

import importlib.util
import logging
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import gymnasium
import numpy as np
from ray.rllib.env import BaseEnv, ExternalEnv, MultiAgentEnv, VectorEnv
from ray.rllib.utils.actors import create_colocated_actors
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from rllib_compat import gym
from rllib_compat.neutral.errors import LegacyEnvError

__all__ = [
    "ResetOnExceptionWrapper",
    "TooManyResetAttemptsException",
    "TupleActions",
    "UsageTrackingDict",
    "averaged",
    "check_env",
    "check_framework",
    "check_gym_environments",
    "check_multi_agent",
    "create_colocated",
    "extract_stats",
    "framework_iterator",
    "moved_function",
    "renamed_agent",
    "renamed_class",
    "renamed_function",
    "to_float_array",
    "to_float_np_array",
    "try_import_tree",
]

logger = logging.getLogger(__name__)

Given = TypeVar("Given")


class TooManyResetAttemptsException(Exception):  # noqa: N818 - its name in Ray 1.10 – 2.10
    """An environment has failed to reset as often as it may.

    Args:
        max_attempts: How often.
    """

    def __init__(self, max_attempts: int) -> None:
        super().__init__(f"The environment has failed to reset {max_attempts} times.")


class ResetOnExceptionWrapper(gym.Wrapper):
    """Resets an environment that raises in a step, and tries again where it raises in a reset.

    Args:
        env: The environment.
        max_reset_attempts: How often a reset may fail.
    """

    def __init__(self, env: Any, max_reset_attempts: int = 5) -> None:
        self.max_reset_attempts = max_reset_attempts
        super().__init__(env)

    def reset(self, **kwargs: Any) -> Any:
        """Resets the environment, and does so again while that fails.

        Raises:
            TooManyResetAttemptsException: It has failed too often.
        """
        for _ in range(self.max_reset_attempts):
            done, first = _try(self.env.reset, **kwargs)
            if done:
                return first
        raise TooManyResetAttemptsException(self.max_reset_attempts)

    def step(self, action: Any) -> Any:
        """Makes a step; after a failure, that of a new episode, whose info has `__terminated__`."""
        done, result = _try(self.env.step, action)
        return result if done else (self.reset(), 0.0, False, {"__terminated__": True})


def _try(call: Callable[..., Any], *arguments: Any, **by_name: Any) -> tuple[bool, Any]:
    """Whether a call has ended without an error, and what it has given."""
    try:
        return True, call(*arguments, **by_name)
    except Exception:  # whatever an environment raises
        logger.exception("The environment has failed.")
        return False, None


def check_env(env: Any) -> None:
    """Tries an environment: spaces, a reset and a step.

    Args:
        env: An environment of gym's or gymnasium's API, or one of several agents; others of RLlib
            are not tried.

    Raises:
        LegacyEnvError: It is no environment, or something is not as its spaces say.
    """
    if getattr(env, "_skip_env_checking", False):
        return
    checks = {MultiAgentEnv: check_multiagent_environments, gymnasium.Env: check_gym_environments}
    check = next((checks[kind] for kind in checks if isinstance(env, kind)), None)
    if check is not None:
        check(env)
    elif not isinstance(env, (BaseEnv, ExternalEnv, VectorEnv)):
        raise LegacyEnvError(
            f"{type(env).__name__} is no environment.",
            where="check_env",
            fix="Derive it from gym.Env or from ray.rllib.env.MultiAgentEnv.",
        )


def check_gym_environments(env: Any) -> None:
    """Resets an environment of one agent and makes a step.

    Raises:
        LegacyEnvError: A space is missing, or something is not as the spaces say.
    """
    for name in ("observation_space", "action_space"):
        if not isinstance(getattr(env, name, None), gymnasium.Space):
            raise _error(env, f"has no {name} that is a space")
    first = env.reset()
    _check_observation(env, first[0] if _is_todays(env, first) else first)
    observation, reward, *ended, info = env.step(env.action_space.sample())
    _check_observation(env, observation)
    if not np.isscalar(reward):
        raise _error(env, f"gives {type(reward).__name__} for a reward")
    if not ended or not all(isinstance(flag, (bool, np.bool_)) for flag in ended):
        raise _error(env, "says with no bool whether the episode has ended")
    if not isinstance(info, Mapping):
        raise _error(env, f"gives {type(info).__name__} for an info")


def _is_todays(env: Any, first: Any) -> bool:
    """Whether a reset has given an observation and an info."""
    pair = isinstance(first, tuple) and len(first) == 2 and isinstance(first[1], dict)
    return pair and not env.observation_space.contains(first)


def _check_observation(env: Any, observation: Any) -> None:
    if not env.observation_space.contains(observation):
        raise _error(env, f"observes what is not in {env.observation_space}: {observation!r}")


def _error(env: object, what: str) -> LegacyEnvError:
    return LegacyEnvError(
        f"{type(env).__name__} {what}.", where="check_env", fix="Correct the environment."
    )


def check_multi_agent(config: Any) -> tuple[Any, bool]:
    """The `multiagent` part of a config, and whether it names any policy but the default one."""
    part = config["multiagent"]
    policies = part.get("policies") or {"default_policy"}
    return part, set(policies) != {"default_policy"}


class TupleActions(NamedTuple):
    """Actions of a Tuple space: a batch for each part."""

    batches: Any

    def numpy(self) -> TupleActions:
        """The same with numpy's arrays."""
        return TupleActions([batch.numpy() for batch in self.batches])


class UsageTrackingDict(dict[Any, Any]):
    """A dict that knows which keys have been asked for, and may convert their values then."""

    def __init__(self, *given: Any, **by_name: Any) -> None:
        dict.__init__(self, *given, **by_name)
        self.get_interceptor: Callable[[Any], Any] | None = None
        self.accessed_keys: set[Any] = set()
        self.intercepted_values: dict[Any, Any] = {}

    def set_get_interceptor(self, fn: Callable[[Any], Any]) -> None:
        """Sets what converts values; each is converted once."""
        self.get_interceptor = fn

    def __getitem__(self, key: Any) -> Any:
        self.accessed_keys.add(key)
        convert, converted = self.get_interceptor, self.intercepted_values
        if convert is None or key in converted:
            return converted.get(key, dict.__getitem__(self, key))
        return converted.setdefault(key, convert(dict.__getitem__(self, key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        dict.__setitem__(self, key, value)
        self.intercepted_values.update({key: value} if key in self.intercepted_values else {})


def averaged(kv: Mapping[Any, list[Any]]) -> dict[Any, Any]:
    """The mean of each list of numbers; of dicts and None, the first."""
    return {
        key: values[0] if values[0] is None or isinstance(values[0], dict) else np.mean(values)
        for key, values in kv.items()
    }


def extract_stats(stats: Mapping[str, Any], key: str) -> Any:
    """What each policy tells of a key; of one policy alone, what it tells."""
    if key in stats:
        return stats[key]
    return {policy: told[key] for policy, told in stats.items() if key in told}


def to_float_array(v: Any) -> Any:
    """An array; of float64, one of float32."""
    array = np.asarray(v)
    return array.astype(np.float32) if array.dtype == np.float64 else array


to_float_np_array = to_float_array


def check_framework(framework: str | None = "tf", allow_none: bool = True) -> str | None:
    """The name of a framework that is installed.

    Raises:
        ImportError: It is not.
    """
    modules = {"tf": "tensorflow", "tf2": "tensorflow", "tfe": "tensorflow", "torch": "torch"}
    if framework is None and allow_none:
        return None
    module = modules.get(framework or "")
    if module is None:
        raise ImportError(f"RLlib had no framework {framework!r}: choose tf or torch.")
    if importlib.util.find_spec(module) is None:
        raise ImportError(f"{module} is not installed.", name=module)
    return framework


def framework_iterator(
    config: dict[str, Any] | None = None,
    frameworks: str | Iterable[str] = ("torch",),
    **how: object,
) -> Iterator[Any]:
    """Gives "torch", which is what trains here, once if it is among the frameworks.

    Args:
        config: A config, whose framework is set.
        frameworks: What was to be tried.
        **how: Whether a `session` is wanted, too: None, as TensorFlow has none any more.
    """
    if frameworks == "torch" or (not isinstance(frameworks, str) and "torch" in frameworks):
        (config if config is not None else {}).update(framework="torch")
        yield ("torch", None) if how.get("session") else "torch"


def create_colocated(cls: Any, arg: Any, count: int) -> Any:
    """As many actors of a class, on the node of the caller."""
    return create_colocated_actors([(cls, arg, {}, count)], node=platform.node())[0]


def renamed_class(cls: Given, old_name: str = "") -> Given:
    """The class itself."""
    del old_name
    return cls


renamed_function = renamed_class


def renamed_agent(cls: Given) -> Given:
    """The class itself."""
    return cls


moved_function = renamed_agent


def try_import_tree() -> Any:
    """The package `dm-tree`."""
    import tree

    return tree
