"""Observation and action spaces as plain records.

A legacy checkpoint holds spaces of gym, of gymnasium, of Ray's own serializer, or only their
`repr`. All of them become these records, which need no gym package and run no foreign code;
`to_gymnasium` makes the real ones where the installed Ray wants them.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import gymnasium

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Space:
    """The base of all records.

    Two spaces are equal where their `repr` and bounds are.

    Attributes:
        original_space: The space that RLlib's preprocessor flattened to this one, if it did.
    """

    original_space: Space | None = field(default=None, kw_only=True, repr=False)

    def flat_size(self) -> int:
        """How many numbers RLlib's preprocessors make of one element (one-hot for discrete)."""
        raise NotImplementedError(type(self).__name__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, eq=False, repr=False)
class Box(Space):
    """Arrays of `shape` between `low` and `high` (arrays of that shape)."""

    low: Array
    high: Array
    dtype: str = "float32"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one element."""
        return tuple(self.low.shape)

    def flat_size(self) -> int:
        """One number per entry."""
        return math.prod(self.shape)

    def __repr__(self) -> str:
        low = float(self.low.min()) if self.low.size else 0.0
        high = float(self.high.max()) if self.high.size else 0.0
        return f"Box({low:g}, {high:g}, {self.shape}, {self.dtype})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box)
            and self.dtype == other.dtype
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, eq=False)
class Discrete(Space):
    """The integers `start`, …, `start + n - 1`."""

    n: int
    start: int = 0

    def flat_size(self) -> int:
        """One number per value (one-hot)."""
        return self.n


@dataclass(frozen=True, eq=False)
class MultiDiscrete(Space):
    """Vectors of integers, the i-th below `nvec[i]`."""

    nvec: tuple[int, ...]

    def flat_size(self) -> int:
        """One number per value of each entry (one-hot)."""
        return sum(self.nvec)


@dataclass(frozen=True, eq=False)
class MultiBinary(Space):
    """Arrays of `shape` of zeros and ones."""

    shape: tuple[int, ...]

    def flat_size(self) -> int:
        """One number per entry."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class TupleSpace(Space):
    """A tuple of spaces."""

    spaces: tuple[Space, ...]

    def flat_size(self) -> int:
        """The sum over the parts."""
        return sum(s.flat_size() for s in self.spaces)


@dataclass(frozen=True, eq=False)
class DictSpace(Space):
    """Named spaces. gym sorted the names of a plain dict, and kept the order of an OrderedDict."""

    spaces: dict[Any, Space] = field(default_factory=dict)

    def flat_size(self) -> int:
        """The sum over the parts."""
        return sum(s.flat_size() for s in self.spaces.values())


def box(low: Any, high: Any, shape: tuple[int, ...] | None = None, dtype: Any = "float32") -> Box:
    """Makes a `Box` of scalars or arrays, as `gym.spaces.Box` takes them."""
    name = np.dtype(dtype).name
    if shape is None:
        shape = np.shape(low) or np.shape(high)
    return Box(
        np.broadcast_to(np.asarray(low, dtype=name), shape),
        np.broadcast_to(np.asarray(high, dtype=name), shape),
        name,
    )


def to_gymnasium(space: Space) -> gymnasium.Space[Any]:
    """Makes the gymnasium space that `space` records."""
    import gymnasium.spaces as g

    if isinstance(space, Box):
        return g.Box(space.low, space.high, space.shape, np.dtype(space.dtype).type)
    if isinstance(space, Discrete):
        return g.Discrete(space.n, start=space.start)
    if isinstance(space, MultiDiscrete):
        return g.MultiDiscrete(list(space.nvec))
    if isinstance(space, MultiBinary):
        return g.MultiBinary(space.shape if len(space.shape) > 1 else space.shape[0])
    if isinstance(space, TupleSpace):
        return g.Tuple([to_gymnasium(s) for s in space.spaces])
    if isinstance(space, DictSpace):
        return g.Dict({k: to_gymnasium(s) for k, s in space.spaces.items()})
    raise TypeError(f"not a space record: {space!r}")


def from_object(obj: Any) -> Space | None:
    """Reads a live space of gym or gymnasium (by duck typing; neither is imported), or a record.

    Returns:
        The record, or None where `obj` is no space that this package knows.
    """
    if obj is None or isinstance(obj, Space):
        return obj
    # `original_space` is what RLlib's preprocessors hang on their flattened Box.
    kind = type(obj).__name__
    reader = _READERS.get(kind)
    return reader(obj) if reader else None


def _read_dict(obj: Any) -> Space | None:
    parts = {k: from_object(s) for k, s in obj.spaces.items()}
    known = {k: s for k, s in parts.items() if s is not None}
    return DictSpace(known) if len(known) == len(parts) else None


def _read_tuple(obj: Any) -> Space | None:
    known = tuple(s for s in map(from_object, obj.spaces) if s is not None)
    return TupleSpace(known) if len(known) == len(obj.spaces) else None


def _read_multi_binary(obj: Any) -> Space:
    return MultiBinary((obj.n,) if np.ndim(obj.n) == 0 else tuple(obj.n))


_READERS: Mapping[str, Callable[[Any], Space | None]] = {
    "Box": lambda o: box(o.low, o.high, tuple(o.shape), o.dtype),
    "Discrete": lambda o: Discrete(int(o.n), int(getattr(o, "start", 0))),
    "MultiDiscrete": lambda o: MultiDiscrete(tuple(int(n) for n in np.ravel(o.nvec))),
    "MultiBinary": _read_multi_binary,
    "Tuple": _read_tuple,
    "Dict": _read_dict,
}


def parse_repr(text: str) -> Space | None:
    """Reads the `repr` of a space of any gym or gymnasium, as `params.json` and people write it.

    A gym before 0.12 printed a Box without its bounds (`Box(4,)`); they are then taken as
    infinite. Bounds that differ by entry are printed as arrays (`Box([-1. 0.], [1. 1.], (2,))`).

    Returns:
        The record, or None where the text is no `repr` of a space.
    """
    try:
        python = _KEY.sub(r"\1=", _ARRAY.sub(_commas, text.strip()))
        tree = ast.parse(python, mode="eval").body
        return _of_call(tree)
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        return None


#: numpy prints the entries of an array with blanks between them, and infinity as `inf`.
_ARRAY = re.compile(r"\[[^\[\]]*\]")

#: gym prints a Dict as `Dict(name:Box(…))`, gymnasium as `Dict('name': Box(…))`.
_KEY = re.compile(r"(?<=[(,])\s*'?([A-Za-z_]\w*)'?\s*:")


def _commas(match: re.Match[str]) -> str:
    return re.sub(r"(?<=[\w.])\s+(?=[-+\w.])", ", ", match[0])


def _of_call(node: ast.expr) -> Space:
    """Reads one `Name(…)`; only names, literals and calls of known spaces are understood."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError("not a space")
    return _MAKERS[node.func.id](node.args, {k.arg: k.value for k in node.keywords})


def _literal(node: ast.expr) -> Any:
    """A number, a tuple or list of numbers, `inf`, or a dtype's name."""
    if isinstance(node, ast.Name):
        return math.inf if node.id == "inf" else node.id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_literal(node.operand)
    if isinstance(node, (ast.Tuple, ast.List)):
        return [_literal(part) for part in node.elts]
    return ast.literal_eval(node)


def _make_box(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    values = [_literal(arg) for arg in args]
    if values and all(isinstance(v, int) for v in values):
        values = [values]  # `Box(84, 84)` is a shape: bounds were never printed as integers
    if len(values) == 1:
        return box(-math.inf, math.inf, tuple(values[0]))
    low, high, *rest = values
    names = {k: _literal(v) for k, v in named.items()}
    shape = names.get("shape", rest[0] if rest else None)
    dtype = names.get("dtype", rest[1] if len(rest) > 1 else "float32")
    return box(low, high, None if shape is None else tuple(shape), dtype)


def _make_discrete(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    n, *start = (int(_literal(arg)) for arg in args)
    return Discrete(n, start[0] if start else int(_literal(named.get("start", ast.Constant(0)))))


def _make_dict(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    del args
    return DictSpace({str(name): _of_call(part) for name, part in named.items()})


def _make_tuple(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    del named
    if len(args) == 1 and isinstance(args[0], (ast.Tuple, ast.List)):
        args = args[0].elts
    return TupleSpace(tuple(_of_call(part) for part in args))


_Maker: TypeAlias = Callable[[list[ast.expr], dict[str | None, ast.expr]], Space]
_MAKERS: Mapping[str, _Maker] = {
    "Box": _make_box,
    "Discrete": _make_discrete,
    "MultiDiscrete": lambda args, _: MultiDiscrete(tuple(map(int, _literal(args[0])))),
    "MultiBinary": lambda args, _: MultiBinary(tuple(np.atleast_1d(_literal(args[0])).tolist())),
    "Tuple": _make_tuple,
    "TupleSpace": _make_tuple,
    "Dict": _make_dict,
}
