"""A policy's weights as one array of each dtype.

Whoever reads an object of Ray's store keeps some objects for every array in it, which for a small
policy are a good part of its weights' size.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

#: Where arrays begin, in bytes: as in Ray's store, for torch computes faster from there.
_ALIGNED = 64


class Packed(NamedTuple):
    """Weights in Ray's object store.

    Attributes:
        flat: Arrays of one dimension by the name of their dtype.
        places: By the name of each array: its dtype's name, where it begins, and its shape.
    """

    flat: dict[str, Any]
    places: dict[str, tuple[str, int, tuple[int, ...]]]


def pack(arrays: Mapping[str, Any]) -> Packed | Mapping[str, Any]:
    """Puts arrays together, or returns what it was given if something else is among it."""
    import numpy as np

    if not all(
        isinstance(array, np.ndarray) and array.dtype.kind in "biuf" for array in arrays.values()
    ):
        return arrays
    sizes: dict[str, int] = {}
    places = {}
    for name, array in arrays.items():
        dtype = array.dtype.str
        begin = sizes.get(dtype, 0)
        places[name] = (dtype, begin, array.shape)
        end = begin + array.size
        sizes[dtype] = end + -end % (_ALIGNED // array.itemsize)
    flat = {dtype: np.zeros(size, dtype) for dtype, size in sizes.items()}
    for name, (dtype, begin, _) in places.items():
        flat[dtype][begin : begin + arrays[name].size] = arrays[name].ravel()
    return Packed(flat, places)


def arrays_of(stored: Packed | Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays by name, on the same memory."""
    return _parts(stored, stored.flat) if isinstance(stored, Packed) else stored


def tensors_on(stored: Packed | Mapping[str, Any]) -> dict[str, Any]:
    """Tensors by name on the memory of the arrays, which they keep alive and never change."""
    if isinstance(stored, Packed):
        return _parts(stored, _tensors(stored.flat))
    return _tensors(stored)


def _parts(packed: Packed, flat: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: flat[dtype][begin : begin + prod(shape)].reshape(shape)
        for name, (dtype, begin, shape) in packed.places.items()
    }


def _tensors(arrays: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}
