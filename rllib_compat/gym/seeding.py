"""`gym.utils.seeding`: random numbers with the methods of numpy's older generator."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["RandomNumberGenerator", "create_seed", "hash_seed", "np_random"]


class RandomNumberGenerator(np.random.Generator):
    """numpy's generator, which also has the names that gym's had: `randint`, `rand`, …."""

    def rand(self, *size: int) -> Any:
        """Uniform numbers from [0, 1)."""
        return self.random(size or None)

    random_sample = np.random.Generator.random

    def randn(self, *size: int) -> Any:
        """Numbers of the standard normal distribution."""
        return self.standard_normal(size or None)

    def randint(self, low: int, high: int | None = None, size: Any = None, dtype: Any = int) -> Any:
        """Whole numbers from [low, high)."""
        return self.integers(low, high, size=size, dtype=dtype)

    random_integers = randint

    def __reduce__(self) -> Any:
        return _remake, (self.bit_generator,)


def _remake(bits: Any) -> RandomNumberGenerator:
    return RandomNumberGenerator(bits)


def np_random(seed: int | None = None) -> tuple[RandomNumberGenerator, int]:
    """A generator, and the seed that it got: this one, or (None) any."""
    sequence = np.random.SeedSequence(seed)
    used = sequence.entropy
    assert isinstance(used, int)
    return RandomNumberGenerator(np.random.PCG64(sequence)), used


def hash_seed(seed: int | None = None, max_bytes: int = 8) -> int:
    """Another seed, made of this one."""
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    return int(number % 2 ** (8 * max_bytes))


def create_seed(a: int | str | None = None, max_bytes: int = 8) -> int:
    """A seed of a number, of text, or of nothing in particular."""
    if isinstance(a, str):
        a = int.from_bytes(a.encode(), "big")
    number = int(np.random.SeedSequence().generate_state(1)[0]) if a is None else a
    return int(number % 2 ** (8 * max_bytes))
