"""The operations of `rllib_compat.networks.ops.bandit`, in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]


def linear_bandit(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    rows = values[0] if settings["items"] else values[0].unsqueeze(-2)
    scores = (rows * own["theta"]).sum(-1)
    projected = torch.matmul(rows.unsqueeze(-2), own["covariance"]).squeeze(-2)
    return settings["times"] * scores + settings["bonus"] * (projected * rows).sum(-1).sqrt()


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {"linear_bandit": linear_bandit}
