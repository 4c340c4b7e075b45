"""Operators that sample, and that concatenate samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.execution.common import (
    AGENT_STEPS_SAMPLED_COUNTER,
    GRAD_WAIT_TIMER,
    LEARNER_INFO,
    SAMPLE_TIMER,
    STEPS_SAMPLED_COUNTER,
    _get_shared_metrics,
    count_sampled,
    gradients_of,
)
from rllib_compat.neutral.errors import ConfigError, GoneError
from rllib_compat.ray_versions import old_stack

if TYPE_CHECKING:
    from rllib_compat.runtime.evaluation import RemoteWorker
    from rllib_compat.runtime.workers import LegacyWorker
    from rllib_compat.trainer.workers import LegacyWorkers

_MODES = ("bulk_sync", "async")


def ParallelRollouts(workers: LegacyWorkers, *, mode: str = "bulk_sync", num_async: int = 1) -> Any:  # noqa: N802
    """Returns the flow of samples of all remote workers, or of the local one if there are none.

    Args:
        workers: `trainer.workers`.
        mode: `bulk_sync` waits for all workers and concatenates their samples; `async` returns each
            sample as it arrives.
        num_async: The number of concurrent requests to each worker in the mode `async`.

    Raises:
        GoneError: The mode is `raw`, which ran iterators in workers.
    """
    if mode not in _MODES:
        raise GoneError(
            f"The mode {mode!r} is not available any more.",
            where="ParallelRollouts(mode=)",
            fix=f"use one of {', '.join(_MODES)}",
        )
    workers.sync_weights()
    if not workers.remote_workers():
        batches = _forever(lambda: workers.local_worker().sample())
    elif mode == "bulk_sync":
        batches = _forever(lambda: _sample_all(workers))
    else:
        plan = old_stack.plan_iterator(lambda: _as_they_come(workers, _sample, num_async))
        return plan.for_each(_set_current_actor).for_each(count_sampled)
    return old_stack.plan_iterator(batches).for_each(count_sampled)


def synchronous_parallel_sample(
    *,
    worker_set: LegacyWorkers,
    max_agent_steps: int | None = None,
    max_env_steps: int | None = None,
    concat: bool = True,
    **more: object,
) -> Any:
    """Samples in all workers, once or until there are enough steps.

    Returns:
        The batch, or a list of batches.
    """
    return old_stack.sample_synchronously(
        getattr(worker_set, "group", worker_set),
        max_agent_steps=max_agent_steps,
        max_env_steps=max_env_steps,
        concat=concat,
        **more,
    )


def standardize_fields(samples: object, fields: Collection[str]) -> Any:
    """Standardizes columns of a batch, separately for each policy."""
    return StandardizeFields(fields)(samples)


def AsyncGradients(workers: LegacyWorkers) -> Any:  # noqa: N802
    """Returns the flow of workers' gradients from their samples, each with its number of steps."""
    workers.sync_weights()
    plan = old_stack.plan_iterator(lambda: _as_they_come(workers, _gradients, 1))
    return plan.for_each(_set_current_actor).for_each(_CountGradients())


def _forever(make: Callable[[], Any]) -> Callable[[], Iterator[Any]]:
    def batches() -> Iterator[Any]:
        while True:
            yield make()

    return batches


def _sample_all(workers: LegacyWorkers) -> Any:
    import ray
    from ray.rllib.policy.sample_batch import concat_samples

    return concat_samples(ray.get(list(map(_sample, workers.remote_workers()))))


def _as_they_come(
    workers: LegacyWorkers, ask: Callable[[Any], Any], num_async: int
) -> Iterator[Any]:
    import ray

    pending = {ask(w): w for _ in range(num_async) for w in workers.remote_workers()}
    while True:
        (ready,), _ = ray.wait(list(pending), num_returns=1)
        worker = pending.pop(ready)
        yield worker, ray.get(ready)
        pending[ask(worker)] = worker  # after the item was used, with the new weights


def _set_current_actor(item: tuple[Any, Any]) -> Any:
    """Sets the worker that an item is from as the plan's current actor, and returns the item."""
    _get_shared_metrics().current_actor, made = item
    return made


def _sample(worker: RemoteWorker) -> Any:
    return worker.sample.remote()


def _gradients(worker: RemoteWorker) -> Any:
    return worker.apply.remote(_compute_gradients)


def _compute_gradients(worker: LegacyWorker) -> Any:
    batch = worker.sample()
    return gradients_of(worker, batch), batch.count, batch.agent_steps()


class _CountGradients:
    def _on_fetch_start(self) -> None:
        self._asked = time.perf_counter()

    def __call__(self, item: Any) -> tuple[Any, int]:
        (gradients, stats), count, agent_steps = item
        plan = _get_shared_metrics()
        waited = time.perf_counter() - self._asked
        plan.timers[GRAD_WAIT_TIMER].push(waited)
        plan.info[LEARNER_INFO] = stats
        plan.counters[STEPS_SAMPLED_COUNTER] += count
        plan.counters[AGENT_STEPS_SAMPLED_COUNTER] += agent_steps
        return gradients, count


# A unit of steps → the function that counts those of a batch.
_SIZES: dict[str, Callable[[Any], int]] = {
    "env_steps": attrgetter("count"),
    "agent_steps": methodcaller("agent_steps"),
}


class ConcatBatches:
    """An operator for `combine` that joins batches to larger ones of so many steps.

    Empty batches, which a policy server returns while it has no samples, are left out. As since Ray
    1.9, the plan's sampling time is that between two large batches.

    Attributes:
        buffer: The batches so far.
        count: The number of their steps.
    """

    def __init__(self, min_batch_size: int, count_steps_by: str = "env_steps") -> None:
        if count_steps_by not in _SIZES:
            raise ConfigError(
                f"The unit of steps {count_steps_by!r} is unknown.",
                where="ConcatBatches(count_steps_by=)",
                fix=f"use one of {', '.join(_SIZES)}",
            )
        self.min_batch_size = min_batch_size
        self.count_steps_by = count_steps_by
        self._empty()

    def _empty(self) -> None:
        self.buffer: list[Any] = []
        self.count = 0
        self._since = time.perf_counter()

    def __call__(self, batch: Mapping[str, Any]) -> list[Any]:
        """Adds a batch, and returns a list with the large batch or an empty list."""
        if size := _SIZES[self.count_steps_by](batch):
            self.buffer.append(batch)
            self.count += size
        if not self.buffer or self.count < self.min_batch_size:
            return []
        return [self._concatenate()]

    def _concatenate(self) -> Any:
        from ray.rllib.policy.sample_batch import concat_samples

        took = time.perf_counter() - self._since
        sampling = _get_shared_metrics().timers[SAMPLE_TIMER]
        sampling.push_units_processed(self.count)
        sampling.push(took)
        large = concat_samples(self.buffer)
        self._empty()
        return large


class SelectExperiences:
    """An operator that selects the batches of some policies.

    With a worker instead of ids, these are the policies that it trains (Ray 1.4 – 1.13).

    Raises:
        ConfigError: Both are None.
    """

    def __init__(
        self, policy_ids: Collection[str] | None = None, local_worker: LegacyWorker | None = None
    ) -> None:
        if policy_ids is None and local_worker is None:
            raise ConfigError(
                "SelectExperiences got neither policy_ids nor local_worker.",
                where="SelectExperiences(policy_ids=, local_worker=)",
                fix="pass the ids of policies, or a worker to select those that it trains",
            )
        self.policy_ids = policy_ids
        self.local_worker = local_worker

    def __call__(self, samples: Any) -> Any:
        """Selects from a multi-agent batch; other batches stay."""
        batches = getattr(samples, "policy_batches", None)
        if batches is None:
            return samples
        kept = {policy: batch for policy, batch in batches.items() if self._keeps(policy, batch)}
        return type(samples)(kept, samples.count)

    def _keeps(self, policy: str, batch: object) -> bool:
        if self.local_worker is not None:
            return policy in self.local_worker.get_policies_to_train(batch)
        return policy in (self.policy_ids or ())


class StandardizeFields:
    """An operator that scales columns that batches have to a mean of 0 and a deviation of 1."""

    def __init__(self, fields: Collection[str]) -> None:
        self.fields = fields

    def __call__(self, samples: object) -> Any:
        """Scales a batch, and returns it."""
        for batch in getattr(samples, "policy_batches", {"": samples}).values():
            for field in filter(batch.__contains__, self.fields):
                values = np.asarray(batch[field])
                # The limit keeps nearly constant columns small.
                batch[field] = (values - np.mean(values)) / np.maximum(np.std(values), 1e-4)
        return samples
