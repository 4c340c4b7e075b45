"""The operations of `rllib_compat.networks.ops.basic`, in torch.

They are written for themselves, with torch's own layers where it has them: a conversion is proven
by comparing the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from rllib_compat.networks.ops import attention_torch as torch_ops_attention
from rllib_compat.networks.ops import bandit_torch as torch_ops_bandit
from rllib_compat.networks.ops import continuous_torch as torch_ops_continuous
from rllib_compat.networks.ops import q_torch as torch_ops_q
from rllib_compat.networks.ops import recurrent_torch as torch_ops_recurrent
from rllib_compat.networks.ops import vision_torch as torch_ops_vision
from rllib_compat.networks.ops.activations_torch import ACTIVATIONS
from rllib_compat.networks.ops.filter_torch import normalize

#: So many images are few: a policy acts on them.
_FEW = 8

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]


def _act(x: Tensor, settings: Settings) -> Tensor:
    name = settings.get("activation")
    return x if name is None else ACTIVATIONS[str(name).lower()](x)


def dense(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    return _act(functional.linear(x, own["kernel"].T, own.get("bias")), settings)


def conv(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    lead = x.shape[:-3]
    x = x.reshape(-1, *x.shape[-3:]).permute(0, 3, 1, 2)
    kernel, bias = own["kernel"].permute(3, 2, 0, 1), own.get("bias")
    (top, bottom), (left, right) = settings["padding"]
    around = (top, left)
    if around != (bottom, right) or min(around) < 0:
        x, around = functional.pad(x, (left, right, top, bottom)), (0, 0)
    if around == (0, 0) and x.shape[2:] == kernel.shape[2:]:
        # It makes one pixel, as the last one mostly does: a dense layer, which is faster.
        out = functional.linear(x.flatten(1), kernel.flatten(1), bias)
        return _act(out.reshape(*lead, 1, 1, -1), settings)
    # Kernels lie in memory as torch has them (`graph_net`). Of images in another layout torch turns
    # the kernel around, too, which pays for many. With one channel, where the strides fit both
    # layouts, oneDNN takes the wrong one and computes something else (torch 2.13, strides larger
    # than the kernel).
    if x.shape[1] == 1:
        x = x.clone(memory_format=torch.contiguous_format)
    elif len(x) <= _FEW:
        x = x.contiguous()
    out = functional.conv2d(x, kernel, bias, stride=tuple(settings["stride"]), padding=around)
    out = out.permute(0, 2, 3, 1)
    return _act(out.reshape(*lead, *out.shape[1:]), settings)


def flatten(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    if settings.get("channels_first"):
        x = x.movedim(-1, -3)
    return x.flatten(-3)


def concat(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    return torch.cat(list(values), dim=-1)


def cut(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    return x[..., settings["start"] : settings["stop"]].unflatten(-1, tuple(settings["shape"]))


def free_log_std(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    (x,) = values
    return torch.cat([x, own["value"].expand_as(x)], dim=-1)


def scalar(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    return values[0].squeeze(-1)


def divide(own: Own, values: Sequence[Tensor], settings: Settings) -> Tensor:
    return values[0] / settings["by"]


OPS: dict[str, Callable[[Own, Sequence[Tensor], Settings], Any]] = {
    "dense": dense,
    "conv": conv,
    "flatten": flatten,
    "concat": concat,
    "cut": cut,
    "free_log_std": free_log_std,
    "scalar": scalar,
    "divide": divide,
    "normalize": normalize,
}
OPS |= torch_ops_q.OPS | torch_ops_continuous.OPS | torch_ops_recurrent.OPS | torch_ops_vision.OPS
OPS |= torch_ops_attention.OPS | torch_ops_bandit.OPS
