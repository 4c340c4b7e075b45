"""The old API stack: the state that its algorithms go on from (Ray 2.40 – 2.60)."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rllib_compat.ray_versions.callbacks import callbacks_of
from rllib_compat.ray_versions.connectors import running_stat_state


def set_state_of_old_stack(
    algorithm: Any,
    *,
    policies: Mapping[str, Mapping[str, Any]],
    filters: Mapping[str, Sequence[tuple[int, Any, Any]]],
    counters: Mapping[str, Any],
    iteration: int,
) -> None:
    """Makes an algorithm of the old API stack go on from data; its functions stay its own.

    Args:
        algorithm: The algorithm.
        policies: What `Policy.set_state` takes, by policy.
        filters: The statistics of each policy's filter, by leaf: how many observations were seen,
            their mean, and the sum of squared deviations from it.
        counters: What it has counted.
        iteration: How many iterations it has trained.
    """
    own = algorithm.env_runner.filters
    known = algorithm.env_runner.policy_map
    worker = {
        "policy_states": {name: dict(state) for name, state in policies.items() if name in known},
        "filters": {name: _with_statistics(own[name], filters.get(name)) for name in own},
    }
    state = {"worker": worker, "counters": defaultdict(int, counters)}
    if algorithm.eval_env_runner_group is not None:
        state["eval_policy_mapping_fn"] = algorithm.eval_env_runner.policy_mapping_fn
    algorithm.__setstate__({**state, "training_iteration": iteration})
    for callbacks in callbacks_of(algorithm):
        callbacks.on_checkpoint_loaded(algorithm=algorithm)


def _with_statistics(own: Any, stats: Sequence[tuple[int, Any, Any]] | None) -> Any:
    """A policy's own filter with other statistics."""
    if not stats:
        return own
    import tree
    from ray.rllib.utils.filter import RunningStat

    made = copy.deepcopy(own)
    parts = [RunningStat.from_state(running_stat_state(*stat)) for stat in stats]
    made.running_stats = tree.unflatten_as(own.running_stats, parts)
    return made
