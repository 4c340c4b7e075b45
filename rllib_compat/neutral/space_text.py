"""Spaces as text: the `repr` that `params.json` holds and people write.

The text is taken apart as a syntax tree, in which only the names of known spaces, literals and
`inf` mean something; nothing is evaluated.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.spaces import (
    DictSpace,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Repeated,
    Space,
    TupleSpace,
    box,
)

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
