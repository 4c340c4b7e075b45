"""What an attention net (GTrXL) computes beside dense layers, in numpy and float64.

Sources: `models/torch/modules/{relative_multi_head_attention,gru_gate}.py`, and the same in
`models/tf/layers` (Ray 1.2 – 2.x). `rllib_compat.networks.ops.attention_torch` has the same table
in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops.activations import sigmoid

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]


def relative_attention(
    own: Own, values: Sequence[Array], settings: Settings
) -> tuple[Array, dict[str, Array]]:
    """Multi-head attention over `x` `[B, T, n]` and a memory `[B, M, n]` of what `x` was before.

    Step t sees the whole memory, and the steps up to itself. The next memory is the last `M` of
    both. Heads have `d` numbers each; there are `h`.

    Arrays: gamma, beta `[n]` of the layer norm; qkv `[n, 3 h d]`, pos `[n, h d]`, out `[h d, n]`;
    u and v `[h, d]`, which are added to the queries. Setting: `epsilon` of the layer norm.
    """
    x, memory = values
    seen = np.concatenate([memory, x], axis=1)
    normed = _layer_norm(seen, own["gamma"], own["beta"], settings["epsilon"])
    queries, keys, contents = (
        _heads(part, own["u"]) for part in np.split(normed @ own["qkv"], 3, -1)
    )
    queries = queries[:, memory.shape[1] :]
    places = _heads(positions(seen.shape[1], x.shape[-1]) @ own["pos"], own["u"])
    score = np.einsum("bihd,bjhd->bijh", queries + own["u"], keys)
    score = score + shift(np.einsum("bihd,jhd->bijh", queries + own["v"], places))
    weights = _softmax(_without_later(score / np.sqrt(own["u"].shape[1])))
    out = np.einsum("bijh,bjhd->bihd", weights, contents)
    out = np.maximum(out.reshape(*x.shape[:2], -1) @ own["out"], 0)
    return out, {"memory": seen[:, seen.shape[1] - memory.shape[1] :]}


def positions(length: int, size: int) -> Array:
    """Sinusoids `[length, size]` of how far away a step is: the last row is the step itself."""
    steps_back = np.arange(length)[::-1]
    wavelengths = np.power(10000.0, np.arange(0, size, 2) / size)
    angles = np.divide.outer(steps_back, wavelengths)
    return np.hstack([np.sin(angles), np.cos(angles)])


def shift(score: Array) -> Array:
    """Moves the scores of positions `[B, T, M + T, h]` so that each step counts from itself."""
    steps, seen = score.shape[1:3]
    # The last row of positions is the step itself: that of the last step stays where it is.
    sources = np.arange(seen) + np.arange(steps)[::-1, None]
    sources = np.minimum(sources, seen - 1)  # later steps, which nobody sees
    return np.take_along_axis(score, sources[None, :, :, None], axis=2)


def gru_gate(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """A residual connection around a layer: takes what went in, `h`, and what came out, `x`.

    Arrays: w_r, w_z, w_h, u_r, u_z, u_h `[n, n]`, bias_z `[n]`.
    """
    h, x = values
    r = sigmoid(x @ own["w_r"] + h @ own["u_r"])
    z = sigmoid(x @ own["w_z"] + h @ own["u_z"] - own["bias_z"])
    return np.asarray((1 - z) * h + z * np.tanh(x @ own["w_h"] + (h * r) @ own["u_h"]))


def _layer_norm(x: Array, gamma: Array, beta: Array, epsilon: float) -> Array:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(variance + epsilon) * gamma + beta)


def _heads(x: Array, like: Array) -> Array:
    """`[…, h d]` as `[…, h, d]`."""
    return x.reshape(*x.shape[:-1], *like.shape)


def _without_later(score: Array) -> Array:
    """Scores `[B, T, M + T, h]` where no step sees a later one."""
    steps, seen = score.shape[1:3]
    visible = np.tri(steps, seen, seen - steps, dtype=bool)[None, :, :, None]
    return np.where(visible, score, -1e30)


def _softmax(score: Array) -> Array:
    """Over what is seen, axis 2."""
    powers = np.exp(score - score.max(axis=2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=2, keepdims=True))


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {
    "relative_attention": relative_attention,
    "gru_gate": gru_gate,
}
