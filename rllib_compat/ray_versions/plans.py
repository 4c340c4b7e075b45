"""Execution plans (Ray 0.8.5 – 1.13): what of Ray 2.40 – 2.60 they run on.

Their iterators are still in Ray, below `ray.util`; workers and policies are those of the old API
stack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# A counter of plans → the algorithm's.
_COUNTERS = {
    "num_steps_sampled": "num_env_steps_sampled",
    "num_agent_steps_sampled": "num_agent_steps_sampled",
    "num_steps_trained": "num_env_steps_trained",
    "num_agent_steps_trained": "num_agent_steps_trained",
    "num_target_updates": "num_target_updates",
    "last_target_update_ts": "last_target_update_ts",
}


def plan_iterator(make: Callable[[], Iterator[Any]]) -> Any:
    """An iterator with the methods that plans are made of, `for_each` and the like.

    Args:
        make: Makes the generator of its items.
    """
    from ray.util.iter import LocalIterator
    from ray.util.iter_metrics import SharedMetrics

    def base(timeout: Any = None) -> Iterator[Any]:
        del timeout
        return make()

    return LocalIterator(base, SharedMetrics())


def give_batches_their_old_names() -> None:
    """Lets batches of several policies answer to `total()`, their agents' steps until Ray 0.8."""
    from ray.rllib.policy.sample_batch import MultiAgentBatch

    MultiAgentBatch.total = MultiAgentBatch.agent_steps


def not_ready() -> Any:
    """The item that says that there is none yet, and that others may go on."""
    from ray.util.iter import _NextValueNotReady

    return _NextValueNotReady()


def plan_metrics() -> Any:
    """Counters, timers and infos of the plan whose item is being made."""
    from ray.util.iter import LocalIterator

    return LocalIterator.get_metrics()


def with_steps(algorithm: type) -> type:
    """The algorithm's class, with steps that `algorithm.legacy_step()` takes."""

    def training_step(self: Any) -> Any:
        return self.legacy_step()

    members = {"training_step": training_step, "own_step": algorithm.training_step}  # type: ignore[attr-defined]
    return type(algorithm.__name__, (algorithm,), members)


def own_step(algorithm: Any) -> Any:
    """Takes a step of the algorithm itself, whose class may have other steps now."""
    return getattr(algorithm, "own_step", algorithm.training_step)()


def counters_of(algorithm: Any) -> Any:
    """What an algorithm of the old API stack counts, by name."""
    return algorithm._counters


def timers_of(algorithm: Any) -> Any:
    """What an algorithm of the old API stack times, by name."""
    return algorithm._timers


def next_of_plan(algorithm: Any, plan: Any) -> Any:
    """The next item of a plan, whose counters are the algorithm's, which checkpoints hold.

    Args:
        algorithm: The algorithm.
        plan: What the execution plan returned: an iterator.
    """
    counters = algorithm._counters
    metrics = plan.shared_metrics.get() if hasattr(plan, "shared_metrics") else None
    if metrics is None:
        return next(plan)
    metrics.counters.update({ours: counters[theirs] for ours, theirs in _COUNTERS.items()})
    item = next(plan)
    metrics = plan.shared_metrics.get()
    counters.update({theirs: metrics.counters[ours] for ours, theirs in _COUNTERS.items()})
    return item


def train_one_step(algorithm: Any, batch: Any, policies: Any = None) -> Any:
    """Learns from a batch in an algorithm of Ray's, on the old API stack."""
    from ray.rllib.execution.train_ops import train_one_step as train

    return train(algorithm, batch, policies)


def sample_synchronously(group: Any, **arguments: Any) -> Any:
    """Samples in all env runners of a group, on the old API stack."""
    from ray.rllib.execution.rollout_ops import synchronous_parallel_sample

    return synchronous_parallel_sample(worker_set=group, **arguments)
