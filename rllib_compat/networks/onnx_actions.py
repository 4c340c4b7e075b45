"""The action that a policy takes, as nodes of an ONNX model behind the network's outputs.

It is what `actions.py` computes in numpy for a policy that does not explore: the best action of the
distribution, stretched or clipped to the action space.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from rllib_compat.networks.actions import ActionChooser, ActionFitting
from rllib_compat.networks.distributions import (
    Categorical,
    Deterministic,
    Distribution,
    Gaussian,
    Joint,
    Squashed,
)
from rllib_compat.networks.graph import Array
from rllib_compat.networks.ops.in_onnx import Nodes
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, MultiDiscrete, Space


@frozen
class Acting:
    """How a policy acts.

    Attributes:
        chooser: Chooses an action by an output of the network.
        fitting: How actions are fitted to their space.
        space: The action space.
    """

    chooser: ActionChooser
    fitting: ActionFitting
    space: Space

    def __call__(self, output: Array) -> Array:
        """The actions by a batch of the network's output."""
        made: Array = self.fitting(self.chooser.distribution.best(output), self.space)
        return made

    @property
    def in_onnx(self) -> bool:
        """Whether its action is one array, of a distribution that has nodes."""
        chosen = self.chooser.distribution
        return isinstance(chosen, (Categorical, Gaussian, Squashed, Deterministic)) or (
            isinstance(chosen, Joint) and isinstance(self.space, MultiDiscrete)
        )

    def add_to(self, nodes: Nodes) -> tuple[str, tuple[int, ...]]:
        """Adds nodes behind the model's outputs; gives the action's name and shape."""
        value = _best(nodes, self.chooser.distribution, self.chooser.output)
        if not isinstance(self.space, Box):
            return value, (len(self.space.nvec),) if isinstance(self.space, MultiDiscrete) else ()
        value = nodes.reshape(value, *self.space.shape)
        return self._fitted(nodes, value, self.space), self.space.shape

    def _fitted(self, nodes: Nodes, value: str, space: Box) -> str:
        stretches = self.fitting.unsquash and space.bounded and space.dtype.startswith("float")
        if stretches:
            scale = (space.high - space.low) / 2.0
            value = nodes.add("Mul", nodes.add("Add", value, np.array(1.0)), scale)
            value = nodes.add("Add", value, space.low)
        elif not self.fitting.clip:
            return value
        return _clipped(nodes, value, space.low, space.high)


def _best(nodes: Nodes, chosen: Distribution, output: str) -> str:
    if isinstance(chosen, Categorical):
        return str(nodes.add("ArgMax", output, axis=-1, keepdims=0))
    if isinstance(chosen, Joint):  # of choices
        ends = np.cumsum([0, *(part.size for part in chosen.parts)])
        parts = [nodes.slice(output, int(a), int(b)) for a, b in pairwise(ends)]
        made = [nodes.add("ArgMax", part, axis=-1, keepdims=1) for part in parts]
        return str(nodes.add("Concat", *made, axis=-1))
    if isinstance(chosen, Deterministic):
        return output
    assert isinstance(chosen, (Gaussian, Squashed)), "in_onnx has said so"
    value = nodes.slice(output, 0, math.prod(chosen.shape))
    if isinstance(chosen, Squashed):
        low, high = (np.asarray(bound, np.float64) for bound in (chosen.low, chosen.high))
        for _ in range(chosen.squashes):
            value = nodes.add("Tanh", value)
        scale = np.asarray((high - low) / 2)
        value = nodes.add("Mul", nodes.add("Add", value, np.array(1.0)), scale)
        value = _clipped(nodes, nodes.add("Add", value, low), low, high)
    return value


def _clipped(nodes: Nodes, value: str, low: Array, high: Array) -> str:
    return str(nodes.add("Min", nodes.add("Max", value, low), high))
