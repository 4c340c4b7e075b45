"""RLlib's preprocessors: of Atari frames and RAM, of MultiDiscrete observations, and of lists.

They applied to any images of 210 × 160 × 3 and vectors of 128 numbers. The tests compare them with
recordings of Ray 0.8.5, 1.13.0 and 2.3.1 (`tests/legacy/atari/`); the Rays between them in which
they changed were found in the sources.

Images are `uint8` arrays `[rows, columns]` or `[rows, columns, 3]`. Two functions of OpenCV are
implemented in numpy with equal results, so that OpenCV need not be installed: conversion to
grayscale, and resizing by areas (`INTER_AREA`) or linear interpolation (`INTER_LINEAR`).

Lists of varying length (RLlib's `Repeated` spaces) became vectors: the list's length, the flattened
elements, and zeros for missing elements (`RepeatedValuesPreprocessor` of Ray 0.8 – 2.x, compared
with recordings of Ray 1.13.0, `tests/legacy/atari/record_lists.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from packaging.version import Version

from rllib_compat.networks.observations import ATARI_FRAME, ATARI_RAM
from rllib_compat.neutral.errors import LegacyEnvError, NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import (
    DictSpace,
    Discrete,
    MultiDiscrete,
    Repeated,
    Space,
    TupleSpace,
    list_leaves,
    map_leaves,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

if TYPE_CHECKING:
    from gymnasium import Space as GymSpace


#: The weights of red, green and blue in units of 2^-15, whose sums float32 represents exactly.
_GRAY = np.array([9798, 19235, 3735], np.float32)
_GRAY_UNIT = 1 << 15
#: The number of bits of the weights of linear interpolation.
_LINEAR_BITS = 11
#: Smaller parts of a pixel are ignored.
_SMALLEST = 1e-3


def gray(image: Array) -> Array:
    """Converts a color image to grayscale, `[rows, columns]`."""
    weighted = image.astype(np.float32) @ _GRAY
    rounded: Array = (weighted + _GRAY_UNIT // 2) / _GRAY_UNIT
    return rounded.astype(np.uint8)


def resize(image: Array, size: tuple[int, int], *, by_area: bool = True) -> Array:
    """Resizes an image.

    Args:
        image: The image.
        size: Rows and columns.
        by_area: Whether a pixel is the mean of the area that it covers, else an interpolation of
            four neighbors. Enlarging in one direction is always an interpolation.
    """
    old = image.shape[:2]
    if old == size:
        return image.copy()
    rows, columns = old[0] / size[0], old[1] / size[1]
    if by_area or rows == columns == 2:
        if rows.is_integer() and columns.is_integer():
            return _means(image, size)
        if rows >= 1 and columns >= 1:
            return _average_areas(image, size)
    return _interpolate(image, size, edges=by_area)


def _means(image: Array, size: tuple[int, int]) -> Array:
    """Averages blocks of complete pixels."""
    rows, columns = size
    parts = image.reshape(rows, image.shape[0] // rows, columns, -1, *image.shape[2:])
    total = parts.sum((1, 3), dtype=np.uint32)
    count = parts.shape[1] * parts.shape[3]
    if parts.shape[1] == parts.shape[3] == 2:
        mean: Array = (total + 2) >> 2
    else:
        mean = np.rint(total.astype(np.float32) * np.float32(1 / count))
    return mean.astype(np.uint8)


def _average_areas(image: Array, size: tuple[int, int]) -> Array:
    """Averages blocks with partial pixels, summed in float32 in OpenCV's order."""
    left, across = _areas(image.shape[1], size[1])
    top, down = _areas(image.shape[0], size[0])
    wide = _columns(image.astype(np.float32), left, across)
    total: Array = np.zeros(1, np.float32)
    for which, part in zip(top, down, strict=True):
        total = total + wide[which] * _down(part, image)
    return np.clip(np.rint(total), 0, 255).astype(np.uint8)


def _columns(pixels: Array, which: Array, parts: Array) -> Array:
    """Computes new columns as weighted sums of old ones."""
    trailing = (1,) * (pixels.ndim - 2)
    columns: Array = np.zeros(1, pixels.dtype)
    for old, part in zip(which, parts, strict=True):
        columns = columns + pixels[:, old] * part.reshape(1, -1, *trailing)
    return columns


def _down(part: Array, image: Array) -> Array:
    """Reshapes one number per row for broadcasting with an image."""
    return part.reshape(-1, *(1,) * (image.ndim - 1))


@lru_cache
def _areas(old: int, new: int) -> tuple[Array, Array]:
    """Returns the old pixels of each new one in a line, `[n, new]`, and their weights.

    Shorter columns are padded with pixels of weight 0.
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
        line += [(full, 1 / width) for full in range(first, last)]
        if end - last > _SMALLEST:
            line.append((last, min(end - last, 1.0, width) / width))
        lines.append(line)
    most = max(map(len, lines))
    lines = [line + [(0, 0.0)] * (most - len(line)) for line in lines]
    table = np.array(lines).transpose(2, 1, 0)
    return table[0].astype(np.intp), table[1].astype(np.float32)


def _interpolate(image: Array, size: tuple[int, int], *, edges: bool) -> Array:
    """Interpolates pixels between four neighbors, in integers."""
    left, across = _neighbours(image.shape[1], size[1], edges)
    top, down = _neighbours(image.shape[0], size[0], edges)
    beyond = (left[0] < 0) | (left[0] >= image.shape[1] - 1)
    across = np.where(beyond, [[1 << _LINEAR_BITS], [0]], across)  # OpenCV does so only in rows
    left, top = left.clip(0, image.shape[1] - 1), top.clip(0, image.shape[0] - 1)
    wide = _columns(image.astype(np.int32), left, across.astype(np.int32)) >> 4
    total: Array = np.full(1, 2, np.int32)
    for which, part in zip(top, down, strict=True):
        total = total + (wide[which] * _down(part, image) >> 16)
    mean: Array = np.clip(total >> 2, 0, 255)
    return mean.astype(np.uint8)


@lru_cache
def _neighbours(old: int, new: int, edges: bool) -> tuple[Array, Array]:
    """Returns the two old pixels around each new one in a line, `[2, new]`, and their weights."""
    scale = 1 / (new / old)
    places = np.arange(new)
    if edges:  # an old pixel keeps its value up to the next new one
        first = np.floor(places * scale).astype(np.intp)
        behind = ((places + 1) - (first + 1) * (new / old)).astype(np.float32)
        behind = np.where(behind <= 0, np.float32(0), behind - np.floor(behind))
    else:
        exact = ((places + 0.5) * scale - 0.5).astype(np.float32)
        first = np.floor(exact).astype(np.intp)
        behind = exact - first.astype(np.float32)
    parts = np.stack([np.float32(1) - behind, behind]) * np.float32(1 << _LINEAR_BITS)
    return np.stack([first, first + 1]), np.rint(parts).astype(np.int32)


def has_lists(space: Space | None) -> bool:
    """Whether a space contains lists of varying length."""
    return isinstance(space, Repeated) or (space is not None and any(map(has_lists, space.parts())))


def flatten_lists(space: Space, value: object) -> Any:
    """Replaces lists in a value with vectors.

    Raises:
        LegacyEnvError: A list is longer than its space allows.
    """
    return map_leaves(
        lambda part, one: flatten_value(part, one) if isinstance(part, Repeated) else one,
        space,
        value,
    )


def has_integers(space: GymSpace[Any], *, images: bool = True) -> bool:
    """Whether a space is a Box of integers, or a Dict with one.

    Args:
        space: The space.
        images: Whether a Box with three dimensions counts, whose floats would take four times the
            memory.
    """
    import gymnasium as gym

    if isinstance(space, gym.spaces.Dict):
        return any(has_integers(part, images=images) for part in space.spaces.values())
    if not isinstance(space, gym.spaces.Box) or not np.issubdtype(space.dtype, np.integer):
        return False
    return images or len(space.shape) < 3


def flatten_value(space: Space, value: Any) -> Array:
    """Flattens a value to a float32 vector, as RLlib's preprocessors did.

    Raises:
        LegacyEnvError: A list is longer than its space allows.
    """
    if isinstance(space, Repeated):
        if len(value) > space.max_len:
            raise LegacyEnvError(
                f"An observation has {len(value)} elements, and its Repeated space at most "
                f"{space.max_len}.",
                where="$.env → observation_space",
                fix="set the Repeated space's max_len to the length of the longest list",
            )
        made = np.zeros(space.flat_size(), np.float32)
        found = [flatten_value(space.child_space, one) for one in value]
        numbers = np.concatenate([[len(found)], *found])
        made[: len(numbers)] = numbers
        return made
    if isinstance(space, (DictSpace, TupleSpace)):
        return np.concatenate(list_leaves(flatten_value, space, value))
    if isinstance(space, Discrete):
        return _one_hot(int(value) - space.start, space.n)
    if isinstance(space, MultiDiscrete):
        return np.concatenate(
            [_one_hot(int(n), of) for n, of in zip(value, space.nvec, strict=True)]
        )
    return np.asarray(value, np.float32).ravel()


def _one_hot(choice: int, choices: int) -> Array:
    made = np.zeros(choices, np.float32)
    made[choice] = 1
    return made


#: The number of rows that were cropped at the top and the bottom.
_CUT = 25
#: Smaller images were resized in two steps, first to this size.
_FIRST = 84
#: Since this Ray, images are resized by area; before, by interpolation.
_BY_AREA = Version("1.6")
#: Since this Ray, RAM is shifted as floats; before, as bytes, where 127 - 128 is 255.
_FLOATS = Version("1.3")
#: Since this Ray, a MultiDiscrete is encoded as one-hot.
_ONE_HOT = Version("1.2")


@frozen
class LegacyPreprocessor:
    """A preprocessor of frames, RAM and MultiDiscrete, with the settings of `model`.

    Attributes:
        dim: The rows and columns of a resized frame.
        grayscale: Whether frames are converted to grayscale.
        zero_mean: Whether 128 is subtracted from pixels before a division by 128; else they are
            divided by 255. For colors, the subtraction is one of bytes: dark pixels become bright.
        legacy_ray: The Ray whose behavior it has; None: the last one with preprocessors.
    """

    dim: int = 84
    grayscale: bool = False
    zero_mean: bool = True
    legacy_ray: str | None = None

    @classmethod
    def from_model(cls, model: Mapping[str, Any], legacy_ray: str | None) -> LegacyPreprocessor:
        """Creates the preprocessor for a model's config."""
        keys = ("dim", "grayscale", "zero_mean")
        return cls(**{key: model[key] for key in keys if key in model}, legacy_ray=legacy_ray)

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of preprocessed arrays."""
        return (self.dim, self.dim, 1 if self.grayscale else 3) if shape == ATARI_FRAME else shape

    @property
    def encodes_choices(self) -> bool:
        """Whether a MultiDiscrete is encoded as one-hot, else as numbers."""
        return self._since(_ONE_HOT)

    def changes(self, shape: object) -> bool:
        """Whether it changes arrays of a shape."""
        return shape in (ATARI_FRAME, ATARI_RAM)

    def __call__(self, array: Array) -> Array:
        """Preprocesses one array to float32.

        Raises:
            NotYetError: A frame is not of bytes.
        """
        if array.shape == ATARI_FRAME:
            array = self._frame(array)
        elif array.shape == ATARI_RAM:
            array = self._memory(array)
        return array.astype(np.float32)

    def _frame(self, frame: Array) -> Array:
        if frame.dtype != np.uint8:
            raise NotYetError(
                f"Frames of the shape {ATARI_FRAME} must be uint8; these are {frame.dtype}.",
                where="observation_space",
                fix="return uint8, or preprocess the frames in a wrapper of the environment",
            )
        small, by_area = frame[_CUT:-_CUT], self._since(_BY_AREA)
        if self.dim < _FIRST:
            small = resize(small, (_FIRST, _FIRST), by_area=by_area)
        small = resize(small, (self.dim, self.dim), by_area=by_area)
        if self.grayscale:
            small = small.mean(2, keepdims=True).astype(np.float32)
        made: Array = _center_around_zero(small) if self.zero_mean else small * (1.0 / 255.0)
        return made

    def _memory(self, memory: Array) -> Array:
        if self._since(_FLOATS):
            memory = memory.astype(np.float32)
        return _center_around_zero(memory)

    def _since(self, ray: Version) -> bool:
        return self.legacy_ray is None or Version(self.legacy_ray) >= ray


def _center_around_zero(array: Array) -> Array:
    """Subtracts 128 and divides by 128; of bytes, the subtraction wraps around."""
    made: Array = (array - array.dtype.type(128)) / 128
    return made
