"""A value of a translation that only the installed Ray can make."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Any, Protocol

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import import_attribute

#: The module whose names printed code imports: it stays, wherever files go.
PUBLIC = "rllib_compat.adapters"


class Writer(Protocol):
    """The program that values are written into; see `rllib_compat.config.code`."""

    def expression(self, value: object) -> ast.expr | None:
        """The source of a value, or None where it has none. Expressions stay as they are."""

    def imported(self, module: str, name: str) -> ast.expr:
        """A name of a module, which the program imports from there."""

    def module(self, name: str, alias: str = "") -> ast.expr:
        """A module, which the program imports."""

    def call(self, function: ast.expr, /, *args: object, **kwargs: object) -> ast.expr | None:
        """A call with the source of values, or None where one of them has none."""

    def lacks(self, what: str, value: object) -> None:
        """Says in a comment that a part of the value is left out, as it has no source form."""


class Deferred(ABC):
    """A value that is made when the `AlgorithmConfig` is built."""

    @abstractmethod
    def build(self) -> Any:
        """Makes the object."""

    @abstractmethod
    def code(self, writer: Writer) -> ast.expr | None:
        """How a person would write it, or None where it has no source form."""


@frozen
class PublicCall(Deferred):
    """What a function or class of `rllib_compat.adapters` makes of its arguments."""

    name: str
    arguments: tuple[Any, ...]

    def build(self) -> Any:
        """Calls it."""
        return import_attribute(PUBLIC, self.name)(*self.arguments)

    def code(self, writer: Writer) -> ast.expr | None:
        """The call."""
        return writer.call(writer.imported(PUBLIC, self.name), *self.arguments)


def build(value: object) -> Any:
    """Makes the objects inside a value."""
    if isinstance(value, Deferred):
        return value.build()
    if isinstance(value, dict):
        return {key: build(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(build(inner) for inner in value)
    return value
