"""What vision networks compute besides convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops.activations import sigmoid

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]


def swish(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """RLlib's own swish `x · sigmoid(slope · x)`; array: the trained slope, one number.

    Ray 1.0 – 2.0 on torch (`models/torch/modules/…`, `Swish`).
    """
    (x,) = values
    return np.asarray(x * sigmoid(own["slope"] * x))


def ravel(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """The last `axes` axes as one."""
    (x,) = values
    return x.reshape(*x.shape[: -settings["axes"]], -1)


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {"swish": swish, "ravel": ravel}
