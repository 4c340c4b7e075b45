"""The neutral state as plain data, and back, without loss.

`to_plain` makes of a `LegacyCheckpoint`, or of any part of one, what the msgpack codec can write:
None, booleans, numbers, text, bytes, lists, dicts with text keys, and arrays. Whatever is
something else becomes a dict with the key `$`, which names the kind:

    {"$": "tuple", "v": [1, 2]}
    {"$": "RunningStat", "v": {"count": 3, "mean": …, "m2": …}}

Objects that are met more than once are written once and referred to afterwards. This keeps
cycles (a class that was pickled by value refers to itself), and a file in which a thousand lists
share each other stays as small as it is.

Not kept are other subclasses: an `OrderedDict` or a `numpy.str_` comes back as the plain dict or
str that equals it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import reduce
from operator import getitem
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np

from rllib_compat.formats.msgpack.codec import MAX_DEPTH, is_utf8
from rllib_compat.formats.pickles.machine import check_key
from rllib_compat.neutral import spaces
from rllib_compat.neutral.budget import Budget, budget_error
from rllib_compat.neutral.checkpoint import (
    Counters,
    LegacyCheckpoint,
    ObservationFilter,
    PolicyState,
    RunningStat,
    Source,
)
from rllib_compat.neutral.errors import BudgetExceededError, CorruptCheckpointError
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict

Place: TypeAlias = "list[str | int]"

_KIND = "$"

_LONG = 64  # numbers; shorter arrays are written as they are
_OF_RECORD = 600  # bytes of memory, about; a deque is the largest
_LONGEST_INTEGER = 2048
_LONGEST_RANGE = 10_000_000
_LONGEST_TEXT = 10_000

_RECORDS: Mapping[str, type] = {
    cls.__name__: cls
    for cls in (
        LegacyCheckpoint,
        PolicyState,
        Source,
        Counters,
        ObservationFilter,
        RunningStat,
        Finding,
        GlobalRef,
        StandIn,
        *spaces.KINDS,
    )
}


def _dtype_to_plain(dtype: np.dtype[Any]) -> Any:
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError("a type without a form")
    return np.empty(0, dtype)


def _time_to_plain(value: datetime | time) -> str:
    if value.tzinfo is not None and type(value.tzinfo) is not timezone:
        raise ValueError("a time in a zone with rules of its own")
    return value.isoformat()


def _slice_to_plain(value: slice) -> list[int | None]:
    parts = [value.start, value.stop, value.step]
    if not all(type(part) in (int, type(None)) for part in parts):
        raise ValueError("a slice of something else than integers")
    return parts


def _range_of(parts: list[int]) -> range:
    made = range(*parts)
    if len(made) > _LONGEST_RANGE:
        raise ValueError("a range that is longer than any list")
    return made


# Kinds whose value has one plain form: to it, and back. Where there is none, the first raises.
_SCALARS: Mapping[str, tuple[type[Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "Severity": (Severity, lambda v: v.value, Severity),
    "Verdict": (Verdict, lambda v: v.value, Verdict),
    "float64": (np.float64, float, np.float64),
    "Path": (Path, str, Path),
    "PurePosixPath": (PurePosixPath, str, PurePosixPath),
    "PureWindowsPath": (PureWindowsPath, str, PureWindowsPath),
    "dtype": (np.dtype, _dtype_to_plain, lambda v: v.dtype),
    "datetime": (datetime, _time_to_plain, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "time": (time, _time_to_plain, time.fromisoformat),
    "timedelta": (
        timedelta,
        lambda v: [v.days, v.seconds, v.microseconds],
        lambda v: timedelta(*v),
    ),
    "range": (range, lambda v: [v.start, v.stop, v.step], _range_of),
    "slice": (slice, _slice_to_plain, lambda v: slice(*v)),
    "Decimal": (Decimal, str, Decimal),
    "UUID": (UUID, str, UUID),
}

_SEQUENCES: Mapping[str, type[Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": deque,
}

#: The key under which a msgpack checkpoint holds what Ray's form has no place for.
OWN_KEY = "rllib_compat"


def to_plain(
    value: object, placed: Mapping[int, Place] | None = None, *, budget: Budget | None = None
) -> Any:
    """Turns `value` into plain data.

    Arrays in `placed`, by their `id`, lie elsewhere in the same file already: they are referred to
    instead of written twice. What the neutral state does not know becomes an inert record, with its
    text.

    Raises:
        BudgetExceededError: It is nested too deep, or unfolds to too many values.
    """
    return _Encoder(_find_shared(value), placed or {}, budget or Budget()).encode(value, "$", 0)


def from_plain(
    plain: object, root: object = None, *, budget: Budget | None = None, where: str = ""
) -> Any:
    """Turns plain data back into what `to_plain` was given; its places start from the root.

    Raises:
        CorruptCheckpointError: It is not what `to_plain` makes.
        BudgetExceededError: It takes more than the budget allows.
    """
    try:
        return _Decoder(root, budget or Budget()).decode(plain)
    except BudgetExceededError as error:
        raise BudgetExceededError(error.found, where=where or None, fix=error.fix) from error
    # A hostile file can make any expression of ours fail; whichever it is, the file is at fault.
    except Exception as error:
        raise CorruptCheckpointError(
            f"The neutral state is damaged: {type(error).__name__}: {error}.",
            where=where or None,
            fix="If a newer rllib-compat wrote it, read it with that one.",
        ) from error


def _list_parts(value: object) -> Iterable[Any]:
    """What lies directly in `value`."""
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return value
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else ()
    if is_dataclass(value):
        return [getattr(value, f.name) for f in fields(value)]
    return ()


def _may_be_shared(value: object) -> bool:
    # Every cycle leads through one of these. Tuples are not among them: one that is met
    # again while it is still being made could not be referred to.
    return isinstance(value, (list, Mapping, set, deque, np.ndarray)) or is_dataclass(value)


def _find_shared(value: object) -> set[int]:
    """The ids of the objects below `value` that are met more than once."""
    met: set[int] = set()
    shared: set[int] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if id(value) in met:
            if _may_be_shared(value):
                shared.add(id(value))
            continue
        parts = _list_parts(value)
        if parts or _may_be_shared(value):
            met.add(id(value))
            waiting.extend(parts)
    return shared


class _Encoder:
    def __init__(self, shared: set[int], placed: Mapping[int, Place], budget: Budget) -> None:
        self._budget = budget
        self._shared = shared
        self._placed = placed
        self._numbers: dict[int, int] = {}

    def encode(self, value: object, path: str, depth: int) -> Any:
        self._budget.spend("outputs", 1, path[:200])
        if depth > MAX_DEPTH:
            raise budget_error("depth", path[:200])
        if id(value) in self._placed:
            return {_KIND: "at", "v": self._placed[id(value)]}
        if id(value) not in self._shared:
            return self._encode(value, path, depth)
        if id(value) in self._numbers:
            return {_KIND: "again", "v": self._numbers[id(value)]}
        number = self._numbers[id(value)] = len(self._numbers)
        return {_KIND: "shared", "n": number, "v": self._encode(value, path, depth + 1)}

    def _encode(self, value: object, path: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            return self._encode_mapping(value, path, depth)
        if isinstance(value, list):
            return self._encode_items(value, path, depth)
        for kind, sequence in _SEQUENCES.items():
            if isinstance(value, sequence):
                self._budget.spend("outputs", 2, path[:200])
                items = self._encode_items(value, path, depth + 1)
                # Sets have another order in each process; a file should not.
                return {_KIND: kind, "v": sorted(items, key=repr) if "set" in kind else items}
        if isinstance(value, np.ndarray) and not value.dtype.hasobject and _stands_for_more(value):
            one = spaces.distinct_entries(value)
            return {_KIND: "broadcast", "shape": list(value.shape), "v": one}
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            items = self._encode_items(value.ravel().tolist(), path, depth + 1)
            return {_KIND: "objects", "shape": list(value.shape), "v": items}
        record = type(value).__name__
        if is_dataclass(value) and _RECORDS.get(record) is type(value):
            self._budget.spend("outputs", 2, path[:200])  # for the maps around them
            parts = {
                f.name: self.encode(getattr(value, f.name), f"{path}.{f.name}", depth + 2)
                for f in fields(value)
            }
            return {_KIND: record, "v": parts}
        form = _encode_scalar(value)
        return self._encode(_as_record(value), path, depth) if form is _NO_FORM else form

    def _encode_items(self, items: Iterable[Any], path: str, depth: int) -> list[Any]:
        return [self.encode(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(items)]

    def _encode_mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> Any:
        if all(isinstance(key, str) for key in value) and _KIND not in value:
            return {
                str.__str__(k): self.encode(v, f"{path}.{k}", depth + 1) for k, v in value.items()
            }
        pairs = [
            [self.encode(k, path, depth + 3), self.encode(v, f"{path}.{k}", depth + 3)]
            for k, v in value.items()
        ]
        return {_KIND: "map", "v": pairs}


def _stands_for_more(array: Any) -> bool:
    """Whether an array is a few numbers that are repeated along some axes."""
    return bool(array.size > _LONG and 0 in array.strides)


#: What `_encode_scalar` gives where there is none.
_NO_FORM = object()


def _encode_scalar(value: object) -> Any:
    for kind, (cls, encode, _) in _SCALARS.items():
        if isinstance(value, cls):
            try:
                return {_KIND: kind, "v": encode(value)}
            except ValueError:
                return _NO_FORM
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        # Hexadecimal: Python refuses decimal text of thousands of digits, and is slow at it.
        return {_KIND: "int", "v": hex(value)}
    if isinstance(value, str) and not is_utf8(value):
        return {_KIND: "surrogates", "v": value.encode("utf-8", "surrogatepass")}
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if value is None or isinstance(
        value, (bool, int, float, complex, str, bytes, np.ndarray, np.generic)
    ):
        return value
    return _NO_FORM


def _as_record(value: object) -> GlobalRef | StandIn:
    """An inert record of what has no form: the name of a class or function, or an object's text."""
    cls = value if isinstance(value, (type, FunctionType, BuiltinFunctionType)) else type(value)
    ref = GlobalRef(str(cls.__module__), cls.__qualname__)
    return ref if cls is value else StandIn(ref, args=(repr(value)[:_LONGEST_TEXT],))


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:  # Python refuses to print what is longer
        raise ValueError("an integer of thousands of digits")
    return int(text, 16)


def _check_stand_in(record: StandIn) -> None:
    kinds = {"args": tuple, "kwargs": dict, "items": list, "pairs": list}
    if not all(type(getattr(record, name)) is kind for name, kind in kinds.items()):
        raise ValueError("a stand-in whose arguments are missing")
    ref: object = record.ref
    for _ in range(MAX_DEPTH):
        if not isinstance(ref, StandIn):
            break
        ref = getattr(ref, "ref", None)
    if not isinstance(ref, GlobalRef):
        raise ValueError("a stand-in without a name")


class _Decoder:
    def __init__(self, root: Any, budget: Budget) -> None:
        self._root = root
        self._budget = budget
        self._made: dict[int, Any] = {}

    def decode(self, plain: Any, number: int | None = None) -> Any:
        """Decodes `plain`; registers it under `number` before its parts are decoded."""
        if isinstance(plain, list):
            made: list[Any] = self._register([], number)
            made.extend(map(self.decode, plain))
            return made
        if not isinstance(plain, dict):
            return self._register(plain, number)
        if _KIND not in plain:
            return self._decode_pairs(((k, v) for k, v in plain.items()), number)
        self._budget.spend("made", _OF_RECORD)
        kind, value = plain[_KIND], plain["v"]
        if kind == "shared":
            return self.decode(value, plain["n"])
        if kind == "again":
            return self._made[value]
        if kind == "at":
            return reduce(getitem, value, self._root)
        if kind == "map":
            return self._decode_pairs(((self.decode(k), v) for k, v in value), number)
        if kind == "objects":
            return self._decode_objects(plain, number)
        if kind == "set":
            members: set[Any] = self._register(set(), number)
            for member in map(self.decode, value):
                check_key(member, self._budget, len(members))
                members.add(member)
            return members
        if kind == "deque":
            queue: deque[Any] = self._register(deque(), number)
            queue.extend(map(self.decode, value))
            return queue
        if kind in _SEQUENCES:
            items = [self.decode(item) for item in value]
            for place, item in enumerate(items if kind == "frozenset" else ()):
                check_key(item, self._budget, place)
            return _SEQUENCES[kind](items)
        if kind == "broadcast":
            return self._broadcast(plain, number)
        if kind == "int":
            return _integer(value)
        if kind == "surrogates":
            return value.decode("utf-8", "surrogatepass")
        if kind in _SCALARS:
            return _SCALARS[kind][2](value)
        return self._decode_record(_RECORDS[kind], value, number)

    def _register(self, made: object, number: int | None) -> Any:
        if number is not None:
            self._made[number] = made
        return made

    def _decode_pairs(self, pairs: Iterable[tuple[Any, Any]], number: int | None) -> Any:
        made = self._register({}, number)
        for key, value in pairs:
            if type(key) is not str:
                check_key(key, self._budget, len(made))
            made[key] = self.decode(value)
        return made

    def _broadcast(self, plain: dict[str, Any], number: int | None) -> Any:
        value, shape = plain["v"], tuple(plain["shape"])
        if not isinstance(value, np.ndarray) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("a broadcast array without array and shape")
        self._budget.spend("elements", math.prod(shape))
        return self._register(np.broadcast_to(value, shape), number)

    def _decode_objects(self, plain: dict[str, Any], number: int | None) -> Any:
        items, shape = plain["v"], plain["shape"]
        if type(shape) is not list or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("an array of objects without a shape")
        if math.prod(shape) != len(items):
            raise ValueError(f"{len(items)} objects for an array of shape {shape}")
        made = self._register(np.empty(shape, object), number)
        for index, item in zip(np.ndindex(*shape), items, strict=True):
            made[index] = self.decode(item)
        return made

    def _decode_record(self, cls: type, parts: dict[str, Any], number: int | None) -> Any:
        known = {f.name: f for f in fields(cls)}
        if unknown := parts.keys() - known.keys():
            raise ValueError(f"{cls.__name__} has no {sorted(map(repr, unknown))}")
        if cls is not StandIn:  # such a record checks itself when it is made
            decoded = {name: self.decode(parts[name]) for name in parts}
            return self._register(cls(**decoded), number)
        # Around the constructor, so that a record that refers to itself is there to refer to.
        made = self._register(object.__new__(cls), number)
        for name, field in known.items():
            if name in parts:
                value = self.decode(parts[name])
            elif field.default_factory is not MISSING:
                value = field.default_factory()
            elif field.default is not MISSING:
                value = field.default
            else:
                raise ValueError(f"{cls.__name__} lacks {name!r}")
            object.__setattr__(made, name, value)
        _check_stand_in(made)
        return made
