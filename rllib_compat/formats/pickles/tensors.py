"""Constructors for torch's tensors, and the two files that `torch.save` writes.

A tensor is a view (offset, shape, strides) on a storage, which lies outside of the pickle that
describes it: as a member of a zip file, or, before torch 1.6, behind the pickle. All tensors
become numpy arrays. numpy has no bfloat16; it becomes float32, which holds the same numbers.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rllib_compat.formats.pickles.arrays import shape_of
from rllib_compat.neutral.checkpoint import Array
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, StandIn

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine
    from rllib_compat.neutral.budget import Budget

# The pickled magic number that a file of the older form starts with.
LEGACY_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
ZIP_MAGIC = b"PK\x03\x04"

_BFLOAT16 = "bfloat16"
# The torch dtype and numpy's code for each class of storages, on the CPU and on GPUs.
STORAGES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "BFloat16Storage": _BFLOAT16,
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
    "ComplexDoubleStorage": "c16",
    "ComplexFloatStorage": "c8",
    "UntypedStorage": "u1",
}
# Those that stand beside an untyped storage.
DTYPES = {
    "float64": "f8",
    "float32": "f4",
    "float16": "f2",
    "int64": "i8",
    "int32": "i4",
    "int16": "i2",
    "int8": "i1",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "bool": "?",
    "complex128": "c16",
    "complex64": "c8",
}


@frozen(eq=False)
class Storage:
    """The elements that tensors look at.

    Attributes:
        data: The elements, as one row.
    """

    data: Array


def _kind(code: str) -> np.dtype[Any]:
    """How the elements lie in the file."""
    return np.dtype("u2" if code == _BFLOAT16 else code).newbyteorder("<")


def _elements(raw: bytes | memoryview, code: str) -> Array:
    data = np.frombuffer(raw, _kind(code))
    return np.left_shift(data, 16, dtype=np.uint32).view("<f4") if code == _BFLOAT16 else data


def _code(storage_type: Any) -> str | None:
    """The code of a class of storages, or None where it is not known (quantised ones)."""
    if type(storage_type) is GlobalRef and storage_type.module in _STORAGE_MODULES:
        return STORAGES.get(storage_type.name)
    return None


_STORAGE_MODULES = frozenset({"torch", "torch.cuda", "torch.storage"})


def tensor(machine: Machine, storage: Any, offset: int, shape: Any, strides: Any, *_: Any) -> Any:
    """`_rebuild_tensor` and `_rebuild_tensor_v2`; gradients and hooks are of no use here."""
    if type(storage) is not Storage:
        return NotImplemented
    shape, strides = shape_of(shape), shape_of(strides)
    count = math.prod(shape)
    data = storage.data
    if not count:
        return np.empty(shape, data.dtype)
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if not 0 <= offset <= last < data.size:
        raise ValueError(f"a tensor that reaches to element {last} of {data.size}")
    if count > data.size:
        machine.budget.spend("elements", count)  # of a few that stand for many
    return np.lib.stride_tricks.as_strided(
        data[offset:], shape, [data.itemsize * stride for stride in strides], writeable=False
    )


def tensor_v3(
    machine: Machine, storage: Any, offset: int, shape: Any, strides: Any, *rest: Any
) -> Any:
    """`_rebuild_tensor_v3`: the dtype stands beside an untyped storage."""
    code = DTYPES.get(rest[2].name) if type(rest[2]) is GlobalRef else None
    if type(storage) is not Storage or code is None:
        return NotImplemented
    typed = Storage(storage.data.view(_kind(code)))
    return tensor(machine, typed, offset, shape, strides)


def parameter(_machine: Machine, data: Any, *_: Any) -> Any:
    """`_rebuild_parameter`: a parameter is its tensor."""
    return data


def size(_machine: Machine, sizes: Any = ()) -> tuple[int, ...]:
    """`torch.Size`."""
    return shape_of(sizes)


def device(_machine: Machine, kind: Any, index: int | None = None) -> Any:
    """`torch.device` becomes its name."""
    if not (isinstance(kind, str) and len(kind) < 20):
        return NotImplemented
    return kind if index is None else f"{kind}:{int(index)}"


def load_from_bytes(machine: Machine, data: Any) -> Any:
    """`torch.storage._load_from_bytes`: a whole file of torch inside of a pickle."""
    view = memoryview(data)
    if bytes(view[:4]) == ZIP_MAGIC:
        machine.budget.spend("copies", len(view))
        return read_zip(io.BytesIO(view), machine.nested, machine.budget)
    return read_legacy(view, machine.nested, machine.budget)[0]


_Nested = Callable[[memoryview, Callable[[Any], Any] | None], tuple[Any, int]]


def read_zip(file: BinaryIO, read: _Nested, budget: Budget) -> Any:
    """Reads the zip form. Nothing is unpacked to disk.

    Args:
        file: The file.
        read: Reads a pickle, given a maker of the storages that it names.
        budget: What reading may cost.
    """
    with zipfile.ZipFile(file) as archive:
        members = {member.filename: member for member in archive.infolist()}
        (pickled,) = [name for name in members if name.split("/")[1:] == ["data.pkl"]]
        folder = pickled.split("/")[0]

        def member(name: str) -> bytes:
            info = members[f"{folder}/{name}"]
            # torch does not compress, and does not encrypt.
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
                raise ValueError(f"the member {name!r} is compressed or encrypted")
            # Members may overlap, so that all of them together are larger than the file.
            budget.spend("copies", info.file_size)
            return archive.read(info)

        if f"{folder}/byteorder" in members and member("byteorder") != b"little":
            raise ValueError("tensors of a big-endian machine")
        storages: dict[tuple[str, str], Storage] = {}

        def persistent(key: Any) -> Any:
            kind, storage_type, name, _, count = key
            code = _code(storage_type)
            if kind != "storage" or code is None or not isinstance(name, str):
                return StandIn(GlobalRef("torch.storage", "persistent_load"), (key,))
            if (name, code) not in storages:
                storages[name, code] = Storage(_elements(member(f"data/{name}"), code))
            storage = storages[name, code]
            if storage.data.size != count:
                raise ValueError(f"a storage of {storage.data.size} elements, and not {count}")
            return storage

        value, _ = read(memoryview(member("data.pkl")), persistent)
    return value


def read_legacy(view: memoryview, read: _Nested, budget: Budget) -> tuple[Any, int]:
    """Reads the form before torch 1.6: pickles after one another, then the storages.

    Args:
        view: The file.
        read: Reads a pickle, given a maker of the storages that it names.
        budget: What reading may cost.

    Returns:
        The value, and the size of all of it.
    """
    pos = 0
    storages: dict[str, tuple[str, Storage]] = {}

    def persistent(key: Any) -> Any:
        # Storages come later in the file, so their room is made now, and filled at the end.
        kind, storage_type, name, _, count, part = key
        code = _code(storage_type)
        if kind != "storage" or code is None or not isinstance(name, str) or not count >= 0:
            raise ValueError("a storage of an unknown kind")
        if name not in storages:
            if count * _kind(code).itemsize > len(view):
                raise ValueError(f"a storage of {count} elements in a file of {len(view)} bytes")
            budget.spend("copies", 2 * count * _kind(code).itemsize)
            room = _elements(bytes(count * _kind(code).itemsize), code).copy()
            storages[name] = code, Storage(room)
        whole = storages[name][1]
        if part is None:
            return whole
        _, start, length = part
        return Storage(whole.data[start : start + length])

    def next_pickle(maker: Callable[[Any], Any] | None = None) -> Any:
        nonlocal pos
        value, size = read(view[pos:], maker)
        pos += size
        return value

    next_pickle()  # the magic number
    next_pickle()  # the protocol
    system = next_pickle()
    if not system["little_endian"]:
        raise ValueError("tensors of a big-endian machine")
    value = next_pickle(persistent)
    keys = next_pickle()
    if not all(isinstance(key, str) for key in keys) or sorted(keys) != sorted(storages):
        raise ValueError("the storages are not those that the tensors need")
    for key in keys:
        code, storage = storages[key]
        if int.from_bytes(view[pos : pos + 8], "little") != storage.data.size:
            raise ValueError(f"the storage {key} does not have the size that its tensors need")
        start, pos = pos + 8, pos + 8 + storage.data.size * _kind(code).itemsize
        if pos > len(view):
            raise ValueError(f"the storage {key} ends early")
        storage.data[:] = _elements(view[start:pos], code)
    return value, pos
