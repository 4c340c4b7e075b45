"""Spaces in files: pickled by any gym, and in the form of Ray 2.1 and later.

A pickle holds a space's attributes, under the class's name in gym, gymnasium or RLlib.

Ray writes a space as a dict of plain values: `{"space": "discrete", "n": 2, "start": 0}`; arrays in
it are text: base64 of zlib of the `.npy` form. A policy's spec wraps that once more, since the
space after Ray's preprocessors has the original one hanging on it:
`{"space": {…}, "original_space": {"space": {…}}}`.

Both directions are written out here, so that neither Ray nor gymnasium is needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats.array_text import decode_array, encode_array
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError
from rllib_compat.neutral.records import GlobalRef
from rllib_compat.neutral.spaces import (
    DEEPEST,
    DTYPES,
    LARGEST,
    MOST_PARTS,
    Array,
    Box,
    DictSpace,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Repeated,
    Space,
    TupleSpace,
    box,
    dict_space,
    distinct_entries,
    tuple_space,
)

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine


def to_ray_dict(space: Space) -> dict[str, Any]:
    """The dict that Ray's `gym_space_to_dict` makes of `space`.

    Raises:
        TypeError: It is no space that Ray's form has.
    """
    writer = _WRITERS.get(type(space))
    if writer is None:
        raise TypeError(f"not a space record: {space!r}")
    return writer(space)


def from_ray_dict(
    data: Mapping[str, Any], *, budget: Budget | None = None, where: str = ""
) -> Space | None:
    """Reads a space from either of Ray's forms, the plain one and the wrapped one.

    Of a wrapped one the *original* space is returned, the one of raw observations: what Ray's
    preprocessors make of it follows from it.

    Returns:
        The record, or None for the kinds that have none (text, repeated, simplex, flex_dict).

    Raises:
        CorruptCheckpointError: The dict is not what Ray writes.
        BudgetExceededError: It expands to more than the budget allows.
    """
    try:
        return _read(data, budget or Budget(), 0)
    except CompatError:
        raise
    # Any expression may fail on what a stranger wrote; whichever it is, the file is at fault.
    except Exception as error:
        raise CorruptCheckpointError(
            f"This is not a space as Ray writes it: {type(error).__name__}: {error}.",
            where=where or None,
            fix="Give the spaces by hand if the rest of the checkpoint can be read.",
        ) from error


def to_preprocessed_dict(space: Space) -> dict[str, Any]:
    """The wrapped form of the space that a policy's model sees, for raw observations of `space`.

    Ray's preprocessors make a flat Box of spaces that are not arrays, and hang the original on it.

    Raises:
        ValueError: The flat Box would have more than `LARGEST` entries.
    """
    if space.original_space is not None:  # it is one that a preprocessor has made
        original = {"space": to_ray_dict(space.original_space)}
        return {"space": to_ray_dict(space), "original_space": original}
    if isinstance(space, (Box, MultiBinary)):
        return {"space": to_ray_dict(space)}
    if space.flat_size() > LARGEST:
        raise ValueError(f"Ray would make {space.flat_size():,} numbers of one observation")
    flat = box(-1.0, 1.0, (space.flat_size(),))
    return {"space": to_ray_dict(flat), "original_space": {"space": to_ray_dict(space)}}


def _write_multi_binary(space: MultiBinary) -> dict[str, Any]:
    # gym itself keeps a plain number for vectors and the shape for everything else.
    n = space.shape[0] if len(space.shape) == 1 else list(space.shape)
    return {"space": "multi-binary", "n": n}


_WRITERS: Mapping[type[Space], Callable[[Any], dict[str, Any]]] = {
    Box: lambda s: {
        "space": "box",
        "low": encode_array(s.low),
        "high": encode_array(s.high),
        "shape": list(s.shape),
        "dtype": np.dtype(s.dtype).str,
    },
    Discrete: lambda s: {"space": "discrete", "n": s.n, "start": s.start},
    MultiBinary: _write_multi_binary,
    MultiDiscrete: lambda s: {
        "space": "multi-discrete",
        "nvec": encode_array(np.array(s.nvec, np.int64)),
        "dtype": "<i8",
    },
    TupleSpace: lambda s: {"space": "tuple", "spaces": [to_ray_dict(p) for p in s.spaces]},
    DictSpace: lambda s: {
        "space": "dict",
        "spaces": {k: to_ray_dict(p) for k, p in s.spaces.items()},
    },
    Repeated: lambda s: {
        "space": "repeated",
        "child_space": to_ray_dict(s.child_space),
        "max_len": s.max_len,
    },
}


def _read(data: Mapping[str, Any], budget: Budget, depth: int) -> Space | None:
    budget.spend("elements", 1)
    if depth > DEEPEST:
        raise ValueError("spaces are nested too deeply")
    kind = data["space"]
    if isinstance(kind, Mapping):
        return _read(data.get("original_space") or kind, budget, depth + 1)
    if kind in _WITHOUT_RECORD:
        return None
    return _READERS[kind](data, budget, depth)


def _read_box(data: Mapping[str, Any], budget: Budget, _: int) -> Space:
    dtype = np.dtype(data["dtype"]) if isinstance(data["dtype"], str) else np.dtype("V1")
    low, high = (decode_array(data[name], budget) for name in ("low", "high"))
    if dtype.kind not in "biuf" or not low.shape == high.shape == tuple(data["shape"]):
        raise ValueError(f"bounds of shape {low.shape} for {data['shape']} of type {dtype}")
    native = dtype.newbyteorder("=")
    return Box(_convert(low, native), _convert(high, native), dtype.name)


def _convert(bound: Array, dtype: np.dtype[Any]) -> Array:
    if bound.dtype == dtype:
        return bound
    return np.broadcast_to(distinct_entries(bound).astype(dtype), bound.shape)


def _read_discrete(data: Mapping[str, Any], _: Budget, __: int) -> Space:
    return Discrete(operator.index(data["n"]), operator.index(data.get("start", 0)))


def _read_multi_binary(data: Mapping[str, Any], _: Budget, __: int) -> Space:
    n = data["n"]
    return MultiBinary(tuple(map(operator.index, n if isinstance(n, (list, tuple)) else [n])))


def _read_multi_discrete(data: Mapping[str, Any], budget: Budget, _: int) -> Space:
    sizes = decode_array(data["nvec"], budget)
    if sizes.dtype.kind not in "iu" or sizes.size > MOST_PARTS:
        raise ValueError(
            "the sizes of a MultiDiscrete are not whole numbers, or there are too many"
        )
    return MultiDiscrete(tuple(sizes.ravel().tolist()))


def _read_tuple(data: Mapping[str, Any], budget: Budget, depth: int) -> Space | None:
    return tuple_space(_read(part, budget, depth + 1) for part in data["spaces"])


def _read_dict(data: Mapping[str, Any], budget: Budget, depth: int) -> Space | None:
    parts = data["spaces"].items()
    return dict_space({name: _read(part, budget, depth + 1) for name, part in parts})


def _read_repeated(data: Mapping[str, Any], budget: Budget, depth: int) -> Space | None:
    child = _read(data["child_space"], budget, depth + 1)
    return None if child is None else Repeated(child, operator.index(data["max_len"]))


_WITHOUT_RECORD = frozenset({"text", "simplex", "flex_dict"})

_READERS: Mapping[str, Callable[[Mapping[str, Any], Budget, int], Space | None]] = {
    "box": _read_box,
    "discrete": _read_discrete,
    "multi-binary": _read_multi_binary,
    "multi-discrete": _read_multi_discrete,
    "tuple": _read_tuple,
    "dict": _read_dict,
    "repeated": _read_repeated,
}


def _to_dtype_name(dtype: object) -> str:
    if isinstance(dtype, np.dtype):
        return dtype.name
    name = dtype.name if type(dtype) is GlobalRef else dtype
    if name is None:
        return "float32"
    name = "bool" if name == "bool_" else name
    if not (isinstance(name, str) and name in DTYPES):  # numpy's own parser knows too many words
        raise ValueError("a space of an unknown dtype")
    return name


def require_numbers(value: object) -> Array:
    """An array of numbers.

    Raises:
        ValueError: It is something else.
    """
    if not (isinstance(value, np.ndarray) and value.dtype.kind in "biuf"):
        raise ValueError("an array of numbers is missing")
    return value


def _to_integers(machine: Machine, value: Any) -> tuple[int, ...]:
    """The integers of an array or a tuple, or a single one."""
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    numbers = value if type(value) in (tuple, list) else require_numbers(value).ravel()
    machine.budget.spend("elements", len(numbers))
    return tuple(int(number) for number in numbers)


def _fill_box(_machine: Machine, state: dict[str, Any]) -> Space:
    return Box(
        require_numbers(state["low"]),
        require_numbers(state["high"]),
        _to_dtype_name(state.get("dtype")),
    )


def _fill_discrete(_machine: Machine, state: dict[str, Any]) -> Space:
    return Discrete(int(state["n"]), int(state.get("start", 0)))


def _fill_multi_discrete(machine: Machine, state: dict[str, Any]) -> Space:
    if "nvec" in state:
        return MultiDiscrete(_to_integers(machine, state["nvec"]))
    # gym before 0.9.6
    low, high = _to_integers(machine, state["low"]), _to_integers(machine, state["high"])
    return MultiDiscrete(tuple(b - a + 1 for a, b in zip(low, high, strict=True)))


def _fill_multi_binary(machine: Machine, state: dict[str, Any]) -> Space:
    return MultiBinary(_to_integers(machine, state["n"]))


def _fill_tuple(machine: Machine, state: dict[str, Any]) -> Any:
    parts = state["spaces"]
    machine.budget.spend("elements", len(parts))
    known = all(isinstance(part, Space) for part in parts)
    return TupleSpace(tuple(parts)) if known else NotImplemented


def _fill_dict(machine: Machine, state: dict[str, Any]) -> Any:
    parts = state["spaces"]
    machine.budget.spend("elements", len(parts))
    known = all(isinstance(part, Space) for part in parts.values())
    return DictSpace(dict(parts)) if known else NotImplemented


def _fill_repeated(machine: Machine, state: dict[str, Any]) -> Any:
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
PICKLED: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "Box": ("box", _space_filler(_fill_box)),
    "Discrete": ("discrete", _space_filler(_fill_discrete)),
    "MultiDiscrete": ("multi_discrete", _space_filler(_fill_multi_discrete)),
    "MultiBinary": ("multi_binary", _space_filler(_fill_multi_binary)),
    "Tuple": ("tuple tuple_space", _space_filler(_fill_tuple)),
    "Dict": ("dict dict_space", _space_filler(_fill_dict)),
}
#: RLlib's own: lists of varying length.
fill_repeated = _space_filler(_fill_repeated)
