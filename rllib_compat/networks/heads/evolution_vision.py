"""Reads the vision networks of ES: the actor-critic reader's, without the value function.

The vector is given back what that reader expects (names on torch, an untrained value function on
TensorFlow), and what it adds is taken away again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.heads import vision
from rllib_compat.networks.heads.outputs import ACTOR, DETERMINISTIC
from rllib_compat.networks.mapping import from_canonical
from rllib_compat.networks.names.actor_critic import VISION_SCHEMES
from rllib_compat.networks.names.unnamed import Rows, conv_rows, cut, dense_rows, layers, total
from rllib_compat.networks.network import Network, Reading, own_module
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.conv_filters import Filter, filters_for
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState


def read(
    policy: PolicyState, settings: ModelSettings, outputs: int, *, deterministic: bool
) -> Reading:
    """Reads a vision network.

    Args:
        policy: The policy; its weights are one vector.
        settings: What the config says of it.
        outputs: What the network gives.
        deterministic: Whether that is the action itself.

    Raises:
        CheckpointError: The vector does not fit the config and the spaces.
    """
    vector = np.asarray(policy.weights).reshape(-1)
    rows = _torch_rows(policy, settings, outputs)
    weights: dict[str, Array] | Array
    if total(rows) == vector.size:
        weights = cut(vector, rows)
        unused = tuple(name for name, _ in rows if "value" in name)
    else:
        features = filters_for(settings.model, require_image(policy, settings))[-1].channels
        weights = np.concatenate([vector, np.zeros(features + 1)])
        unused = ()
    as_actor_critic = replace(policy, weights=weights, action_space=spaces.Discrete(outputs))
    reading = vision.read(as_actor_critic, replace(settings, shares_layers=True))
    network = _without_value(reading.known, deterministic=deterministic)
    return replace(reading, network=replace(network, unused=unused))


def _torch_rows(policy: PolicyState, settings: ModelSettings, outputs: int) -> Rows:
    """The names and shapes in torch's `state_dict`, sorted (`models/torch/visionnet.py`)."""
    image = require_image(policy, settings)
    filters = filters_for(settings.model, image)
    channels = filters[-1].channels
    made = [*filters, Filter(outputs, (1, 1), (1, 1))]
    rows = dict(conv_rows([*layers("conv", len(filters)), "logits"], image[-1], made))
    rows |= dict(dense_rows(["value"], (channels, 1)))
    torch = from_canonical(VISION_SCHEMES["torch"], {k: np.empty(v) for k, v in rows.items()})
    return [(name, torch[name].shape) for name in sorted(torch)]


def _without_value(network: Network, *, deterministic: bool) -> Network:
    """The network's policy alone."""
    steps = network.graph.needed(["action_dist_inputs"])
    out = network.graph.outputs["action_dist_inputs"]
    outputs = {"action_dist_inputs": out} | ({"actions": out} if deterministic else {})
    graph = Graph(network.graph.inputs, steps, outputs)
    kept = {step.name for step in steps}
    arrays = {k: v for k, v in network.arrays.items() if k.rpartition(".")[0] in kept}
    return replace(
        network,
        summary=f"{network.summary}; no value function",
        graph=graph,
        arrays=arrays,
        target=own_module(DETERMINISTIC if deterministic else ACTOR, graph, arrays),
    )
