"""Reading the operands of opcodes from a buffer, never beyond its end."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

# Byte strings of this size and above stay views on the buffer, so that arrays cost no copy.
VIEW_FROM = 1 << 16
# Python refuses to print integers beyond 4300 digits, which these bytes can't reach.
_LONGEST_INTEGER = 1024


class Reader:
    """A position in a buffer.

    Running over the end raises `IndexError`, `struct.error` or `ValueError`; the machine makes a
    `CorruptCheckpointError` of each.

    Attributes:
        data: The buffer.
        pos: Where the next read starts.
    """

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.pos = 0

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, as a view."""
        start = self.pos
        if size > len(self.data) - start:
            raise ValueError(f"{size} bytes are announced, and {len(self.data) - start} are left")
        self.pos = start + size
        return self.data[start : self.pos]

    def line(self) -> bytes:
        """The bytes up to the next line feed, which is skipped."""
        window = 64
        while True:
            chunk = bytes(self.data[self.pos : self.pos + window])
            end = chunk.find(b"\n")
            if end >= 0:
                self.pos += end + 1
                return chunk[:end]
            if len(chunk) < window:
                raise ValueError("a line has no end")
            window *= 2

    def uint1(self) -> int:
        """An unsigned integer of one byte."""
        pos = self.pos
        self.pos = pos + 1
        return self.data[pos]


def _packed(code: str) -> Callable[[Reader], Any]:
    packing = struct.Struct(code)
    size, unpack_from = packing.size, packing.unpack_from

    def read(reader: Reader) -> Any:
        pos = reader.pos
        reader.pos = pos + size
        return unpack_from(reader.data, pos)[0]

    return read


uint1 = Reader.uint1
uint2 = _packed("<H")
uint4 = _packed("<I")
uint8 = _packed("<Q")
int4 = _packed("<i")
float8 = _packed(">d")


def byte_string(size: Callable[[Reader], int]) -> Callable[[Reader], bytes | memoryview]:
    """Reads bytes that follow their length."""

    def read(reader: Reader) -> bytes | memoryview:
        view = reader.take(size(reader))
        return view if len(view) >= VIEW_FROM else bytes(view)

    return read


def byte_array(reader: Reader) -> bytearray | memoryview:
    """Reads a mutable byte string; a large one stays a (read-only) view, too."""
    view = reader.take(uint8(reader))
    return view if len(view) >= VIEW_FROM else bytearray(view)


def text(
    size: Callable[[Reader], int], encoding: str, errors: str = "strict"
) -> Callable[[Reader], str]:
    """Reads text that follows its length in bytes."""

    def read(reader: Reader) -> str:
        return str(reader.take(size(reader)), encoding, errors)

    return read


def integer(size: Callable[[Reader], int]) -> Callable[[Reader], int]:
    """Reads a two's complement integer that follows its length in bytes."""

    def read(reader: Reader) -> int:
        view = reader.take(size(reader))
        if len(view) > _LONGEST_INTEGER:
            raise ValueError(f"an integer of {len(view)} bytes")
        return int.from_bytes(view, "little", signed=True)

    return read


# The text forms of protocol 0.


def int_line(reader: Reader) -> int | bool:
    """Reads an integer in digits, or a boolean, which is `01` or `00`."""
    line = reader.line()
    if line in (b"00", b"01"):
        return line == b"01"
    return _digits(line)


def long_line(reader: Reader) -> int:
    """Reads an integer in digits that end with `L`."""
    return _digits(reader.line().removesuffix(b"L"))


def _digits(line: bytes) -> int:
    if len(line) > 2 * _LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(line)} digits")
    return int(line, 0)


def float_line(reader: Reader) -> float:
    """Reads a float in digits."""
    return float(reader.line())


def string_line(reader: Reader) -> str:
    """Reads the `repr` of a byte string of Python 2."""
    line = reader.line().strip()
    if len(line) < 2 or line[:1] not in (b"'", b'"') or line[:1] != line[-1:]:
        raise ValueError("a string has no quotes")
    return line[1:-1].decode("unicode_escape")


def unicode_line(reader: Reader) -> str:
    """Reads text in which what is not latin-1 is escaped."""
    return reader.line().decode("raw_unicode_escape")


def name_line(reader: Reader) -> str:
    """Reads a module or a name."""
    return reader.line().decode("utf-8")
