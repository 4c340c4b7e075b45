"""`r2d2_torch_policy` and `r2d2_tf_policy`: what rescales values; the rest is in the learner."""

from __future__ import annotations

from typing import Any

import torch

from rllib_compat.algorithms import r2d2

__all__ = ["h_function", "h_inverse"]


def h_function(x: torch.Tensor, epsilon: float = 1.0) -> torch.Tensor:
    """Scales values down, so that large ones stay near each other."""
    return r2d2.rescale(x, epsilon)


def h_inverse(x: torch.Tensor, epsilon: float = 1.0) -> Any:
    """Undoes `h_function`."""
    return r2d2.original(x, epsilon)
