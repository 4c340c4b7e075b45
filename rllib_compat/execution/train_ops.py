"""Operators that train in the local worker, and send the weights to the others."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from rllib_compat.execution.common import (
    APPLY_GRADS_TIMER,
    COMPUTE_GRADS_TIMER,
    LAST_TARGET_UPDATE_TS,
    LEARN_ON_BATCH_TIMER,
    LEARNER_INFO,
    NUM_TARGET_UPDATES,
    _get_shared_metrics,
    count_trained,
    gradients_of,
    send_weights,
    steps_so_far,
)
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import old_stack

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch
    from rllib_compat.trainer.workers import LegacyWorkers


class TrainOneStep:
    """An operator that trains on a batch, at once or in minibatches (0: one of all steps).

    The policies are by default those that the config trains.
    """

    def __init__(
        self,
        workers: LegacyWorkers,
        policies: Collection[str] | None = None,
        num_sgd_iter: int = 1,
        sgd_minibatch_size: int = 0,
    ) -> None:
        self.workers = workers
        self.policies = policies
        self.num_sgd_iter = num_sgd_iter
        self.sgd_minibatch_size = sgd_minibatch_size

    def __call__(self, batch: AnyBatch) -> tuple[Any, dict[str, Any]]:
        """Trains on a batch, and returns it with the policies' statistics."""
        metrics = _get_shared_metrics()
        timer = metrics.timers[LEARN_ON_BATCH_TIMER]
        with timer:
            policies, info = self.learn(batch)
            timer.push_units_processed(batch.count)
        count_trained(batch.count, batch.agent_steps())
        metrics.info[LEARNER_INFO] = {**metrics.info.get(LEARNER_INFO, {}), **info}
        send_weights(self.workers, list(policies))
        return batch, info

    def learn(self, batch: object) -> tuple[Collection[str], dict[str, Any]]:
        """Trains on a batch, and returns the trained policies and their statistics."""
        worker = self.workers.local_worker()
        policies = self.policies or worker.get_policies_to_train(batch)
        if self.num_sgd_iter <= 1 and not self.sgd_minibatch_size:
            return policies, dict(worker.learn_on_batch(batch))
        from ray.rllib.utils.sgd import do_minibatch_sgd

        known = {policy: worker.get_policy(policy) for policy in policies}
        size, times = self.sgd_minibatch_size, self.num_sgd_iter
        return policies, dict(do_minibatch_sgd(batch, known, worker, times, size, []))


class MultiGPUTrainOneStep(TrainOneStep):
    """`TrainOneStep` by its name and arguments for several GPUs."""

    def __init__(
        self, workers: LegacyWorkers, *, sgd_minibatch_size: int, num_sgd_iter: int, **_: object
    ) -> None:
        super().__init__(workers, None, num_sgd_iter, sgd_minibatch_size)


TrainTFMultiGPU = MultiGPUTrainOneStep


class ComputeGradients:
    """An operator that computes gradients of a batch in the local worker."""

    def __init__(self, workers: LegacyWorkers) -> None:
        self.workers = workers

    def __call__(self, samples: AnyBatch) -> tuple[Any, int]:
        """Returns the gradients, and the number of steps."""
        plan = _get_shared_metrics()
        with plan.timers[COMPUTE_GRADS_TIMER]:
            gradients, plan.info[LEARNER_INFO] = gradients_of(self.workers.local_worker(), samples)
        return gradients, samples.count


class ApplyGradients:
    """An operator that applies gradients in the local worker, and sends its weights to others.

    These are all workers, or without `update_all` only the one of the gradients. The policies are
    by default those that the config trains.
    """

    def __init__(
        self,
        workers: LegacyWorkers,
        policies: Collection[str] | None = None,
        update_all: bool = True,
    ) -> None:
        self.workers = workers
        self.policies = list(policies or ())
        self.update_all = update_all

    def __call__(self, item: object) -> None:
        """Applies an item of `ComputeGradients`.

        Raises:
            ConfigError: The item is not (gradients, steps), or `update_all` is False and the
                gradients' worker is not known.
        """
        if not (isinstance(item, tuple) and len(item) == 2):
            raise ConfigError(
                f"ApplyGradients got a {type(item).__name__} instead of (gradients, steps).",
                where="ApplyGradients(…)",
                fix="pass the items of ComputeGradients, AsyncGradients or AverageGradients",
            )
        gradients, count = item
        plan, local = _get_shared_metrics(), self.workers.local_worker()
        timer = plan.timers[APPLY_GRADS_TIMER]
        with timer:
            local.apply_gradients(gradients)
        timer.push_units_processed(count)
        count_trained(count)
        receivers = None if self.update_all else [self._source(plan)]
        send_weights(self.workers, self.policies or local.get_policies_to_train(), receivers)

    def _source(self, plan: Any) -> Any:
        if plan.current_actor is not None:
            return plan.current_actor
        raise ConfigError(
            "The worker of these gradients is not known, and only it would get the weights.",
            where="ApplyGradients(update_all=False)",
            fix="apply gradients of AsyncGradients, or set update_all=True",
        )


class AverageGradients:
    """An operator after `batch` that sums gradients, as old Rays did by this name."""

    def __call__(self, gradients: list[tuple[Any, int]]) -> tuple[Any, int]:
        """Returns the sum of the gradients, and of the numbers of steps."""
        import tree

        parts, counts = zip(*gradients, strict=True)
        return tree.map_structure(_sum, *parts), sum(counts)


def _sum(*values: object) -> Any:
    """Sums one parameter's gradients; None if there is none."""
    given = [value for value in values if value is not None]
    return reduce(add, given) if given else None


class UpdateTargetNetwork:
    """An operator that updates target networks at an interval of steps.

    It does so when the interval has passed, as Ray 1.13; older Rays waited for one more step.

    The policies are by default all that the config trains.
    """

    def __init__(
        self,
        workers: LegacyWorkers,
        target_update_freq: int,
        by_steps_trained: bool = False,
        policies: Collection[str] | None = None,
    ) -> None:
        self.workers = workers
        self.target_update_freq = target_update_freq
        self.by_steps_trained = by_steps_trained
        self.policies = policies

    def __call__(self, _: object) -> None:
        """Updates the networks if the interval has passed."""
        now, counters = steps_so_far(trained=self.by_steps_trained), _get_shared_metrics().counters
        if now < counters[LAST_TARGET_UPDATE_TS] + self.target_update_freq:
            return
        counters[LAST_TARGET_UPDATE_TS] = now
        counters[NUM_TARGET_UPDATES] += 1
        worker = self.workers.local_worker()
        trained = worker.get_policies_to_train()
        for policy in (p for p in trained if p in (self.policies or trained)):
            worker.get_policy(policy).update_target()


def train_one_step(trainer: Any, train_batch: Any, policies_to_train: Any = None) -> dict[str, Any]:
    """Trains on a batch with the settings of the trainer's config, and returns statistics."""
    if not isinstance(trainer.config, dict):  # Ray's own algorithm
        return dict(old_stack.train_one_step(trainer, train_batch, policies_to_train))
    passes, size = (trainer.config.get(key, 0) for key in ("num_sgd_iter", "sgd_minibatch_size"))
    learn = TrainOneStep(trainer.workers, policies_to_train, passes, size)
    batch = train_batch.as_multi_agent()
    timer = old_stack.timers_of(trainer.algorithm)[LEARN_ON_BATCH_TIMER]
    with timer:
        _, stats = learn.learn(batch)
        timer.push_units_processed(batch.count)
    counters = old_stack.counters_of(trainer.algorithm)
    counters["num_env_steps_trained"] += batch.count
    counters["num_agent_steps_trained"] += batch.agent_steps()
    return stats


def multi_gpu_train_one_step(trainer: object, train_batch: object) -> dict[str, Any]:
    """Calls `train_one_step`, by its name for batches on devices."""
    return train_one_step(trainer, train_batch)
