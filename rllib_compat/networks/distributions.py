"""Action distributions of old policies, in numpy: the best action, samples, and log likelihoods.

Sources: `ray/rllib/models/{action_dist,tf/tf_action_dist,torch/torch_action_dist}.py` (0.5 – 2.x).
All take a batch of a network's outputs `[B, n]` and give a batch of actions in the structure of
their space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.neutral.errors import NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, DictSpace, Discrete, MultiDiscrete, Space, TupleSpace

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: A batch of actions: an array, or the structure of a Tuple or Dict space with arrays as leaves.
Actions: TypeAlias = "Array | tuple[Actions, ...] | dict[str, Actions]"

#: `MAX_LOG_NN_OUTPUT` and `SMALL_NUMBER` of every Ray.
_MOST_LOG_STD = 2.0
_TINY = 1e-6
_LOG_2_PI = float(np.log(2 * np.pi))


class Distribution(Protocol):
    """A distribution of actions."""

    @property
    def size(self) -> int:
        """How many numbers it takes for one item."""

    def best(self, inputs: Array) -> Any:
        """The action of a policy that does not explore, for each item."""

    def sample(self, inputs: Array, rng: np.random.Generator) -> Any:
        """An action drawn for each item."""

    def log_likelihood(self, inputs: Array, actions: Actions) -> Array:
        """The log of the probability (or density) of each action, `[B]`."""


@frozen
class Categorical:
    """One of `size` choices, by their logits."""

    size: int

    def best(self, inputs: Array) -> Array:
        return np.asarray(inputs.argmax(-1))

    def sample(self, inputs: Array, rng: np.random.Generator) -> Array:
        # Gumbel's trick.
        return np.asarray((inputs + rng.gumbel(size=inputs.shape)).argmax(-1))

    def log_likelihood(self, inputs: Array, actions: Actions) -> Array:
        shifted = inputs - inputs.max(-1, keepdims=True)
        chosen = np.take_along_axis(shifted, np.asarray(actions)[..., None], -1)[..., 0]
        return np.asarray(chosen - np.log(np.exp(shifted).sum(-1)))


@frozen
class Gaussian:
    """A normal distribution for each number of an action: means, then log standard deviations."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return 2 * int(np.prod(self.shape))

    def best(self, inputs: Array) -> Array:
        return self._action(self._parameters(inputs)[0])

    def sample(self, inputs: Array, rng: np.random.Generator) -> Array:
        mean, log_std = self._parameters(inputs)
        return self._action(mean + np.exp(log_std) * rng.normal(size=mean.shape))

    def log_likelihood(self, inputs: Array, actions: Actions) -> Array:
        mean, log_std = self._parameters(inputs)
        actions = np.asarray(actions, np.float64).reshape(mean.shape)
        return np.asarray(_normal(actions, mean, log_std).sum(-1))

    def _parameters(self, inputs: Array) -> tuple[Array, Array]:
        mean, log_std = np.split(inputs, 2, axis=-1)
        return mean, log_std

    def _action(self, flat: Array) -> Array:
        return flat.reshape(-1, *self.shape).astype(np.float32)


def _normal(x: Array, mean: Array, log_std: Array) -> Array:
    """The log density of each number."""
    terms: Array = -0.5 * (((x - mean) * np.exp(-log_std)) ** 2 + 2 * log_std + _LOG_2_PI)
    return terms


@frozen
class Squashed(Gaussian):
    """A normal distribution squashed into a range by tanh, as SAC's policies have it.

    Attributes:
        low: The least action, a number or one for each of the action's.
        high: The greatest action, likewise.
        least_log_std: Log standard deviations below it are raised to it.
        squashes: How often a sample went through tanh (twice on Ray 0.7 and 0.8.0).
    """

    low: Any
    high: Any
    least_log_std: float
    squashes: int = 1

    def log_likelihood(self, inputs: Array, actions: Actions) -> Array:
        # As RLlib approximated it next to the bounds.
        mean, log_std = self._parameters(inputs)
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        unit = (np.asarray(actions, np.float64).reshape(mean.shape) - low) / (high - low) * 2 - 1
        raw = unit
        for _ in range(self.squashes):
            raw = np.arctanh(np.clip(raw, -1 + _TINY, 1 - _TINY))
        inner = np.clip(_normal(raw, mean, log_std), -100, 100).sum(-1)
        return np.asarray(inner - np.log(1 - np.tanh(raw) ** 2 + _TINY).sum(-1))

    def _parameters(self, inputs: Array) -> tuple[Array, Array]:
        mean, log_std = np.split(inputs, 2, axis=-1)
        return mean, np.clip(log_std, self.least_log_std, _MOST_LOG_STD)

    def _action(self, flat: Array) -> Array:
        for _ in range(self.squashes):
            flat = np.tanh(flat)
        low, high = np.asarray(self.low, np.float64), np.asarray(self.high, np.float64)
        stretched = (flat + 1) / 2 * (high - low) + low
        return np.clip(stretched, low, high).reshape(-1, *self.shape).astype(np.float32)


@frozen
class Deterministic:
    """The outputs themselves are the action: noise is a matter of exploration."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def best(self, inputs: Array) -> Array:
        return inputs.reshape(-1, *self.shape).astype(np.float32)

    def sample(self, inputs: Array, rng: np.random.Generator) -> Array:  # noqa: ARG002
        return self.best(inputs)

    def log_likelihood(self, inputs: Array, actions: Actions) -> Array:  # noqa: ARG002
        return np.zeros(len(inputs))  # nothing else can be chosen


@frozen
class Joint:
    """Distributions that are independent of each other: of a Tuple, Dict or MultiDiscrete.

    Attributes:
        parts: Them, in the order in which the outputs lie.
        join: Makes one batch of actions of those of the parts.
        split: The reverse.
    """

    parts: tuple[Distribution, ...]
    join: Callable[[list[Any]], Any]
    split: Callable[[Any], Sequence[Any]]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def best(self, inputs: Array) -> Any:
        return self.join([p.best(own) for p, own in self._each(inputs)])

    def sample(self, inputs: Array, rng: np.random.Generator) -> Any:
        return self.join([p.sample(own, rng) for p, own in self._each(inputs)])

    def log_likelihood(self, inputs: Array, actions: Actions) -> Array:
        each = zip(self._each(inputs), self.split(actions), strict=True)
        terms = [part.log_likelihood(own, action) for (part, own), action in each]
        return np.asarray(np.sum(terms, axis=0))

    def _each(self, inputs: Array) -> list[tuple[Distribution, Array]]:
        ends = np.cumsum([0, *(part.size for part in self.parts)])
        return [
            (part, inputs[:, start:end])
            for part, (start, end) in zip(self.parts, pairwise(ends), strict=True)
        ]


def default_distribution(space: Space, *, where: str) -> Distribution:
    """RLlib's default distribution for an action space."""
    if isinstance(space, Discrete):
        return Categorical(space.n)
    if isinstance(space, Box):
        return Gaussian(space.shape)
    if isinstance(space, MultiDiscrete):
        choices = tuple(Categorical(n) for n in space.nvec)
        return Joint(choices, lambda made: np.stack(made, -1), lambda a: np.moveaxis(a, -1, 0))
    if isinstance(space, TupleSpace):
        return Joint(
            tuple(default_distribution(s, where=where) for s in space.spaces), tuple, tuple
        )
    if isinstance(space, DictSpace):
        # `tree.flatten` takes a dict's parts by their sorted keys.
        keys = sorted(space.spaces)
        return Joint(
            tuple(default_distribution(space.spaces[key], where=where) for key in keys),
            lambda made: dict(zip(keys, made, strict=True)),
            lambda actions: [actions[key] for key in keys],
        )
    raise refusals.not_yet(f"actions of the space {space}", where)


def distribution_from_settings(
    settings: Mapping[str, Any], space: Space, *, where: str
) -> Distribution:
    """The distribution that a network's reader found: SAC's, which its space does not determine."""
    if settings["kind"] == "simplex":
        raise NotYetError(
            "Not supported yet: actions from a simplex, which are random also without exploration.",
            where=where,
            fix="Use the converted module: RLModule.from_checkpoint(…).",
        )
    if settings["kind"] != "squashed":
        return default_distribution(space, where=where)
    assert isinstance(space, Box), "only numbers are squashed"
    return Squashed(space.shape, **{k: v for k, v in settings.items() if k != "kind"})
