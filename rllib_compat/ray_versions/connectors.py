"""The state of connectors."""

from __future__ import annotations

from typing import Any


def running_stat_state(count: int, mean: Any, m2: Any) -> dict[str, Any]:
    """The state of a running statistic as the connector takes it.

    The sum of squared deviations was called `std_array` until a later release gave it its name
    (`sum_sq_diff_array`), and added what was seen since the last synchronisation: nothing here.

    Args:
        count: How many observations were seen.
        mean: Their mean.
        m2: The sum of squared deviations from it.
    """
    from ray.rllib.utils.filter import RunningStat

    stat = RunningStat(mean.shape)
    stat.num_pushes = count
    stat.mean_array[...] = mean
    sums = "sum_sq_diff_array" if hasattr(stat, "sum_sq_diff_array") else "std_array"
    getattr(stat, sums)[...] = m2
    state: dict[str, Any] = stat.to_state()
    return state
