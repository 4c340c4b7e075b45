"""Small functions and classes of `ray.rllib.utils`, `.env`, `.evaluation` that Ray lacks now."""

from __future__ import annotations

import importlib.util
import logging
import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import gymnasium
import numpy as np
import ray
from ray.rllib.env import BaseEnv, ExternalEnv, MultiAgentEnv, VectorEnv
from ray.rllib.utils.actors import create_colocated_actors
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

from rllib_compat import gym
from rllib_compat.neutral.errors import LegacyEnvError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

logger = logging.getLogger(__name__)

Given = TypeVar("Given")


class TooManyResetAttemptsException(Exception):  # noqa: N818 - its name in Ray 1.10 – 2.10
    """An environment has failed to reset as often as it may."""

    def __init__(self, max_attempts: int) -> None:
        super().__init__(f"The environment has failed to reset {max_attempts} times.")


class ResetOnExceptionWrapper(gym.Wrapper):
    """Resets an environment that raises in a step, and tries again where it raises in a reset."""

    def __init__(self, env: Any, max_reset_attempts: int = 5) -> None:
        self.max_reset_attempts = max_reset_attempts
        super().__init__(env)

    def reset(self, **kwargs: Any) -> Any:
        """Resets the environment, and tries again if that fails.

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


def _try(call: Callable[..., Any], *arguments: object, **by_name: object) -> tuple[bool, Any]:
    """Whether a call has ended without an error, and its result."""
    try:
        return True, call(*arguments, **by_name)
    except Exception:  # whatever an environment raises
        logger.exception("The environment has failed.")
        return False, None


def check_env(env: object) -> None:
    """Checks an environment: spaces, a reset and a step.

    Args:
        env: An environment of gym's or gymnasium's API, or one of several agents; others of RLlib
            are not checked.

    Raises:
        LegacyEnvError: It is no environment, or a value is not in its space.
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
        LegacyEnvError: A space is missing, or a value is not in its space.
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
        raise _error(env, "does not say by a bool whether the episode has ended")
    if not isinstance(info, Mapping):
        raise _error(env, f"gives {type(info).__name__} for an info")


def _is_todays(env: Any, first: Any) -> bool:
    """Whether a reset has returned an observation and an info."""
    pair = isinstance(first, tuple) and len(first) == 2 and isinstance(first[1], dict)
    return pair and not env.observation_space.contains(first)


def _check_observation(env: Any, observation: Any) -> None:
    if not env.observation_space.contains(observation):
        raise _error(env, f"observes what is not in {env.observation_space}: {observation!r}")


def _error(env: object, what: str) -> LegacyEnvError:
    return LegacyEnvError(
        f"{type(env).__name__} {what}.", where="check_env", fix="Correct the environment."
    )


def check_multi_agent(config: Mapping[str, Any]) -> tuple[Any, bool]:
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
    """A dict that records which keys were read, and may convert their values."""

    def __init__(self, *given: Any, **by_name: Any) -> None:
        dict.__init__(self, *given, **by_name)
        self.get_interceptor: Callable[[Any], Any] | None = None
        self.accessed_keys: set[Any] = set()
        self.intercepted_values: dict[Any, Any] = {}

    def set_get_interceptor(self, fn: Callable[[Any], Any]) -> None:
        """Sets the function that converts values; each is converted once."""
        self.get_interceptor = fn

    def __getitem__(self, key: object) -> Any:
        self.accessed_keys.add(key)
        convert, converted = self.get_interceptor, self.intercepted_values
        if convert is None or key in converted:
            return converted.get(key, dict.__getitem__(self, key))
        return converted.setdefault(key, convert(dict.__getitem__(self, key)))

    def __setitem__(self, key: object, value: object) -> None:
        dict.__setitem__(self, key, value)
        self.intercepted_values.update({key: value} if key in self.intercepted_values else {})


def averaged(kv: Mapping[Any, list[Any]]) -> dict[Any, Any]:
    """The mean of each list of numbers; of dicts and None, the first."""
    return {
        key: values[0] if values[0] is None or isinstance(values[0], dict) else np.mean(values)
        for key, values in kv.items()
    }


def extract_stats(stats: Mapping[str, Any], key: str) -> Any:
    """A statistic by policy; if there is only one policy, its value."""
    if key in stats:
        return stats[key]
    return {policy: own[key] for policy, own in stats.items() if key in own}


def to_float_array(v: object) -> Any:
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
    """Yields "torch" once if it is among the frameworks, since only torch trains.

    Args:
        config: A config, whose framework is set.
        frameworks: The frameworks to try.
        **how: Whether a `session` is wanted, too: None, as TensorFlow has none any more.
    """
    if frameworks == "torch" or (not isinstance(frameworks, str) and "torch" in frameworks):
        (config if config is not None else {}).update(framework="torch")
        yield ("torch", None) if how.get("session") else "torch"


def create_colocated(cls: object, arg: object, count: int) -> Any:
    """As many actors of a class, on the node of the caller."""
    return create_colocated_actors([(cls, arg, {}, count)], node=platform.node())[0]


def renamed_class(cls: Given, old_name: str = "") -> Given:
    """The class itself."""
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


def check_base_env(env: object) -> None:
    """Checks a `BaseEnv`: a reset and a step, and whether their values are in its spaces.

    Raises:
        ValueError: It is none, or a value is not in its space.
    """
    if not isinstance(env, BaseEnv):
        raise ValueError(f"{type(env).__name__} is no BaseEnv: use convert_to_base_env().")
    first, sampled = _of_each(env.try_reset()), env.observation_space_sample()
    action = env.action_space_sample()
    _check_contained(env.observation_space_contains, first, "observations of try_reset()")
    _check_contained(env.observation_space_contains, sampled, "observation_space_sample()")
    _check_contained(env.action_space_contains, action, "action_space_sample()")
    env.send_actions(action)
    observed = env.poll()[0]
    _check_contained(env.observation_space_contains, observed, "observations of poll()")


def _of_each(first: object) -> Any:
    """Observations without infos."""
    return first[0] if isinstance(first, tuple) else first


def _check_contained(contains: Callable[[Any], Any], values: object, what: str) -> None:
    if not isinstance(values, Mapping):
        raise ValueError(f"{what}: a dict of dicts is needed, by environment and agent: {values!r}")
    if not contains(values):
        raise ValueError(f"{what}: not in the space: {values!r}")


def check_vector_env(env: Any) -> None:
    """Checks a vector environment: resets and a step.

    Raises:
        ValueError: There is not one value for each environment, or it is not in its space.
    """
    first = _of_each(env.vector_reset())
    one = _of_each(env.reset_at(0))
    actions = [env.action_space.sample() for _ in range(env.num_envs)]
    observed, rewards, *ended, infos = env.vector_step(actions)
    lists = {"vector_reset()": first, "observations": observed, "rewards": rewards}
    lists |= {"infos": infos, **{f"flags {place}": flags for place, flags in enumerate(ended)}}
    for what, values in lists.items():
        if len(values) != env.num_envs:
            raise ValueError(f"{what}: {len(values)}, of {env.num_envs} environments.")
    for what, seen in (("vector_reset()", first[0]), ("reset_at()", one), ("a step", observed[0])):
        if not env.observation_space.contains(seen):
            raise ValueError(f"{what}: not in {env.observation_space}: {seen!r}")


def check_old_gym_env(
    env: Any = None, *, step_results: Any = None, reset_results: Any = None
) -> bool:
    """False for the results of an environment of gymnasium (Ray 2.2 – 2.4).

    Raises:
        ValueError: They are those of one of gym.
        AttributeError: Nothing is given.
    """
    if reset_results is None and step_results is None:
        raise AttributeError("Give step_results or reset_results.")
    if reset_results is not None:
        pair = isinstance(reset_results, tuple) and len(reset_results) == 2
        space = getattr(env, "observation_space", None)
        parts = space.spaces if isinstance(space, gymnasium.spaces.Tuple) else ()
        looks_alike = len(parts) > 1 and isinstance(parts[1], gymnasium.spaces.Dict)
        if not pair or not isinstance(reset_results[1], dict) or looks_alike:
            raise ValueError("reset() gives two values: the observation and infos.")
    elif len(step_results) != 5:
        names = "observation, reward, terminated, truncated, infos"
        raise ValueError(f"step() gives five values ({names}), not {len(step_results)}.")
    return False


def convert_old_gym_space_to_gymnasium_space(space: object) -> Any:
    """The same space of gymnasium."""
    from rllib_compat.neutral import spaces

    found = spaces.from_object(space)
    return space if found is None else spaces.to_gymnasium(found)


def try_import_gymnasium_and_gym() -> tuple[Any, Any]:
    """gymnasium, and gym or None."""
    has_gym = importlib.util.find_spec("gym") is not None
    return gymnasium, importlib.import_module("gym") if has_gym else None


def get_resource_bundles(config: Mapping[str, Any]) -> list[dict[str, float]]:
    """The resources of reading data, beside those of the workers (Ray 1.11 – 2.0)."""
    options = config.get("input_config", {})
    tasks = options.get("parallelism", config.get("num_workers", 1))
    return [{"CPU": math.ceil(tasks * options.get("num_cpus_per_read_task", 0.5))}]


def get_device(config: Mapping[str, Any]) -> Any:
    """The device of a process: a GPU if the config asks for one and there is one (Ray 2.x)."""
    import torch

    key = "num_gpus_per_worker" if config.get("worker_index", 0) else "num_gpus"
    on_gpu = config[key] and not config["_fake_gpus"] and torch.cuda.is_available()
    return torch.device("cuda" if on_gpu else "cpu")


def handle_remote_call_result_errors(results: Any, ignore_worker_failures: bool) -> None:
    """Logs the errors of calls of workers, or raises the first."""
    for result in results.ignore_ray_errors():
        if not result.ok and not ignore_worker_failures:
            raise result.get()
        if not result.ok:
            logger.error("A worker has failed.", exc_info=result.get())


class OffPolicyEstimate(NamedTuple):
    """The result of an estimator for a batch."""

    estimator_name: str
    metrics: dict[str, Any]


#: Whether objects were removed from Ray's store at once, for debugging.
RLLIB_DEBUG_EXPLICIT_FREE = False


def ray_get_and_free(object_ids: object) -> Any:
    """The objects of references; Ray frees them when there is no reference any more."""
    return ray.get(object_ids)


def aligned_array(size: int, dtype: DTypeLike, align: int = 64) -> Any:
    """An empty array, whose address is a multiple of so many bytes."""
    count = size * np.dtype(dtype).itemsize
    room = np.empty(count + align, np.uint8)
    first = -room.ctypes.data % align
    return room[first : first + count].view(dtype)


def concat_aligned(items: Sequence[Any]) -> Any:
    """Arrays one after the other; floats and bytes with aligned memory."""
    if len(items) < 2:
        return items[0] if items else []
    first = items[0]
    if getattr(first, "dtype", None) not in (np.float32, np.float64, np.uint8):
        return np.concatenate(items)
    shape = sum(len(item) for item in items), *first.shape[1:]
    made = aligned_array(int(np.prod(shape)), first.dtype).reshape(shape)
    return np.concatenate(items, out=made)


def flatten(weights: dict[Any, Any], start: int = 0, stop: int = 2) -> dict[Any, Any]:
    """Arrays with some of their dimensions as one, in place."""
    for key, array in weights.items():
        weights[key] = array.reshape(*array.shape[:start], -1, *array.shape[stop:])
    return weights


def check_learning_achieved(
    tune_results: Any,
    min_value: float = 0.0,
    evaluation: bool | None = None,
    metric: str = "episode_reward_mean",
    *,
    min_reward: float | None = None,
) -> None:
    """Checks what the trials of `tune.run`, or of a `Tuner`, have reached in the end.

    Args:
        tune_results: An analysis, or the results of a `Tuner`.
        min_value: What the best trial must have reached.
        evaluation: Whether its evaluation must have; None: if there was one.
        metric: The metric.
        min_reward: `min_value` by its name until Ray 2.4.

    Raises:
        ValueError: No trial has.
    """
    least = min_value if min_reward is None else min_reward
    if hasattr(tune_results, "trials"):
        results = [trial.last_result for trial in tune_results.trials]
    else:
        results = [found.metrics for found in tune_results]
    sections = [
        r["evaluation"] if evaluation or (evaluation is None and "evaluation" in r) else r
        for r in results
    ]
    best = max(section[metric] for section in sections)
    if best < least:
        raise ValueError(f"`{metric}` of {least} not reached: the best trial has {best}.")
    print(f"The best trial has a `{metric}` of {best}: {least} or more.")


def concatenate(weights_list: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    """Dicts of arrays as one dict, of arrays one after the other."""
    return {key: np.concatenate([each[key] for each in weights_list]) for key in weights_list[0]}


def shuffle(trajectory: dict[Any, Any]) -> dict[Any, Any]:
    """Rows in another order, in place."""
    order = np.random.permutation(len(trajectory["actions"]))
    for key, column in trajectory.items():
        trajectory[key] = column[order]
    return trajectory


def _contributed(name: str) -> Callable[[], tuple[type, dict[str, Any]]]:
    def get_class() -> tuple[type, dict[str, Any]]:
        from rllib_compat.trainer.classes import class_of_algorithm

        found: Any = class_of_algorithm(name)
        return found, found.get_default_config()

    return get_class


#: Names of contributed algorithms → a function that returns the trainer's class and its config.
CONTRIBUTED_ALGORITHMS = {
    f"contrib/{name}": _contributed(f"contrib/{name}")
    for name in ("RandomAgent", "MADDPG", "AlphaZero", "LinTS", "LinUCB")
}
