"""What RLlib's preprocessors made of observations, before a filter and the network saw them.

Sources: `ray/rllib/models/preprocessors.py` (0.5 – 2.x). A Discrete became one-hot, a MultiDiscrete
one-hot behind one-hot (its numbers themselves before Ray 1.2), the parts of a Dict or Tuple one
vector in the order of the space, everything else its own numbers. Images were not scaled, other
than whole Atari frames; vectors of an Atari's memory were shifted. A list of varying length became
one vector, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.observations import ATARI_FRAME, ATARI_RAM, original_space
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import (
    Box,
    DictSpace,
    Discrete,
    MultiBinary,
    MultiDiscrete,
    Repeated,
    Space,
    TupleSpace,
    list_leaves,
)
from rllib_compat.runtime.preprocessors import LegacyPreprocessor, flatten_value

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Makes a batch of what the network takes of a batch of observations.
Preprocessor: TypeAlias = Callable[[Any], Array]


def preprocessor(
    space: Space, settings: ModelSettings, inputs: tuple[int, ...], *, where: str
) -> Preprocessor:
    """What turns a batch of observations into what a network takes.

    A batch is an array (of a Box, Discrete, MultiDiscrete or MultiBinary), a structure of the space
    with arrays as its leaves, or a list of observations. Observations that were flattened already
    are taken as they are.

    `inputs` is the shape of what the network takes.

    Raises:
        CheckpointError: The network takes other observations than those of the space.
    """
    raw = original_space(space)
    assert raw is not None
    size = math.prod(inputs)
    shifts = not settings.config.get("_disable_preprocessor_api", False)
    atari = LegacyPreprocessor.from_model(settings.model, settings.ray) if shifts else None
    if isinstance(raw, (TupleSpace, DictSpace, Repeated)):
        if _size(raw, atari) != size:
            raise _other_size(raw, inputs, where)
        return _Parts(raw, inputs, atari, where)
    leaf = _leaf(raw, size, atari)
    if leaf is None:
        if isinstance(raw, Box) and atari is not None and atari.shape(raw.shape) == inputs:
            return _Frames(atari, inputs, raw, where)
        raise _other_size(raw, inputs, where)
    return _Leaf(leaf, raw, inputs, where)


def _other_size(space: Space, inputs: tuple[int, ...], where: str) -> CheckpointError:
    return CheckpointError(
        f"The network needs observations of the shape {inputs}, and the space is {space}.",
        where=f"{where}.observation_space",
        fix="Pass the environment's own observation space: load_policy(…, observation_space=…).",
    )


def _leaf(
    space: Space, size: int, atari: LegacyPreprocessor | None
) -> Callable[[Array], Array] | None:
    """What makes vectors `[B, n]` of a batch of one space's values; None: not of that size."""
    if isinstance(space, Discrete) and size == space.n:
        return _one_hot((space.n,), space.start)
    if isinstance(space, MultiDiscrete) and size == sum(space.nvec):
        return _one_hot(space.nvec, 0)
    if isinstance(space, MultiDiscrete) and size == len(space.nvec):
        return _numbers
    if isinstance(space, Box) and space.shape == ATARI_RAM and atari is not None:
        return lambda batch: np.stack([atari(row) for row in _numbers(batch.astype(space.dtype))])
    if isinstance(space, (Discrete, MultiDiscrete)) or space.flat_size() != size:
        return None
    if isinstance(space, (Box, MultiBinary)):
        return _numbers
    return lambda batch: np.stack([flatten_value(space, one) for one in batch])


def _size(space: Space, atari: LegacyPreprocessor | None) -> int:
    """How many numbers become of an observation with parts."""
    if isinstance(space, (DictSpace, TupleSpace)):
        return sum(_size(part, atari) for part in space.parts())
    if isinstance(space, MultiDiscrete) and atari is not None and not atari.encodes_choices:
        return len(space.nvec)
    return space.flat_size()


def _numbers(batch: Array) -> Array:
    return batch.reshape(len(batch), -1)


def _one_hot(sizes: Sequence[int], start: int) -> Callable[[Array], Array]:
    offsets = np.cumsum([0, *sizes[:-1]])
    total = sum(sizes)

    def encode(batch: Array) -> Array:
        numbers = batch.reshape(len(batch), len(sizes))
        chosen = numbers.astype(np.int64)
        if (chosen != numbers).any():
            raise ValueError("a choice is an integer")
        chosen = chosen - start
        if (chosen < 0).any() or (chosen >= np.asarray(sizes)).any():
            raise ValueError("a choice that the space does not have")
        made = np.zeros((len(batch), total))
        np.put_along_axis(made, chosen + offsets, 1.0, axis=1)
        return made

    return encode


@frozen
class _Leaf:
    """Observations of one part."""

    encode: Callable[[Array], Array]
    space: Space
    inputs: tuple[int, ...]
    where: str

    def __call__(self, batch: object) -> Array:
        array = _array(batch, self.space, self.where)
        shape = array.shape[1:]
        if self.encode is _numbers:
            if shape == self.inputs:
                return array
            if len(shape) > 1 and shape != getattr(self.space, "shape", shape):
                raise _not_of(self.space, shape, "another shape", self.where)
        try:
            return self.encode(array).reshape(-1, *self.inputs)
        except (ValueError, IndexError, TypeError) as error:
            raise _not_of(self.space, array.shape[1:], str(error), self.where) from error


def _array(batch: object, space: Space, where: str) -> Array:
    """A batch as an array of numbers."""
    try:
        array = np.asarray(batch)
    except ValueError as error:
        raise _not_of(space, (), str(error), where) from error
    if array.dtype.kind in "US":
        raise _not_of(space, array.shape[1:], "text", where)
    return array


def _not_of(space: Space, shape: tuple[int, ...], why: str, where: str) -> CheckpointError:
    return CheckpointError(
        f"Observations of the shape {shape} are not in the space {space} ({why}).",
        where=f"{where}.observation_space",
        fix="Pass a batch of the environment's observations; its first axis is the batch.",
    )


@frozen
class _Frames:
    """Raw Atari frames, which RLlib itself cropped and scaled; what came out is taken, too."""

    atari: LegacyPreprocessor
    inputs: tuple[int, ...]
    space: Space
    where: str

    def __call__(self, batch: object) -> Array:
        array = _array(batch, self.space, self.where)
        if array.shape[1:] == self.inputs:
            return array
        if array.shape[1:] != ATARI_FRAME:
            raise _not_of(self.space, array.shape[1:], "another size", self.where)
        return np.stack([self.atari(frame) for frame in array])


@frozen
class _Parts:
    """Observations of a Dict or Tuple space, whose parts lie one behind the other."""

    space: Space
    inputs: tuple[int, ...]
    atari: LegacyPreprocessor | None
    where: str

    def __call__(self, batch: object) -> Array:
        if isinstance(batch, np.ndarray) and batch.dtype != object:
            if batch.shape[1:] == self.inputs:
                return batch
            raise _not_of(self.space, batch.shape[1:], "not flattened", self.where)
        try:
            parts = list_leaves(self._encode, self.space, _stacked(self.space, batch))
            return np.concatenate(parts, axis=1).reshape(-1, *self.inputs)
        except (ValueError, IndexError, TypeError, KeyError) as error:
            raise _not_of(self.space, (), f"{type(error).__name__}: {error}", self.where) from error

    def _encode(self, space: Space, batch: Any) -> Array:
        if isinstance(space, Repeated):
            return np.stack([flatten_value(space, one) for one in batch])
        encode = _leaf(space, _size(space, self.atari), self.atari)
        assert encode is not None, "a space has its own size"
        return encode(_array(batch, space, self.where))


def _stacked(space: Space, batch: object) -> Any:
    """A batch as one structure with arrays as leaves; of a list, each leaf is stacked."""
    if not isinstance(batch, list) or isinstance(space, Repeated):
        return batch
    if isinstance(space, DictSpace):
        if any(isinstance(one, Mapping) and one.keys() - space.spaces.keys() for one in batch):
            raise KeyError(f"the keys are {list(space.spaces)}")
        return {
            key: _stacked(part, [_of(one, key) for one in batch])
            for key, part in space.spaces.items()
        }
    if isinstance(space, TupleSpace):
        columns = zip(*batch, strict=True)
        return tuple(
            _stacked(part, list(column)) for part, column in zip(space.spaces, columns, strict=True)
        )
    return np.stack([np.asarray(one) for one in batch])


def _of(observation: object, key: str) -> Any:
    if not isinstance(observation, Mapping):
        raise TypeError(f"{type(observation).__name__} where a dict is expected")
    return observation[key]
