"""Nested values of arrays: what a module says, and its states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A nested value with the function's results in the place of its arrays."""
    if isinstance(value, Mapping):
        return {name: mapped(function, part) for name, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(function, part) for part in value)
    return function(value)


def stacked(values: list[Any]) -> Any:
    """Nested values of the same form, as one with arrays."""
    first = values[0]
    if isinstance(first, Mapping):
        return {name: stacked([value[name] for value in values]) for name in first}
    if isinstance(first, (tuple, list)):
        return type(first)(stacked(list(parts)) for parts in zip(*values, strict=True))
    return np.array(values)
