"""Dense layers of the modules that old keys describe: so many units, and an activation's name."""

from __future__ import annotations

import itertools

from torch import nn

from rllib_compat.neutral.errors import ConfigError

_ACTIVATIONS = {
    "elu": nn.ELU,
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "swish": nn.SiLU,
    "tanh": nn.Tanh,
}


def layers(inputs: int, hiddens: list[int], outputs: int, activation: str) -> nn.Sequential:
    """Dense layers that begin as they did: Xavier's weights, and no bias.

    Args:
        inputs: How many numbers come in.
        hiddens: The sizes of the hidden layers.
        outputs: How many numbers go out, past no activation.
        activation: What comes after each hidden layer.

    Raises:
        ConfigError: There is no such activation.
    """
    if activation not in _ACTIVATIONS:
        raise ConfigError(
            f"{activation!r} is no activation of these layers.",
            where="actor_hidden_activation, critic_hidden_activation",
            fix=f"There are {', '.join(_ACTIVATIONS)}.",
        )
    made: list[nn.Module] = []
    for before, after in itertools.pairwise([inputs, *hiddens, outputs]):
        layer = nn.Linear(before, after)
        nn.init.zeros_(layer.bias)
        nn.init.xavier_uniform_(layer.weight)
        made += [layer, _ACTIVATIONS[activation]()]
    return nn.Sequential(*made[:-1])
