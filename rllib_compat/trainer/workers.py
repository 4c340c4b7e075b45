"""`trainer.workers`: the `WorkerSet` of Ray 0.7 – 2.31 on today's env runner group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat import ray_versions
from rllib_compat.adapters.workers import LegacyWorker, as_legacy

if TYPE_CHECKING:
    from rllib_compat.trainer.trainer import Trainer


class LegacyWorkers:
    """All workers of a trainer, the local one first.

    Args:
        trainer: The trainer; its algorithm has the env runners.
        group: The group of env runners.
    """

    def __init__(self, trainer: Trainer, group: Any) -> None:
        self._trainer = trainer
        self._group = group

    def local_worker(self) -> Any:
        """The worker in this process, with the weights that were trained last."""
        self._trainer.sync_local_runner()
        return as_legacy(self._group.local_env_runner)

    def remote_workers(self) -> list[Any]:
        """The actors of the others. Their methods are those of today's env runners."""
        return ray_versions.remote_env_runners(self._group)

    def foreach_worker(self, func: Callable[[LegacyWorker], Any]) -> list[Any]:
        """Calls `func(worker)` in all workers."""
        self._trainer.sync_local_runner()
        return ray_versions.foreach_env_runner(self._group, partial(_call, func))

    def foreach_worker_with_index(self, func: Callable[[LegacyWorker, int], Any]) -> list[Any]:
        """Calls `func(worker, index)` in all workers."""
        return self.foreach_worker(partial(_call_with_index, func))

    foreach_worker_with_id = foreach_worker_with_index

    def foreach_policy(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(policy, policy_id)` for all policies of all workers."""
        return _chained(self.foreach_worker(partial(_call_method, "foreach_policy", func)))

    def foreach_trainable_policy(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(policy, policy_id)` for all trained policies of all workers."""
        method = "foreach_trainable_policy"
        return _chained(self.foreach_worker(partial(_call_method, method, func)))

    foreach_policy_to_train = foreach_trainable_policy

    def foreach_env(self, func: Callable[[Any], Any]) -> list[list[Any]]:
        """Calls `func(env)` for all environments; a list a worker."""
        return self.foreach_worker(partial(_call_method, "foreach_env", func))

    def sync_weights(self, *_: Any, **__: Any) -> None:
        """Sends the learners' weights to all workers."""
        ray_versions.send_weights(self._trainer.algorithm, self._group)

    def stop(self) -> None:
        """Stops all workers."""
        self._group.stop()


# Functions of the module, so that they are pickled by name.
def _call(func: Callable[[LegacyWorker], Any], env_runner: Any) -> Any:
    return func(as_legacy(env_runner))


def _call_with_index(func: Callable[[LegacyWorker, int], Any], worker: LegacyWorker) -> Any:
    return func(worker, worker.worker_index)


def _call_method(method: str, func: Callable[..., Any], worker: LegacyWorker) -> Any:
    return getattr(worker, method)(func)


def _chained(lists: list[list[Any]]) -> list[Any]:
    return [item for items in lists for item in items]
