"""The arrays of a new policy, by the names and in the shapes that torch's policies had.

How they were drawn: `models/torch/misc.py` of Ray 0.8.5 – 2.x, and the LSTMs of torch and keras.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
from packaging.version import Version

from rllib_compat.networks.graph import Array
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, Space


class Arrays:
    """Draws arrays, and keeps them by name.

    Attributes:
        drawn: The arrays so far.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.drawn: dict[str, Array] = {}

    def dense(
        self, name: str, takes: int, gives: int, norm: float | None = None, *, bias: bool = True
    ) -> int:
        """Adds a dense layer, whose biases begin with zero; returns how many numbers come out.

        The weights of each unit have the length `norm`; None: they are drawn after Glorot.
        """
        if norm is None:
            weight = self._glorot((gives, takes))
        else:
            weight = self._rng.standard_normal((gives, takes))
            weight *= norm / np.sqrt(np.square(weight).sum(axis=1, keepdims=True))
        self._keep(f"{name}.weight", weight)
        if bias:
            self.constant(f"{name}.bias", gives)
        return gives

    def matrix(self, name: str, shape: tuple[int, int]) -> None:
        """Adds a matrix, drawn after Glorot."""
        self._keep(name, self._glorot(shape))

    def gate(self, name: str, size: int, bias: float) -> None:
        """Adds a gate of an attention net, whose bias begins with one number throughout."""
        for part in ("_w_r", "_w_z", "_w_h", "_u_r", "_u_z", "_u_h"):
            self.matrix(f"{name}.{part}", (size, size))
        self.constant(f"{name}._bias_z", size, bias)

    def linear(self, name: str, takes: int, gives: int) -> int:
        """Adds a dense layer, drawn as torch draws one by itself, but for its biases."""
        bound = 1 / math.sqrt(takes)
        self._keep(f"{name}.weight", self._rng.uniform(-bound, bound, (gives, takes)))
        self.constant(f"{name}.bias", gives)
        return gives

    def convolution(self, name: str, takes: int, gives: int, kernel: tuple[int, int]) -> int:
        """Adds a convolution, drawn after Glorot; its sizes are numbers of channels."""
        self._keep(f"{name}.weight", self._glorot((gives, takes, *kernel)))
        self.constant(f"{name}.bias", gives)
        return gives

    def lstm(self, name: str, takes: int, cells: int) -> None:
        """Adds an LSTM, with the two biases that torch has for it."""
        bound = 1 / math.sqrt(cells)
        for part, shape in (
            ("weight_ih_l0", (4 * cells, takes)),
            ("weight_hh_l0", (4 * cells, cells)),
            ("bias_ih_l0", (4 * cells,)),
            ("bias_hh_l0", (4 * cells,)),
        ):
            self._keep(f"{name}.{part}", self._rng.uniform(-bound, bound, shape))

    def lstm_of_tensorflow(self, name: str, takes: int, cells: int) -> None:
        """Adds an LSTM with the one bias that TensorFlow had for it, which begins by keeping."""
        self.matrix(f"{name}.weight_ih_l0", (4 * cells, takes))
        orthogonal, triangle = np.linalg.qr(self._rng.standard_normal((4 * cells, cells)))
        self._keep(f"{name}.weight_hh_l0", orthogonal * np.sign(np.diag(triangle)))
        forgets = np.repeat([0.0, 1.0, 0.0, 0.0], cells)  # by gate
        self._keep(f"{name}.bias_ih_l0", forgets)

    def noisy(self, name: str, takes: int, gives: int, sigma: float) -> int:
        """Adds a noisy layer, whose noise begins with a deviation of `sigma`."""
        bound = 1 / math.sqrt(takes)
        self._keep(f"{name}.sigma_w", self._rng.uniform(-bound, bound, (takes, gives)))
        self.constant(f"{name}.sigma_b", gives, sigma * bound)
        self._keep(f"{name}.w", self._glorot((takes, gives)))
        self.constant(f"{name}.b", gives)
        return gives

    def norm(self, name: str, size: int) -> None:
        """Adds a layer norm that changes nothing at first."""
        self.constant(f"{name}.weight", size, 1.0)
        self.constant(f"{name}.bias", size)

    def constant(self, name: str, size: int, value: float = 0.0) -> None:
        """Adds a vector that begins with one number throughout."""
        self._keep(name, np.full(size, value))

    def _glorot(self, shape: tuple[int, ...]) -> Any:
        area = math.prod(shape[2:])
        bound = math.sqrt(6 / (area * (shape[0] + shape[1])))
        return self._rng.uniform(-bound, bound, shape)

    def _keep(self, name: str, array: object) -> None:
        self.drawn[name] = np.asarray(array, np.float32)


#: The length of each unit's weights: in hidden layers, and in those that give what is asked for.
HIDDEN, OUT = 1.0, 0.01


def since(settings: ModelSettings, first: str) -> bool:
    """Whether a config is for that Ray or a later one; by default, it is."""
    return settings.ray is None or Version(settings.ray) >= Version(first)


def on_torch(settings: ModelSettings) -> bool:
    """Whether a config is for torch; so it is if it has neither a framework nor a Ray."""
    config = settings.config
    framework = config.get("framework")
    if framework is None and settings.ray is None:
        return True
    return framework == "torch" or config.get("use_pytorch") is True


@frozen
class NewModel:
    """A base model that is to be drawn.

    Attributes:
        arrays: Takes its arrays.
        settings: What the config says of it.
        outputs: How many numbers it has to give; None: its features, as a wrapper takes them.
        prefix: Of all names.
        value: Whether it has a value function.
    """

    arrays: Arrays
    settings: ModelSettings
    outputs: int | None = None
    prefix: str = ""
    value: bool = False

    def norm_of_value(self, small_since: str) -> float:
        """The length of a value function's last weights, which were small later on torch."""
        small = not on_torch(self.settings) or since(self.settings, small_since)
        return OUT if small else HIDDEN


def draw_stack(arrays: Arrays, name: str, takes: int, sizes: Iterable[int], first: int = 0) -> int:
    """Draws hidden layers, numbered from `first` on; returns how many numbers the last gives."""
    for number, size in enumerate(sizes, start=first):
        takes = arrays.dense(f"{name}.{number}._model.0", takes, size, HIDDEN)
    return takes


def draw_hidden(arrays: Arrays, name: str, takes: int, sizes: Iterable[int]) -> int:
    """Draws hidden layers after Glorot; returns how many numbers the last gives."""
    for number, size in enumerate(sizes):
        takes = arrays.dense(f"{name}_{number}._model.0", takes, size)
    return takes


def is_image(space: Space) -> TypeGuard[Box]:
    """Whether observations are images."""
    return isinstance(space, Box) and len(space.shape) == 3
