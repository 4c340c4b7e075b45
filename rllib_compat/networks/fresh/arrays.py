"""The arrays of a new policy, by the names and in the shapes that torch's policies had.

How they were drawn: `models/torch/misc.py` of Ray 0.8.5 – 2.x, and torch's own LSTM.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rllib_compat.networks.graph import Array


class Arrays:
    """Draws arrays, and keeps them by name.

    Args:
        rng: What they are drawn by.

    Attributes:
        drawn: The arrays so far.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.drawn: dict[str, Array] = {}

    def dense(self, name: str, takes: int, gives: int, norm: float | None = None) -> int:
        """Adds a dense layer without biases at first.

        Args:
            name: Its name.
            takes: How many numbers go in.
            gives: How many come out.
            norm: The length of each unit's weights; None: drawn after Glorot.

        Returns:
            How many come out.
        """
        if norm is None:
            weight = self._glorot((gives, takes))
        else:
            weight = self._rng.standard_normal((gives, takes))
            weight *= norm / np.sqrt(np.square(weight).sum(axis=1, keepdims=True))
        self._keep(f"{name}.weight", weight)
        self.constant(f"{name}.bias", gives)
        return gives

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

    def _keep(self, name: str, array: Any) -> None:
        self.drawn[name] = np.asarray(array, np.float32)
