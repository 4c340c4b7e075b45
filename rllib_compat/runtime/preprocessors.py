"""What RLlib itself made of raw Atari frames, an Atari's memory and a MultiDiscrete.

It went by the shape: images of 210 × 160 × 3 and vectors of 128 numbers, wherever they came from.
Recorded of Ray 0.8.5, 1.13.0 and 2.3.1 (`tests/legacy/atari/`); in which Ray between them something
changed was read from its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from packaging.version import Version

from rllib_compat.networks.trunks.images import ATARI_FRAME, ATARI_RAM
from rllib_compat.neutral.errors import NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.runtime.frames import Array, resized

#: So many rows above and below were cut off.
_CUT = 25
#: Smaller images were made in two steps, the first one this large.
_FIRST = 84
#: From this Ray on, a pixel was the mean of those that it covers; before, it was interpolated.
_BY_AREA = Version("1.6")
#: From this Ray on, a memory was shifted as floats; before, as bytes, where 127 - 128 is 255.
_FLOATS = Version("1.3")
#: From this Ray on, a MultiDiscrete became one-hot.
_ONE_HOT = Version("1.2")


@frozen
class LegacyPreprocessor:
    """What is made of frames, memories and choices, by the keys of `model`.

    Attributes:
        dim: Rows and columns of what a frame becomes.
        grayscale: Whether it becomes gray.
        zero_mean: Whether its pixels are shifted by 128 and divided by it; else they are divided
            by 255. Of colours, the shift was one of bytes: dark pixels became bright ones.
        legacy_ray: The Ray that does so; None: the last one that did.
    """

    dim: int = 84
    grayscale: bool = False
    zero_mean: bool = True
    legacy_ray: str | None = None

    @classmethod
    def of(cls, model: Mapping[str, Any], legacy_ray: str | None) -> LegacyPreprocessor:
        """The one that a model's config asks for."""
        keys = ("dim", "grayscale", "zero_mean")
        return cls(**{key: model[key] for key in keys if key in model}, legacy_ray=legacy_ray)

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what becomes of arrays of a shape."""
        return (self.dim, self.dim, 1 if self.grayscale else 3) if shape == ATARI_FRAME else shape

    @property
    def encodes_choices(self) -> bool:
        """Whether a MultiDiscrete becomes one-hot behind one-hot; else it is taken as numbers."""
        return self._since(_ONE_HOT)

    def changes(self, shape: Any) -> bool:
        """Whether anything becomes of arrays of a shape."""
        return shape in (ATARI_FRAME, ATARI_RAM)

    def __call__(self, array: Array) -> Array:
        """What becomes of one array, as float32.

        Raises:
            NotYetError: A frame of other numbers than bytes.
        """
        if array.shape == ATARI_FRAME:
            array = self._frame(array)
        elif array.shape == ATARI_RAM:
            array = self._memory(array)
        return array.astype(np.float32)

    def _frame(self, frame: Array) -> Array:
        if frame.dtype != np.uint8:
            raise NotYetError(
                f"Frames of {ATARI_FRAME} are bytes; these are {frame.dtype}.",
                where="observation_space",
                fix="Give bytes, or preprocess them in a wrapper of the environment.",
            )
        small, by_area = frame[_CUT:-_CUT], self._since(_BY_AREA)
        if self.dim < _FIRST:
            small = resized(small, (_FIRST, _FIRST), by_area=by_area)
        small = resized(small, (self.dim, self.dim), by_area=by_area)
        if self.grayscale:
            small = small.mean(2, keepdims=True).astype(np.float32)
        made: Array = _shifted(small) if self.zero_mean else small * (1.0 / 255.0)
        return made

    def _memory(self, memory: Array) -> Array:
        if self._since(_FLOATS):
            memory = memory.astype(np.float32)
        return _shifted(memory)

    def _since(self, ray: Version) -> bool:
        return self.legacy_ray is None or Version(self.legacy_ray) >= ray


def _shifted(array: Array) -> Array:
    """Numbers around zero; a byte below 128 becomes one above 127 first."""
    made: Array = (array - array.dtype.type(128)) / 128
    return made
