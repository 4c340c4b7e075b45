"""Shared by all operators of a plan: counters, timers and infos by their old names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rllib_compat.ray_versions import old_stack
from rllib_compat.runtime.policy_mapping import ONLY_POLICY

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch
    from rllib_compat.runtime.workers import LegacyWorker
    from rllib_compat.trainer.workers import LegacyWorkers

STEPS_SAMPLED_COUNTER = "num_steps_sampled"
AGENT_STEPS_SAMPLED_COUNTER = "num_agent_steps_sampled"
STEPS_TRAINED_COUNTER = "num_steps_trained"
STEPS_TRAINED_THIS_ITER_COUNTER = "num_steps_trained_this_iter"
AGENT_STEPS_TRAINED_COUNTER = "num_agent_steps_trained"
LAST_TARGET_UPDATE_TS = "last_target_update_ts"
NUM_TARGET_UPDATES = "num_target_updates"
APPLY_GRADS_TIMER = "apply_grad"
COMPUTE_GRADS_TIMER = "compute_grads"
WORKER_UPDATE_TIMER = "update"
GRAD_WAIT_TIMER = "grad_wait"
SAMPLE_TIMER = "sample"
LEARN_ON_BATCH_TIMER = "learn"
LOAD_BATCH_TIMER = "load"
LEARNER_INFO = "learner"


def _get_shared_metrics() -> Any:
    """Returns the counters, timers and infos of the plan that is running."""
    return old_stack.plan_metrics()


def _get_global_vars() -> dict[str, Any]:
    """Returns the plan's progress, for workers."""
    return {"timestep": _get_shared_metrics().counters[STEPS_SAMPLED_COUNTER]}


def count_sampled(batch: AnyBatch) -> Any:
    """Counts the steps of a sampled batch, and returns it."""
    counters = _get_shared_metrics().counters
    counters[STEPS_SAMPLED_COUNTER] += batch.count
    counters[AGENT_STEPS_SAMPLED_COUNTER] += batch.agent_steps()
    return batch


def count_trained(count: int, agent_steps: int = 0) -> None:
    """Counts the trained steps of one update."""
    counters = _get_shared_metrics().counters
    counters[STEPS_TRAINED_COUNTER] += count
    counters[STEPS_TRAINED_THIS_ITER_COUNTER] = count
    counters[AGENT_STEPS_TRAINED_COUNTER] += agent_steps


def steps_so_far(*, trained: bool = False) -> int:
    """Returns the number of environment steps that the plan has sampled, or trained on."""
    counter = STEPS_TRAINED_COUNTER if trained else STEPS_SAMPLED_COUNTER
    return int(_get_shared_metrics().counters[counter])


def gradients_of(worker: LegacyWorker, batch: AnyBatch) -> tuple[Any, dict[str, Any]]:
    """Computes gradients in a worker of the old API stack.

    Returns:
        The gradients, and the statistics by policy. With only `default_policy`, the gradients are
        its own, as in single-agent plans; otherwise they are a dict by policy.
    """
    if batch.as_multi_agent().policy_batches.keys() == {ONLY_POLICY}:
        gradients, stats = worker.compute_gradients(batch, single_agent=True)
        return gradients, {ONLY_POLICY: stats}
    gradients, stats = worker.compute_gradients(batch)
    return gradients, {policy: stats[policy] for policy in gradients}


def send_weights(
    workers: LegacyWorkers, policies: Iterable[str], to: Sequence[Any] | None = None
) -> None:
    """Sets the plan's progress in the local worker, and sends its weights to others (None: all)."""
    metrics, local = _get_shared_metrics(), workers.local_worker()
    known = _get_global_vars()
    local.set_global_vars(known)
    receivers = workers.remote_workers() if to is None else to
    if not receivers:
        return
    with metrics.timers[WORKER_UPDATE_TIMER]:
        weights = local.get_weights(list(policies))
        for worker in receivers:
            worker.set_weights.remote(weights, known)
