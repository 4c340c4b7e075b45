"""`trainer.workers`: the `WorkerSet` of Ray 0.7 – 2.31 on today's env runner group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.errors import GoneError
from rllib_compat.ray_versions import env_runners
from rllib_compat.runtime.workers import LegacyWorker, RemoteWorker, as_legacy

if TYPE_CHECKING:
    from rllib_compat.trainer.policies import Policies

_GROUP = "trainer.algorithm.env_runner_group"
GONE = {
    "add_workers": f"set num_workers in the config; {_GROUP} keeps its number",
    "reset": f"workers are replaced when they fail; see {_GROUP}.restart_failed_env_runners",
    "remove_failed_workers": "failed workers are replaced by Ray",
    "recreate_failed_workers": "failed workers are replaced by Ray",
    "add_policy": "call trainer.add_policy()",
    "add_policy_to_workers": "call trainer.add_policy()",
    "foreach_worker_async": f"it is {_GROUP}.foreach_env_runner_async",
    "fetch_ready_async_reqs": f"it is {_GROUP}.fetch_ready_async_reqs",
}


class LegacyWorkers:
    """All workers of a trainer, the local one first.

    Args:
        trainer: The trainer; its algorithm has the env runners.
        group: Ray's group of env runners.
    """

    def __init__(self, trainer: Policies, group: Any) -> None:
        self._trainer = trainer
        self.group = group

    def local_worker(self) -> Any:
        """The worker in this process, with the weights that were trained last."""
        self._trainer.sync_local_runner()
        return as_legacy(self.group.local_env_runner)

    def remote_workers(self) -> list[RemoteWorker]:
        """The others; `worker.method.remote(…)` calls a method of the worker there."""
        return [RemoteWorker(actor) for actor in env_runners.remote_env_runners(self.group)]

    def foreach_worker(self, func: Callable[[LegacyWorker], Any]) -> list[Any]:
        """Calls `func(worker)` in all workers.

        What it sets by `worker.set_policies_to_train` reaches the learners, too.
        """
        self._trainer.sync_local_runner()
        before = self.group.local_env_runner.config.policies_to_train
        results = env_runners.foreach_env_runner(self.group, partial(_call, func))
        after = self.group.local_env_runner.config.policies_to_train
        if after is not before and hasattr(self.group.local_env_runner, "module"):
            self._trainer.algorithm.learner_group.foreach_learner(partial(_train_only, after))
        return results

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

    def foreach_env_with_context(self, func: Callable[[Any, Any], Any]) -> list[list[Any]]:
        """Calls `func(env, env_context)` for all environments; a list a worker."""
        return self.foreach_worker(partial(_call_method, "foreach_env_with_context", func))

    def is_policy_to_train(self, policy_id: str, batch: Any = None) -> bool:
        """Whether a policy learns."""
        return bool(self.local_worker().is_policy_to_train(policy_id, batch))

    def trainable_policies(self) -> list[str]:
        """The ids of the policies that learn."""
        return list(self.local_worker().get_policies_to_train())

    def num_remote_workers(self) -> int:
        """How many workers are actors."""
        return len(self.remote_workers())

    def num_healthy_workers(self) -> int:
        """How many actors answer, and the local worker."""
        return self.num_healthy_remote_workers() + 1

    def num_healthy_remote_workers(self) -> int:
        """How many actors answer."""
        return int(self.group.num_healthy_remote_workers())

    def sync_weights(self, *_: Any, **__: Any) -> None:
        """Sends the learners' weights to all workers."""
        env_runners.send_weights(self._trainer.algorithm, self.group)

    def stop(self) -> None:
        """Stops all workers."""
        self.group.stop()

    def __getattr__(self, name: str) -> Any:
        if name in GONE:
            raise GoneError(
                f"Workers have no `{name}` any more.", where=f"workers.{name}", fix=GONE[name]
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")


# Functions of the module, so that they are pickled by name.
def _call(func: Callable[[LegacyWorker], Any], env_runner: Any) -> Any:
    return func(as_legacy(env_runner))


def _call_with_index(func: Callable[[LegacyWorker, int], Any], worker: LegacyWorker) -> Any:
    return func(worker, worker.worker_index)


def _call_method(method: str, func: Callable[..., Any], worker: LegacyWorker) -> Any:
    return getattr(worker, method)(func)


def _train_only(policies: Any, learner: Any) -> None:
    learner.config.multi_agent(policies_to_train=policies)


def _chained(lists: list[list[Any]]) -> list[Any]:
    return [item for items in lists for item in items]
