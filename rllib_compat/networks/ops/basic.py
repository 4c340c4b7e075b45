"""What the steps of a network compute, in numpy and float64.

Each operation takes its own arrays by part, the values that go in, and its settings. Leading axes
(batch, or batch and time) pass through. `basic_torch` beside has the same table in
torch, written for itself: the proof compares two implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops import attention as ops_attention
from rllib_compat.networks.ops import bandit as ops_bandit
from rllib_compat.networks.ops import continuous as ops_continuous
from rllib_compat.networks.ops import q as ops_q
from rllib_compat.networks.ops import recurrent as ops_recurrent
from rllib_compat.networks.ops import vision as ops_vision
from rllib_compat.networks.ops.activations import activation
from rllib_compat.networks.ops.filter import normalize

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]


def _act(x: Array, settings: Settings) -> Array:
    return activation(settings.get("activation"), where="model").numpy(x)


def dense(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """A fully connected layer; arrays: kernel `[in, out]`, bias `[out]` (if it has one)."""
    (x,) = values
    out = x @ own["kernel"]
    if "bias" in own:
        out = out + own["bias"]
    return _act(out, settings)


def conv(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """A convolution over `[..., h, w, c]`; arrays: kernel `[h, w, in, out]`, bias `[out]`.

    Settings: `stride` (rows, columns) and `padding` ((top, bottom), (left, right)); a negative
    padding cuts off, as torch's does.
    """
    (x,) = values
    kernel = own["kernel"]
    lead = x.shape[:-3]
    x = x.reshape(-1, *x.shape[-3:])
    (top, bottom), (left, right) = settings["padding"]
    x = x[:, max(-top, 0) : x.shape[1] - max(-bottom, 0)]
    x = x[:, :, max(-left, 0) : x.shape[2] - max(-right, 0)]
    x = np.pad(x, ((0, 0), (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0)), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[:2], axis=(1, 2))
    rows, columns = settings["stride"]
    windows = windows[:, ::rows, ::columns]
    out = np.tensordot(windows, kernel, axes=([4, 5, 3], [0, 1, 2]))
    if "bias" in own:
        out = out + own["bias"]
    return _act(out.reshape(*lead, *out.shape[1:]), settings)


def flatten(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """An image `[..., h, w, c]` as a vector; `channels_first`: in torch's order (c, h, w)."""
    (x,) = values
    if settings.get("channels_first"):
        x = np.moveaxis(x, -1, -3)
    return x.reshape(*x.shape[:-3], -1)


def concat(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Vectors one after the other."""
    return np.concatenate(values, axis=-1)


def cut(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """A part of a vector, `start` to `stop`, in the shape `shape`."""
    (x,) = values
    return x[..., settings["start"] : settings["stop"]].reshape(*x.shape[:-1], *settings["shape"])


def free_log_std(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Means, and behind them log standard deviations that are parameters; array: value `[n]`."""
    (x,) = values
    value = np.broadcast_to(own["value"], (*x.shape[:-1], len(own["value"])))
    return np.concatenate([x, value], axis=-1)


def scalar(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """The only number of a vector of one."""
    (x,) = values
    return x[..., 0]


def divide(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Numbers divided by a constant: `by`."""
    return np.asarray(values[0] / settings["by"])


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {
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
OPS |= ops_bandit.OPS
OPS |= ops_q.OPS | ops_continuous.OPS | ops_recurrent.OPS | ops_attention.OPS | ops_vision.OPS
