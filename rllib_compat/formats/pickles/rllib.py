"""Constructors for the records that RLlib's own checkpoints hold: filters and policy specs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats.spaces import require_numbers
from rllib_compat.neutral.checkpoint import Array, ObservationFilter, RunningStat
from rllib_compat.neutral.records import GlobalRef, StandIn

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine

# The names of count, mean and sum of squared deviations: since Ray 2.1, what is named `std_array`
# is no deviation, until it got a better name.
_STATISTICS = (
    ("_n", "_M", "_S"),
    ("num_pushes", "mean_array", "std_array"),
    ("num_pushes", "mean_array", "sum_sq_diff_array"),
)


def fill_running_stat(
    _machine: Machine, _args: tuple[Any, ...], state: dict[str, Any]
) -> RunningStat:
    """`RunningStat` of all Rays."""
    (names,) = (names for names in _STATISTICS if all(name in state for name in names))
    count, mean, m2 = (state[name] for name in names)
    return RunningStat(int(count), _to_statistic(mean), _to_statistic(m2))


def _to_statistic(value: object) -> Array:
    if isinstance(value, (float, int, np.number)):
        return np.asarray(value, np.float64)
    return require_numbers(value)


_MOST_STATISTICS = 10_000


def _flatten(machine: Machine, stats: Any) -> Iterator[RunningStat]:
    """The leaves of nested statistics in the order of `tree.flatten`: dicts sorted by key.

    It keeps a list of what is left to visit, as the nesting may be of any depth, and even a circle.
    """
    rest = [stats]
    for _ in range(_MOST_STATISTICS):
        if not rest:
            return
        stat = rest.pop()
        if isinstance(stat, RunningStat):
            yield stat
            continue
        machine.budget.spend("elements", len(stat))
        if isinstance(stat, dict):
            rest += [stat[key] for key in sorted(stat, reverse=True)]
        elif isinstance(stat, (list, tuple)):
            rest += reversed(stat)
        else:
            raise ValueError("a filter that holds something else than statistics")
    raise ValueError("a filter of too many statistics")


def mean_std_filter_filler(kind: str) -> Callable[..., ObservationFilter]:
    """`MeanStdFilter` and the like; `rs` became `running_stats` in Ray 2.1."""

    def fill(machine: Machine, _args: tuple[Any, ...], state: dict[str, Any]) -> ObservationFilter:
        nested = state["running_stats"] if "running_stats" in state else state["rs"]
        clip = state.get("clip")
        return ObservationFilter(
            kind,
            demean=bool(state.get("demean", True)),
            destd=bool(state.get("destd", True)),
            clip=None if clip is None else float(clip),
            stats=tuple(_flatten(machine, nested)),
        )

    return fill


def make_no_filter(_machine: Machine, *_args: object) -> ObservationFilter:
    """`NoFilter`, which has no state."""
    return ObservationFilter("NoFilter")


_POLICY_SPEC = ("policy_class", "observation_space", "action_space", "config")


def make_policy_spec(_machine: Machine, *args: object) -> StandIn:
    """`PolicySpec` stays a record; its attributes are in `state` for all Rays.

    It was a named tuple at first, whose fields are arguments.
    """
    ref = GlobalRef("ray.rllib.policy.policy", "PolicySpec")
    return StandIn(ref, state=dict(zip(_POLICY_SPEC, args, strict=False)))
