"""What recurrent networks compute beside dense layers, in numpy and float64.

`rllib_compat.networks.ops.recurrent_torch` has the same table in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops.activations import sigmoid

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Own: TypeAlias = Mapping[str, Array]
Settings: TypeAlias = Mapping[str, Any]

#: What the gates of an LSTM are squashed by. keras did it the hard way up to TensorFlow 1.15.
GATES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0.0, 1.0),
}


def lstm(own: Own, values: Sequence[Array], settings: Settings) -> tuple[Array, dict[str, Array]]:
    """An LSTM over `x` `[B, T, in]` from the states `h` and `c` `[B, n]`.

    Arrays: kernel `[in, 4 n]`, recurrent_kernel `[n, 4 n]`, bias `[4 n]`, and torch's second bias
    (recurrent_bias); gates in the order input, forget, cell, output. Setting: `gates`.
    """
    x, h, c = values
    gate = GATES[settings.get("gates", "sigmoid")]
    inputs = x @ own["kernel"] + own["bias"] + own.get("recurrent_bias", 0.0)
    outputs = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(inputs[:, t] + h @ own["recurrent_kernel"], 4, axis=-1)
        c = gate(f) * c + gate(i) * np.tanh(g)
        h = gate(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, axis=1), {"h": h, "c": c}


def one_hot(own: Own, values: Sequence[Array], settings: Settings) -> Array:
    """Flattened actions `[..., k]` as networks take them.

    Setting: `parts`, for each of the `k` numbers how many choices it had; 0: it is taken as it is.
    """
    (x,) = values
    columns = [
        (np.rint(x[..., k, None]) == np.arange(choices)) if choices else x[..., k, None]
        for k, choices in enumerate(settings["parts"])
    ]
    return np.concatenate([np.asarray(column, np.float64) for column in columns], axis=-1)


OPS: dict[str, Callable[[Own, Sequence[Array], Settings], Any]] = {
    "lstm": lstm,
    "one_hot": one_hot,
}
