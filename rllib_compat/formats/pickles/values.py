"""What the machine knows of the values that it makes: blanks, keys, and the finished whole."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from rllib_compat.neutral.budget import Budget, exceeded
from rllib_compat.neutral.records import GlobalRef, StandIn
from rllib_compat.neutral.spaces import DictSpace, TupleSpace


class Blank:
    """An object that waits for its state: pickles name it first and describe it later (BUILD).

    Our records are made in one go, from their state. Until then a blank holds their place on the
    stack and in the memo; `value` is None before BUILD.
    """

    __slots__ = ("args", "fill", "ref", "value")

    def __init__(self, ref: GlobalRef, fill: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.ref = ref
        self.fill = fill
        self.args = args
        self.value: Any = None


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

    Args:
        key: The key.
        budget: What reading may cost.
        others: How many keys are there already.

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


def _of_stand_in(value: StandIn) -> Iterable[Any]:
    return (value.ref, value.args, value.kwargs, value.state, value.items, value.pairs)


def _of_array(value: np.ndarray[Any, Any]) -> Iterable[Any]:
    return value.flat if value.dtype.hasobject else ()


# How to walk through each kind of value that has parts. Keys need no walk: see `check_key`.
_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    list: iter,
    tuple: iter,
    deque: iter,
    dict: dict.values,
    OrderedDict: OrderedDict.values,
    Counter: Counter.values,
    np.ndarray: _of_array,
    StandIn: _of_stand_in,
    TupleSpace: lambda space: space.spaces,
    DictSpace: lambda space: space.spaces.values(),
}


def parts_of(value: Any) -> Iterable[Any] | None:
    """The parts of a value that a pickle may hold; None if it has none."""
    if isinstance(value, (set, frozenset)):
        return value
    walk = _PARTS.get(type(value))
    return walk(value) if walk else None


def check_whole(value: Any, budget: Budget) -> None:
    """Makes sure that a finished value is nested within bounds and that no blank is left in it.

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
                if type(part) is Blank:
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
                raise exceeded("depth")
            if path:
                tallest[-1] = max(tallest[-1], height)
