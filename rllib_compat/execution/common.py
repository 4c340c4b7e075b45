"""What all operators of a plan share: counters, timers and infos by their old names."""

from __future__ import annotations

from typing import Any

from rllib_compat import ray_versions

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
    """Counters, timers and infos of the plan whose item is being made."""
    return ray_versions.plan_metrics()


def _get_global_vars() -> dict[str, Any]:
    """What all workers know of the plan's progress."""
    return {"timestep": _get_shared_metrics().counters[STEPS_SAMPLED_COUNTER]}


def count_sampled(batch: Any) -> Any:
    """Counts a batch that was sampled, and returns it."""
    counters = _get_shared_metrics().counters
    counters[STEPS_SAMPLED_COUNTER] += batch.count
    counters[AGENT_STEPS_SAMPLED_COUNTER] += batch.agent_steps()
    return batch


def count_trained(count: int, agent_steps: int) -> None:
    """Counts steps that were learned from."""
    counters = _get_shared_metrics().counters
    counters[STEPS_TRAINED_COUNTER] += count
    counters[AGENT_STEPS_TRAINED_COUNTER] += agent_steps


def send_weights(workers: Any, policies: Any = None) -> None:
    """Sends the local worker's weights to the others, and tells all how far the plan is."""
    metrics = _get_shared_metrics()
    known = _get_global_vars()
    with metrics.timers[WORKER_UPDATE_TIMER]:
        local = workers.local_worker()
        weights = local.get_weights(policies) if workers.remote_workers() else None
        for worker in workers.remote_workers():
            worker.set_weights.remote(weights, known)
        local.set_global_vars(known)
