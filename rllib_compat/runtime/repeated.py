"""Lists of varying length (RLlib's `Repeated` spaces) as the vectors that its preprocessor made.

A vector begins with the list's length. Behind it stand the elements, each of them flattened, and
zeros for those that are not there. Source: `RepeatedValuesPreprocessor` (Ray 0.8 – 2.x), recorded
of Ray 1.13.0 (`tests/legacy/atari/record_lists.py`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.spaces import (
    DictSpace,
    Discrete,
    MultiDiscrete,
    Repeated,
    Space,
    TupleSpace,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def has_lists(space: Space | None) -> bool:
    """Whether a space has lists of varying length in it."""
    if isinstance(space, DictSpace):
        return any(map(has_lists, space.spaces.values()))
    if isinstance(space, TupleSpace):
        return any(map(has_lists, space.spaces))
    return isinstance(space, Repeated)


def unrolled(space: Space, value: Any) -> Any:
    """The same value with vectors in the place of lists.

    Raises:
        LegacyEnvError: A list is longer than its space allows.
    """
    if isinstance(space, DictSpace):
        return {key: unrolled(part, value[key]) for key, part in space.spaces.items()}
    if isinstance(space, TupleSpace):
        return tuple(unrolled(part, one) for part, one in zip(space.spaces, value, strict=True))
    return vector(space, value) if isinstance(space, Repeated) else value


def vector(space: Space, value: Any) -> Array:
    """What RLlib's preprocessors made of a value: one vector, float32.

    Raises:
        LegacyEnvError: A list is longer than its space allows.
    """
    if isinstance(space, Repeated):
        if len(value) > space.max_len:
            raise LegacyEnvError(
                f"An observation has {len(value)} elements where its space has {space.max_len}.",
                where="$.env → observation_space",
                fix="Make the Repeated space's max_len as large as the longest list.",
            )
        made = np.zeros(space.flat_size(), np.float32)
        found = [vector(space.child_space, one) for one in value]
        numbers = np.concatenate([[len(found)], *found])
        made[: len(numbers)] = numbers
        return made
    if isinstance(space, DictSpace):
        return np.concatenate([vector(part, value[key]) for key, part in space.spaces.items()])
    if isinstance(space, TupleSpace):
        parts = zip(space.spaces, value, strict=True)
        return np.concatenate([vector(part, one) for part, one in parts])
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
