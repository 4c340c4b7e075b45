"""The operations of `rllib_compat.networks.ops.continuous`, in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from rllib_compat.networks.ops.activations_torch import ACTIVATIONS

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]


def sloped_dense(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    out = functional.linear(values[0], own["kernel"].T, own["bias"])
    return out * torch.sigmoid(own["beta"] * out)


def activate(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    return ACTIVATIONS[str(settings.get("activation") or "linear").lower()](values[0])


def squash(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    low, size = x.new_tensor(settings["low"]), x.new_tensor(settings["range"])
    return low + size * torch.sigmoid(settings["factor"] * x)


def softplus_log_std(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    mean, raw = values[0].chunk(2, dim=-1)
    std = functional.softplus(raw.clamp(settings["low"], settings["high"])) + settings["shift"]
    return torch.cat([mean, std.log()], dim=-1)


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {
    "sloped_dense": sloped_dense,
    "activate": activate,
    "squash": squash,
    "softplus_log_std": softplus_log_std,
}
