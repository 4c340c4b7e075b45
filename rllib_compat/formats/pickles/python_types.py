"""Constructors for Python's own types, as pickles of all protocols spell them."""

from __future__ import annotations

import datetime
from collections import Counter, OrderedDict, deque
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.records import GlobalRef, StandIn

if TYPE_CHECKING:
    from rllib_compat.formats.pickles.machine import Machine

_LONGEST_VERSION = 30
_VERSION_PARTS = ("epoch", "release", "pre", "post", "dev", "local")


def _is_latin_1(encoding: object) -> bool:
    return isinstance(encoding, str) and encoding in ("latin1", "latin-1", "iso-8859-1")


def _require_collection(machine: Machine, items: Any) -> Any:
    """Makes sure that `items` is a plain collection, whose copy is paid for.

    A file can ask to copy one large collection many times.
    """
    if type(items) not in (list, tuple, dict, set, frozenset, OrderedDict):
        raise ValueError(f"a collection made of a {type(items).__name__}")
    machine.budget.spend("elements", len(items))
    return items


def raw_bytes(data: object) -> bytes | bytearray | memoryview:
    """The bytes of a byte string, which is text where Python 2 wrote it."""
    if isinstance(data, str):
        return data.encode("latin-1")
    if isinstance(data, (bytes, bytearray, memoryview)):
        return data
    raise ValueError(f"bytes made of a {type(data).__name__}")


def encode(machine: Machine, text: str, encoding: str = "latin1") -> Any:
    """`_codecs.encode`: how protocols 0 to 2 spell bytes."""
    if not _is_latin_1(encoding):
        return NotImplemented
    machine.budget.spend("copies", len(text))
    return text.encode("latin-1")


def make_bytearray(machine: Machine, data: Any = b"", encoding: str = "latin-1") -> Any:
    """`bytearray`; a size instead of bytes would only ask for memory."""
    if not _is_latin_1(encoding):
        return NotImplemented
    machine.budget.spend("copies", len(data))
    return bytearray(raw_bytes(data))


def make_bytes(_machine: Machine, *args: object) -> Any:
    """`bytes`, which protocols 0 to 2 call only for none at all."""
    return NotImplemented if args else b""


def make_ordered_dict(machine: Machine, pairs: object = ()) -> OrderedDict[Any, Any]:
    """`OrderedDict`; Python 2 gives the pairs at once, as lists."""
    made: OrderedDict[Any, Any] = OrderedDict()
    for key, value in _require_collection(machine, pairs):
        machine.set_items(made, [key, value])
    return made


def make_default_dict(_machine: Machine, _factory: object = None) -> dict[Any, Any]:
    """`defaultdict` becomes a plain dict: what its factory names is not called."""
    return {}


def make_counter(machine: Machine, counts: object = None) -> Counter[Any]:
    """`Counter`, whose counts come at once."""
    made: Counter[Any] = Counter()
    for key, count in _require_collection(machine, counts or {}).items():
        machine.set_items(made, [key, count])
    return made


def make_deque(machine: Machine, items: object = (), limit: int | None = None) -> deque[Any]:
    """`deque`; an empty one takes more than what its opcode is charged."""
    machine.budget.spend("made", 300)
    return deque(_require_collection(machine, items), limit)


def make_set(machine: Machine, items: object = ()) -> set[Any]:
    """`set`."""
    return set(machine.checked_keys(list(_require_collection(machine, items))))


def make_frozenset(machine: Machine, items: object = ()) -> frozenset[Any]:
    """`frozenset`."""
    return frozenset(machine.checked_keys(list(_require_collection(machine, items))))


def make_complex(_machine: Machine, *parts: Any) -> Any:
    """`complex` of two numbers."""
    if not all(type(part) in (int, float) for part in parts):
        return NotImplemented
    return complex(*parts)


def make_range(machine: Machine, start: int, stop: int, step: int) -> range:
    """`range`, no longer than a list may be."""
    made = range(start, stop, step)
    machine.budget.spend("elements", len(made))
    return made


def make_slice(_machine: Machine, *args: object) -> Any:
    """`slice` of integers."""
    if not all(type(arg) in (int, type(None)) for arg in args):
        return NotImplemented
    return slice(*args)


def path_maker(kind: type[PurePath]) -> Any:
    """A path of either system, which is text with parts and touches no disk."""

    def make(machine: Machine, *parts: str) -> PurePath:
        machine.budget.spend("copies", sum(map(len, parts)))
        return kind(*parts)

    return make


def make_date(_machine: Machine, state: object) -> Any:
    """`datetime.date` of four bytes."""
    high, low, month, day = raw_bytes(state)
    return datetime.date(high << 8 | low, month, day)


def make_datetime(_machine: Machine, state: object, zone: object = None) -> Any:
    """`datetime.datetime` of ten bytes; the highest bit of the month marks a repeated hour."""
    if not isinstance(zone, (datetime.tzinfo, type(None))):
        return NotImplemented
    high, low, month, day, hour, minute, second, *micro = raw_bytes(state)
    return datetime.datetime(
        high << 8 | low,
        month & 0x7F,
        day,
        hour,
        minute,
        second,
        _micro(*micro),
        zone,
        fold=month >> 7,
    )


def make_time(_machine: Machine, state: object, zone: object = None) -> Any:
    """`datetime.time` of six bytes."""
    if not isinstance(zone, (datetime.tzinfo, type(None))):
        return NotImplemented
    hour, minute, second, *micro = raw_bytes(state)
    return datetime.time(hour & 0x7F, minute, second, _micro(*micro), zone, fold=hour >> 7)


def _micro(high: int, mid: int, low: int) -> int:
    return high << 16 | mid << 8 | low


def make_timedelta(_machine: Machine, *parts: int) -> datetime.timedelta:
    """`datetime.timedelta`."""
    return datetime.timedelta(*parts)


def make_timezone(_machine: Machine, *args: Any) -> datetime.timezone:
    """`datetime.timezone`."""
    return datetime.timezone(*args)


def fill_version(_machine: Machine, _args: tuple[Any, ...], state: object) -> Any:
    """`packaging.version.Version` becomes the text that it was made of."""
    parts = _version_parts(state)
    # Real ones are short; a long one, shared by many, would be copied for each.
    if any(len(part or ()) > _LONGEST_VERSION for part in parts[1:]):
        return NotImplemented
    for mark in (mark for part in parts[1:] for mark in part or ()):
        if not (type(mark) is int or (isinstance(mark, str) and len(mark) <= _LONGEST_VERSION)):
            return NotImplemented
    epoch, release, pre, post, dev, local = parts
    text = f"{int(epoch)}!" if epoch else ""
    text += ".".join(map(str, release))
    for dot, part in (("", pre), (".", post), (".", dev)):
        if part is not None:
            letter, number = part
            text += f"{dot}{letter}{number}"
    return text + ("+" + ".".join(map(str, local)) if local else "")


def _version_parts(state: Any) -> tuple[Any, ...]:
    """Epoch, release, pre, post, dev and local part, of the states of all releases of packaging."""
    if isinstance(state, dict):  # through 25: a named tuple with another order
        epoch, release, dev, pre, post, local = state["_version"].args
        return epoch, release, pre, post, dev, local
    if len(state) == 2:  # 26.0 and 26.1: slots
        return tuple(state[1][f"_{name}"] for name in _VERSION_PARTS)
    epoch, release, pre, post, dev, local = state  # since 26.2
    return epoch, release, pre, post, dev, local


def attach_state(_machine: Machine, target: object, state: object) -> Any:
    """How cloudpickle gives state to functions and classes that it stores by value in this way."""
    if type(target) is not StandIn:
        return NotImplemented
    target.state = state
    return target


def is_named(value: object, module: str, name: str) -> bool:
    """Whether `value` represents that global."""
    return type(value) is GlobalRef and (value.module, value.name) == (module, name)
