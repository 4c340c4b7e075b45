"""`gym.utils.seeding` until 0.21: numpy's older generator, with gym's seeds of it."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from rllib_compat.gym.error import Error

__all__ = ["RandomNumberGenerator", "create_seed", "hash_seed", "np_random"]


class RandomNumberGenerator(np.random.RandomState):
    """numpy's older generator, and what gym's environments call since 0.22 and gymnasium's do."""

    def integers(
        self,
        low: Any,
        high: Any = None,
        size: Any = None,
        dtype: Any = int,
        endpoint: bool = False,
    ) -> Any:
        """Whole numbers from [low, high), or below `low` if there is no `high`."""
        low, high = (0, low) if high is None else (low, high)
        return self.randint(low, high + endpoint, size=size, dtype=dtype)

    def __reduce__(self) -> Any:
        return _remake, (self.get_state(legacy=False),)


def _remake(state: Any) -> RandomNumberGenerator:
    made = RandomNumberGenerator()
    made.set_state(state)
    return made


def np_random(seed: int | None = None) -> tuple[RandomNumberGenerator, int]:
    """A generator with the numbers that gym's had, and the seed that it got: this one, or any.

    Raises:
        Error: The seed is no whole number, or negative.
    """
    if seed is not None and not (_is_whole(seed) and seed >= 0):
        raise Error(f"A seed is a whole number from 0 on, or None, and not {seed!r}.")
    used = create_seed(None if seed is None else int(seed))
    hashed = hash_seed(used)
    words = [hashed & 0xFFFFFFFF, hashed >> 32]
    return RandomNumberGenerator(words if words[1] else words[:1]), used


def _is_whole(seed: object) -> bool:
    return isinstance(seed, (int, np.integer))


def hash_seed(seed: int | None = None, max_bytes: int = 8) -> int:
    """Another seed, made of this one."""
    text = str(create_seed(max_bytes=max_bytes) if seed is None else seed)
    return int.from_bytes(hashlib.sha512(text.encode()).digest()[:max_bytes], "little")


def create_seed(a: int | str | None = None, max_bytes: int = 8) -> int:
    """A seed of a number, of text, or of nothing in particular."""
    if a is None:
        return int.from_bytes(os.urandom(max_bytes), "little")
    if isinstance(a, str):
        text = a.encode()
        return int.from_bytes((text + hashlib.sha512(text).digest())[:max_bytes], "little")
    return a % (1 << (8 * max_bytes))
