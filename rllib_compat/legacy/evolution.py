"""`es`, `es.utils`, `es.optimizers` and `ars`: noise, ranks and steps, in numpy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import ray

from rllib_compat.algorithms import noise

__all__ = [
    "SGD",
    "Adam",
    "Optimizer",
    "Result",
    "SharedNoiseTable",
    "batched_weighted_sum",
    "compute_centered_ranks",
    "compute_ranks",
    "create_shared_noise",
    "itergroups",
]

Array = np.ndarray[Any, np.dtype[Any]]

create_shared_noise = ray.remote(noise.noise_table)
compute_centered_ranks = noise.centered_ranks


class Result(NamedTuple):
    """What a worker tells of perturbations that it tried."""

    noise_indices: Any
    noisy_returns: Any
    sign_noisy_returns: Any
    noisy_lengths: Any
    eval_returns: Any
    eval_lengths: Any


class SharedNoiseTable:
    """Perturbations are slices of one table.

    Args:
        noise: The table, in float32.
    """

    def __init__(self, noise: Array) -> None:
        self.noise = noise

    def get(self, i: int, dim: int) -> Array:
        """The `dim` numbers that begin at `i`."""
        return self.noise[i : i + dim]

    def sample_index(self, dim: int) -> int:
        """Where some `dim` numbers begin, drawn by numpy's global generator."""
        last = self.noise.size - dim
        return int(np.random.randint(last + 1))


def compute_ranks(x: Array) -> Array:
    """The rank of each number, from 0 for the least."""
    return x.argsort().argsort()


def itergroups(items: Iterable[Any], group_size: int) -> Iterator[tuple[Any, ...]]:
    """Tuples of as many items, in order; the last one has what is left."""
    left = iter(items)
    while group := tuple(islice(left, group_size)):
        yield group


def batched_weighted_sum(
    weights: Iterable[float], vecs: Iterable[Array], batch_size: int
) -> tuple[Any, int]:
    """Adds vectors up, each times its weight, some at a time.

    Returns:
        The sum, and how many there were.
    """
    total: Any = np.float32(0)
    count = 0
    for group in itergroups(zip(weights, vecs, strict=True), batch_size):
        factors, vectors = (np.asarray(part, np.float32) for part in zip(*group, strict=True))
        total, count = total + factors @ vectors, count + len(group)
    return total, count


class Optimizer:
    """Moves a policy's flat weights.

    Args:
        policy: Has `num_params` and `get_flat_weights()`.
    """

    def __init__(self, policy: Any) -> None:
        self.t = 0
        self.policy = policy
        self.dim = int(policy.num_params)

    def update(self, globalg: Array) -> tuple[Array, float]:
        """Makes a step.

        Args:
            globalg: The gradient.

        Returns:
            The weights after it, and the step's length by theirs.
        """
        self.t += 1
        weights, step = self.policy.get_flat_weights(), self._compute_step(globalg)
        lengths = [float(np.linalg.norm(vector)) for vector in (step, weights)]
        return weights + step, lengths[0] / lengths[1]

    def _compute_step(self, globalg: Array) -> Array:
        raise NotImplementedError


class SGD(Optimizer):
    """Follows a moving average of gradients.

    Args:
        policy: As of `Optimizer`.
        stepsize: The learning rate.
        momentum: The weight of the average so far.
    """

    def __init__(self, policy: Any, stepsize: float, momentum: float = 0.0) -> None:
        super().__init__(policy)
        self.stepsize, self.momentum = stepsize, momentum
        self.v: Array = np.zeros(self.dim, np.float32)

    def _compute_step(self, globalg: Array) -> Array:
        self.v = self.momentum * self.v + (1 - self.momentum) * globalg
        return -self.stepsize * self.v


class Adam(Optimizer):
    """Adam; its epsilon stands before the second moment's bias is corrected.

    Args:
        policy: As of `Optimizer`.
        stepsize: The learning rate.
        beta1: The weight of the first moment so far.
        beta2: The weight of the second moment so far.
        epsilon: What is added to the root of the second moment.
    """

    def __init__(
        self,
        policy: Any,
        stepsize: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(policy)
        self.stepsize, self.epsilon, self.betas = stepsize, epsilon, np.array([beta1, beta2])
        self.moments: Array = np.zeros((2, self.dim), np.float32)

    def _compute_step(self, globalg: Array) -> Array:
        seen = np.stack([globalg, globalg**2])
        self.moments = (seen + self.betas[:, None] * (self.moments - seen)).astype(np.float32)
        first, second = 1 - self.betas**self.t
        rate = self.stepsize * np.sqrt(second) / first
        step: Array = -rate * self.moments[0] / (np.sqrt(self.moments[1]) + self.epsilon)
        return step
