"""Workers in other processes: what `worker.method.remote(…)` was called on."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.runtime.workers import LegacyWorker, as_legacy

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


class RemoteWorker:
    """A remote worker: `worker.foreach_env.remote(f)` runs there, and gives a reference.

    Args:
        actor: The actor of an env runner.
        learned: Gives a reference to the learners' weights, in a list; empty where none learns.
    """

    def __init__(self, actor: Any, learned: Callable[[], list[Any]] = list) -> None:
        self.actor = actor
        self._learned = learned

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteWorker, (self.actor,)  # the trainer stays in its process

    def __getattr__(self, name: str) -> RemoteMethod:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteMethod(self.actor, name, self._learned)


class RemoteMethod:
    """One method of a remote worker."""

    def __init__(self, actor: Any, name: str, learned: Callable[[], list[Any]]) -> None:
        self._actor = actor
        self._name = name
        self._learned = learned

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it there; references among the arguments arrive as what they refer to.

        Returns:
            A reference to the result, for `ray.get`.
        """
        return self._actor.apply.remote(
            partial(_call, self._name, self._learned()), *args, **kwargs
        )


def worker_that_follows(learned: list[Any], env_runner: EnvRunner) -> Any:
    """The worker around an env runner, whose critics are those of the learners' weights."""
    worker = as_legacy(env_runner)
    if learned and isinstance(worker, LegacyWorker):
        worker.whole_modules.follow(learned)
    return worker


# A function of the module, so that it is pickled by name.
def _call(name: str, learned: list[Any], env_runner: EnvRunner, *args: Any, **kwargs: Any) -> Any:
    worker = worker_that_follows(learned, env_runner)
    if name == "apply":  # of old, it gave its function the worker
        function, *rest = args
        return function(worker, *rest, **kwargs)
    return getattr(worker, name)(*args, **kwargs)
