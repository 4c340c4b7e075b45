"""Constructors for the records that RLlib's own checkpoints hold: spaces and filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.checkpoint import Array, ObservationFilter, RunningStat
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.spaces import (
    Box,
    DictSpace,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Repeated,
    Space,
    TupleSpace,
)

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine

# What a dtype of a space may be; numpy's own parser knows too many words.
_SCALARS = re.compile(r"bool_?|u?int(8|16|32|64)|float(16|32|64)")


def _to_dtype_name(dtype: object) -> str:
    if isinstance(dtype, np.dtype):
        return dtype.name
    name = dtype.name if type(dtype) is GlobalRef else dtype
    if name is None:
        return "float32"
    if not (isinstance(name, str) and _SCALARS.fullmatch(name)):
        raise ValueError("a space of an unknown dtype")
    return np.dtype(name).name


def _require_numbers(value: object) -> Array:
    if not (isinstance(value, np.ndarray) and value.dtype.kind in "biuf"):
        raise ValueError("an array of numbers is missing")
    return value


def _to_integers(machine: Machine, value: Any) -> tuple[int, ...]:
    """The integers of an array or a tuple, or a single one."""
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    numbers = value if type(value) in (tuple, list) else _require_numbers(value).ravel()
    machine.budget.spend("elements", len(numbers))
    return tuple(int(number) for number in numbers)


def _read_box(_machine: Machine, state: dict[str, Any]) -> Space:
    return Box(
        _require_numbers(state["low"]),
        _require_numbers(state["high"]),
        _to_dtype_name(state.get("dtype")),
    )


def _read_discrete(_machine: Machine, state: dict[str, Any]) -> Space:
    return Discrete(int(state["n"]), int(state.get("start", 0)))


def _read_multi_discrete(machine: Machine, state: dict[str, Any]) -> Space:
    if "nvec" in state:
        return MultiDiscrete(_to_integers(machine, state["nvec"]))
    # gym before 0.9.6
    low, high = _to_integers(machine, state["low"]), _to_integers(machine, state["high"])
    return MultiDiscrete(tuple(b - a + 1 for a, b in zip(low, high, strict=True)))


def _read_multi_binary(machine: Machine, state: dict[str, Any]) -> Space:
    return MultiBinary(_to_integers(machine, state["n"]))


def _read_tuple(machine: Machine, state: dict[str, Any]) -> Any:
    parts = state["spaces"]
    machine.budget.spend("elements", len(parts))
    known = all(isinstance(part, Space) for part in parts)
    return TupleSpace(tuple(parts)) if known else NotImplemented


def _read_dict(machine: Machine, state: dict[str, Any]) -> Any:
    parts = state["spaces"]
    machine.budget.spend("elements", len(parts))
    known = all(isinstance(part, Space) for part in parts.values())
    return DictSpace(dict(parts)) if known else NotImplemented


def _read_repeated(machine: Machine, state: dict[str, Any]) -> Any:
    child = state["child_space"]
    machine.budget.spend("elements", 1)
    if not isinstance(child, Space):
        return NotImplemented
    return Repeated(child, int(state["max_len"]))


def _space_filler(read: Callable[[Machine, dict[str, Any]], Any]) -> Callable[..., Any]:
    def fill(machine: Machine, _args: tuple[Any, ...], state: Any) -> Any:
        made = read(machine, state)
        original = state.get("original_space")
        if isinstance(made, Space) and isinstance(original, Space):
            made = replace(made, original_space=original)
        return made

    return fill


#: The modules below `spaces` in which a kind of space was, in any gym, and what makes its record.
SPACES: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "Box": ("box", _space_filler(_read_box)),
    "Discrete": ("discrete", _space_filler(_read_discrete)),
    "MultiDiscrete": ("multi_discrete", _space_filler(_read_multi_discrete)),
    "MultiBinary": ("multi_binary", _space_filler(_read_multi_binary)),
    "Tuple": ("tuple tuple_space", _space_filler(_read_tuple)),
    "Dict": ("dict dict_space", _space_filler(_read_dict)),
}
#: RLlib's own: lists of varying length.
fill_repeated = _space_filler(_read_repeated)


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
    return _require_numbers(value)


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


def make_no_filter(_machine: Machine, *_args: Any) -> ObservationFilter:
    """`NoFilter`, which has no state."""
    return ObservationFilter("NoFilter")


_POLICY_SPEC = ("policy_class", "observation_space", "action_space", "config")


def make_policy_spec(_machine: Machine, *args: Any) -> StandIn:
    """`PolicySpec` stays a record; its attributes are in `state` for all Rays.

    It was a named tuple at first, whose fields are arguments.
    """
    ref = GlobalRef("ray.rllib.policy.policy", "PolicySpec")
    return StandIn(ref, state=dict(zip(_POLICY_SPEC, args, strict=False)))
