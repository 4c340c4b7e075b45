"""The activation functions of `rllib_compat.networks.ops.activations`, in torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda x: x,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "swish": functional.silu,
    "silu": functional.silu,
    "elu": functional.elu,
    "selu": functional.selu,
    "sigmoid": torch.sigmoid,
    "softplus": functional.softplus,
    "softsign": functional.softsign,
    "relu6": functional.relu6,
}
