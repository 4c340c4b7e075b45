"""Functions of `ray.rllib.utils.torch_utils` and `torch_ops` that today's Ray has not."""

from __future__ import annotations

from typing import Any

import torch
import tree

__all__ = ["Swish", "atanh", "convert_to_non_torch_type", "minimize_and_clip"]

#: What keeps logarithms finite (Ray 0.8 – 2.10).
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


def convert_to_non_torch_type(stats: Any) -> Any:
    """A structure with numbers and numpy's arrays in the place of tensors."""
    return tree.map_structure(_without_torch, stats)


def _without_torch(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().cpu().numpy() if value.ndim else value.item()


def minimize_and_clip(optimizer: torch.optim.Optimizer, clip_val: float = 10.0) -> None:
    """Clips the gradient of each of an optimizer's weights to a norm."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            if weight.grad is not None:
                torch.nn.utils.clip_grad_norm_(weight.grad, clip_val)
