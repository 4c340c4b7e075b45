"""Frozen records that cost little to define.

`dataclass(frozen=True)` compiles six methods for every class when its module is imported, which is
half a millisecond, and there are enough records here for a fifth of what `inspect` takes. These
compile `__init__` alone, which is an eighth of a millisecond; the other methods are the same
functions for all. (msgspec defines a class in a hundredth of one, and takes 23 to be imported.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar, overload

_Record = TypeVar("_Record")

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[_Record], _Record]:
        """Type checkers alone read it."""
        return lambda decorator: decorator


@overload
def frozen(cls: type[_Record], /) -> type[_Record]: ...
@overload
def frozen(
    *, eq: bool = True, kw_only: bool = False
) -> Callable[[type[_Record]], type[_Record]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Any] | None = None, /, *, eq: bool = True, kw_only: bool = False) -> Any:
    """A dataclass whose instances cannot be changed: `dataclass(frozen=True)`, cheaper to import.

    `fields`, `replace`, `asdict` and `field` of the standard library work on it.

    Args:
        cls: The class.
        eq: Whether instances are equal, and hash alike, if their fields are.
        kw_only: Whether its fields are given by name.
    """

    def freeze(cls: type[Any]) -> type[Any]:
        made = dataclass(eq=False, repr=False, kw_only=kw_only)(cls)
        methods: dict[str, Any] = {
            "__setattr__": _set_once,
            "__delattr__": _keep,
            "__repr__": _show,
        }
        if eq:
            methods |= {"__eq__": _equal, "__hash__": _hash}
            methods["__compared__"] = tuple(found.name for found in fields(made) if found.compare)
        for name, method in methods.items():
            # Beside an `__eq__` of the class's own, Python puts a `__hash__` of None.
            if made.__dict__.get(name) is None:
                setattr(made, name, method)
        return made

    return freeze if cls is None else freeze(cls)


def _set_once(self: Any, name: str, value: object) -> None:
    """`__init__` gives each field its value; it is never set again."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _keep(self: object, name: str) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _values(self: Any) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in self.__compared__)


def _equal(self: object, other: object) -> Any:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    shown = ", ".join(
        f"{found.name}={getattr(self, found.name)!r}" for found in fields(self) if found.repr
    )
    return f"{type(self).__qualname__}({shown})"
