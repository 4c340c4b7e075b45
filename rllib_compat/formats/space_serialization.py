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
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError
from rllib_compat.neutral.spaces import (
    DEEPEST,
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

_FEED = 1 << 14
_PIECE = 1 << 18

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


def from_ray_dict(
    data: Mapping[str, Any], *, budget: Budget | None = None, where: str = ""
) -> Space | None:
    """Reads a space from either of Ray's forms, the plain one and the wrapped one.

    Of a wrapped one the *original* space is returned, the one of raw observations: what Ray's
    preprocessors make of it follows from it.

    Args:
        data: The dict.
        budget: What reading may cost.
        where: How errors shall call it.

    Returns:
        The record, or None for the kinds that have none (text, repeated, simplex, flex_dict).

    Raises:
        CorruptCheckpointError: The dict is not what Ray writes.
        BudgetExceededError: It stands for more than the budget allows.
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


def encode_array(array: Array) -> str:
    """base64 of zlib of the `.npy` form, as Ray keeps bounds and running statistics as text."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    packer = zlib.compressobj()
    packed = [packer.compress(header.getvalue())]
    # In pieces: a bound that is one number for millions of entries is never made into them.
    order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    pieces: Any = np.nditer(
        array, ["external_loop", "buffered", "zerosize_ok"], order=order, buffersize=_PIECE
    )
    packed += [packer.compress(piece.tobytes()) for piece in pieces]
    return base64.b64encode(b"".join([*packed, packer.flush()])).decode("ascii")


def decode_array(text: str, budget: Budget | None = None) -> Array:
    """Reads what `encode_array` or Ray has written.

    An array all of whose entries are the same stands on one of them and is read-only; others are
    writable.

    Raises:
        ValueError: The text is damaged, or holds something else than numbers.
        BudgetExceededError: More comes out of it than the budget allows.
    """
    budget = budget or Budget()
    try:
        pieces = _inflate(base64.b64decode(text, validate=True), budget)
        head = next(pieces, b"")
        header = _NPY.match(head)
        if not header:
            raise ValueError("an array's text does not hold a whole .npy file of numbers")
        dtype = np.dtype(header["descr"].decode())
        shape = tuple(int(n) for n in re.findall(rb"\d+", header["shape"]))
        order: Any = "F" if header["fortran"] == b"True" else "C"
        return _collect(chain((head[header.end() :],), pieces), dtype, shape, order, budget)
    except (zlib.error, binascii.Error, TypeError, OverflowError) as error:
        raise ValueError(f"an array's text is damaged ({error})") from error


def _inflate(packed: bytes, budget: Budget) -> Iterator[bytes]:
    """Unpacks zlib in pieces of `_PIECE` bytes; the first holds the header."""
    inflater = zlib.decompressobj()
    piece = b""
    for start in range(0, len(packed), _FEED):
        feed = packed[start : start + _FEED]
        while feed and not inflater.eof:
            made = inflater.decompress(feed, _PIECE)
            feed = inflater.unconsumed_tail
            budget.spend("unpacked", len(made))
            budget.check_time()
            piece += made
            if len(piece) >= _PIECE:
                yield piece
                piece = b""
    if not inflater.eof:
        raise ValueError("an array's text does not hold a whole .npy file of numbers")
    yield piece


def _collect(
    pieces: Iterable[bytes],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    order: Any,
    budget: Budget,
) -> Array:
    """An array of what the pieces hold; memory is taken once two entries differ."""
    size = math.prod(shape) * dtype.itemsize
    one, found, data = b"", 0, None
    for piece in pieces:
        if found + len(piece) > size:
            raise ValueError(f"an array of shape {shape} has more than {size} bytes")
        if data is None:
            one = one or piece[: dtype.itemsize]
            if piece != _repeat(one, len(piece), found):
                budget.spend("copies", size)
                data = bytearray(_repeat(one, found))
        if data is not None:
            data += piece
        found += len(piece)
    if found != size:
        raise ValueError(f"an array of shape {shape} has {found} bytes")
    if data is None:
        return np.broadcast_to(np.frombuffer(one or bytes(dtype.itemsize), dtype)[0], shape)
    return np.ndarray(shape, dtype, data, order=order)


def _repeat(one: bytes, size: int, start: int = 0) -> bytes:
    """So many bytes of a repeated pattern, from its byte `start` on."""
    if not one:
        return b""
    phase = start % len(one)
    return ((one[phase:] + one[:phase]) * (size // len(one) + 1))[:size]


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
