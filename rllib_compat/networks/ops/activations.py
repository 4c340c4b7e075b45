"""Activation functions by their legacy names, in numpy, and their names in torch.

RLlib took any attribute of `tf.nn`, and of `torch.nn` a few lower-case names. Where TensorFlow
and torch differ by a constant (leaky_relu: slope 0.2 against 0.01), the function is left out
rather than converted wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.neutral.errors import NotYetError
from rllib_compat.neutral.frozen import frozen

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def sigmoid(x: Array) -> Array:
    """The logistic function, without overflow for large |x|."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


@frozen
class Activation:
    """One activation function.

    Attributes:
        numpy: It, on arrays.
        target: Its name in today's model configs; `linear` means none.
    """

    numpy: Callable[[Array], Array]
    target: str


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


_SWISH = Activation(lambda x: x * sigmoid(x), "swish")
_LINEAR = Activation(lambda x: x, "linear")
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772

ACTIVATIONS: dict[str, Activation] = {
    "linear": _LINEAR,
    "relu": Activation(lambda x: np.maximum(x, 0), "relu"),
    "tanh": Activation(np.tanh, "tanh"),
    "swish": _SWISH,
    "silu": _SWISH,
    "elu": Activation(_elu, "ELU"),
    "selu": Activation(
        lambda x: _SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(np.minimum(x, 0))),
        "SELU",
    ),
    "sigmoid": Activation(sigmoid, "Sigmoid"),
    "softplus": Activation(lambda x: np.logaddexp(x, 0), "Softplus"),
    "softsign": Activation(lambda x: x / (1 + np.abs(x)), "Softsign"),
    "relu6": Activation(lambda x: np.clip(x, 0, 6), "ReLU6"),
}


def activation(name: object, *, where: str) -> Activation:
    """Looks an activation up by what a legacy config calls it (None means linear).

    Raises:
        NotYetError: The function is not in the table.
    """
    found = ACTIVATIONS.get(str(name).lower()) if name is not None else _LINEAR
    if found is None:
        raise NotYetError(
            f"Not supported yet: the activation function {name!r}.",
            where=where,
            fix=f"Known are {', '.join(ACTIVATIONS)}.",
        )
    return found
