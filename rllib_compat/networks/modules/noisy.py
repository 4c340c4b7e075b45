"""Noisy nets: dense layers whose weights get factorised noise, of a size that is learned.

Fortunato et al., "Noisy Networks for Exploration" (2018); RLlib's `NoisyLayer` of Ray 0.5 – 2.10.
Without noise, such a layer computes what it does on average before its activation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class DrawsNoise(nn.Module):  # type: ignore[misc]  # torch's stubs are not installed for the check
    """A base of layers that compute with noise while they are told to.

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
    """Draws noise onto the weights of a layer.

    Args:
        kernel: What it is on average, `[in, out]`.
        bias: Likewise, `[out]`.
        sigma_kernel: How much noise each weight gets, `[in, out]`.
        sigma_bias: Likewise, `[out]`.
    """
    takes, gives = kernel.shape
    into, out = (_rooted(draw(size).to(kernel.device)) for size in (takes, gives))
    return kernel + sigma_kernel * torch.outer(into, out), bias + sigma_bias * out


def draw(size: int) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(size)


def _rooted(drawn: Tensor) -> Tensor:
    return torch.sign(drawn) * torch.sqrt(torch.abs(drawn))


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

    def forward(self, features: Any) -> Tensor:
        """What the layer gives, `[…, gives]`, with noise if it is told to draw some."""
        if not self.noise:
            return functional.linear(features, self.weight, self.bias)
        kernel, bias = noised(self.weight.T, self.bias, self.sigma_weight.T, self.sigma_bias)
        return features @ kernel + bias
