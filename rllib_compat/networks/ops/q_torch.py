"""The operations of `rllib_compat.networks.ops.q`, in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]

#: The only activations of Q-heads: their hidden layers have relu.
_ACTIVATIONS: dict[str | None, Callable[[Tensor], Tensor]] = {
    None: lambda x: x,
    "relu": torch.relu,
}


def _act(x: Tensor, settings: Settings) -> Tensor:
    return _ACTIVATIONS[settings.get("activation")](x)


def noisy_dense(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    # torch's noisy layers began with all weights alike, so that what differs between the outputs
    # is little of what float32 adds up.
    x, kernel, bias = (t.double() for t in (values[0], own["kernel"], own["bias"]))
    return _act(functional.linear(x, kernel.T, bias), settings)


def layer_norm(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    shape = own["gamma"].shape
    out = functional.layer_norm(values[0], shape, own["gamma"], own["beta"], settings["epsilon"])
    return _act(out, settings)


def dueling(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    advantages, value = values
    return (value + (advantages - advantages.mean(dim=-1, keepdim=True))).float()


def atoms(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    logits = values[0].unflatten(-1, (-1, settings["num_atoms"]))
    if len(values) > 1:
        centred = logits - logits.mean(dim=settings["centred"], keepdim=True)
        logits = values[1].unsqueeze(-2) + centred
    return logits


def expectation(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (logits,) = values
    low, high = settings["v_min"], settings["v_max"]
    support = torch.linspace(low, high, logits.shape[-1], device=logits.device)
    return torch.sum(support * torch.softmax(logits, dim=-1), dim=-1).float()


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {
    "noisy_dense": noisy_dense,
    "layer_norm": layer_norm,
    "dueling": dueling,
    "atoms": atoms,
    "expectation": expectation,
}
