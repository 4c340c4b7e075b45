"""The operations of `rllib_compat.networks.ops.recurrent`, in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]


def lstm(
    own: Own, values: Sequence[Tensor], settings: Settings
) -> tuple[Tensor, dict[str, Tensor]]:
    bias = own["bias"]
    recurrent_bias = own.get("recurrent_bias", torch.zeros_like(bias))
    if settings.get("gates", "sigmoid") != "sigmoid":
        return _hard_lstm(own, values, bias + recurrent_bias)
    x, h, c = values
    weights = [own["kernel"].T, own["recurrent_kernel"].T, bias, recurrent_bias]
    weights = [weight.contiguous() for weight in weights]
    # has_biases, layers, dropout, training, both directions, batch first
    out, h, c = torch.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, False, False, True)
    return out, {"h": h[0], "c": c[0]}


def _hard_lstm(
    own: Own, values: Sequence[Tensor], bias: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """With gates clip(0.2 x + 0.5, 0, 1), which torch has no layer for (its own divide by 6)."""
    x, h, c = values
    inputs, outputs = x @ own["kernel"] + bias, []
    for step in inputs.unbind(1):
        i, f, g, o = (step + h @ own["recurrent_kernel"]).chunk(4, dim=-1)
        i, f, o = ((0.2 * gate + 0.5).clamp(0.0, 1.0) for gate in (i, f, o))
        c = f * c + i * g.tanh()
        h = o * c.tanh()
        outputs.append(h)
    return torch.stack(outputs, dim=1), {"h": h, "c": c}


def one_hot(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    columns = [
        (x[..., k, None].round() == torch.arange(choices, device=x.device)).to(x.dtype)
        if choices
        else x[..., k, None]
        for k, choices in enumerate(settings["parts"])
    ]
    return torch.cat(columns, dim=-1)


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {
    "lstm": lstm,
    "one_hot": one_hot,
}
