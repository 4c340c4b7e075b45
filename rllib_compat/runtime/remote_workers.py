"""Rollout workers in other processes: `worker.method.remote(…)`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.runtime.workers import LegacyWorker, as_legacy

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


class RemoteWorker:
    """A rollout worker in an actor: `worker.foreach_env.remote(f)` returns an object reference.

    Args:
        actor: The actor of the env runner.
        learned: Returns a list with a reference to the learners' weights; empty without learners.
    """

    def __init__(self, actor: Any, learned: Callable[[], list[Any]] = list) -> None:
        self.actor = actor
        self._learned = learned

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteWorker, (self.actor,)  # without `learned`, which refers to the trainer

    def __getattr__(self, name: str) -> RemoteMethod:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteMethod(self.actor, name, self._learned)


class RemoteMethod:
    """A method of a remote worker."""

    def __init__(self, actor: Any, name: str, learned: Callable[[], list[Any]]) -> None:
        self._actor = actor
        self._name = name
        self._learned = learned

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the method in the worker's process; Ray resolves references among the arguments.

        Returns:
            A reference to the result, for `ray.get`.
        """
        return self._actor.apply.remote(
            partial(_call, self._name, self._learned()), *args, **kwargs
        )


def worker_with_learned_critics(learned: list[Any], env_runner: EnvRunner) -> Any:
    """Returns the worker around an env runner, with critics from the learners' weights."""
    worker = as_legacy(env_runner)
    if learned and isinstance(worker, LegacyWorker):
        worker.critics.set_learned(learned)
    return worker


# At module level, so that it is pickled by name.
def _call(name: str, learned: list[Any], env_runner: EnvRunner, *args: Any, **kwargs: Any) -> Any:
    worker = worker_with_learned_critics(learned, env_runner)
    if name == "apply":  # `RolloutWorker.apply` passed the worker to its function
        function, *rest = args
        return function(worker, *rest, **kwargs)
    return getattr(worker, name)(*args, **kwargs)
