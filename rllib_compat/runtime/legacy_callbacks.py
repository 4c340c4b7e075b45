"""The forms of legacy callbacks: the dict of functions, the class, and their signatures."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.public import import_attribute, public
from rllib_compat.ray_versions import env_runners, episodes
from rllib_compat.ray_versions.types import Algorithm, EnvRunner
from rllib_compat.registry.keys import CALLBACK_EVENTS
from rllib_compat.runtime.user_envs import user_env
from rllib_compat.runtime.workers import as_legacy

RayCallbacks = episodes.callback_class()

# Arguments that only callbacks of the installed Ray have; their methods get Ray's own arguments.
TODAY = {"env_runner", "metrics_logger", "rl_module", "prev_episode_chunks"}


@public("rllib_compat.adapters")
class DefaultCallbacks:
    """The base class of legacy callbacks, which also calls the functions of the dict form.

    Args:
        legacy_callbacks_dict: Functions by event, each taking one `info` dict.
    """

    def __init__(self, legacy_callbacks_dict: Mapping[str, Any] | None = None) -> None:
        self.legacy_callbacks = dict(legacy_callbacks_dict or {})

    def on_episode_start(
        self, *, worker: object, base_env: object, policies: object, episode: object, **_: Any
    ) -> None:
        """Runs after the environment's reset."""
        self._call(
            "on_episode_start", env=base_env, policy=policies, episode=episode, worker=worker
        )

    def on_episode_step(
        self, *, worker: object, base_env: object, episode: object, **_: Any
    ) -> None:
        """Runs after each step."""
        self._call("on_episode_step", env=base_env, episode=episode, worker=worker)

    def on_episode_end(
        self, *, worker: object, base_env: object, policies: object, episode: object, **_: Any
    ) -> None:
        """Runs when the episode is over."""
        self._call("on_episode_end", env=base_env, policy=policies, episode=episode, worker=worker)

    def on_postprocess_trajectory(
        self,
        *,
        worker: object,
        episode: object,
        agent_id: object,
        policy_id: str,
        policies: Mapping[str, Any],
        postprocessed_batch: object,
        original_batches: Mapping[Any, Any],
        **_: object,
    ) -> None:
        """Runs for each agent's part of a sample."""
        self._call(
            "on_postprocess_traj",
            episode=episode,
            agent_id=agent_id,
            pre_batch=original_batches[agent_id],
            post_batch=postprocessed_batch,
            all_pre_batches=original_batches,
            worker=worker,
            policy=policies[policy_id],
        )

    def on_sample_end(self, *, worker: object, samples: object, **_: object) -> None:
        """Runs after each sample of an env runner."""
        self._call("on_sample_end", worker=worker, evaluator=worker, samples=samples)

    def on_learn_on_batch(
        self, *, policy: object, train_batch: object, result: dict[str, Any], **_: object
    ) -> None:
        """Runs before each update of a policy; batch and result may be changed."""

    def on_create_policy(self, *, policy_id: str, policy: object) -> None:
        """Runs in each worker for each policy, before the first episode with it."""

    def on_sub_environment_created(
        self, *, worker: object, sub_environment: object, env_context: object, **_: object
    ) -> None:
        """Runs for each of the user's environments."""

    def on_trainer_init(self, *, trainer: object, **_: object) -> None:
        """Runs when the trainer is complete."""

    def on_algorithm_init(self, *, algorithm: object, **_: object) -> None:
        """Runs when the trainer is complete, by its name in Ray 2.x."""

    def on_environment_created(self, **_: object) -> None:
        """Runs for each environment, by its name in the installed Ray."""

    def on_episode_created(self, **_: object) -> None:
        """Runs before the environment's reset."""

    def on_evaluate_start(self, **_: object) -> None:
        """Runs before each evaluation."""

    def on_evaluate_end(self, *, evaluation_metrics: dict[str, Any], **_: object) -> None:
        """Runs after each evaluation; `evaluation_metrics` may be changed."""

    def on_checkpoint_loaded(self, *, algorithm: object, **_: object) -> None:
        """Runs when a checkpoint was loaded."""

    def on_workers_recreated(self, **_: object) -> None:
        """Ran when failed workers were replaced; Ray now calls `on_env_runners_recreated`."""

    def on_train_result(self, *, trainer: object, result: dict[str, Any], **_: object) -> None:
        """Runs after each training iteration; `result` may be changed."""
        self._call("on_train_result", trainer=trainer, agent=trainer, result=result)

    def on_checkpoint_saved(self, *, trainer: object, checkpoint_dir: str) -> None:
        """Runs when a trainer or algorithm has saved; an event of this package."""

    def on_checkpoint_restored(self, *, trainer: object, checkpoint_dir: str) -> None:
        """Runs when a trainer or algorithm has restored a checkpoint; an event of this package."""

    def _call(self, event: str, **info: object) -> None:
        function = self.legacy_callbacks.get(event)
        if function is not None:
            function(info)


Configured = TypeVar("Configured", bound="ConfiguredCallbacks")


class ConfiguredCallbacks(DefaultCallbacks):
    """Callbacks with arguments; a call returns others with the same, for another process."""

    _arguments: dict[str, Any]

    def __call__(self: Configured) -> Configured:
        """Returns another object with the same arguments."""
        return type(self)(**self._arguments)

    def __reduce__(self) -> Any:
        return partial(type(self), **self._arguments), ()


class MultiCallbacks(list[Any]):
    """Several callbacks: a list of their classes, for the config."""

    IS_CALLBACK_CONTAINER = True


def made_by(function: Callable[..., Any]) -> Any:
    """Calls a function that a config has as its callbacks.

    Raises:
        ConfigError: It takes arguments.
    """
    with suppress(ValueError):  # of some built-in functions nothing is known
        try:
            inspect.signature(function).bind()
        except TypeError as error:
            raise ConfigError(
                f"The callbacks are a function that cannot be called without arguments: {error}.",
                where="$.callbacks",
                fix="pass a class, an instance, or a dict of functions by event",
            ) from error
    return function()


def resolve(source: object) -> Any:
    """Returns the class or the dict of functions of a config's callbacks.

    Old Rays called what the config has, so it may also be a function without arguments.

    Raises:
        ConfigError: They are neither, cannot be imported, or have an event that no Ray had.
    """
    if isinstance(source, str):
        source = _import_callbacks(source)
    if isinstance(source, Mapping):
        unknown = [name for name in source if name not in CALLBACK_EVENTS]
        if unknown:
            raise ConfigError(
                f"The callbacks have unknown events: {', '.join(map(repr, unknown))}.",
                where="$.callbacks",
                fix=f"use only these events: {', '.join(CALLBACK_EVENTS)}",
            )
        return {event: function for event, function in source.items() if function is not None}
    if isinstance(source, DefaultCallbacks) and callable(source):
        return source  # an instance with its own arguments, whose call returns a copy
    if callable(source) and not isinstance(source, type):
        made = type(made_by(source))
        members = {"__new__": lambda _: source(), "__module__": __name__}
        return type(made.__name__, (made,), members)
    if not isinstance(source, type):
        raise ConfigError(
            f"The callbacks are of type {type(source).__name__}.",
            where="$.callbacks",
            fix="pass a class, a function that returns an instance, or a dict of functions",
        )
    return source


def _import_callbacks(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return import_attribute(module, name)
    except ImportError as error:
        raise ConfigError(
            f"The callbacks {path!r} cannot be imported: {error}.",
            where="$.callbacks",
            fix="pass a class, a dict of functions, or the dotted name of a class",
        ) from error


def instantiate(source: Any) -> Any:
    """Returns the object whose methods are called."""
    return DefaultCallbacks(source) if isinstance(source, Mapping) else source()


def handles(source: object, event: str) -> bool:
    """Whether a class or a dict handles an event."""
    if isinstance(source, Mapping):
        return event in source
    return any(True for _ in methods(source, (event,)))


def methods(obj: object, names: tuple[str, ...]) -> list[Callable[..., Any]]:
    """Returns the methods of these names that do anything: overridden ones and dict functions."""
    found = []
    for name in names:
        method = getattr(obj, name, None)
        function = getattr(method, "__func__", method)
        if method is None or function is getattr(RayCallbacks, name, None):
            continue
        if function is getattr(DefaultCallbacks, name, None):
            key = "on_postprocess_traj" if name == "on_postprocess_trajectory" else name
            if key not in getattr(obj, "legacy_callbacks", ()):
                continue
        found.append(method)
    return found


def adapt_signature(method: Callable[..., Any]) -> Callable[[dict[str, Any], dict[str, Any]], Any]:
    """Wraps `method` to take Ray's values and the legacy ones, which have precedence."""
    parameters = inspect.signature(method).parameters
    if TODAY & parameters.keys():
        return lambda values, _: method(**values)
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return lambda values, legacy: method(**{**values, **legacy})
    return lambda values, legacy: method(
        **{name: legacy[name] if name in legacy else values.get(name) for name in parameters}
    )


logger = logging.getLogger(__name__)

#: The methods that save and restore, on the new API stack and on the old one.
_METHODS = {
    True: ("save_to_path", "restore_from_path"),
    False: ("save_checkpoint", "load_checkpoint"),
}


def handles_checkpoints(callbacks: object) -> bool:
    """Whether a callbacks object handles saved or restored checkpoints."""
    return isinstance(callbacks, DefaultCallbacks) and any(
        getattr(type(callbacks), event) is not getattr(DefaultCallbacks, event)
        for event in ("on_checkpoint_saved", "on_checkpoint_restored")
    )


def call_back_on_checkpoints(
    algorithm: Any, saved: Callable[[Any, str], None], restored: Callable[[Any, str], None]
) -> None:
    """Wraps an algorithm's methods to call functions after it saves and restores checkpoints.

    No Ray passes the folder of a checkpoint to callbacks.

    The functions get the algorithm and the checkpoint's folder.
    """
    names = _METHODS[bool(algorithm.config.enable_rl_module_and_learner)]
    for name, notify in zip(names, (saved, restored), strict=True):
        setattr(algorithm, name, _notifying(algorithm, getattr(algorithm, name), notify))


def _notifying(
    algorithm: Algorithm, method: Callable[..., Any], notify: Callable[[Any, str], None]
) -> Any:
    @functools.wraps(method)
    def call_and_notify(*args: object, **kwargs: Any) -> Any:
        found = method(*args, **kwargs)
        folder = Path(found if isinstance(found, (str, Path)) else [*args, *kwargs.values()][0])
        if folder.is_dir():
            notify(algorithm, str(folder))
        else:
            logger.warning("No callback is called for %s: it is not on this machine.", folder)
        return found

    return call_and_notify


class Curriculum(ConfiguredCallbacks):
    """Callbacks that set tasks (`env_task_fn` of Ray 1.4 – 2.40); a call returns a copy.

    Args:
        function: Returns a task for (the result, an environment, its context).
    """

    def __init__(self, function: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__()
        self.function = function
        self._arguments = {"function": function}

    def on_train_result(self, *, trainer: Any, result: dict[str, Any], **_: Any) -> None:
        """Sets the tasks of environments that have changed."""
        algorithm = getattr(trainer, "algorithm", trainer)
        set_tasks = partial(_set_tasks, self.function, dict(result))
        env_runners.foreach_env_runner(algorithm.env_runner_group, set_tasks)


def _set_tasks(
    function: Callable[[Any, Any, Any], Any], result: dict[str, Any], env_runner: EnvRunner
) -> None:
    def set_task(env: Any, context: object) -> None:
        env = user_env(env)
        if not hasattr(env, "set_task"):
            raise ConfigError(
                f"The config has `env_task_fn`, and {type(env).__name__} has no set_task().",
                where="$.env_task_fn",
                fix="add get_task() and set_task() to the environment, or remove the key",
            )
        task = function(result, env, context)
        if env.get_task() != task:
            env.set_task(task)

    as_legacy(env_runner).foreach_env_with_context(set_task)
