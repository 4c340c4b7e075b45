"""What a base model is: its names in every scheme, and the steps that compute it.

A trunk turns an observation into features, before any head. It is the same under each head (an
actor-critic's, DQN's, SAC's) and below an LSTM, so it is described once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from rllib_compat.networks.graph import Builder
from rllib_compat.networks.mapping import Table
from rllib_compat.networks.named import Named
from rllib_compat.neutral.frozen import frozen


class Add(Protocol):
    """Adds a trunk's steps to a graph."""

    def __call__(self, build: Builder, named: Named, prefix: str = "", takes: str = "obs") -> str:
        """Adds them.

        Args:
            build: Collects the steps.
            named: The arrays.
            prefix: Of the arrays' names: `value_hidden.0` is the first layer of a value trunk.
            takes: The value that goes in.

        Returns:
            The name of the features.
        """


@frozen
class Trunk:
    """One kind of base model.

    Attributes:
        kind: What it is, in a word or two.
        tables: Its arrays' names in each scheme (`slim`, `keras`, `torch`).
        inputs: The shape of the observation that the arrays take.
        add: Adds its steps to a graph.
    """

    kind: str
    tables: Mapping[str, Table]
    inputs: Callable[[Named], tuple[int, ...]]
    add: Add
