"""What networks explore with: noise on actions, noisy layers, noise on all weights.

* Noise on the actions of deterministic policies (`rllib/utils/exploration` of Ray 0.8 – 2.x).
* Noisy nets: dense layers whose weights get factorised noise, of a size that is learned (Fortunato
  et al., "Noisy Networks for Exploration", 2018; RLlib's `NoisyLayer` of Ray 0.5 – 2.10). Without
  noise, such a layer computes what it does on average before its activation.
* Noise on all weights for an episode, whose size follows what it does to actions (Plappert et al.,
  "Parameter Space Noise for Exploration", 2018; RLlib's `ParameterNoise`,
  `rllib/utils/exploration/parameter_noise.py` of Ray 0.8.2 – 2.60).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rllib_compat.neutral.errors import ConfigError

#: What each kind of noise takes, and the defaults of its class in Ray 1.13 and 2.10.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "GaussianNoise": {
        "random_timesteps": 1000,
        "stddev": 0.1,
        "initial_scale": 1.0,
        "final_scale": 0.02,
        "scale_timesteps": 10_000,
    },
    "OrnsteinUhlenbeckNoise": {
        "random_timesteps": 1000,
        "ou_theta": 0.15,
        "ou_sigma": 0.2,
        "ou_base_scale": 0.1,
        "initial_scale": 1.0,
        "final_scale": 0.02,
        "scale_timesteps": 10_000,
    },
    "StochasticSampling": {},  # of a distribution without any spread: nothing is added
}

#: What `ParameterNoise` took for the deviation of noise without an `ou_sigma`.
_DEVIATION = 0.2


class Noise:
    """Adds noise to actions; for the first steps, actions are drawn at random.

    The noise is scaled down with the steps that all env runners have sampled. The state of an
    Ornstein-Uhlenbeck process belongs to an env runner, moves on once for each call, and is kept in
    no checkpoint: it forgets what was within some ten steps.

    Args:
        config: The `type`, a key of `DEFAULTS`, and what it takes.
        action_space: The Box of the actions.
    """

    def __init__(self, config: Mapping[str, Any], action_space: Any) -> None:
        self.kind, self.options = check(config)
        self._space = action_space
        # Copies: a space that came through the object store can't be written, of which torch warns.
        self._low = torch.tensor(action_space.low, dtype=torch.float32)
        self._high = torch.tensor(action_space.high, dtype=torch.float32)
        size = self._high - self._low
        self._range = torch.where(torch.isinf(size), torch.ones_like(size), size)
        self._state = torch.zeros_like(size)
        #: What noise is multiplied by whatever was sampled; None: a scale that falls.
        self.fixed_scale: float | None = None
        self._scale = float(self.options.get("initial_scale", 0.0))

    @property
    def deviation(self) -> float:
        """How far it goes now: what noise on weights is measured against."""
        return float(self.options.get("ou_sigma", _DEVIATION)) * self._scale

    def __call__(self, actions: Tensor, step: int) -> Tensor:
        """Actions `[B, …]` to explore with, after so many sampled steps."""
        if self.kind == "StochasticSampling":
            return actions
        self._scale = scale(self.options, step) if self.fixed_scale is None else self.fixed_scale
        if step < self.options["random_timesteps"]:
            drawn = np.stack([self._random_space.sample() for _ in range(len(actions))])
            return torch.as_tensor(drawn, dtype=actions.dtype, device=actions.device)
        noise = (self._scale * self._draw(actions)).to(actions.device)
        low, high = self._low.to(actions.device), self._high.to(actions.device)
        return torch.minimum(torch.maximum(actions + noise, low), high)

    @cached_property
    def _random_space(self) -> Any:
        """The space that random actions are drawn from, by the seed that this process has."""
        space = deepcopy(self._space)
        space.seed(int(np.random.randint(2**31)))
        return space

    def _draw(self, actions: Tensor) -> Tensor:
        if self.kind == "GaussianNoise":
            return torch.randn(actions.shape) * float(self.options["stddev"])
        drawn = self.options["ou_sigma"] * torch.randn(self._state.shape)
        self._state = self._state - self.options["ou_theta"] * self._state + drawn
        noise: Tensor = self.options["ou_base_scale"] * self._state * self._range
        return noise


def scale(options: Mapping[str, Any], step: int) -> float:
    """What noise is multiplied by after so many steps; it begins to fall after the random ones."""
    begin, length = options["random_timesteps"], options["scale_timesteps"]
    ends = (options["initial_scale"], options["final_scale"])
    return float(np.interp(step, [begin, begin + max(1, length)], ends))


def check(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Makes sure that there is such noise; returns its kind, and everything that it takes.

    Raises:
        ConfigError: There is none.
    """
    options = dict(config)
    kind = options.pop("type", None)
    name = (kind if isinstance(kind, str) else getattr(kind, "__name__", "")).rpartition(".")[2]
    if name not in DEFAULTS:
        raise ConfigError(
            f"The exploration noise must be one of {', '.join(DEFAULTS)}, and is {kind!r}.",
            where="exploration_noise.type",
            fix="For your own noise, override `_forward_exploration` of the RLModule.",
        )
    known = DEFAULTS[name]
    if odd := sorted(options.keys() - known.keys()):
        raise ConfigError(
            f"{name} does not take {', '.join(odd)}.",
            where="exploration_noise",
            fix=f"It takes {', '.join(known) or 'nothing'}.",
        )
    return name, {**known, **{k: v for k, v in options.items() if v is not None}}


class DrawsNoise(nn.Module):
    """A base of layers that compute with noise while that is switched on.

    Attributes:
        is_noisy: Whether it has any.
        noise: Whether each forward pass draws new noise, one for the whole batch.
    """

    is_noisy: bool = True
    noise: bool = False


def noisy_layers(network: nn.Module) -> list[DrawsNoise]:
    """The layers of a network that have noise."""
    return [m for m in network.modules() if isinstance(m, DrawsNoise) and m.is_noisy]


@contextmanager
def noise(*layers: DrawsNoise) -> Iterator[None]:
    """Lets layers draw noise, one for each forward pass."""
    for layer in layers:
        layer.noise = True
    try:
        yield
    finally:
        for layer in layers:
            layer.noise = False


def noised(
    kernel: Tensor, bias: Tensor, sigma_kernel: Tensor, sigma_bias: Tensor
) -> tuple[Tensor, Tensor]:
    """Draws noise onto the weights of a layer: kernels are `[in, out]`, biases `[out]`."""
    takes, gives = kernel.shape
    drawn = (draw(size).to(kernel.device) for size in (takes, gives))
    into, out = (torch.sign(numbers) * torch.sqrt(torch.abs(numbers)) for numbers in drawn)
    return kernel + sigma_kernel * torch.outer(into, out), bias + sigma_bias * out


def draw(size: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(size)


class NoisyLinear(DrawsNoise):
    """A noisy dense layer, with the names of `torch.nn.Linear` and `sigma_weight`, `sigma_bias`.

    It begins as RLlib's layers on TensorFlow did. Those on torch had the first weights of `weight`
    and `sigma_weight` exchanged: all weights of a layer were one number.

    Args:
        takes: How many numbers go in.
        gives: How many come out.
        sigma: `sigma0`: the noise of the bias at first, times the root of `takes`.
    """

    def __init__(self, takes: int, gives: int, sigma: float) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(takes)
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(gives, takes)))
        self.bias = nn.Parameter(torch.zeros(gives))
        self.sigma_weight = nn.Parameter(torch.empty(gives, takes).uniform_(-bound, bound))
        self.sigma_bias = nn.Parameter(torch.full((gives,), sigma * bound))

    def forward(self, features: Tensor) -> Tensor:
        """What the layer gives, `[…, gives]`, with noise if that is switched on."""
        if not self.noise:
            return functional.linear(features, self.weight, self.bias)
        kernel, bias = noised(self.weight.T, self.bias, self.sigma_weight.T, self.sigma_bias)
        return features @ kernel + bias


#: By how much the noise grows or shrinks after each episode.
_FACTOR = 1.01
#: RLlib's `SMALL_NUMBER`.
_SMALL = 1e-6


class WeightNoise:
    """Noise of a standard deviation on weights; RLlib spared those of layer norms."""

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
        """How far noise moved actions, and how far it should; both are what `actions_of` gives."""
        raise NotImplementedError

    def renew_weight_noise(self, deviation: float) -> None:
        """Draws other noise."""
        self.weight_noise = WeightNoise(self.perturbed(), deviation)

    def with_weight_noise(self) -> AbstractContextManager[None]:
        """Adds the noise for as long as the block runs."""
        return nullcontext() if self.weight_noise is None else self.weight_noise.added()

    @torch.no_grad()  # type: ignore[untyped-decorator,unused-ignore]
    def adapted(self, deviation: float, batch: Mapping[str, Any]) -> float:
        """The deviation for the next episodes: noise should do as much as it is wanted to."""
        clean = self.actions_of(batch)
        with self.with_weight_noise():
            noisy = self.actions_of(batch)
        moved, wanted = self.moved_and_wanted(clean, noisy)
        return deviation * _FACTOR if moved <= wanted else deviation / _FACTOR


def divergence(clean: Tensor, noisy: Tensor) -> float:
    """How far noise moved actions by Q-values `[steps, actions]`: a Kullback-Leibler divergence."""
    before, after = torch.softmax(clean.double(), -1), torch.softmax(noisy.double(), -1)
    terms = (before * torch.log(before / (after + _SMALL))).sum(-1)
    return float(torch.nanmean(terms))


def divergence_of_epsilon(epsilon: float, actions: int) -> float:
    """How far epsilon-greedy actions differ from the best by Q-values."""
    return -math.log(1 - epsilon + epsilon / actions)


def root_mean_square(clean: Tensor, noisy: Tensor) -> float:
    """How far noise moved actions that are numbers, `[steps, n]`."""
    return float((clean - noisy).square().mean().sqrt())
