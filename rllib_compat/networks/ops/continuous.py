"""What networks for continuous actions (SAC, DDPG) compute besides layers, in numpy and float64.

See `ops` for what an operation takes, and `rllib_compat.networks.ops.continuous_torch` for torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops.activations import activation, sigmoid

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]


def sloped_dense(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """A layer with RLlib's own swish `x · sigmoid(beta · x)`; arrays: kernel, bias, beta `[1]`.

    Ray 1.0 – 2.x trained the slope on torch (`models/torch/misc.py`).
    """
    (x,) = values
    out = x @ own["kernel"] + own["bias"]
    return np.asarray(out * sigmoid(own["beta"] * out))


def activate(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """An activation function by itself."""
    return activation(settings.get("activation"), where="model").numpy(values[0])


def squash(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Numbers squashed into the range of the actions: `low + range · sigmoid(factor · x)`."""
    (x,) = values
    low, size = np.asarray(settings["low"]), np.asarray(settings["range"])
    return np.asarray(low + size * sigmoid(settings["factor"] * x))


def softplus_log_std(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Means, and logs of standard deviations that were `softplus(x) + shift`, x clipped.

    That was how Ray 0.7 and 0.8.0 made a normal distribution of an output
    (`agents/sac/sac_model.py`, tensorflow-probability's `MultivariateNormalTriL`).
    """
    mean, raw = np.split(values[0], 2, axis=-1)
    raw = np.clip(raw, settings["low"], settings["high"])
    log_std = np.log(np.logaddexp(raw, 0) + settings["shift"])
    return np.concatenate([mean, log_std], axis=-1)


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {
    "sloped_dense": sloped_dense,
    "activate": activate,
    "squash": squash,
    "softplus_log_std": softplus_log_std,
}
