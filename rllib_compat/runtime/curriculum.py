"""`env_task_fn` of Ray 1.4 – 2.40: after each iteration, a task for every environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import env_runners
from rllib_compat.runtime.legacy_callbacks import DefaultCallbacks
from rllib_compat.runtime.workers import as_legacy, user_env


class Curriculum(DefaultCallbacks):
    """Callbacks that set tasks; each call makes another one.

    Args:
        function: From (the result, an environment, its context) to the environment's task.
    """

    def __init__(self, function: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def __call__(self) -> Curriculum:
        """One for another process."""
        return Curriculum(self.function)

    def on_train_result(self, *, trainer: Any, result: Any, **_: Any) -> None:
        """Asks for the task of each environment that samples, and sets those that are new."""
        algorithm = getattr(trainer, "algorithm", trainer)
        set_tasks = partial(_set_tasks, self.function, dict(result))
        env_runners.foreach_env_runner(algorithm.env_runner_group, set_tasks)


def _set_tasks(function: Callable[[Any, Any, Any], Any], result: Any, env_runner: Any) -> None:
    def set_task(env: Any, context: Any) -> None:
        env = user_env(env)
        if not hasattr(env, "set_task"):
            raise ConfigError(
                f"`env_task_fn` is set, and {type(env).__name__} has no set_task().",
                where="$.env_task_fn",
                fix="give the environment get_task() and set_task(), or leave the key out",
            )
        task = function(result, env, context)
        if env.get_task() != task:
            env.set_task(task)

    as_legacy(env_runner).foreach_env_with_context(set_task)
