"""What the heads of Q-networks compute (DQN, SimpleQ, APEX, R2D2), in numpy and float64.

Source: `get_q_value_distributions` and `compute_q_values` of `agents/dqn/*` (Ray 0.5 – 1.x) and
`algorithms/dqn/*` (2.x). `rllib_compat.networks.ops.q_torch` has the same table in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops.activations import activation

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]


def _act(x: Array, settings: Settings) -> Array:
    return activation(settings.get("activation"), where="model").numpy(x)


def noisy_dense(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """A layer of a noisy net without its noise: what it computes on average before activation.

    Arrays: kernel `[in, out]`, bias `[out]`; `sigma_kernel` and `sigma_bias`, which scale the
    noise, of the same shapes.
    """
    (x,) = values
    return _act(x @ own["kernel"] + own["bias"], settings)


def layer_norm(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Normalises each vector; arrays: gamma, beta `[n]`; settings: `epsilon`, `activation`."""
    (x,) = values
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    out = (x - mean) / np.sqrt(var + settings["epsilon"]) * own["gamma"] + own["beta"]
    return _act(out, settings)


def dueling(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Advantages `[…, actions]`, centred over the actions, and a state's value `[…, 1]`."""
    advantages, value = values
    return np.asarray(advantages - advantages.mean(-1, keepdims=True) + value)


def atoms(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """The logits of each action's distribution, `[…, actions, atoms]`.

    Takes the advantages `[…, actions * atoms]` and, of a dueling network, the state's logits
    `[…, atoms]` (or `[…, 1]`: Ray 1.0 on torch, and the new API stack). Setting `centred`: the
    axis over which the advantages are centred, -2 (actions) or -1 (atoms).
    """
    logits = values[0].reshape(*values[0].shape[:-1], -1, settings["num_atoms"])
    if len(values) == 1:
        return logits
    centred = logits - logits.mean(settings["centred"], keepdims=True)
    return np.asarray(centred + values[1][..., None, :])


def expectation(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """The mean of each distribution over the atoms from `v_min` to `v_max`."""
    (logits,) = values
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    support = np.linspace(settings["v_min"], settings["v_max"], logits.shape[-1])
    return np.asarray((weights * support).sum(-1) / weights.sum(-1))


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {
    "noisy_dense": noisy_dense,
    "layer_norm": layer_norm,
    "dueling": dueling,
    "atoms": atoms,
    "expectation": expectation,
}
