"""Constructors for numpy's arrays, scalars and dtypes.

Arrays are views on the bytes of the pickle, and are read-only then; their byte order and memory
order stay as they were written.
Everything that a file says about an array is checked against the bytes that are there.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats.pickles.python_types import is_named, raw_bytes
from rllib_compat.neutral.checkpoint import Array

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine

_DTYPE = re.compile(r"([biufcmMOSUVa])(\d{1,9})|[?bBhHiIlLqQefdgFDGO]")
_MOST_AXES = 64  # numpy's own limit
_UNITS = frozenset({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as"})


def dtype(machine: Machine, args: tuple[Any, ...], state: Any) -> Any:
    """`numpy.dtype`: a code, and a state with byte order, fields and units of time."""
    code = args[0]
    if isinstance(code, (bytes, memoryview)):
        code = str(code, "latin-1")
    if not (isinstance(code, str) and _DTYPE.fullmatch(code)):
        return NotImplemented  # a scalar type by reference, or a dtype of another package
    version, order, subarray, names, fields, size, *_ = state
    if code[0] == "a":
        code = f"S{code[1:]}"  # numpy 2 knows the old name no more
    base = np.dtype(code)
    if order not in (">", "<", "=", "|"):
        raise ValueError("a dtype without a byte order")
    if subarray is not None:
        inner, shape = subarray
        return np.dtype((_as_dtype(inner), shape_of(shape)))
    if names is not None:
        return _structured(machine, names, fields, size)
    if base.kind in "mM" and version >= 4 and len(state) > 8:
        (_, (unit, step, *_)) = state[8]
        unit = str(unit, "utf-8") if isinstance(unit, bytes) else unit
        if isinstance(unit, str) and unit in _UNITS:
            base = np.dtype(f"{base.kind}8[{int(step)}{unit}]")
    return base.newbyteorder(order)


def _structured(machine: Machine, names: Any, fields: Any, size: Any) -> Any:
    machine.budget.spend("elements", len(names))
    parts = [fields[_as_text(name)] for name in names]
    made = np.dtype(
        {
            "names": list(names),
            "formats": [_as_dtype(part[0]) for part in parts],
            "offsets": [int(part[1]) for part in parts],
            "titles": [_as_text(part[2]) if len(part) > 2 else None for part in parts],
            "itemsize": size,
        }
    )
    return NotImplemented if made.hasobject else made


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a field whose name is not text")
    return value


def _as_dtype(value: Any) -> np.dtype[Any]:
    if not isinstance(value, np.dtype):
        raise ValueError(f"a dtype made of a {type(value).__name__}")
    return value


def shape_of(shape: Any) -> tuple[int, ...]:
    """Checks a shape, which very old pickles give as one integer."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if len(sizes) > _MOST_AXES or not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("a malformed shape")
    return tuple(sizes)


def to_array(machine: Machine, data: Any, kind: Any, shape: Any, order: Any = "C") -> Array:
    """An array of the given bytes."""
    kind, shape = _as_dtype(kind), shape_of(shape)
    count = math.prod(shape)
    if kind.hasobject:
        return _object_array(machine, data, count).reshape(shape)
    if isinstance(data, str):
        machine.budget.spend("copies", len(data))
    raw = memoryview(raw_bytes(data))
    if raw.nbytes != count * kind.itemsize:
        raise ValueError(
            f"an array of shape {shape} and {kind} has {count * kind.itemsize} bytes, "
            f"and {raw.nbytes} are there"
        )
    if not raw.nbytes:
        machine.budget.spend("elements", count)  # of no bytes each
    return np.ndarray(shape, kind, raw, order=order)


def _object_array(machine: Machine, items: Any, count: int) -> Array:
    """An array of Python objects, which always lie in C order in a pickle."""
    if type(items) is not list or len(items) != count:
        raise ValueError(f"an array of {count} objects that are not there")
    machine.budget.spend("elements", count)
    for item in items:
        # Freeing a chain of arrays in arrays recurses in numpy, without a limit.
        if isinstance(item, np.ndarray) and item.dtype.hasobject:
            machine.budget.spend("elements", item.size)
            if any(isinstance(x, np.ndarray) and x.dtype.hasobject for x in item.flat):
                raise ValueError("arrays of objects nested three deep")
    return np.fromiter(items, object, count)


def ndarray(machine: Machine, args: tuple[Any, ...], state: Any) -> Any:
    """`_reconstruct(ndarray, (0,), 'b')`, and a state with all that matters."""
    if not is_named(args[0], "numpy", "ndarray"):
        return NotImplemented  # a subclass: masked arrays and the like
    *_, shape, kind, fortran, data = state
    return to_array(machine, data, kind, shape, "F" if fortran is True or fortran == 1 else "C")


def from_buffer(
    machine: Machine, data: Any, kind: Any, shape: Any, order: Any, axes: Any = None
) -> Array:
    """`_frombuffer`, of protocol 5; numpy 2.3 and later tell an order of axes."""
    if order == "K" and axes is not None:
        return to_array(machine, data, kind, shape).transpose(shape_of(axes))
    if order not in ("C", "F", "A"):
        raise ValueError("an array whose order is not known")
    return to_array(machine, data, kind, shape, order)


def scalar(machine: Machine, kind: Any, data: Any = None) -> Any:
    """`scalar`: one element of its own."""
    if _as_dtype(kind).hasobject:
        return data
    machine.budget.spend("copies", len(data))
    return to_array(machine, data, kind, ())[()]
