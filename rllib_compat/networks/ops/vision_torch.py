"""The operations of `rllib_compat.networks.ops.vision`, in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]


def swish(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    return values[0] * torch.sigmoid(own["slope"] * values[0])


def ravel(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    return values[0].flatten(-settings["axes"])


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {"swish": swish, "ravel": ravel}
