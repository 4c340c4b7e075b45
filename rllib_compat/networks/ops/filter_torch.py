"""The operation of `rllib_compat.networks.ops.filter`, in torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from rllib_compat.networks.ops.filter import EPSILON


def normalize(
    own: Mapping[str, Tensor], values: Sequence[Tensor], settings: Mapping[str, Any]
) -> Tensor:
    (x,) = values
    if settings["demean"]:
        x = x - own["mean"]
    if settings["destd"]:
        x = x / (own["std"] + settings.get("epsilon", EPSILON))
    clip = settings["clip"]
    return x if clip is None else x.clamp(-clip, clip)
