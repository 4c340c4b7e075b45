"""Equality that looks into arrays and records, and tells `1` from `True` and `1.0`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np


def assert_same(one, other, path="$"):
    assert type(one) is type(other), (path, type(one), type(other))
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), path
        if one.dtype.hasobject:
            assert_same(one.tolist(), other.tolist(), path)
        elif one.dtype.names:
            # Field by field: what lies between aligned fields is no part of the value.
            for name in one.dtype.names:
                assert_same(one[name], other[name], f"{path}.{name}")
        else:
            assert one.tobytes() == other.tobytes(), path
    elif isinstance(one, Mapping):
        assert len(one) == len(other), path
        for (key, value), (other_key, other_value) in zip(one.items(), other.items(), strict=True):
            assert_same(key, other_key, f"{path} key")
            assert_same(value, other_value, f"{path}.{key}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), path
        for index, (value, other_value) in enumerate(zip(one, other, strict=True)):
            assert_same(value, other_value, f"{path}[{index}]")
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(
                getattr(one, field.name), getattr(other, field.name), f"{path}.{field.name}"
            )
    elif isinstance(one, np.generic):
        assert one.tobytes() == other.tobytes(), path
    else:
        assert one == other or (one != one and other != other), path  # NaN
