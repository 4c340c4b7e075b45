"""msgpack with numpy arrays, in the form that Ray reads and writes.

Ray uses `msgpack_numpy` 0.4.8, which writes an array as a map with the keys `nd`, `type`, `kind`,
`shape` and `data` (all bytes). This codec writes the same bytes, and differs where that package
harms its users:

* Object arrays are refused both ways. `msgpack_numpy` unpickles them, so that reading a file runs
  code of whoever wrote it.
* Arrays come back writable. Small ones are copied; large ones of a file stay where it was read.
* Map keys may be anything that msgpack has as a scalar, not only text.
* datetime64, timedelta64, padded and nested structured types work. `msgpack_numpy` can't write
  most of these, but reads what is written here.
* What a file declares is checked against what it holds before memory is taken for it.

What can't be written (sets, integers beyond 64 bits, foreign objects) is refused with its path,
never changed silently. The law that the tests hold is `unpack(pack(x)) == canonical(x)`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rllib_compat.formats.files import read_bytes
from rllib_compat.formats.pickles.machine import check_key
from rllib_compat.neutral.budget import Budget, budget_error
from rllib_compat.neutral.errors import BudgetExceededError, CheckpointError, CorruptCheckpointError
from rllib_compat.neutral.spaces import Array

# Not from `msgpack` itself: Ray patches the names there for the whole process (with versions that
# unpickle), as soon as it loads or saves a state as msgpack.
try:
    from msgpack._cmsgpack import Packer, unpackb
except ImportError:  # no C extension on this platform
    from msgpack.fallback import Packer, unpackb

# Deeper than any honest state, and shallow enough for every recursive walk over it.
MAX_DEPTH = 128

# The kinds of numpy types whose bytes are their value.
_KINDS = frozenset("biufcmMSUV")

# What `dtype.str` makes of these kinds. Nothing else reaches `np.dtype`, which also reads names,
# comma lists and Python types.
_TYPE = re.compile(r"[<>|=][biufcmMSUV]\d+(\[\d*[a-zA-Z]+\])?")

#: Bytes of an array from which on it is not copied, and what msgpack puts before so many bytes.
_LARGE, _BIN_32 = 1 << 20, 0xC6

_SCALAR_KEYS = (str, bytes, bool, int, float, type(None))
_MARKS = (b"nd", b"complex")


def pack(value: object) -> bytes:
    """Packs `value`.

    Raises:
        CheckpointError: Something in it has no form in msgpack; `where` is its path.
    """
    return b"".join(_pack_parts(canonical(value)))


def pack_to(
    value: object, target: str | Path | BinaryIO, *, budget: Budget | None = None, where: str = ""
) -> None:
    """Packs `value` into a file or an open binary stream; raises as `pack` does.

    Raises:
        BudgetExceededError: There are more bytes than the budget has.
    """
    parts = list(_pack_parts(canonical(value)))
    if budget is not None:
        budget.spend("written", sum(part.nbytes for part in parts), where or None)
    if isinstance(target, (str, Path)):
        with Path(target).open("wb") as file:
            file.writelines(parts)
    else:
        target.writelines(parts)


def unpack(
    data: bytes | bytearray | memoryview | Path,
    *,
    budget: Budget | None = None,
    where: str = "",
    as_input: bool = True,
    with_arrays: bool = True,
) -> Any:
    """Unpacks what `pack` or Ray has written; runs nothing of it.

    Args:
        data: The packed bytes, or the file that holds them.
        budget: What reading may cost; give the same one for all files of a checkpoint.
        where: How errors shall call the data; a file is called by its path.
        as_input: Whether bytes are noted as input, unless the caller has done so.
        with_arrays: Whether the maps that encode arrays are decoded.

    Raises:
        CorruptCheckpointError: The data is damaged, truncated, or holds an object array.
        BudgetExceededError: It is nested deeper than `MAX_DEPTH`, or takes too much memory.
        CheckpointError: The file can't be opened.
    """
    budget = budget or Budget()
    if isinstance(data, Path):
        where = where or str(data)
        data = read_bytes(data, budget, where)
    elif as_input:
        budget.take_input(len(data), where or None)

    def map_of(pairs: list[tuple[Any, Any]]) -> Any:
        record: dict[Any, Any] = {}
        for key, value in pairs:
            if type(key) is not str:
                check_key(key, budget, len(record))
            record[key] = value
        made = _decode(record) if with_arrays else record
        if made is record and memoryview in map(type, record.values()):
            made = dict(zip(record, _with_bytes(list(record.values())), strict=True))
        return made

    try:
        rest, parts = _cut(data, _scan(data, budget))
        whole = unpackb(
            rest,
            strict_map_key=False,
            object_pairs_hook=map_of,
            list_hook=_with_bytes if parts else None,
            ext_hook=lambda _, number: parts[int.from_bytes(number, "big")],
        )
        return _with_bytes([whole])[0]
    except BudgetExceededError as error:
        if error.found == budget_error("depth").found:
            raise _too_deep(where) from error
        raise BudgetExceededError(error.found, where=where or None, fix=error.fix) from error
    # msgpack reports damage by ValueError and its own classes, an unhashable key by TypeError,
    # and numpy types and shapes that it can't hold by several more.
    except Exception as error:
        raise CorruptCheckpointError(
            f"The msgpack data is damaged: {str(error).rstrip('.')[:300] or 'not msgpack'}.",
            where=where or None,
            fix="Copy the file again; no part of it can be trusted.",
        ) from error


def canonical(value: object, path: str = "$") -> Any:
    """What `unpack(pack(value))` gives back.

    Tuples become lists; subclasses of dict, str, bytes, int and float (`OrderedDict`,
    `numpy.float64`, `numpy.str_`, `IntEnum`, …) become the plain type, numpy scalars as keys the
    Python ones; arrays lose a subclass and their memory order, not their type or byte order.

    Raises:
        CheckpointError: Something in it has no form in msgpack; `where` is its path.
    """
    return _canonical(value, path, 0)


def is_utf8(text: str) -> bool:
    """Whether `text` has a UTF-8 form; what Python read from damaged text may have none."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _canonical(value: object, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise _too_deep(path[:200])
    kind = type(value)
    if kind in (bytes, bool, float, complex, type(None)):
        return value
    if isinstance(value, str):
        if not is_utf8(value):
            raise _refusal("text with half a surrogate pair in it", path)
        return str.__str__(value)  # what an enum is, not what it prints
    if isinstance(value, np.ndarray):
        return _plain_array(value, path)
    if isinstance(value, Mapping):
        return {
            _canonical_key(name, path): _canonical(part, f"{path}.{name}", depth + 1)
            for name, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_canonical(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise _refusal("an integer beyond 64 bits", path)
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (bytearray, memoryview, bytes)):
        return bytes(value)
    if isinstance(value, np.generic):
        _plain_array(np.asarray(value), path)
        return value
    raise _refusal(f"an object of type {kind.__module__}.{kind.__qualname__}", path)


def _canonical_key(key: object, path: str) -> Any:
    if isinstance(key, (np.bool_, np.integer, np.floating)):
        key = key.item()
    if not isinstance(key, _SCALAR_KEYS):
        raise _refusal(f"the map key {key!r}", path)
    if key in _MARKS:
        raise _refusal(f"the map key {key!r}, which marks arrays and complex numbers", path)
    return _canonical(key, path, 0)


def _plain_array(array: Array, path: str) -> Array:
    dtype = array.dtype
    if dtype.kind not in _KINDS or dtype.hasobject or not dtype.itemsize:
        raise _refusal(f"an array of type {dtype}", path)
    return np.asarray(array)


def _refusal(what: str, path: str) -> CheckpointError:
    return CheckpointError(
        f"msgpack cannot store {what}.",
        where=path,
        fix="Remove the value, or convert it to strings, numbers, lists or arrays.",
    )


def _too_deep(where: str) -> BudgetExceededError:
    return BudgetExceededError(
        f"Values are nested more than {MAX_DEPTH} deep; no honest checkpoint is.",
        where=where or None,
    )


def _pack_parts(value: object) -> Iterator[memoryview]:
    """A packed value, in parts; large arrays are not copied, but given as they lie there."""
    packer = Packer(default=_encode, autoreset=False)
    holders: set[int] = set()
    _note_holders(value, holders)

    def walk(value: object) -> Iterator[memoryview]:
        if id(value) not in holders:
            packer.pack(value)
        elif isinstance(value, dict):
            packer.pack_map_header(len(value))
            for key, item in value.items():
                packer.pack(key)
                yield from walk(item)
        elif isinstance(value, list):
            packer.pack_array_header(len(value))
            for item in value:
                yield from walk(item)
        else:
            yield from large(_encode(value))

    def large(record: dict[bytes, Any]) -> Iterator[memoryview]:
        data = memoryview(record.pop(b"data")).cast("B")
        packer.pack_map_header(len(record) + 1)
        for key, item in record.items():
            packer.pack(key)
            packer.pack(item)
        packer.pack(b"data")
        if data.nbytes >= 1 << 32:
            raise _refusal("an array of more than 4 GB", "$")
        yield memoryview(packer.bytes() + struct.pack(">BI", _BIN_32, data.nbytes))
        packer.reset()
        yield data

    yield from walk(value)
    yield memoryview(packer.bytes())


def _note_holders(value: object, holders: set[int]) -> bool:
    """Notes the ids of large arrays, and of what holds one; says whether `value` is among them."""
    if isinstance(value, np.ndarray):
        found = value.nbytes >= _LARGE and isinstance(_bytes_of(value), memoryview)
    elif isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        found = sum(_note_holders(item, holders) for item in inner) > 0  # looks at all of them
    else:
        return False
    if found:
        holders.add(id(value))
    return found


def _encode(value: object) -> dict[bytes, Any]:
    """The map for what msgpack itself has no form for; its keys have the order of msgpack_numpy."""
    if isinstance(value, np.ndarray):
        void = value.dtype.kind == "V"
        return {
            b"nd": True,
            b"type": value.dtype.descr if void else value.dtype.str,
            b"kind": b"V" if void else b"",
            b"shape": value.shape,
            b"data": _bytes_of(value),
        }
    if isinstance(value, np.generic):
        dtype = value.dtype
        return {
            b"nd": False,
            b"type": dtype.descr if dtype.kind == "V" else dtype.str,
            b"data": value.tobytes(),
        }
    return {b"complex": True, b"data": repr(value)}


def _bytes_of(array: Array) -> bytes | memoryview:
    # The packer copies either; a view saves one copy, but dates have no buffer form.
    if array.flags.c_contiguous and array.dtype.kind in "biufc":
        return array.data
    return array.tobytes()


def _cut(
    data: bytes | bytearray | memoryview, large: list[tuple[int, int, int]]
) -> tuple[bytes | bytearray | memoryview, list[memoryview]]:
    """Takes large bytes out of packed data, which msgpack would copy.

    Args:
        data: The data.
        large: Where they are: where the value begins, and where its bytes begin and end.

    Returns:
        The data with an extension type, which no checkpoint has, in the place of each; and they.
    """
    if not large:
        return data, []
    view, rest, at = memoryview(data), bytearray(), 0
    parts: list[memoryview] = []
    for begin, first, end in large:
        rest += view[at:begin]
        rest += _EXTENSION_OF_4 + len(parts).to_bytes(4, "big")
        parts.append(view[first:end])
        at = end
    rest += view[at:]
    return rest, parts


def _with_bytes(values: list[Any]) -> list[Any]:
    """Values with bytes in the place of large parts that are no array's."""
    return [bytes(value) if type(value) is memoryview else value for value in values]


def _decode(record: dict[Any, Any]) -> Any:
    if b"nd" in record:
        return _decode_array(record)
    if b"complex" in record:
        data = record.get(b"data", "")
        return complex(data.decode() if isinstance(data, bytes) else data)
    return record


def _decode_array(record: dict[Any, Any]) -> Any:
    if record.get(b"kind") == b"O":
        raise ValueError("it holds an object array, which is a pickle, and pickles are not loaded")
    data, is_array = record.get(b"data"), record[b"nd"]
    if not isinstance(data, (bytes, memoryview)) or not isinstance(is_array, bool):
        raise ValueError("an array has no data")
    dtype = _to_dtype(record.get(b"type"))
    shape = _to_shape(record.get(b"shape")) if is_array else ()
    if math.prod(shape) * dtype.itemsize != len(data) or not dtype.itemsize:
        raise ValueError(f"an array of shape {shape} and type {dtype} has {len(data)} bytes")
    array: Array = np.ndarray(shape, dtype, bytearray(data) if type(data) is bytes else data)
    return array if is_array else array[()]


def _to_shape(shape: object) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"an array has the shape {shape!r}")
    return tuple(shape)


def _to_dtype(descr: object, depth: int = 0) -> np.dtype[Any]:
    if isinstance(descr, bytes):
        descr = descr.decode()
    if isinstance(descr, str):
        if not _TYPE.fullmatch(descr):
            raise ValueError(f"an array has the type {descr!r}")
        return np.dtype(descr)
    if not isinstance(descr, list) or depth > 16:
        raise ValueError("an array has no readable type")
    return _to_structured_dtype(descr, depth)


def _to_structured_dtype(descr: list[Any], depth: int) -> np.dtype[Any]:
    """The type that `dtype.descr` describes; nameless void entries are padding."""
    names, formats, offsets, titles = [], [], [], []
    offset = 0
    for field in descr:
        if not isinstance(field, list) or len(field) not in (2, 3):
            raise ValueError("an array has a field without name and type")
        name, *rest = field
        title, name = name if isinstance(name, list) else (None, name)
        part = _to_dtype(rest[0], depth + 1)
        if len(rest) > 1:
            part = np.dtype((part, _to_shape(rest[1])))
        if name != "" or part.names is not None or part.kind != "V":
            names.append(name)
            formats.append(part)
            offsets.append(offset)
            titles.append(title)
        offset += part.itemsize
    if not names:  # one nameless void: not padding, but plain raw bytes
        return np.dtype(f"V{offset}")
    return np.dtype(
        {
            "names": names,
            "formats": formats,
            "offsets": offsets,
            "titles": titles,
            "itemsize": offset,
        }
    )


# What follows a type byte: so many bytes; or, if negative, a length in so many bytes.
_FOLLOWING = [0] * 256
_FOLLOWING[0xA0:0xC0] = range(32)
_FOLLOWING[0xC4:0xC7] = _FOLLOWING[0xD9:0xDC] = -1, -2, -4
_FOLLOWING[0xCA:0xD4] = 4, 8, 1, 2, 4, 8, 1, 2, 4, 8
_BYTES, _EXTENSION_OF_4 = frozenset(range(0xC4, 0xC7)), b"\xd6\x00"
_LISTS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}
_EXTENSIONS = frozenset({0xC1, *range(0xC7, 0xCA), *range(0xD4, 0xD9)})

# Bytes of memory, about.
_OF_LIST, _OF_MAP, _OF_VALUE, _OF_PAIR = 72, 80, 40, 60
_CLOCK_STEPS = 0xFFFF


def _scan(data: bytes | bytearray | memoryview, budget: Budget) -> list[tuple[int, int, int]]:
    """Walks over one packed value, and proves it sound before anything is made of it.

    msgpack's own reader makes a list of the declared length first, and an empty list of 64 bytes of
    each single byte `0x90`: a few hundred bytes would take all memory, and ten megabytes seven
    hundred.

    Returns:
        Where large bytes are that may be written to: see `_cut`.

    Raises:
        ValueError: It is not one whole value, or has an extension type, which no checkpoint has.
        BudgetExceededError: It is nested too deeply, or would take too much memory.
    """
    pos, end, made, steps = 0, len(data), 0, 0
    large: list[tuple[int, int, int]] = []
    is_writable = isinstance(data, memoryview) and not data.readonly
    left = [1]  # how many values are still to come, on each level
    while left:
        if not left[-1]:
            left.pop()
            continue
        left[-1] -= 1
        if pos >= end:
            raise ValueError("it ends early")
        code = data[pos]
        pos += 1
        made += _OF_VALUE
        steps += 1
        if not steps & _CLOCK_STEPS:
            budget.check_time()
        count = -1
        if 0x80 <= code < 0xA0:
            count = (code & 0x0F) * (2 if code < 0x90 else 1)
            made += _OF_MAP + _OF_PAIR * (count // 2) if code < 0x90 else _OF_LIST
        elif code in _LISTS or code in _MAPS:
            size = _LISTS.get(code) or _MAPS[code]
            count = int.from_bytes(data[pos : pos + size], "big")
            pos += size
            made += _OF_LIST if code in _LISTS else _OF_MAP + _OF_PAIR * count
            count *= 1 if code in _LISTS else 2
        elif code in _EXTENSIONS:
            raise ValueError(f"the type {code:#04x} is not used by any checkpoint")
        else:
            following = _FOLLOWING[code]
            if following < 0:
                size = -following
                following = int.from_bytes(data[pos : pos + size], "big")
                pos += size
                if following >= _LARGE and code in _BYTES and is_writable:
                    large.append((pos - size - 1, pos, pos + following))
            pos += following
        if pos > end or count > end - pos:
            raise ValueError("it ends early")
        if made > budget.made:
            raise budget_error("made")
        if count > 0:
            left.append(count)
            if len(left) > MAX_DEPTH + 1:
                raise budget_error("depth")
    budget.spend("made", made)
    if pos != end:
        raise ValueError(f"{end - pos} bytes follow after its end")
    return large
