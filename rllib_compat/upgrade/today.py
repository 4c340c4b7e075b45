"""What modules of today hold, also those that can't be imported here.

Some of Ray's modules need what is not a part of Ray, as that of OpenSpiel, and raise when they are
imported without it. The code that is rewritten may run where it is installed, so what such a module
holds is read from its source.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType


def is_module(name: str) -> bool:
    """Whether there is a module of that name today."""
    return _module(name) is not None


def has(module: str, name: str) -> bool:
    """Whether a module of today holds something by that name."""
    found = _module(module)
    there = hasattr(found, name) if isinstance(found, ModuleType) else name in (found or ())
    return there or is_module(f"{module}.{name}")


@cache
def _module(name: str) -> ModuleType | frozenset[str] | None:
    """The module, or the names that its source binds; None where there is none."""
    try:
        return importlib.import_module(name)
    except Exception:  # whatever a module raises that lacks what it needs
        return _written(name)


def _written(module: str) -> frozenset[str] | None:
    try:
        spec = importlib.util.find_spec(module)
    except Exception:  # what it is in is not there, or can't be imported, either
        return None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return frozenset(_bound(ast.parse(Path(spec.origin).read_bytes())))


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            for below in ast.walk(node):
                if isinstance(below, ast.Name) and isinstance(below.ctx, ast.Store):
                    yield below.id
