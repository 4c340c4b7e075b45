"""Inert records of what a checkpoint names and this package does not know.

A pickle may name any class or function. What is not in the table of known names becomes one of
these records: it can be shown, counted and carried through, and it never runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rllib_compat.neutral.frozen import frozen

_CLASS_MAKERS = ("_make_skeleton_class", "_make_skel_class", "_make_skeleton_enum")


@frozen
class GlobalRef:
    """A class or function that was named, but not called.

    Attributes:
        module: The module as the pickle names it.
        name: The name in it, dots included.
    """

    module: str
    name: str

    def __post_init__(self) -> None:
        texts: tuple[object, ...] = (self.module, self.name)
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a name that is not text")

    @property
    def qualified(self) -> str:
        """The dotted name."""
        return f"{self.module}.{self.name}"

    @property
    def label(self) -> str:
        """What a person would call it."""
        return self.qualified

    def __repr__(self) -> str:
        return f"<named {self.qualified}>"


@dataclass(eq=False)
class StandIn:
    """An object whose class or factory is not in the table of known names.

    Attributes:
        ref: What would have made it.
        args: The positional arguments that it was to be called with.
        kwargs: The keyword arguments, likewise.
        state: What was to be given to `__setstate__`, or None.
        items: What was to be appended to it.
        pairs: What was to be set as its items.
    """

    ref: GlobalRef | StandIn
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    items: list[Any] = field(default_factory=list)
    pairs: list[tuple[Any, Any]] = field(default_factory=list)

    @property
    def qualified(self) -> str:
        """The dotted name of what would have made it."""
        return self.ref.qualified

    def __repr__(self) -> str:
        return f"<stand-in of {self.label}>"

    @property
    def class_name(self) -> str | None:
        """The name of a class that was written by value, or None.

        cloudpickle does so with classes of a script: `_make_skeleton_class(type, name, …)`.
        """
        made = self.qualified.rpartition(".")[2] in _CLASS_MAKERS and len(self.args) > 1
        return str(self.args[1]) if made else None

    @property
    def label(self) -> str:
        """What a person would call it."""
        return f"the class {self.class_name}" if self.class_name else self.qualified


def is_stand_in(value: object) -> bool:
    """Whether `value` is an inert record and not a usable object."""
    return isinstance(value, (GlobalRef, StandIn))


def modules_in(record: object) -> set[str]:
    """The modules that a record names, itself or in what it was to be made of."""
    found, seen, waiting = set(), set(), [record]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, GlobalRef):
            found.add(one.module)
        elif isinstance(one, StandIn):
            waiting += [one.ref, one.args, one.kwargs, one.state, one.items, one.pairs]
        elif isinstance(one, dict):
            # A class that was written by value has its own.
            if isinstance(module := one.get("__module__"), str):
                found.add(module)
            waiting += [*one, *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
    return found
