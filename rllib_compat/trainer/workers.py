"""`trainer.workers` and `trainer.optimizer`: the `WorkerSet` of Ray 0.7 – 2.31 and its predecessor.

Both are views on Ray's env runner group; the algorithm samples and learns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from rllib_compat.ray_versions import env_runners, metrics, old_stack, renames
from rllib_compat.registry.legacy_api import missing
from rllib_compat.runtime.acting_policies import PolicyOwner
from rllib_compat.runtime.evaluation import RemoteWorker, worker_with_learned_critics
from rllib_compat.runtime.results import EpisodeRecord
from rllib_compat.runtime.workers import LegacyWorker, as_legacy
from rllib_compat.trainer.running import RunningAlgorithm

if TYPE_CHECKING:
    from ray.rllib.core.learner import Learner
    from ray.rllib.env.env_runner import EnvRunner
    from ray.rllib.env.env_runner_group import EnvRunnerGroup

#: Which policies learn: ids, or a function of (policy id, batch).
ToTrain: TypeAlias = Collection[str] | Callable[..., bool] | None


class Workers(ABC):
    """Several workers, the local one first: the methods of old Rays for all of them."""

    @abstractmethod
    def local_worker(self) -> Any:
        """The worker in this process."""

    @abstractmethod
    def remote_workers(self) -> list[Any]:
        """The others; `worker.method.remote(…)` calls a method of the worker there."""

    @abstractmethod
    def foreach_worker(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(worker)` in all workers."""

    @abstractmethod
    def stop(self) -> None:
        """Stops all workers."""

    def foreach_worker_with_index(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(worker, index)` in all workers."""
        return self.foreach_worker(partial(_call_with_index, func))

    foreach_worker_with_id = foreach_worker_with_index

    def foreach_policy(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(policy, policy_id)` for all policies of all workers."""
        return _chain(self.foreach_worker(partial(_call_method, "foreach_policy", func)))

    def foreach_trainable_policy(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(policy, policy_id)` for all trained policies of all workers."""
        method = "foreach_policy_to_train"
        return _chain(self.foreach_worker(partial(_call_method, method, func)))

    foreach_policy_to_train = foreach_trainable_policy

    def foreach_env(self, func: Callable[[Any], Any]) -> list[list[Any]]:
        """Calls `func(env)` for all environments; a list a worker."""
        return self.foreach_worker(partial(_call_method, "foreach_env", func))

    def foreach_env_with_context(self, func: Callable[[Any, Any], Any]) -> list[list[Any]]:
        """Calls `func(env, env_context)` for all environments; a list a worker."""
        return self.foreach_worker(partial(_call_method, "foreach_env_with_context", func))

    def is_policy_to_train(self, policy_id: str, batch: object = None) -> bool:
        """Whether a policy learns."""
        return bool(self.local_worker().is_policy_to_train(policy_id, batch))

    def trainable_policies(self) -> list[str]:
        """The ids of the policies that learn."""
        return list(self.local_worker().get_policies_to_train())

    def num_remote_workers(self) -> int:
        """How many workers are actors."""
        return len(self.remote_workers())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: a local worker, {self.num_remote_workers()} remote ones>"

    def __getattr__(self, name: str) -> Any:
        raise missing(self, "workers", name)


class LegacyWorkers(Workers):
    """All workers of a trainer, the local one first.

    Args:
        running: The algorithm.
        group: The env runners: those that sample, or those that evaluate.
        config: The trainer's config.
        policies: Connects the local worker's policies to the learners; None for workers that have
            only copies of them.
        local: Whether the local worker counts if there are remote ones.
    """

    def __init__(
        self,
        running: RunningAlgorithm,
        group: EnvRunnerGroup,
        config: Mapping[str, Any] | None = None,
        policies: PolicyOwner | None = None,
        *,
        local: bool = True,
    ) -> None:
        self._running = running
        self._config = config
        self._policies = policies
        self._local = local or not env_runners.remote_env_runners(group)
        self.group = group

    def local_worker(self) -> Any:
        """The worker in this process, with the newest weights."""
        self._running.sync_local_runner()
        worker = as_legacy(self.group.local_env_runner)
        if isinstance(worker, LegacyWorker):
            worker.set_trainer(self._policies, self._config)
            if self._policies is None:
                worker.critics.set_learned(self._running.learned_weights())
        return worker

    def remote_workers(self) -> list[RemoteWorker]:
        """The others; `worker.method.remote(…)` calls a method of the worker there."""
        learned = self._running.learned_weights
        actors = env_runners.remote_env_runners(self.group)
        return [RemoteWorker(actor, learned) for actor in actors]

    def foreach_worker(
        self,
        func: Callable[[LegacyWorker], Any],
        *,
        local_worker: bool = True,
        remote_worker_ids: Collection[int] | None = None,
        **_: object,
    ) -> list[Any]:
        """Calls `func(worker)` in all workers.

        `worker.set_policies_to_train` in it also sets the learners' policies.

        Args:
            func: The function.
            local_worker: Whether it is called here, too.
            remote_worker_ids: The indices of the other workers; None for all.
            **_: How Ray 2.x waited for workers that fail: ignored, as the config decides it.
        """
        if self._policies:
            self.local_worker()  # the policies of this one reach the learners
        runner = self.group.local_env_runner
        before = runner.config.policies_to_train
        results = env_runners.foreach_env_runner(
            self.group,
            partial(_call, func, self._learned()),
            local_env_runner=local_worker and self._local,
            remote_worker_ids=remote_worker_ids,
        )
        after = runner.config.policies_to_train
        if after is not before and hasattr(runner, "module"):
            learners = self._running.algorithm.learner_group
            learners.foreach_learner(partial(_train_only, after))
        return results

    def _learned(self) -> list[Any]:
        """A reference to the learners' weights; empty if the only worker has the learners."""
        alone = self._policies is not None and env_runners.is_in_this_process(self.group)
        return [] if alone else self._running.learned_weights()

    def add_policy(self, policy_id: str, *args: object, **kwargs: object) -> Any:
        """Adds a policy to learners and workers; see `Trainer.add_policy`."""
        return self.local_worker().add_policy(policy_id, *args, **kwargs)

    def num_healthy_workers(self) -> int:
        """How many actors answer, and the local worker."""
        return self.num_healthy_remote_workers() + self._local

    def num_healthy_remote_workers(self) -> int:
        """How many actors answer."""
        return int(self.group.num_healthy_remote_workers())

    def healthy_worker_ids(self) -> list[int]:
        """The indices of the actors that answer."""
        return env_runners.healthy_indices(self.group)

    def num_in_flight_async_reqs(self) -> int:
        """How many calls actors have not answered yet."""
        return int(self.group.num_in_flight_async_reqs())

    def num_remote_worker_restarts(self) -> int:
        """How many actors were replaced so far."""
        return int(self.group.num_remote_worker_restarts())

    def probe_unhealthy_workers(self) -> list[int]:
        """Looks for actors that answer again, and returns their indices."""
        return list(renames.method(self.group, "probe_unhealthy_env_runners")())

    def add_workers(self, num_workers: int, validate: bool = False) -> None:
        """Adds so many actors, with the newest weights.

        Args:
            num_workers: How many.
            validate: Whether to wait until they answer.
        """
        if num_workers:
            self.group.add_workers(num_workers, validate=validate)
            self.sync_weights()

    def reset(self, new_remote_workers: Collection[Any]) -> None:
        """Replaces the remote workers by these; the others are stopped."""
        actors = [getattr(worker, "actor", worker) for worker in new_remote_workers]
        env_runners.replace_env_runners(self.group, actors)

    def remove_failed_workers(self) -> None:
        """Removes workers that do not answer.

        Raises:
            RuntimeError: None of the remote ones answers.
        """
        env_runners.remove_unhealthy_env_runners(self.group)

    def recreate_failed_workers(self) -> None:
        """Gives workers that Ray has replaced the weights and the state of the others.

        Ray replaces those that have failed if the config has `recreate_failed_workers`, by any of
        its names.
        """
        renames.method(self._running.algorithm, "restore_env_runners")(self.group)

    @property
    def env_runner_cls(self) -> type:
        """The class of the env runners."""
        return type(self.group.local_env_runner)

    def sync_weights(self, *_: object, **how: object) -> None:
        """Sends the learners' weights to all workers.

        Args:
            *_: Ignored: all weights are sent, from the learners to all workers.
            **how: Ignored, but for `global_vars`: the progress of training.
        """
        env_runners.send_weights(self._running.algorithm, self.group)
        self._running.forget_learned_weights()
        if progress := how.get("global_vars"):
            self.foreach_worker(partial(_call_method, "set_global_vars", progress))

    def stop(self) -> None:
        """Stops all workers."""
        self.group.stop()


class LegacyOptimizer:
    """The public part of `PolicyOptimizer` of Ray 0.5 – 0.8: workers and counters.

    Args:
        workers: All workers.
        running: The algorithm.
        last_result: What the trainer's last `train()` returned.
        collect_metrics: The trainer's method.
    """

    #: Results of workers that were too slow: they are waited for.
    to_be_collected: tuple[Any, ...] = ()

    def __init__(
        self,
        workers: LegacyWorkers,
        running: RunningAlgorithm,
        last_result: Callable[[], Mapping[str, Any]],
        collect_metrics: Callable[[], dict[str, Any]],
    ) -> None:
        self.workers = workers
        self._running = running
        self._last_result = last_result
        self._collect_metrics = collect_metrics

    @property
    def num_steps_sampled(self) -> int:
        """The env steps that were sampled so far."""
        return metrics.count_so_far(self._running.algorithm, "sampled")

    @property
    def num_steps_trained(self) -> int:
        """The steps that were trained so far, as the learners count them."""
        return metrics.count_so_far(self._running.algorithm, "trained")

    @property
    def local_evaluator(self) -> Any:
        """The worker in this process, by its name of Ray 0.5 and 0.6."""
        return self.workers.local_worker()

    @property
    def remote_evaluators(self) -> list[RemoteWorker]:
        """The other workers, by their name of Ray 0.5 and 0.6."""
        return self.workers.remote_workers()

    @property
    def episode_history(self) -> list[EpisodeRecord]:
        """The episodes of the smoothing window."""
        return [record for one in self._running.adapters for record in one.results.episodes]

    def step(self) -> dict[str, Any]:
        """Samples and learns once.

        Returns:
            The learners' results of the last `train()`.
        """
        old_stack.own_step(self._running.algorithm)
        self._running.mark_weights_stale()
        return dict(self._info().get("learner", {}))

    def save(self) -> list[int]:
        """Both counters."""
        return [self.num_steps_trained, self.num_steps_sampled]

    def stop(self) -> None:
        """Stops all workers."""
        self.workers.stop()

    def stats(self) -> dict[str, Any]:
        """Both counters, and the learners' last results."""
        return {
            "num_steps_sampled": self.num_steps_sampled,
            "num_steps_trained": self.num_steps_trained,
            "learner": self._info().get("learner", {}),
        }

    def foreach_worker(self, func: Callable[[LegacyWorker], Any]) -> list[Any]:
        """Calls `func(worker)` in all workers."""
        return self.workers.foreach_worker(func)

    foreach_evaluator = foreach_worker

    def foreach_worker_with_index(self, func: Callable[[LegacyWorker, int], Any]) -> list[Any]:
        """Calls `func(worker, index)` in all workers."""
        return self.workers.foreach_worker_with_index(func)

    foreach_evaluator_with_index = foreach_worker_with_index

    def collect_metrics(self, *_: object, **__: object) -> dict[str, Any]:
        """As `trainer.collect_metrics()`."""
        return self._collect_metrics()

    def __getattr__(self, name: str) -> Any:
        raise missing(self, "trainer.optimizer", name)

    def _info(self) -> Mapping[str, Any]:
        return self._last_result().get("info") or {}


# Functions of the module, so that they are pickled by name.
def _call(
    func: Callable[[LegacyWorker], object], learned: list[Any], env_runner: EnvRunner
) -> object:
    return func(worker_with_learned_critics(learned, env_runner))


def _call_with_index(func: Callable[[LegacyWorker, int], object], worker: LegacyWorker) -> object:
    return func(worker, worker.worker_index)


def _call_method(method: str, argument: object, worker: LegacyWorker) -> Any:
    return getattr(worker, method)(argument)


def _train_only(policies: ToTrain, learner: Learner) -> None:
    learner.config.multi_agent(policies_to_train=policies)


def _chain(lists: list[list[Any]]) -> list[Any]:
    return [item for items in lists for item in items]
