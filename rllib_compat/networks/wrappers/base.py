"""What an LSTM or an attention net sits on: a base model, and what else goes in beside it.

RLlib's wrappers (`use_lstm`, `use_attention`) put a base model below them: a trunk without its own
head. What comes out of it, and the previous actions and rewards where the config asks for them,
goes into the recurrent part.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.named import Named
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.wrappers.previous_steps import Previous, one_hot_size, previous
from rllib_compat.neutral.frozen import frozen


@frozen
class Base:
    """The part of a graph below the wrapper.

    Attributes:
        value: The name of what the wrapper takes.
        features: The name of the trunk's features, which are a part of it.
        inputs: The graph's inputs so far.
        previous: Which previous actions and rewards go in.
    """

    value: str
    features: str
    inputs: Mapping[str, tuple[int, ...]]
    previous: Previous


def add_base(
    build: Builder,
    named: Named,
    trunk: Trunk,
    layer: str,
    actions: int,
    rewards: int,
    *,
    raw_first: bool = False,
) -> Base:
    """Adds a trunk, and previous actions and rewards.

    Args:
        build: Collects the steps.
        named: The arrays.
        trunk: The base model.
        layer: The layer that takes all of it; how many numbers it takes tells what goes in.
        actions: How many previous actions the config asks for.
        rewards: How many previous rewards.
        raw_first: See `previous`.
    """
    kernel = named.arrays[f"{layer}.kernel"]
    # A trunk of several parts holds its size against the rows that take its features.
    behind = kernel[: len(kernel) - one_hot_size(named.policy, actions, rewards)]
    shape = trunk.inputs(named)
    features = trunk.add(build, named.having({"logits.kernel": behind}))
    graph = Graph({"obs": shape}, tuple(build.steps), {"features": features})
    zeros = {"obs": np.zeros((1, *shape))}
    made = graph.evaluate(named.arrays, zeros, where=f"the {trunk.kind} network")["features"]
    size = len(kernel) - int(made.shape[-1])
    before = previous(named, actions, rewards, size, raw_first=raw_first)
    inputs = {"obs": shape, **before.inputs()}
    return Base(before.add(build, features), features, inputs, before)
