"""Observation and action spaces."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from rllib_compat.neutral import spaces
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.later import Later, Writer

#: Bounds of more numbers than this are not written one by one.
_MOST_BOUNDS = 100


@frozen
class SpaceLater(Later):
    """An observation or action space of gym, of gymnasium, or a record of one."""

    space: Any

    def build(self) -> Any:
        """The gymnasium space."""
        record = spaces.from_object(self.space)
        return self.space if record is None else spaces.to_gymnasium(record)

    def code(self, writer: Writer) -> ast.expr | None:
        """The constructor call; None for kinds of spaces that have no record."""
        record = spaces.from_object(self.space)
        return None if record is None else _code(record, writer)


def _code(space: spaces.Space, writer: Writer) -> ast.expr | None:
    gymnasium = writer.module("gymnasium")
    home = ast.Attribute(gymnasium, "spaces", ast.Load())

    def make(kind: str, *args: Any, **kwargs: Any) -> ast.expr | None:
        return writer.call(ast.Attribute(home, kind, ast.Load()), *args, **kwargs)

    if isinstance(space, spaces.Box):
        low, high = (_bound(bound, writer) for bound in (space.low, space.high))
        dtype = ast.Attribute(writer.module("numpy", "np"), space.dtype, ast.Load())
        if low is None or high is None:
            return None
        return make("Box", low, high, space.shape, dtype)
    if isinstance(space, spaces.Discrete):
        return make("Discrete", space.n, **({"start": space.start} if space.start else {}))
    if isinstance(space, spaces.MultiDiscrete):
        return make("MultiDiscrete", list(space.nvec))
    if isinstance(space, spaces.MultiBinary):
        shape = list(space.shape)
        return make("MultiBinary", shape[0] if len(shape) == 1 else shape)
    if isinstance(space, spaces.TupleSpace):
        parts = [_code(part, writer) for part in space.spaces]
        return None if None in parts else make("Tuple", parts)
    if isinstance(space, spaces.DictSpace):
        named = {name: _code(part, writer) for name, part in space.spaces.items()}
        return None if None in named.values() else make("Dict", named)
    return None


def _bound(bound: Any, writer: Writer) -> Any:
    """A bound of a `Box`: one number where all are equal, else an array."""
    np_module = writer.module("numpy", "np")
    if not bound.size:
        return 0
    numbers = spaces.distinct_entries(bound)
    if (numbers == numbers.flat[0]).all():
        number = numbers.flat[0].item()
        if abs(number) != np.inf:
            return number
        infinite = ast.Attribute(np_module, "inf", ast.Load())
        return infinite if number > 0 else ast.UnaryOp(ast.USub(), infinite)
    if bound.size > _MOST_BOUNDS:
        return None
    dtype = ast.Attribute(np_module, str(bound.dtype), ast.Load())
    return writer.call(ast.Attribute(np_module, "array", ast.Load()), bound.tolist(), dtype)
