"""The arithmetic of evolution strategies and random search: noise, ranks, weighted sums.

What `agents/es/utils.py` and `SharedNoiseTable` of Ray 0.5 – 2.10 computed, in float32 as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

#: The seed of every Ray's noise table: a table of one size is the same in every run.
_SEED = 123
#: How many numbers are drawn at once, so that float64 never takes the room of a whole table.
_CHUNK = 10_000_000
#: How many perturbations are added up at once.
_SUMMED = 500


def noise_table(size: int) -> Array:
    """Makes the table that perturbations are cut from: normal, in float32, always the same."""
    random = np.random.RandomState(_SEED)
    table = np.empty(size, np.float32)
    for begin in range(0, size, _CHUNK):
        part = table[begin : begin + _CHUNK]
        part[:] = random.randn(len(part))
    return table


def centered_ranks(returns: Array) -> Array:
    """Ranks in the place of returns, evenly spaced: -0.5 for the least, 0.5 for the greatest."""
    ranks = np.empty(returns.size, np.int64)
    ranks[returns.ravel().argsort()] = np.arange(returns.size)
    centered = ranks.reshape(returns.shape).astype(np.float32)
    centered /= returns.size - 1
    centered -= 0.5
    return centered


def weighted_sum(weights: Array, vectors: Callable[[int], Array]) -> Array:
    """Adds vectors up, each times its weight, in float32."""
    parts = (
        weights[begin : begin + _SUMMED].astype(np.float32)
        @ np.stack([vectors(n) for n in range(begin, min(begin + _SUMMED, len(weights)))])
        for begin in range(0, len(weights), _SUMMED)
    )
    return np.asarray(np.sum(list(parts), axis=0, dtype=np.float32))


def rank_gradient(returns: Array, perturbation: Callable[[int], Array]) -> Array:
    """Estimates where the return grows, from ranks of mirrored pairs `[n, 2]`: what ES follows."""
    ranks = centered_ranks(returns)
    total = weighted_sum(ranks[:, 0] - ranks[:, 1], perturbation)
    gradient: Array = total / np.float32(returns.size)
    return gradient


def best_gradient(
    returns: Array, perturbation: Callable[[int], Array], *, tried: int, used: int
) -> Array:
    """Estimates where the return grows, from the best mirrored pairs `[n, 2]`: what ARS follows.

    Of the rollouts `tried`, those pairs are used whose better half is among the best `used`.

    Returns:
        As many numbers as a perturbation has, in units of the used returns' deviation.
    """
    better = returns.max(axis=1)
    least = np.percentile(better, 100 * (1 - min(used, tried) / tried))
    (best,) = np.nonzero(better >= least)
    chosen = returns[best]
    total = weighted_sum(chosen[:, 0] - chosen[:, 1], lambda row: perturbation(int(best[row])))
    gradient: Array = total / np.float32(len(best))
    deviation = chosen.std()
    if not np.isclose(deviation, 0.0):
        gradient /= deviation
    return gradient
