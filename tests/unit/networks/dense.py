"""The arrays of dense actor-critics: how large they are, and what torch called them."""

import numpy as np


def policy_rows(hiddens=(3, 5), *, inputs=4, outputs=2):
    """The arrays of a policy and their shapes, in the order in which TensorFlow made them."""
    return _rows("hidden", "logits", (inputs, *hiddens, outputs))


def value_rows(hiddens=(3, 5), *, inputs=4, shares_layers=True):
    """Those that only the value function has."""
    rows = _rows("value_hidden", "value", (inputs, *hiddens, 1))
    return dict([*rows.items()][-2:]) if shares_layers else rows


def _rows(hidden, last, sizes):
    layers = [*(f"{hidden}.{number}" for number in range(len(sizes) - 2)), last]
    made = {}
    for layer, before, after in zip(layers, sizes, sizes[1:], strict=False):
        made |= {f"{layer}.kernel": (before, after), f"{layer}.bias": (after,)}
    return made


def vector_of(rows, rng):
    """Random numbers for rows, one behind the other, and the same as arrays by name."""
    arrays = {name: rng.normal(size=size).astype(np.float32) for name, size in rows.items()}
    return np.concatenate([array.ravel() for array in arrays.values()]), arrays


_TORCH = {
    "hidden": "_hidden_layers",
    "logits": "_logits",
    "value_hidden": "_value_branch_separate",
    "value": "_value_branch",
}


def torch_names(arrays):
    """The arrays as `FullyConnectedNetwork` of torch had them."""
    made = {}
    for name, array in arrays.items():
        layer, *number, part = name.split(".")
        layer = ".".join([_TORCH[layer], *number])
        made[f"{layer}._model.0.{'weight' if part == 'kernel' else 'bias'}"] = array.T
    return made
