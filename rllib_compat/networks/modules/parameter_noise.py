"""Noise on all weights of a network for an episode, whose size follows what it does to actions.

Plappert et al., "Parameter Space Noise for Exploration" (2018); RLlib's `ParameterNoise`
(`rllib/utils/exploration/parameter_noise.py` of Ray 0.8.2 – 2.60).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

#: By how much the noise grows or shrinks after each episode.
_FACTOR = 1.01
#: RLlib's `SMALL_NUMBER`.
_SMALL = 1e-6


class WeightNoise:
    """Noise on weights.

    Args:
        weights: The weights; those of layer norms, which RLlib spared, are not among them.
        deviation: The noise's standard deviation.
    """

    def __init__(self, weights: Iterable[nn.Parameter], deviation: float) -> None:
        self._weights = list(weights)
        self._drawn = [deviation * torch.randn_like(weight) for weight in self._weights]

    @contextmanager
    def added(self) -> Iterator[None]:
        """Adds it to the weights, which are what they were again afterwards."""
        clean = [weight.data for weight in self._weights]
        try:
            for weight, drawn in zip(self._weights, self._drawn, strict=True):
                weight.data = weight.data + drawn
            yield
        finally:
            for weight, data in zip(self._weights, clean, strict=True):
                weight.data = data


class Perturbed:
    """A base of modules that explore with noise on their weights.

    Attributes:
        weight_noise: The noise; None: there is none yet.
    """

    weight_noise: WeightNoise | None = None

    def perturbed(self) -> list[nn.Parameter]:
        """The weights that actions are computed with, without those of norms."""
        raise NotImplementedError

    def actions_of(self, batch: Mapping[str, Any]) -> Tensor:
        """What noise is measured by: what actions are chosen by, without other noise `[B, n]`."""
        raise NotImplementedError

    def moved_and_wanted(self, clean: Tensor, noisy: Tensor) -> tuple[float, float]:
        """How far noise moved actions, and how far it should.

        Args:
            clean: What `actions_of` gives without noise.
            noisy: The same with it.
        """
        raise NotImplementedError

    def renew_weight_noise(self, deviation: float) -> None:
        """Draws other noise.

        Args:
            deviation: Its standard deviation.
        """
        self.weight_noise = WeightNoise(self.perturbed(), deviation)

    def with_weight_noise(self) -> AbstractContextManager[None]:
        """Adds the noise for as long as the block runs."""
        return nullcontext() if self.weight_noise is None else self.weight_noise.added()

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def adapted(self, deviation: float, batch: Mapping[str, Any]) -> float:
        """The deviation for the next episodes: the noise should do as much as it is wanted to.

        Args:
            deviation: That of the last episode.
            batch: What was seen in it.
        """
        clean = self.actions_of(batch)
        with self.with_weight_noise():
            noisy = self.actions_of(batch)
        moved, wanted = self.moved_and_wanted(clean, noisy)
        return deviation * _FACTOR if moved <= wanted else deviation / _FACTOR


def divergence(clean: Tensor, noisy: Tensor) -> float:
    """How far noise moved the actions that Q-values stand for: a Kullback-Leibler divergence.

    Args:
        clean: The Q-values without noise, `[steps, actions]`.
        noisy: Those with noise.
    """
    before, after = torch.softmax(clean.double(), -1), torch.softmax(noisy.double(), -1)
    terms = (before * torch.log(before / (after + _SMALL))).sum(-1)
    return float(torch.nanmean(terms))


def divergence_of_epsilon(epsilon: float, actions: int) -> float:
    """How far epsilon-greedy actions move those that Q-values stand for.

    Args:
        epsilon: How probably an action is random.
        actions: How many actions there are.
    """
    return -math.log(1 - epsilon + epsilon / actions)


def root_mean_square(clean: Tensor, noisy: Tensor) -> float:
    """How far noise moved actions that are numbers, `[steps, n]`."""
    return float((clean - noisy).square().mean().sqrt())
