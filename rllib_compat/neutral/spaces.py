"""Observation and action spaces as plain records.

A legacy checkpoint holds spaces of gym, of gymnasium, of Ray's own serializer, or only their
`repr`. All of them become these records, which need no gym package and run no foreign code;
`to_gymnasium` makes the real ones where the installed Ray wants them.

Text is taken apart as a syntax tree, in which only the names of known spaces, literals and `inf`
mean something; nothing is evaluated.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rllib_compat.neutral.frozen import frozen

if TYPE_CHECKING:
    import gymnasium
    from numpy.typing import ArrayLike

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Entries of a Box or a MultiBinary: a picture of two megapixels in four colours. Neither a
#: network nor a recording of old RLlib comes near it, and code may make an array of each.
LARGEST = 1 << 23

#: Values of a Discrete; it is a number only, and never made into so many.
MOST_VALUES = 1 << 63

#: Spaces in a space, counted as often as they are met, and how deep they lie.
MOST_PARTS = 10_000
DEEPEST = 50

#: What the entries of a Box may be.
DTYPES = frozenset(
    f"{kind}{bits}"
    for kind, sizes in (("int", (8, 16, 32, 64)), ("float", (16, 32, 64)))
    for bits in sizes
) | {"uint8", "uint16", "uint32", "uint64", "bool"}

INTEGERS = frozenset(kind for kind in DTYPES if "int" in kind)


@frozen(eq=False)
class Space:
    """The base of all records.

    Each checks itself when it is made, whatever file it came from: types, shapes and sizes are
    sound then, and walking through its parts is short.

    Two spaces are equal where their `repr` and bounds are.

    Attributes:
        original_space: The space that RLlib's preprocessor flattened to this one, if it did.

    Raises:
        ValueError: It is no sound space.
    """

    original_space: Space | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        parts = [*self.parts(), *([] if self.original_space is None else [self.original_space])]
        if not all(isinstance(part, Space) for part in parts):
            raise ValueError("a part of a space is not a space")
        size = 1 + sum(part.part_count for part in parts)
        height = 1 + max((part.height for part in parts), default=0)
        if size > MOST_PARTS or height > DEEPEST:
            raise ValueError(f"a space of more than {MOST_PARTS} parts, or {DEEPEST} deep")
        object.__setattr__(self, "part_count", size)
        object.__setattr__(self, "height", height)
        self._check()

    part_count = 1  # spaces in it, itself and shared ones included, as often as they are met
    height = 1

    def parts(self) -> Iterable[Any]:
        """The spaces that it is made of."""
        return ()

    def _check(self) -> None:
        """Raises ValueError if a field is not what it should be."""

    def flat_size(self) -> int:
        """How many numbers RLlib's preprocessors make of one element (one-hot for discrete)."""
        raise NotImplementedError(type(self).__name__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@frozen(eq=False)
class Box(Space):
    """Arrays of `shape` between `low` and `high` (arrays of that shape).

    Attributes:
        low: The least value of each entry.
        high: The greatest value of each entry.
        dtype: The name of the entries' type.
        exact: Whether the bounds are those of each entry. Of a space that old gym printed they
            may not be: it left them out, or gave the least and the greatest of all entries.
    """

    low: Array
    high: Array
    dtype: str = "float32"
    exact: bool = field(default=True, kw_only=True)

    def _check(self) -> None:
        bounds: tuple[Any, ...] = (self.low, self.high)
        for bound in bounds:
            if not isinstance(bound, np.ndarray) or bound.dtype.kind not in "biuf":
                raise ValueError("a bound of a Box is not an array of numbers")
        if self.low.shape != self.high.shape:
            raise ValueError(f"bounds of the shapes {self.low.shape} and {self.high.shape}")
        if self.dtype not in DTYPES:
            raise ValueError("a Box whose dtype is not known")
        if not isinstance(self.exact, bool):
            raise ValueError("a Box whose bounds are neither exact nor not")
        _check_shape(self.low.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one element."""
        return tuple(self.low.shape)

    @property
    def bounded(self) -> bool:
        """Whether no entry can be infinite."""
        return bool(np.isfinite(self.low).all() and np.isfinite(self.high).all())

    def flat_size(self) -> int:
        return math.prod(self.shape)

    def __repr__(self) -> str:
        low = float(distinct_entries(self.low).min()) if self.low.size else 0.0
        high = float(distinct_entries(self.high).max()) if self.high.size else 0.0
        return f"Box({low:g}, {high:g}, {self.shape}, {self.dtype})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box)
            and (self.dtype, self.shape) == (other.dtype, other.shape)
            and all(map(np.array_equal, (self.low, self.high), (other.low, other.high)))
        )

    def __hash__(self) -> int:
        return hash(repr(self))


@frozen(eq=False)
class Discrete(Space):
    """The integers `start`, …, `start + n - 1`."""

    n: int
    start: int = 0

    def _check(self) -> None:
        if type(self.n) is not int or not 0 <= self.n <= MOST_VALUES:
            raise ValueError("the size of a Discrete is not a sensible number")
        if type(self.start) is not int or abs(self.start) > MOST_VALUES:
            raise ValueError("the start of a Discrete is not a sensible number")

    def flat_size(self) -> int:
        return self.n


@frozen(eq=False)
class MultiDiscrete(Space):
    """Vectors of integers, the i-th below `nvec[i]`."""

    nvec: tuple[int, ...]

    def _check(self) -> None:
        if type(self.nvec) is not tuple or len(self.nvec) > MOST_PARTS:
            raise ValueError("the sizes of a MultiDiscrete are not a short tuple")
        if not all(type(n) is int and 0 <= n <= MOST_VALUES for n in self.nvec):
            raise ValueError("a size of a MultiDiscrete is not a sensible number")

    def flat_size(self) -> int:
        return sum(self.nvec)


@frozen(eq=False)
class MultiBinary(Space):
    """Arrays of `shape` of zeros and ones."""

    shape: tuple[int, ...]

    def _check(self) -> None:
        if type(self.shape) is not tuple or not self.shape:
            raise ValueError("the shape of a MultiBinary is not a tuple")
        _check_shape(self.shape)

    def flat_size(self) -> int:
        return math.prod(self.shape)


@frozen(eq=False)
class TupleSpace(Space):
    """A tuple of spaces."""

    spaces: tuple[Space, ...]

    def parts(self) -> Iterable[Any]:
        if type(self.spaces) is not tuple:
            raise ValueError("the parts of a Tuple are not a tuple")
        return self.spaces

    def flat_size(self) -> int:
        return sum(s.flat_size() for s in self.spaces)


@frozen(eq=False)
class DictSpace(Space):
    """Named spaces. gym sorted the names of a plain dict, and kept the order of an OrderedDict."""

    spaces: dict[Any, Space] = field(default_factory=dict)

    def parts(self) -> Iterable[Any]:
        if not isinstance(self.spaces, dict):
            raise ValueError("the parts of a Dict are not a dict")
        if not all(isinstance(name, (str, int)) for name in self.spaces):
            raise ValueError("a name in a Dict is neither text nor a number")
        return self.spaces.values()

    def __str__(self) -> str:
        return f"Dict({', '.join(f'{name}={space}' for name, space in self.spaces.items())})"

    def flat_size(self) -> int:
        return sum(s.flat_size() for s in self.spaces.values())


@frozen(eq=False)
class Repeated(Space):
    """Lists of up to `max_len` elements of a space, RLlib's own kind of space."""

    child_space: Space
    max_len: int

    def parts(self) -> Iterable[Any]:
        return (self.child_space,)

    def _check(self) -> None:
        if type(self.max_len) is not int or not 0 <= self.max_len <= LARGEST:
            raise ValueError("the length of a Repeated is not a sensible number")
        if self.flat_size() > LARGEST:
            raise ValueError(f"a Repeated of more than {LARGEST:,} numbers")

    def flat_size(self) -> int:
        """The list's length, and all elements that there may be."""
        return 1 + self.max_len * self.child_space.flat_size()


#: All kinds of records.
KINDS: tuple[type[Space], ...] = (
    *(Box, Discrete, MultiDiscrete, MultiBinary),
    *(TupleSpace, DictSpace, Repeated),
)


def _check_shape(shape: tuple[int, ...]) -> None:
    if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 32:
        raise ValueError("a shape of a space is not made of sizes")
    if math.prod(shape) > LARGEST:
        raise ValueError(f"a space of the shape {shape} has more than {LARGEST:,} entries")


def distinct_entries(array: Array) -> Array:
    """The part of an array that holds all of its values: one entry for a broadcast axis.

    Bounds are one number in most spaces, which is that of all entries and takes no memory.
    """
    return array[tuple(slice(None if s else 1) for s in array.strides)] if array.size else array


def box(
    low: ArrayLike,
    high: ArrayLike,
    shape: tuple[int, ...] | None = None,
    dtype: str = "float32",
) -> Box:
    """Makes a `Box` of scalars or arrays, as `gym.spaces.Box` takes them."""
    name = np.dtype(dtype).name
    if shape is None:
        shape = np.shape(low) or np.shape(high)
    _check_shape(tuple(shape))
    return Box(
        np.broadcast_to(np.asarray(low, dtype=name), shape),
        np.broadcast_to(np.asarray(high, dtype=name), shape),
        name,
    )


def tuple_space(parts: Iterable[Space | None]) -> TupleSpace | None:
    """Makes a `TupleSpace`; None if a part is of a kind that has no record."""
    parts = tuple(parts)
    known = tuple(part for part in parts if part is not None)
    return TupleSpace(known) if len(known) == len(parts) else None


def dict_space(parts: Mapping[Any, Space | None]) -> DictSpace | None:
    """Makes a `DictSpace`; None if a part is of a kind that has no record."""
    known = {name: part for name, part in parts.items() if part is not None}
    return DictSpace(known) if len(known) == len(parts) else None


def map_leaves(function: Callable[[Space, Any], Any], space: Space, value: Any) -> Any:
    """What a function makes of each part of a value, in the structure of Tuples and Dicts."""
    if isinstance(space, DictSpace):
        return {k: map_leaves(function, part, value[k]) for k, part in space.spaces.items()}
    if isinstance(space, TupleSpace):
        pairs = zip(space.spaces, value, strict=True)
        return tuple(map_leaves(function, part, one) for part, one in pairs)
    return function(space, value)


def list_leaves(function: Callable[[Space, Any], Any], space: Space, value: object) -> list[Any]:
    """The same, one behind the other in the order of the space."""
    found: list[Any] = []
    map_leaves(lambda part, one: found.append(function(part, one)), space, value)
    return found


def to_gymnasium(space: Space) -> gymnasium.Space[Any]:
    """Makes the gymnasium space that `space` records; lists are the vectors made of them."""
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
    if isinstance(space, Repeated):
        return g.Box(-np.inf, np.inf, (space.flat_size(),), np.float32)
    raise TypeError(f"not a space record: {space!r}")


def from_object(obj: object) -> Space | None:
    """Reads a live space of gym or gymnasium (by duck typing; neither is imported), or a record.

    Returns:
        The record, or None where `obj` is no space that this package knows.
    """
    if obj is None or isinstance(obj, Space):
        return obj
    reader = _READERS.get(type(obj).__name__)
    return reader(obj) if reader else None


def _read_repeated(obj: Any) -> Space | None:
    child = from_object(getattr(obj, "child_space", None))
    return None if child is None else Repeated(child, int(obj.max_len))


def _read_multi_binary(obj: Any) -> Space:
    return MultiBinary((obj.n,) if np.ndim(obj.n) == 0 else tuple(obj.n))


_READERS: Mapping[str, Callable[[Any], Space | None]] = {
    "Box": lambda o: box(o.low, o.high, tuple(o.shape), o.dtype),
    "Discrete": lambda o: Discrete(int(o.n), int(getattr(o, "start", 0))),
    "MultiDiscrete": lambda o: MultiDiscrete(tuple(int(n) for n in np.ravel(o.nvec))),
    "MultiBinary": _read_multi_binary,
    "Tuple": lambda o: tuple_space(map(from_object, o.spaces)),
    "Dict": lambda o: dict_space({k: from_object(s) for k, s in o.spaces.items()}),
    "Repeated": _read_repeated,
}

#: What a syntax tree or a space that is damaged raises.
_FAILURES = (
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)


def parse_repr(text: str) -> Space | None:
    """Reads the `repr` of a space of any gym or gymnasium, as `params.json` and people write it.

    Old gyms printed a Box without its bounds (`Box(4,)`), which are then taken as infinite, or
    with the least and the greatest of all entries (`Box(-2.0, 2.0, (2,), float32)`): `exact` says
    that they may be others. Later ones print bounds that differ as arrays
    (`Box([-1. 0.], [1. 1.], (2,))`).

    Returns:
        The record, or None where the text is no `repr` of a space.
    """
    if len(text) > _LONGEST_REPR:
        return None
    try:
        python = _KEY.sub(r"\1=", _ARRAY.sub(_add_commas, text.strip()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's, of literals that it dislikes
            tree = ast.parse(python, mode="eval").body
        return _read_call(tree)
    except _FAILURES:
        return None


#: A Dict of a thousand parts; syntax trees take a hundred times the text.
_LONGEST_REPR = 50_000

#: numpy prints the entries of an array with blanks between them, and infinity as `inf`.
_ARRAY = re.compile(r"\[[^\[\]]*\]")

#: gym prints a Dict as `Dict(name:Box(…))`, gymnasium as `Dict('name': Box(…))`.
_KEY = re.compile(r"(?<=[(,])\s*'?([A-Za-z_]\w*)'?\s*:")


def _add_commas(match: re.Match[str]) -> str:
    return re.sub(r"(?<=[\w.])\s+(?=[-+\w.])", ", ", match[0])


def _read_call(node: ast.expr) -> Space:
    """Reads one `Name(…)`; only names, literals and calls of known spaces are understood."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError("not a space")
    return _MAKERS[node.func.id](node.args, {k.arg: k.value for k in node.keywords})


def _read_literal(node: ast.expr) -> Any:
    """A number, a tuple or list of numbers, `inf`, or a dtype's name."""
    if isinstance(node, ast.Name):
        return math.inf if node.id == "inf" else node.id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_read_literal(node.operand)
    if isinstance(node, (ast.Tuple, ast.List)):
        return [_read_literal(part) for part in node.elts]
    return ast.literal_eval(node)


def _make_box(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    values = [_read_literal(arg) for arg in args]
    if values and all(isinstance(v, int) for v in values):
        values = [values]  # `Box(84, 84)` is a shape: bounds were never printed as integers
    if len(values) == 1:
        return replace(box(-math.inf, math.inf, tuple(values[0])), exact=False)
    low, high, *rest = values
    names = {k: _read_literal(v) for k, v in named.items()}
    shape = names.get("shape", rest[0] if rest else None)
    dtype = names.get("dtype", rest[1] if len(rest) > 1 else "float32")
    space = box(low, high, None if shape is None else tuple(shape), dtype)
    # Ray 0.8.7's gym printed `Box(-2.0, 2.0, (2,), float32)` of [-2, 0] … [2, 1], too.
    printed = len(rest) == 2 and not named and isinstance(low, float) and isinstance(high, float)
    return replace(space, exact=not printed or space.flat_size() == 1)


def _make_discrete(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    n, *start = (int(_read_literal(arg)) for arg in args)
    return Discrete(
        n, start[0] if start else int(_read_literal(named.get("start", ast.Constant(0))))
    )


def _make_dict(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    del args
    return DictSpace({str(name): _read_call(part) for name, part in named.items()})


def _make_tuple(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    del named
    match args:
        case [ast.List(elts=args) | ast.Tuple(elts=args)]:
            pass
    return TupleSpace(tuple(_read_call(part) for part in args))


def _make_repeated(args: list[ast.expr], named: dict[str | None, ast.expr]) -> Space:
    child, length = [*args, *named.values()]
    return Repeated(_read_call(child), int(_read_literal(length)))


_Maker: TypeAlias = Callable[[list[ast.expr], dict[str | None, ast.expr]], Space]
_MAKERS: Mapping[str, _Maker] = {
    "Box": _make_box,
    "Discrete": _make_discrete,
    "MultiDiscrete": lambda args, _: MultiDiscrete(tuple(map(int, _read_literal(args[0])))),
    "MultiBinary": lambda args, _: MultiBinary(
        tuple(np.atleast_1d(_read_literal(args[0])).tolist())
    ),
    "Tuple": _make_tuple,
    "TupleSpace": _make_tuple,
    "Dict": _make_dict,
    "Repeated": _make_repeated,
}
