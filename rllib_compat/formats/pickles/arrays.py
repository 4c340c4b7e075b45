"""Constructors for numpy's arrays and torch's tensors, and the two files that `torch.save` writes.

Arrays are views on the bytes of the pickle, and are read-only then; their byte order and memory
order stay as they were written. Everything that a file says about an array is checked against the
bytes that are there.

A tensor is a view (offset, shape, strides) on a storage, which lies outside of the pickle that
describes it: as a member of a zip file, or, before torch 1.6, behind the pickle. All tensors
become numpy arrays. numpy has no bfloat16; it becomes float32, which holds the same numbers.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from rllib_compat.formats.pickles.python_types import is_named, raw_bytes
from rllib_compat.neutral.checkpoint import Array
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, StandIn

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine
    from rllib_compat.neutral.budget import Budget

_DTYPE = re.compile(r"([biufcmMOSUVa])(\d{1,9})|[?bBhHiIlLqQefdgFDGO]")
_MOST_AXES = 64  # numpy's own limit
_UNITS = frozenset({"Y", "M", "W", "D", "h", "m", "s", "ms", "us", "μs", "ns", "ps", "fs", "as"})


def fill_dtype(machine: Machine, args: tuple[Any, ...], state: Any) -> Any:
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
        return np.dtype((_as_dtype(inner), _shape(shape)))
    if names is not None:
        return _structured_dtype(machine, names, fields, size)
    if base.kind in "mM" and version >= 4 and len(state) > 8:
        (_, (unit, step, *_)) = state[8]
        unit = str(unit, "utf-8") if isinstance(unit, bytes) else unit
        if isinstance(unit, str) and unit in _UNITS:
            base = np.dtype(f"{base.kind}8[{int(step)}{unit}]")
    return base.newbyteorder(order)


def _structured_dtype(machine: Machine, names: Any, fields: Any, size: Any) -> Any:
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


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a field whose name is not text")
    return value


def _as_dtype(value: object) -> np.dtype[Any]:
    if not isinstance(value, np.dtype):
        raise ValueError(f"a dtype made of a {type(value).__name__}")
    return value


def _shape(shape: object) -> tuple[int, ...]:
    """Checks a shape, which very old pickles give as one integer."""
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if len(sizes) > _MOST_AXES or not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("a malformed shape")
    return tuple(sizes)


def to_array(machine: Machine, data: object, kind: Any, shape: Any, order: Any = "C") -> Array:
    """An array of the given bytes."""
    kind, shape = _as_dtype(kind), _shape(shape)
    count = math.prod(shape)
    if kind.hasobject:
        return _make_object_array(machine, data, count).reshape(shape)
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


def _make_object_array(machine: Machine, items: object, count: int) -> Array:
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


def fill_ndarray(machine: Machine, args: tuple[Any, ...], state: Any) -> Any:
    """`_reconstruct(ndarray, (0,), 'b')`, and a state with all that matters."""
    if not is_named(args[0], "numpy", "ndarray"):
        return NotImplemented  # a subclass: masked arrays and the like
    *_, shape, kind, fortran, data = state
    return to_array(machine, data, kind, shape, "F" if fortran is True or fortran == 1 else "C")


def make_from_buffer(
    machine: Machine, data: object, kind: object, shape: object, order: object, axes: object = None
) -> Array:
    """`_frombuffer`, of protocol 5; numpy 2.3 and later give an order of axes."""
    if order == "K" and axes is not None:
        return to_array(machine, data, kind, shape).transpose(_shape(axes))
    if order not in ("C", "F", "A"):
        raise ValueError("an array whose order is not known")
    return to_array(machine, data, kind, shape, order)


def make_scalar(machine: Machine, kind: object, data: Any = None) -> Any:
    """`scalar`: one element of its own."""
    if _as_dtype(kind).hasobject:
        return data
    machine.budget.spend("copies", len(data))
    return to_array(machine, data, kind, ())[()]


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
# The dtypes that are arguments of their own beside an untyped storage.
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


def _dtype_of(code: str) -> np.dtype[Any]:
    """How the elements lie in the file."""
    return np.dtype("u2" if code == _BFLOAT16 else code).newbyteorder("<")


def _read_elements(raw: bytes | memoryview, code: str) -> Array:
    data = np.frombuffer(raw, _dtype_of(code))
    return np.left_shift(data, 16, dtype=np.uint32).view("<f4") if code == _BFLOAT16 else data


def _find_code(storage_type: object) -> str | None:
    """The code of a class of storages, or None where it is not known (quantised ones)."""
    if type(storage_type) is GlobalRef and storage_type.module in _STORAGE_MODULES:
        return STORAGES.get(storage_type.name)
    return None


_STORAGE_MODULES = frozenset({"torch", "torch.cuda", "torch.storage"})


def make_tensor(
    machine: Machine, storage: object, offset: int, shape: object, strides: object, *_: object
) -> Any:
    """`_rebuild_tensor` and `_rebuild_tensor_v2`; gradients and hooks are of no use here."""
    if type(storage) is not Storage:
        return NotImplemented
    shape, strides = _shape(shape), _shape(strides)
    count = math.prod(shape)
    data = storage.data
    if not count:
        return np.empty(shape, data.dtype)
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    if not 0 <= offset <= last < data.size:
        raise ValueError(f"a tensor that reaches to element {last} of {data.size}")
    if count > data.size:
        machine.budget.spend("elements", count)  # a few stored ones may expand to many
    return np.lib.stride_tricks.as_strided(
        data[offset:], shape, [data.itemsize * stride for stride in strides], writeable=False
    )


def make_tensor_v3(
    machine: Machine, storage: object, offset: int, shape: object, strides: object, *rest: object
) -> Any:
    """`_rebuild_tensor_v3`: the dtype is an argument beside an untyped storage."""
    code = DTYPES.get(rest[2].name) if type(rest[2]) is GlobalRef else None
    if type(storage) is not Storage or code is None:
        return NotImplemented
    typed = Storage(storage.data.view(_dtype_of(code)))
    return make_tensor(machine, typed, offset, shape, strides)


def make_parameter(_machine: Machine, data: object, *_: object) -> Any:
    """`_rebuild_parameter`: a parameter is its tensor."""
    return data


def make_size(_machine: Machine, sizes: object = ()) -> tuple[int, ...]:
    """`torch.Size`."""
    return _shape(sizes)


def make_device(_machine: Machine, kind: object, index: int | None = None) -> Any:
    """`torch.device` becomes its name."""
    if not (isinstance(kind, str) and len(kind) < 20):
        return NotImplemented
    return kind if index is None else f"{kind}:{int(index)}"


def make_from_bytes(machine: Machine, data: Any) -> Any:
    """`torch.storage._load_from_bytes`: a whole file of torch inside of a pickle."""
    view = memoryview(data)
    if bytes(view[:4]) == ZIP_MAGIC:
        machine.budget.spend("copies", len(view))
        return read_zip(io.BytesIO(view), machine.nested, machine.budget)
    return read_legacy(view, machine.nested, machine.budget)[0]


_Nested = Callable[[memoryview, Callable[[Any], Any] | None], tuple[Any, int]]


def read_zip(file: BinaryIO, read: _Nested, budget: Budget) -> Any:
    """Reads the zip form; nothing is unpacked to disk.

    `read` reads a pickle, given a maker of the storages that it names.
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
            code = _find_code(storage_type)
            if kind != "storage" or code is None or not isinstance(name, str):
                return StandIn(GlobalRef("torch.storage", "persistent_load"), (key,))
            if (name, code) not in storages:
                storages[name, code] = Storage(_read_elements(member(f"data/{name}"), code))
            storage = storages[name, code]
            if storage.data.size != count:
                raise ValueError(f"a storage of {storage.data.size} elements, and not {count}")
            return storage

        value, _ = read(memoryview(member("data.pkl")), persistent)
    return value


def read_legacy(view: memoryview, read: _Nested, budget: Budget) -> tuple[Any, int]:
    """Reads the form before torch 1.6: pickles, one after another, and storages; see `read_zip`.

    Returns:
        The value, and the size of all of it.
    """
    pos = 0
    storages: dict[str, tuple[str, Storage]] = {}

    def persistent(key: Any) -> Any:
        # Storages come later in the file, so their room is made now, and filled at the end.
        kind, storage_type, name, _, count, part = key
        code = _find_code(storage_type)
        if kind != "storage" or code is None or not isinstance(name, str) or not count >= 0:
            raise ValueError("a storage of an unknown kind")
        if name not in storages:
            if count * _dtype_of(code).itemsize > len(view):
                raise ValueError(f"a storage of {count} elements in a file of {len(view)} bytes")
            budget.spend("copies", 2 * count * _dtype_of(code).itemsize)
            room = _read_elements(bytes(count * _dtype_of(code).itemsize), code).copy()
            storages[name] = code, Storage(room)
        storage = storages[name][1]
        if part is None:
            return storage
        _, start, length = part
        return Storage(storage.data[start : start + length])

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
        start, pos = pos + 8, pos + 8 + storage.data.size * _dtype_of(code).itemsize
        if pos > len(view):
            raise ValueError(f"the storage {key} ends early")
        storage.data[:] = _read_elements(view[start:pos], code)
    return value, pos
