"""`gym.spaces`: gymnasium's, with gym's random numbers in own spaces and gym's order of parts."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

import gymnasium.spaces

from rllib_compat.gym.seeding import np_random

__all__ = ["Dict", "Space"]


class _Kind(ABCMeta):
    """The type of classes below, of which all of gymnasium's that they stand for are instances."""

    def __instancecheck__(cls, value: object) -> bool:
        if cls.__module__ == __name__:
            return isinstance(value, cls.__mro__[1])
        return super().__instancecheck__(value)

    def __subclasscheck__(cls, other: type) -> bool:
        if cls.__module__ == __name__:
            return cls.__mro__[1] in other.__mro__
        return super().__subclasscheck__(other)


class Space(gymnasium.spaces.Space[Any], metaclass=_Kind):
    """`gym.Space`, to derive from: `np_random` has `randint`, `rand` and the like."""

    @property
    def np_random(self) -> Any:
        """The random numbers of this space."""
        if self._np_random is None:
            self.seed()
        return self._np_random

    def seed(self, seed: Any = None) -> Any:
        made, used = np_random(seed)
        self._np_random: Any = made
        return [used]


class Dict(gymnasium.spaces.Dict, metaclass=_Kind):
    """`gym.spaces.Dict`, which sorted its parts unless they came in an order."""

    def __new__(cls, spaces: Any = None, seed: Any = None, **parts: Any) -> Any:
        """One of gymnasium's, unless the class derives from this one."""
        if cls is not Dict:
            return super().__new__(cls)
        return gymnasium.spaces.Dict(dict(sorted(parts.items())) if parts else spaces, seed)


def __getattr__(name: str) -> Any:
    return getattr(gymnasium.spaces, name)
