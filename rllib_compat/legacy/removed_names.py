"""Names that numpy 1.24 – 2.0 and Python 3.10 removed, put back where they were.

A face in its place would be slow, and strange to numba. Nobody but old code asks for these names.
"""

from __future__ import annotations

import collections
import collections.abc
from types import ModuleType
from typing import Any

import numpy as np

#: A removed name → what it was, or today's name of it.
REMOVED: dict[str, Any] = {
    "Inf": "inf",
    "Infinity": "inf",
    "NAN": "nan",
    "NINF": -np.inf,
    "NZERO": -0.0,
    "NaN": "nan",
    "PINF": "inf",
    "PZERO": 0.0,
    "alltrue": "all",
    "bool": bool,
    "bool8": "bool_",
    "cfloat": "complex128",
    "complex": complex,
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float": float,
    "float_": "float64",
    "in1d": "isin",
    "infty": "inf",
    "int": int,
    "int0": "intp",
    "long": int,
    "mat": "asmatrix",
    "object": object,
    "object0": "object_",
    "product": "prod",
    "round_": "round",
    "row_stack": "vstack",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "str": str,
    "string_": "bytes_",
    "trapz": "trapezoid",
    "uint0": "uintp",
    "unicode": str,
    "unicode_": "str_",
}


_restored: list[tuple[ModuleType, str]] = []


def restore() -> None:
    """Adds each name that is missing; names that are there stay as they are."""
    for name, was in REMOVED.items():
        _add(np, name, getattr(np, was, None) if isinstance(was, str) else was)
    for name in collections.abc.__all__:  # Python 3.10
        _add(collections, name, getattr(collections.abc, name))


def remove() -> None:
    """Takes the added names away again."""
    while _restored:
        delattr(*_restored.pop())


def _add(module: ModuleType, name: str, value: Any) -> None:
    if name not in vars(module) and value is not None:
        setattr(module, name, value)
        _restored.append((module, name))
