"""Arrays as text, as Ray keeps bounds and running statistics: base64 of zlib of the `.npy` form.

Unlike Ray's reader, this one takes no pickles in the `.npy` part and bounds what it unpacks.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.spaces import Array

_FEED = 1 << 14
_PIECE = 1 << 18

_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<descr>[<>|=][biuf]\d+)', "
    rb"'fortran_order': (?P<fortran>True|False), 'shape': \((?P<shape>[\d, ]*)\), \} *\n",
    re.DOTALL,
)


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

    An array whose entries are all equal shares memory for them and is read-only; others are
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
