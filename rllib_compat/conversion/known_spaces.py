"""The spaces of the environments that nearly everybody tries first.

Checkpoints before Ray 1.8 hold no spaces, but the name of their environment. This table, which a
test compares with gymnasium 1.x, lets people read such a checkpoint where gymnasium is not
installed, and spares its import where it is. All other environments are asked themselves.
"""

from __future__ import annotations

from rllib_compat.neutral.space_text import parse_repr
from rllib_compat.neutral.spaces import Space

_CART = "Box([-4.8 -inf -0.41887903 -inf], [4.8 inf 0.41887903 inf], (4,), float32)"
_PENDULUM = "Box([-1. -1. -8.], [1. 1. 8.], (3,), float32)"
_CAR = "Box([-1.2 -0.07], [0.6 0.07], (2,), float32)"
_ACROBOT = (
    "Box([-1. -1. -1. -1. -12.566371 -28.274334], [1. 1. 1. 1. 12.566371 28.274334], (6,), float32)"
)

#: The environment → its versions, observations and actions, as gymnasium prints them.
TABLE = {
    "CartPole": ((0, 1), _CART, "Discrete(2)"),
    "Pendulum": ((0, 1), _PENDULUM, "Box(-2.0, 2.0, (1,), float32)"),
    "MountainCar": ((0,), _CAR, "Discrete(3)"),
    "MountainCarContinuous": ((0,), _CAR, "Box(-1.0, 1.0, (1,), float32)"),
    "Acrobot": ((1,), _ACROBOT, "Discrete(3)"),
    "FrozenLake": ((0, 1), "Discrete(16)", "Discrete(4)"),
    "FrozenLake8x8": ((0, 1), "Discrete(64)", "Discrete(4)"),
    "CliffWalking": ((0, 1), "Discrete(48)", "Discrete(4)"),
    "Taxi": ((1, 2, 3), "Discrete(500)", "Discrete(6)"),
}


def known_spaces(name: str) -> tuple[Space, Space] | None:
    """The spaces of observations and actions of an environment, by its name (`CartPole-v0`)."""
    stem, _, version = name.rpartition("-v")
    versions, observations, actions = TABLE.get(stem, ((), "", ""))
    if version not in map(str, versions):
        return None
    read = parse_repr(observations), parse_repr(actions)
    return None if read[0] is None or read[1] is None else (read[0], read[1])
