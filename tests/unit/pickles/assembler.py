"""Puts pickles together opcode by opcode, sound ones and others, and compares what comes out."""

import pickle
import struct
from collections import OrderedDict, deque

import numpy as np

STOP = b"."
MARK = b"("
REDUCE = b"R"
BUILD = b"b"
POP = b"0"
DUP = b"2"
EMPTY_TUPLE = b")"
NONE = b"N"


def text(value):
    raw = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw


def raw(value):
    return b"B" + struct.pack("<I", len(value)) + value


def old_string(value):
    return b"T" + struct.pack("<I", len(value)) + value


def torch_file(pickled):
    """What torch, before 1.6, would have stored of a pickled value: five pickles in a row."""
    head = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    head = b"".join(pickle.dumps(part, 2) for part in head)
    return head + pickled + pickle.dumps([], 2)


def number(value):
    return b"J" + struct.pack("<i", value)


def long(value):
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8b" + struct.pack("<I", len(data)) + data


def items(*parts):
    return MARK + b"".join(parts) + b"t"


def listed(*parts):
    return MARK + b"".join(parts) + b"l"


def mapped(*pairs):
    return MARK + b"".join(key + value for key, value in pairs) + b"d"


def named(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def stack_named(module, name):
    return text(module) + text(name) + b"\x93"


def put(index):
    return b"r" + struct.pack("<I", index)


def get(index):
    return b"j" + struct.pack("<I", index)


def call(module, name, *args):
    return named(module, name) + items(*args) + REDUCE


# All the ways in which a pickle can call something with arguments.
CALLS = {
    "GLOBAL REDUCE": lambda m, n, args: named(m, n) + items(*args) + REDUCE,
    "STACK_GLOBAL REDUCE": lambda m, n, args: stack_named(m, n) + items(*args) + REDUCE,
    "INST": lambda m, n, args: MARK + b"".join(args) + b"i" + f"{m}\n{n}\n".encode(),
    "OBJ": lambda m, n, args: MARK + named(m, n) + b"".join(args) + b"o",
    "NEWOBJ": lambda m, n, args: named(m, n) + items(*args) + b"\x81",
    "NEWOBJ_EX": lambda m, n, args: named(m, n) + items(*args) + mapped() + b"\x92",
    "through the memo": lambda m, n, args: (
        named(m, n) + put(7) + POP + get(7) + items(*args) + REDUCE
    ),
    "names from the memo": lambda m, n, args: (
        (text(m) + put(1) + POP + text(n) + put(2) + POP + get(1) + get(2) + b"\x93")
        + items(*args)
        + REDUCE
    ),
    "popped by POP_MARK": lambda m, n, args: (
        MARK + named(m, n) + items(*args) + REDUCE + b"1" + NONE
    ),
    "as a state setter": lambda m, n, args: (
        named(m, n) + items(*args) + REDUCE + mapped((text("x"), NONE)) + BUILD
    ),
}

DTYPE_F4 = call("numpy", "dtype", text("f4"), number(0), number(1)) + (
    items(number(3), text("<"), NONE, NONE, NONE, number(-1), number(-1), number(0)) + BUILD
)
DTYPE_OBJECT = call("numpy", "dtype", text("O8"), number(0), number(1)) + (
    items(number(3), text("|"), NONE, NONE, NONE, number(-1), number(-1), number(63)) + BUILD
)


def array(dtype, shape, data, *, fortran=b"\x89", core="numpy.core.multiarray"):
    """An array as numpy pickles it; all arguments are opcodes."""
    made = call(core, "_reconstruct", named("numpy", "ndarray"), items(number(0)), raw(b"b"))
    return made + items(number(1), shape, dtype, fortran, data) + BUILD


def shape(*sizes):
    return items(*(long(size) for size in sizes))


def same(left, right, seen=None):
    """Whether two values are equal, of equal types, and shared in the same way."""
    seen = {} if seen is None else seen
    if id(left) in seen:
        return seen[id(left)] == id(right)
    kinds = {memoryview: bytes}
    kind_left = kinds.get(type(left), type(left))
    kind_right = kinds.get(type(right), type(right))
    if {kind_left, kind_right} == {bytes, bytearray} and isinstance(left, memoryview):
        kind_left = kind_right  # long byte arrays are views, too
    if kind_left is not kind_right:
        return False
    if isinstance(left, (list, tuple, deque, dict, set, np.ndarray)):
        seen[id(left)] = id(right)
    if isinstance(left, (list, tuple, deque)):
        return len(left) == len(right) and all(
            same(a, b, seen) for a, b in zip(left, right, strict=True)
        )
    if isinstance(left, dict):
        ordered = not isinstance(left, OrderedDict) or list(left) == list(right)
        return (
            ordered
            and len(left) == len(right)
            and all(same(a, b, seen) for a, b in zip(left, right, strict=True))
            and all(same(a, b, seen) for a, b in zip(left.values(), right.values(), strict=True))
        )
    if isinstance(left, np.ndarray):
        # numpy turns some arrays to the machine's byte order; ours stay as they were written.
        native = left.dtype.newbyteorder("=")
        if native != right.dtype.newbyteorder("=") or left.shape != right.shape:
            return False
        if left.dtype.hasobject:
            return all(same(a, b, seen) for a, b in zip(left.flat, right.flat, strict=True))
        return left.astype(native).tobytes() == right.astype(native).tobytes()
    if isinstance(left, np.generic):
        return left.dtype == right.dtype and left.tobytes() == right.tobytes()
    if isinstance(left, complex):
        return repr(left) == repr(right)
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    return bool(left == right)
