"""Images as RLlib's Atari wrappers made them: gray and small, as OpenCV computes it.

Two functions of OpenCV, in numpy and equal to the byte, so that it need not be installed: the
gray of a colour image, and an image's size changed by areas (`INTER_AREA`) or by linear
interpolation (`INTER_LINEAR`). Images are `uint8` arrays `[rows, columns]` or `[rows, columns, 3]`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Red, green and blue in a gray pixel, in units of 2^-15: float32 holds their sums exactly.
_GRAY = np.array([9798, 19235, 3735], np.float32)
_GRAY_UNIT = 1 << 15
#: What linear interpolation multiplies with has so many bits.
_LINEAR_BITS = 11
#: Parts of a pixel that are smaller do not count.
_SMALLEST = 1e-3


def gray(image: Array) -> Array:
    """The brightness of a colour image, `[rows, columns]`."""
    weighted = image.astype(np.float32) @ _GRAY
    rounded: Array = (weighted + _GRAY_UNIT // 2) / _GRAY_UNIT
    return rounded.astype(np.uint8)


def resized(image: Array, size: tuple[int, int], *, by_area: bool = True) -> Array:
    """An image in another size.

    Args:
        image: The image.
        size: Rows and columns.
        by_area: Whether a pixel is the mean of all that it covers; else it is interpolated between
            four neighbours. A size that is larger in one direction is interpolated, in its own way.
    """
    old = image.shape[:2]
    if old == size:
        return image.copy()
    rows, columns = old[0] / size[0], old[1] / size[1]
    if by_area or rows == columns == 2:
        if rows.is_integer() and columns.is_integer():
            return _means(image, size)
        if rows >= 1 and columns >= 1:
            return _covered(image, size)
    return _interpolated(image, size, edges=by_area)


def _means(image: Array, size: tuple[int, int]) -> Array:
    """The means of whole pixels."""
    rows, columns = size
    parts = image.reshape(rows, image.shape[0] // rows, columns, -1, *image.shape[2:])
    total = parts.sum((1, 3), dtype=np.uint32)
    count = parts.shape[1] * parts.shape[3]
    if parts.shape[1] == parts.shape[3] == 2:
        mean: Array = (total + 2) >> 2
    else:
        mean = np.rint(total.astype(np.float32) * np.float32(1 / count))
    return mean.astype(np.uint8)


def _covered(image: Array, size: tuple[int, int]) -> Array:
    """The means of pixels that are covered in part, added up in OpenCV's order in float32."""
    left, across = _areas(image.shape[1], size[1])
    top, down = _areas(image.shape[0], size[0])
    wide = _columns(image.astype(np.float32), left, across)
    total: Array = np.zeros(1, np.float32)
    for which, part in zip(top, down, strict=True):
        total = total + wide[which] * _down(part, image)
    return np.clip(np.rint(total), 0, 255).astype(np.uint8)


def _columns(pixels: Array, which: Array, parts: Array) -> Array:
    """Each new column: the sum of some old ones, times how much each counts."""
    trailing = (1,) * (pixels.ndim - 2)
    columns: Array = np.zeros(1, pixels.dtype)
    for old, part in zip(which, parts, strict=True):
        columns = columns + pixels[:, old] * part.reshape(1, -1, *trailing)
    return columns


def _down(part: Array, image: Array) -> Array:
    """A number for each row of an image."""
    return part.reshape(-1, *(1,) * (image.ndim - 1))


@lru_cache
def _areas(old: int, new: int) -> tuple[Array, Array]:
    """The old pixels below each new one of a line, `[n, new]`, and how much each of them counts.

    Lines with fewer than the most end in pixels that count nothing.
    """
    scale = 1 / (new / old)
    lines = []
    for pixel in range(new):
        begin = pixel * scale
        end = begin + scale
        width = min(scale, old - begin)
        last = min(int(np.floor(end)), old - 1)
        first = min(int(np.ceil(begin)), last)
        line = [(first - 1, (first - begin) / width)] if first - begin > _SMALLEST else []
        line += [(whole, 1 / width) for whole in range(first, last)]
        if end - last > _SMALLEST:
            line.append((last, min(end - last, 1.0, width) / width))
        lines.append(line)
    most = max(map(len, lines))
    lines = [line + [(0, 0.0)] * (most - len(line)) for line in lines]
    table = np.array(lines).transpose(2, 1, 0)
    return table[0].astype(np.intp), table[1].astype(np.float32)


def _interpolated(image: Array, size: tuple[int, int], *, edges: bool) -> Array:
    """Pixels between four neighbours, in whole numbers."""
    left, across = _neighbours(image.shape[1], size[1], edges)
    top, down = _neighbours(image.shape[0], size[0], edges)
    beyond = (left[0] < 0) | (left[0] >= image.shape[1] - 1)
    across = np.where(beyond, [[1 << _LINEAR_BITS], [0]], across)  # only so in a row
    left, top = left.clip(0, image.shape[1] - 1), top.clip(0, image.shape[0] - 1)
    wide = _columns(image.astype(np.int32), left, across.astype(np.int32)) >> 4
    total: Array = np.full(1, 2, np.int32)
    for which, part in zip(top, down, strict=True):
        total = total + (wide[which] * _down(part, image) >> 16)
    mean: Array = np.clip(total >> 2, 0, 255)
    return mean.astype(np.uint8)


@lru_cache
def _neighbours(old: int, new: int, edges: bool) -> tuple[Array, Array]:
    """The two old pixels around each new one of a line, `[2, new]`, and how much each counts."""
    scale = 1 / (new / old)
    places = np.arange(new)
    if edges:  # an old pixel keeps its value up to where the next new one begins
        first = np.floor(places * scale).astype(np.intp)
        behind = ((places + 1) - (first + 1) * (new / old)).astype(np.float32)
        behind = np.where(behind <= 0, np.float32(0), behind - np.floor(behind))
    else:
        exact = ((places + 0.5) * scale - 0.5).astype(np.float32)
        first = np.floor(exact).astype(np.intp)
        behind = exact - first.astype(np.float32)
    parts = np.stack([np.float32(1) - behind, behind]) * np.float32(1 << _LINEAR_BITS)
    return np.stack([first, first + 1]), np.rint(parts).astype(np.int32)
