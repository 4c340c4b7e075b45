"""What one config has and another has not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_NO_VALUE = object()


def differences(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config has another value than in a second one."""
    different = {}
    for key, value in config.items():
        default = defaults.get(key, _NO_VALUE)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            inner = differences(value, default)
            if inner:
                different[key] = inner
        elif not same(value, default):
            different[key] = value
    return different


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, and of the same type."""
    if a is b:
        return True
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)
