"""Workers in other processes: what `worker.method.remote(…)` was called on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.runtime.workers import as_legacy

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import EnvRunner


class RemoteWorker:
    """A remote worker: `worker.foreach_env.remote(f)` runs there, and gives a reference."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor

    def __getattr__(self, name: str) -> RemoteMethod:
        if name.startswith("_"):
            raise AttributeError(name)
        return RemoteMethod(self.actor, name)


class RemoteMethod:
    """One method of a remote worker."""

    def __init__(self, actor: Any, name: str) -> None:
        self._actor = actor
        self._name = name

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it there; references among the arguments arrive as what they refer to.

        Returns:
            A reference to the result, for `ray.get`.
        """
        return self._actor.apply.remote(partial(_call, self._name), *args, **kwargs)


# A function of the module, so that it is pickled by name.
def _call(name: str, env_runner: EnvRunner, *args: Any, **kwargs: Any) -> Any:
    worker = as_legacy(env_runner)
    if name == "apply":  # of old, it gave its function the worker
        function, *rest = args
        return function(worker, *rest, **kwargs)
    return getattr(worker, name)(*args, **kwargs)
