"""Spaces in the form in which Ray keeps them in a policy's state, from Ray 2.1 on.

Ray writes a space as a dict of plain values: `{"space": "discrete", "n": 2, "start": 0}`; arrays in
it are text: base64 of zlib of the `.npy` form. A policy's spec wraps that once more, since the
space after Ray's preprocessors has the original one hanging on it:
`{"space": {…}, "original_space": {"space": {…}}}`.

Both directions are written out here, so that neither Ray nor gymnasium is needed. Unlike Ray's
reader, this one takes no pickles in the `.npy` part and bounds what it unpacks.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import operator
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.errors import BudgetExceededError, CorruptCheckpointError
from rllib_compat.neutral.spaces import (
    Box,
    DictSpace,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Space,
    TupleSpace,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

# A Box of images of a megapixel with four channels of float64 has 32 MiB.
MAX_ARRAY_BYTES = 1 << 28

_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<descr>[<>|=][biuf]\d+)', "
    rb"'fortran_order': (?P<fortran>True|False), 'shape': \((?P<shape>[\d, ]*)\), \} *\n",
    re.DOTALL,
)


def to_ray_dict(space: Space) -> dict[str, Any]:
    """The dict that Ray's `gym_space_to_dict` makes of `space`.

    Raises:
        TypeError: It is no space that Ray's form has.
    """
    writer = _WRITERS.get(type(space))
    if writer is None:
        raise TypeError(f"not a space record: {space!r}")
    return writer(space)


def from_ray_dict(data: Mapping[str, Any], *, where: str = "") -> Space | None:
    """Reads a space from either of Ray's forms, the plain one and the wrapped one.

    Of a wrapped one the *original* space is returned, the one of raw observations: what Ray's
    preprocessors make of it follows from it.

    Args:
        data: The dict.
        where: How errors shall call it.

    Returns:
        The record, or None for the kinds that have none (text, repeated, simplex, flex_dict).

    Raises:
        CorruptCheckpointError: The dict is not what Ray writes.
    """
    try:
        return _read(data)
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise CorruptCheckpointError(
            f"This is no space as Ray writes it: {type(error).__name__}: {error}.",
            where=where or None,
            fix="Give the spaces by hand if the rest of the checkpoint can be read.",
        ) from error


def preprocessed(space: Space) -> dict[str, Any]:
    """The wrapped form of the space that a policy's model sees, for raw observations of `space`.

    Ray's preprocessors make a flat Box of spaces that are not arrays, and hang the original on it.
    """
    if space.original_space is not None:  # it is one that a preprocessor has made
        original = {"space": to_ray_dict(space.original_space)}
        return {"space": to_ray_dict(space), "original_space": original}
    if isinstance(space, (Box, MultiBinary)):
        return {"space": to_ray_dict(space)}
    size = (space.flat_size(),)
    flat = Box(np.full(size, -1, np.float32), np.full(size, 1, np.float32))
    return {"space": to_ray_dict(flat), "original_space": {"space": to_ray_dict(space)}}


def encode_array(array: Array) -> str:
    """base64 of zlib of the `.npy` form, as Ray keeps bounds and running statistics as text."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return base64.b64encode(zlib.compress(buffer.getvalue())).decode("ascii")


def decode_array(text: str) -> Array:
    """Reads what `encode_array` or Ray has written; the array is writable.

    Raises:
        ValueError: The text is damaged, or holds something else than numbers.
        BudgetExceededError: The array has more than `MAX_ARRAY_BYTES`.
    """
    try:
        inflater = zlib.decompressobj()
        npy = inflater.decompress(base64.b64decode(text, validate=True), MAX_ARRAY_BYTES)
    except (zlib.error, binascii.Error, TypeError) as error:
        raise ValueError(f"an array's text is damaged ({error})") from error
    if inflater.unconsumed_tail:
        raise BudgetExceededError(f"An array of a space has more than {MAX_ARRAY_BYTES} bytes.")
    header = _NPY.match(npy)
    if not header or not inflater.eof:
        raise ValueError("an array's text does not hold a whole .npy file of numbers")
    dtype = np.dtype(header["descr"].decode())
    shape = tuple(int(n) for n in re.findall(rb"\d+", header["shape"]))
    if math.prod(shape) * dtype.itemsize != len(npy) - header.end():
        raise ValueError(f"an array of shape {shape} has {len(npy) - header.end()} bytes")
    buffer = bytearray(npy[header.end() :])
    return np.ndarray(shape, dtype, buffer, order="F" if header["fortran"] == b"True" else "C")


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
}


def _read(data: Mapping[str, Any]) -> Space | None:
    kind = data["space"]
    if isinstance(kind, Mapping):
        return _read(data.get("original_space") or kind)
    if kind in _WITHOUT_RECORD:
        return None
    return _READERS[kind](data)


def _read_box(data: Mapping[str, Any]) -> Space:
    dtype = np.dtype(data["dtype"])
    low, high = (decode_array(data[name]) for name in ("low", "high"))
    if dtype.kind not in "biuf" or not low.shape == high.shape == tuple(data["shape"]):
        raise ValueError(f"bounds of shape {low.shape} for {data['shape']} of type {dtype}")
    native = dtype.newbyteorder("=")
    return Box(low.astype(native, copy=False), high.astype(native, copy=False), dtype.name)


def _read_multi_binary(data: Mapping[str, Any]) -> Space:
    n = data["n"]
    return MultiBinary(tuple(map(operator.index, n if isinstance(n, (list, tuple)) else [n])))


def _read_tuple(data: Mapping[str, Any]) -> Space | None:
    parts = [_read(part) for part in data["spaces"]]
    known = tuple(part for part in parts if part is not None)
    return TupleSpace(known) if len(known) == len(parts) else None


def _read_dict(data: Mapping[str, Any]) -> Space | None:
    parts = {name: _read(part) for name, part in data["spaces"].items()}
    known = {name: part for name, part in parts.items() if part is not None}
    return DictSpace(known) if len(known) == len(parts) else None


_WITHOUT_RECORD = frozenset({"text", "simplex", "repeated", "flex_dict"})

_READERS: Mapping[str, Callable[[Mapping[str, Any]], Space | None]] = {
    "box": _read_box,
    "discrete": lambda d: Discrete(operator.index(d["n"]), operator.index(d.get("start", 0))),
    "multi-binary": _read_multi_binary,
    "multi-discrete": lambda d: MultiDiscrete(tuple(decode_array(d["nvec"]).ravel().tolist())),
    "tuple": _read_tuple,
    "dict": _read_dict,
}
