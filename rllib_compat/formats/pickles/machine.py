"""The pickle machine: a loop over opcodes that makes values and runs nothing.

A pickle is a program for a small stack machine. Python's own machine imports what the program
names and calls it. This one looks every name up in a table of our own constructors (`names.py`),
makes an inert record of what is not in it, and checks keys before it hashes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.budget import Budget, budget_error
from rllib_compat.neutral.checkpoint import ObservationFilter
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.spaces import DictSpace, TupleSpace

_LONGEST_NAME = 1000
_DEEPEST_NESTING = 8
_LONGEST_MESSAGE = 300


@frozen
class Constructor:
    """What this package makes of a name in a pickle.

    At most one of the two is given; without any, the name is known to be harmless, and stays an
    inert record. Both may return `NotImplemented` for arguments that they have no use for: the
    object then becomes a stand-in.

    Attributes:
        make: Makes the object of the arguments of the call: `make(machine, *args)`.
        fill: Makes it as soon as its state is there, too: `fill(machine, args, state)`.
    """

    make: Callable[..., Any] | None = None
    fill: Callable[[Machine, tuple[Any, ...], Any], Any] | None = None


Names: TypeAlias = Mapping[tuple[str, str], Constructor]


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


class Unbuilt:
    """An object that waits for its state: pickles name it first and describe it later (BUILD).

    Our records are made in one go, from their state. Until then this holds their place on the
    stack and in the memo; `value` is None before BUILD.
    """

    __slots__ = ("args", "fill", "ref", "value")

    def __init__(self, ref: GlobalRef, fill: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.ref = ref
        self.fill = fill
        self.args = args
        self.value: Any = None


class Machine(Reader, ABC):
    """One pickle being read: the stack, and what a pickle may do to it.

    `opcodes.py` has the loop that does it.

    Args:
        data: Where the pickle starts; it may be longer than the pickle.
        names: The table of known names.
        budget: What reading may cost.
        where: What the pickle is, for errors.
        persistent: Makes the objects that the pickle stores outside of itself, by their ids.
        level: In how many pickles this one lies.
    """

    def __init__(
        self,
        data: memoryview,
        names: Names,
        budget: Budget,
        where: str,
        *,
        persistent: Callable[[Any], Any] | None = None,
        level: int = 0,
    ) -> None:
        super().__init__(data)
        self.names = names
        self.budget = budget
        self.where = where
        self.persistent = persistent
        self.level = level
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []  # the stacks below the current MARK
        self.memo: dict[int, Any] = {}
        self.globals: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    @abstractmethod
    def run(self) -> Any:
        """Runs the pickle to its end and returns its value; `pos` then is behind it.

        Raises:
            CorruptCheckpointError: The pickle is damaged or hostile.
        """

    @abstractmethod
    def inner(self, data: memoryview, persistent: Callable[[Any], Any] | None) -> Machine:
        """The machine for a pickle that lies inside of this one."""

    def error(self, error: Exception, place: str = "") -> CorruptCheckpointError:
        """The error to raise for one that came up at `place`."""
        where = ", ".join(filter(None, (self.where, place)))
        if isinstance(error, CorruptCheckpointError):
            if error.where is not None:  # of a nested pickle
                where = " → ".join(filter(None, (where, error.where)))
            return type(error)(error.found, where=where, fix=error.fix)
        if isinstance(error, IndexError):
            what = "it takes from an empty stack" if self.pos < len(self.data) else "it ends early"
        else:
            what = str(error)[:_LONGEST_MESSAGE] or type(error).__name__
        return CorruptCheckpointError(
            f"not a valid pickle: {what}",
            where=where,
            fix="Use another checkpoint: the file is truncated, damaged or of another kind.",
        )

    def nested(
        self, data: memoryview, persistent: Callable[[Any], Any] | None = None
    ) -> tuple[Any, int]:
        """Reads a pickle that lies inside of this one; returns its value, and its size in bytes."""
        if self.level >= _DEEPEST_NESTING:
            raise budget_error("nested")
        self.budget.spend("nested", 1)
        inner = self.inner(data, persistent)
        value = inner.run()
        self.budget.spend("bytes", inner.pos)
        self.globals += inner.globals
        self.unknown += inner.unknown
        return value, inner.pos

    def remember(self, index: int) -> None:
        """Puts what lies on top of the stack into the memo."""
        memo = self.memo
        memo[index] = self.stack[-1]
        if len(memo) > self.budget.memo:
            raise budget_error("memo")

    def recall(self, index: int) -> Any:
        """What lies in the memo."""
        if index not in self.memo:
            raise ValueError(f"nothing was remembered as {index}")
        value = self.memo[index]
        if type(value) is Unbuilt and value.value is not None:
            value = value.value
        return value

    def pop(self, count: int) -> list[Any]:
        """Takes so many values off the stack."""
        if len(self.stack) < count:
            raise IndexError
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def pop_mark(self) -> list[Any]:
        """Takes everything above the last MARK off the stack."""
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def name(self, module: object, name: object, at: int) -> GlobalRef:
        """Notes that the pickle names something, by the opcode at a position.

        Raises:
            ValueError: It is no name.
        """
        del at  # for those who list names
        if not (isinstance(module, str) and isinstance(name, str)):
            raise ValueError("a name that is not text")
        if len(module) + len(name) > _LONGEST_NAME:
            raise ValueError("a name that is too long")
        ref = GlobalRef(module, name)
        self.globals[ref.qualified] += 1
        if (module, name) not in self.names:
            self.unknown[ref.qualified] += 1
        return ref

    def construct(self, callee: object, args: object, kwargs: object = None) -> Any:
        """What the pickle wants to come of calling `callee`."""
        if type(args) is not tuple:
            raise ValueError("arguments that are not a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise ValueError("keyword arguments that are not a dict")
        if type(callee) is GlobalRef:
            if callee in _RECONSTRUCTORS and len(args) == 3 and args[2] is None:
                callee, _, args = *args[:2], ()  # how protocols 0 and 1 spell NEWOBJ
                return self.construct(callee, args)
            known = self.names.get((callee.module, callee.name))
            if known is not None and not kwargs:
                if known.fill is not None:
                    return Unbuilt(callee, known.fill, args)
                if known.make is not None:
                    value = known.make(self, *args)
                    if value is not NotImplemented:
                        return value
                    self.unknown[callee.qualified] += 1
        elif type(callee) is not StandIn:
            raise ValueError(f"a call of a {type(callee).__name__}")
        self.budget.spend("made", 400)  # what opcodes are charged is for one object, not for three
        return StandIn(callee, args, kwargs or {})

    def build(self, target: object, state: object) -> Any:
        """What `target` becomes when it is given its state."""
        if type(target) is Unbuilt:
            value = target.fill(self, target.args, state)
            if value is NotImplemented:
                self.unknown[target.ref.qualified] += 1
                value = StandIn(target.ref, target.args, state=state)
            target.value = value
            return value
        if type(target) is StandIn:
            target.state = state
        elif type(target) not in _STATE_IS_IDLE:
            raise ValueError(f"state for a {type(target).__name__}")
        return target

    def append(self, target: Any, items: list[Any]) -> None:
        """Appends to a list, a deque or a stand-in."""
        if type(target) is StandIn:
            target.items += items
        elif type(target) in _LISTS:
            target.extend(items)
        else:
            raise ValueError(f"items for a {type(target).__name__}")

    def set_items(self, target: Any, flat: list[Any]) -> None:
        """Sets keys and values that alternate in `flat`."""
        if len(flat) % 2:
            raise ValueError("a key without a value")
        if type(target) is StandIn:
            self.budget.spend("made", 40 * len(flat))
            target.pairs += zip(flat[::2], flat[1::2], strict=True)
        elif type(target) in _DICTS:
            budget = self.budget
            budget.spend("made", 55 * len(flat))
            for i in range(0, len(flat), 2):
                key = flat[i]
                if type(key) is not str:
                    check_key(key, budget, len(target))
                target[key] = flat[i + 1]
        else:
            raise ValueError(f"keys for a {type(target).__name__}")

    def checked_keys(self, items: list[Any], others: int = 0) -> list[Any]:
        """The same items, if all of them may go into a set that has some already."""
        self.budget.spend("made", 110 * len(items))
        for place, item in enumerate(items):
            check_key(item, self.budget, others + place)
        return items


_LISTS = frozenset({list, deque})
_DICTS = frozenset({dict, OrderedDict, Counter})
# What their state holds is of no use: torch notes versions on a state dict, and `NoFilter` has
# nothing to remember.
_STATE_IS_IDLE = frozenset({OrderedDict, ObservationFilter})
_RECONSTRUCTORS = frozenset(
    {GlobalRef("copyreg", "_reconstructor"), GlobalRef("copy_reg", "_reconstructor")}
)

# Their hashes are randomised, or depend on identity. Those of numbers are the numbers themselves:
# even small ones can be chosen so that each falls onto all those before it.
_EASY_KEYS = frozenset({str, bytes, bool, type(None), GlobalRef, StandIn})
_AWKWARD_KEYS = (int, float, complex, np.generic, PurePosixPath, PureWindowsPath)
_LONGEST_KEY = 1000


def check_key(key: Any, budget: Budget, others: int) -> None:
    """Makes sure that hashing and comparing `key` is cheap and calls no one else's code.

    Tuples are hashed, and tuples and frozensets are compared, by recursion into each part however
    often it is shared, so a small nest of them would take for ever; and whoever knows the hash
    function can write keys that all collide.

    Raises:
        ValueError: It is no key.
        BudgetExceededError: There are too many keys of this sort.
    """
    if type(key) in _EASY_KEYS:
        return
    budget.spend("collisions", others + 1)
    parts = [key]
    for seen in range(_LONGEST_KEY):
        if not parts:
            return
        part = parts.pop()
        if type(part) in (tuple, frozenset):
            if len(part) > _LONGEST_KEY - seen:
                break
            parts += part
        elif type(part) not in _EASY_KEYS and not isinstance(part, _AWKWARD_KEYS):
            raise ValueError(f"a {type(part).__name__} can't be a key, or part of one")
    raise ValueError("a key has too many parts")


def _stand_in_parts(value: StandIn) -> Iterable[Any]:
    return (value.ref, value.args, value.kwargs, value.state, value.items, value.pairs)


def _array_parts(value: np.ndarray[Any, Any]) -> Iterable[Any]:
    return value.flat if value.dtype.hasobject else ()


# How to walk through each kind of value that has parts. Keys need no walk: see `check_key`.
_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    list: iter,
    tuple: iter,
    deque: iter,
    dict: dict.values,
    OrderedDict: OrderedDict.values,
    Counter: Counter.values,
    np.ndarray: _array_parts,
    StandIn: _stand_in_parts,
    TupleSpace: TupleSpace.parts,
    DictSpace: DictSpace.parts,
}


def parts_of(value: object) -> Iterable[Any] | None:
    """The parts of a value that a pickle may hold; None if it has none."""
    if isinstance(value, (set, frozenset)):
        return value
    walk = _PARTS.get(type(value))
    return walk(value) if walk else None


def check_finished(value: object, budget: Budget) -> None:
    """Makes sure that a value is nested within bounds, and that all objects in it got their state.

    It visits every part once, however often the part is shared, and needs no recursion itself.

    Raises:
        ValueError: An object in it never got its state.
        BudgetExceededError: It is nested too deeply.
    """
    heights: dict[int, int] = {}  # 0 while the walk is inside of a part: a cycle leads back there
    path: list[tuple[int, Iterator[Any]]] = [(0, iter((value,)))]
    tallest = [0]  # beside `path`: the tallest part so far
    while path:
        owner, parts = path[-1]
        for part in parts:
            walk = _PARTS.get(type(part))
            if walk is None:
                if type(part) is Unbuilt:
                    raise ValueError(f"an object of {part.ref.qualified} never got its state")
                continue
            height = heights.setdefault(id(part), -1)
            if height < 0:
                heights[id(part)] = 0
                path.append((id(part), iter(walk(part))))
                tallest.append(0)
                break
            tallest[-1] = max(tallest[-1], height)
        else:
            path.pop()
            height = heights[owner] = tallest.pop() + 1
            if height > budget.depth:
                raise budget_error("depth")
            if path:
                tallest[-1] = max(tallest[-1], height)
