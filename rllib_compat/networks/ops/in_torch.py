"""The operations of `in_numpy`, in torch, with its own layers where it has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional

from rllib_compat.networks.ops import in_numpy

Own: TypeAlias = Mapping[str, Tensor]
Settings: TypeAlias = Mapping[str, Any]

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

#: So many images are few: a policy acts on them.
_FEW = 8


def _act(x: Tensor, settings: Settings) -> Tensor:
    name = settings.get("activation")
    return x if name is None else ACTIVATIONS[str(name).lower()](x)


def dense(own: Own, settings: Settings, x: Tensor) -> Tensor:
    kernel, bias = own["kernel"], own.get("bias")
    if x.dim() == 2 and bias is not None:  # what `linear` calls, which turns the kernel around
        return _act(torch.addmm(bias, x, kernel), settings)
    return _act(functional.linear(x, kernel.T, bias), settings)


def conv(own: Own, settings: Settings, x: Tensor) -> Tensor:
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
    # Kernels lie in memory as torch has them (`GraphNet`). Of images in another layout torch turns
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


def flatten(own: Own, settings: Settings, x: Tensor) -> Tensor:
    if settings.get("channels_first"):
        x = x.movedim(-1, -3)
    return x.flatten(-3)


def concat(own: Own, settings: Settings, *values: Tensor) -> Tensor:
    return torch.cat(list(values), dim=-1)


def cut(own: Own, settings: Settings, x: Tensor) -> Tensor:
    part = x[..., settings["start"] : settings["stop"]]
    shaped: Tensor = part.unflatten(-1, tuple(settings["shape"]))
    return shaped


def free_log_std(own: Own, settings: Settings, x: Tensor) -> Tensor:
    return torch.cat([x, own["value"].expand_as(x)], dim=-1)


def scalar(own: Own, settings: Settings, x: Tensor) -> Tensor:
    return x.squeeze(-1)


def divide(own: Own, settings: Settings, x: Tensor) -> Tensor:
    return torch.divide(x, settings["by"])


def swish(own: Own, settings: Settings, x: Tensor) -> Tensor:
    return x * torch.sigmoid(own["slope"] * x)


def ravel(own: Own, settings: Settings, x: Tensor) -> Tensor:
    return x.flatten(-settings["axes"])


def sloped_dense(own: Own, settings: Settings, x: Tensor) -> Tensor:
    out = functional.linear(x, own["kernel"].T, own["bias"])
    return out * torch.sigmoid(own["beta"] * out)


def activate(own: Own, settings: Settings, x: Tensor) -> Tensor:
    return ACTIVATIONS[str(settings.get("activation") or "linear").lower()](x)


def squash(own: Own, settings: Settings, x: Tensor) -> Tensor:
    low, size = x.new_tensor(settings["low"]), x.new_tensor(settings["range"])
    return low + size * torch.sigmoid(settings["factor"] * x)


def softplus_log_std(own: Own, settings: Settings, x: Tensor) -> Tensor:
    mean, raw = x.chunk(2, dim=-1)
    std = functional.softplus(raw.clamp(settings["low"], settings["high"])) + settings["shift"]
    return torch.cat([mean, std.log()], dim=-1)


def normalize(own: Own, settings: Settings, x: Tensor) -> Tensor:
    if settings["demean"]:
        x = x - own["mean"]
    if settings["destd"]:
        x = x / (own["std"] + settings["epsilon"])
    if (clip := settings["clip"]) is not None:
        x = x.clamp(-clip, clip)
    if (kind := settings.get("integers")) is not None:
        x = x.to(torch.int64).to(getattr(torch, kind)).to(x.dtype)
    return x


def noisy_dense(own: Own, settings: Settings, x: Tensor) -> Tensor:
    # torch's noisy layers began with all weights alike, so that what differs between the outputs
    # is little of what float32 adds up.
    x, kernel, bias = (t.double() for t in (x, own["kernel"], own["bias"]))
    return _act(functional.linear(x, kernel.T, bias), settings)


def layer_norm(own: Own, settings: Settings, x: Tensor) -> Tensor:
    shape = own["gamma"].shape
    out = functional.layer_norm(x, shape, own["gamma"], own["beta"], settings["epsilon"])
    return _act(out, settings)


def dueling(own: Own, settings: Settings, advantages: Tensor, value: Tensor) -> Tensor:
    return (value + (advantages - advantages.mean(dim=-1, keepdim=True))).float()


def atoms(own: Own, settings: Settings, advantages: Tensor, state: Tensor | None = None) -> Tensor:
    logits: Tensor = advantages.unflatten(-1, (-1, settings["num_atoms"]))
    if state is not None:
        centred = logits - logits.mean(dim=settings["centred"], keepdim=True)
        logits = state.unsqueeze(-2) + centred
    return logits


def expectation(own: Own, settings: Settings, logits: Tensor) -> Tensor:
    low, high = settings["v_min"], settings["v_max"]
    support = torch.linspace(low, high, logits.shape[-1], device=logits.device)
    return torch.sum(support * torch.softmax(logits, dim=-1), dim=-1).float()


def lstm(
    own: Own, settings: Settings, x: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    bias = own["bias"]
    recurrent_bias = own.get("recurrent_bias", torch.zeros_like(bias))
    if settings.get("gates", "sigmoid") != "sigmoid":
        return _hard_lstm(x @ own["kernel"] + bias + recurrent_bias, own["recurrent_kernel"], h, c)
    weights = [own["kernel"].T, own["recurrent_kernel"].T, bias, recurrent_bias]
    if x.is_cuda:  # cuDNN takes them in one piece of memory
        sizes = [weight.numel() for weight in weights]
        pieces = torch.cat([weight.flatten() for weight in weights]).split(sizes)
        weights = [p.view(weight.shape) for p, weight in zip(pieces, weights, strict=True)]
    weights = [weight.contiguous() for weight in weights]
    trains = torch.is_grad_enabled()  # cuDNN has gradients of what was computed in training alone
    # has_biases, layers, dropout, training, both directions, batch first
    out, h, c = torch.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, trains, False, True)
    return out, {"h": h[0], "c": c[0]}


def _hard_lstm(
    inputs: Tensor, recurrent_kernel: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
    """With gates clip(0.2 x + 0.5, 0, 1), which torch has no layer for (its own divide by 6)."""
    outputs = []
    for step in inputs.unbind(1):
        i, f, g, o = (step + h @ recurrent_kernel).chunk(4, dim=-1)
        i, f, o = ((0.2 * gate + 0.5).clamp(0.0, 1.0) for gate in (i, f, o))
        c = f * c + i * g.tanh()
        h = o * c.tanh()
        outputs.append(h)
    return torch.stack(outputs, dim=1), {"h": h, "c": c}


def one_hot(own: Own, settings: Settings, x: Tensor) -> Tensor:
    columns = [
        (x[..., k, None].round() == torch.arange(choices, device=x.device)).to(x.dtype)
        if choices
        else x[..., k, None]
        for k, choices in enumerate(settings["parts"])
    ]
    return torch.cat(columns, dim=-1)


def relative_attention(
    own: Own, settings: Settings, x: Tensor, memory: Tensor
) -> tuple[Tensor, dict[str, Tensor]]:
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
    size = x.shape[-1]
    even = torch.arange(0, size, 2, dtype=x.dtype, device=x.device)
    steps = torch.arange(length, dtype=x.dtype, device=x.device)
    angles = torch.outer(steps.flip(0), torch.pow(10000.0, -even / size))
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def _shift(score: Tensor) -> Tensor:
    b, t, seen, h = score.shape
    padded = functional.pad(score, (0, 0, 1, 0))
    return padded.reshape(b, seen + 1, t, h)[:, 1:].reshape(b, t, seen, h)


def gru_gate(own: Own, settings: Settings, h: Tensor, x: Tensor) -> Tensor:
    r = torch.sigmoid(x @ own["w_r"] + h @ own["u_r"])
    z = torch.sigmoid(x @ own["w_z"] + h @ own["u_z"] - own["bias_z"])
    return (1 - z) * h + z * torch.tanh(x @ own["w_h"] + (h * r) @ own["u_h"])


def linear_bandit(own: Own, settings: Settings, x: Tensor) -> Tensor:
    rows = x if settings["items"] else x.unsqueeze(-2)
    scores = (rows * own["theta"]).sum(-1)
    projected = torch.matmul(rows.unsqueeze(-2), own["covariance"]).squeeze(-2)
    widths = (projected * rows).sum(-1).sqrt()
    bounds: Tensor = settings["times"] * scores + settings["bonus"] * widths
    return bounds


#: The operations by name.
OPS: dict[str, Callable[..., Any]] = {name: globals()[name] for name in in_numpy.OPS}
