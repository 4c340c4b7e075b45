"""Functions of `ray.rllib.utils.torch_utils` and `torch_ops` that the installed Ray lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import tree
from ray.rllib.models.torch.misc import Reshape
from ray.rllib.models.utils import get_activation_fn, get_initializer

#: The least argument of a logarithm (Ray 0.8 – 2.10).
_SMALL = 1e-6


class Swish(torch.nn.Module):
    """`x * sigmoid(beta * x)`, with a beta that is learned and begins at 1."""

    def __init__(self) -> None:
        super().__init__()
        self._beta = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, input_tensor: torch.Tensor) -> torch.Tensor:
        """Activates a tensor."""
        return input_tensor * torch.sigmoid(self._beta * input_tensor)


def atanh(x: torch.Tensor) -> torch.Tensor:
    """The inverse of the hyperbolic tangent, finite at its ends, too."""
    return ((1 + x).clamp(min=_SMALL) / (1 - x).clamp(min=_SMALL)).log() / 2


def convert_to_non_torch_type(stats: object) -> Any:
    """A structure with numbers and numpy's arrays in the place of tensors."""
    return tree.map_structure(_without_torch, stats)


def _without_torch(value: object) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().cpu().numpy() if value.ndim else value.item()


def minimize_and_clip(optimizer: torch.optim.Optimizer, clip_val: float = 10.0) -> None:
    """Clips the gradient of each of an optimizer's weights to a norm."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if weight.grad is not None:
                torch.nn.utils.clip_grad_norm_(weight.grad, clip_val)


class ConvTranspose2DStack(torch.nn.Module):
    """Normal distributions of images, out of vectors.

    Args:
        input_size: The length of a vector.
        filters: Channels that come in, kernel and stride of each layer.
        initializer: Draws the layers' first weights.
        bias_init: Their first biases.
        activation_fn: The activation between two layers.
        output_shape: The shape of an image, channels first.
    """

    def __init__(
        self,
        *,
        input_size: int,
        filters: Sequence[Sequence[int]] = ((1024, 5, 2), (128, 5, 2), (64, 6, 2), (32, 6, 2)),
        initializer: object = "default",
        bias_init: float = 0,
        activation_fn: str = "relu",
        output_shape: Sequence[int] = (3, 64, 64),
    ) -> None:
        super().__init__()
        self.output_shape = tuple(output_shape)
        self.activation = get_activation_fn(activation_fn, framework="torch")
        draw, first = get_initializer(initializer, framework="torch"), filters[0][0]
        layers = [torch.nn.Linear(input_size, first), Reshape([-1, first, 1, 1])]
        sizes = [*(channels for channels, *_ in filters[1:]), self.output_shape[0]]
        for number, ((channels, kernel, stride), out) in enumerate(
            zip(filters, sizes, strict=True), 1
        ):
            layer = torch.nn.ConvTranspose2d(channels, out, kernel, stride)
            draw(layer.weight)
            assert layer.bias is not None
            torch.nn.init.constant_(layer.bias, bias_init)
            layers.append(layer)
            if self.activation is not None and number < len(filters):
                layers.append(self.activation())
        self.layers, self._model = layers, torch.nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> Any:
        """The distributions for vectors `[…, input_size]`."""
        images = self._model(x).view(*x.shape[:-1], *self.output_shape)
        normal = torch.distributions.Normal(images, 1.0)
        return torch.distributions.Independent(normal, len(self.output_shape))
