"""The operations of `rllib_compat.networks.ops.attention`, in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]


def relative_attention(
    own: Own, values: Sequence[Tensor], settings: Settings
) -> tuple[Tensor, dict[str, Tensor]]:
    x, memory = values
    seen = torch.cat([memory.detach(), x], dim=1)
    length, steps = seen.shape[1], x.shape[1]
    normed = functional.layer_norm(
        seen, seen.shape[-1:], own["gamma"], own["beta"], settings["epsilon"]
    )
    heads = tuple(own["u"].shape)
    parts = (normed @ own["qkv"]).chunk(3, dim=-1)
    queries, keys, contents = (part.unflatten(-1, heads) for part in parts)
    queries = queries[:, length - steps :]
    places = (_positions(length, x) @ own["pos"]).unflatten(-1, heads)
    score = torch.einsum("bihd,bjhd->bijh", queries + own["u"], keys)
    score = score + _shift(torch.einsum("bihd,jhd->bijh", queries + own["v"], places))
    later = torch.ones(steps, length, dtype=torch.bool, device=x.device).triu(length - steps + 1)
    score = (score / heads[1] ** 0.5).masked_fill(later[None, :, :, None], -1e30)
    out = torch.einsum("bijh,bjhd->bihd", score.softmax(dim=2), contents)
    return torch.relu(out.flatten(-2) @ own["out"]), {"memory": seen[:, steps:]}


def _positions(length: int, x: Tensor) -> Tensor:
    size, kind = x.shape[-1], {"dtype": x.dtype, "device": x.device}
    frequencies = torch.pow(10000.0, -torch.arange(0, size, 2, **kind) / size)
    angles = torch.outer(torch.arange(length, **kind).flip(0), frequencies)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def _shift(score: Tensor) -> Tensor:
    b, t, seen, h = score.shape
    padded = functional.pad(score, (0, 0, 1, 0))
    return padded.reshape(b, seen + 1, t, h)[:, 1:].reshape(b, t, seen, h)


def gru_gate(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    h, x = values
    r = torch.sigmoid(x @ own["w_r"] + h @ own["u_r"])
    z = torch.sigmoid(x @ own["w_z"] + h @ own["u_z"] - own["bias_z"])
    return (1 - z) * h + z * torch.tanh(x @ own["w_h"] + (h * r) @ own["u_h"])


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {
    "relative_attention": relative_attention,
    "gru_gate": gru_gate,
}
