"""Reads the vision networks of ES: the actor-critic reader's, without the value function.

The vector is given back what that reader expects (names on torch, an untrained value function on
TensorFlow), and what it adds is taken away again.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.heads import vision
from rllib_compat.networks.heads.policy_only import MODULES
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.conv_filters import filters_for
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Finding


def read(
    policy: PolicyState, settings: ModelSettings, outputs: int, *, deterministic: bool
) -> tuple[Network, list[Finding]]:
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
    named = _torch_names(policy, settings, outputs)
    weights: dict[str, Array] | Array
    if sum(math.prod(shape) for shape in named.values()) == vector.size:
        weights = _cut(vector, named)
        unused = tuple(name for name in named if "value" in name)
    else:
        features = filters_for(settings.model, require_image(policy, settings))[-1].channels
        weights = np.concatenate([vector, np.zeros(features + 1)])
        unused = ()
    as_actor_critic = replace(policy, weights=weights, action_space=spaces.Discrete(outputs))
    network, findings = vision.read(as_actor_critic, replace(settings, shares_layers=True))
    return replace(_without_value(network, deterministic=deterministic), unused=unused), findings


def _torch_names(
    policy: PolicyState, settings: ModelSettings, outputs: int
) -> dict[str, tuple[int, ...]]:
    """The names and shapes in torch's `state_dict`, sorted (`models/torch/visionnet.py`)."""
    image = require_image(policy, settings)
    filters = filters_for(settings.model, image)
    channels = image[-1]
    rows: dict[str, tuple[int, ...]] = {}
    for i, layer in enumerate(filters):
        number = 0 if i == len(filters) - 1 else 1  # behind the padding, except the last
        name = f"_convs.{i}._model.{number}"
        rows[f"{name}.weight"] = (layer.channels, channels, *layer.kernel)
        rows[f"{name}.bias"] = (layer.channels,)
        channels = layer.channels
    rows["_logits._model.1.weight"] = (outputs, channels, 1, 1)
    rows["_logits._model.1.bias"] = (outputs,)
    rows["_value_branch._model.0.weight"] = (1, channels)
    rows["_value_branch._model.0.bias"] = (1,)
    return {name: rows[name] for name in sorted(rows)}


def _cut(vector: Array, rows: dict[str, tuple[int, ...]]) -> dict[str, Array]:
    ends = np.cumsum([math.prod(shape) for shape in rows.values()])
    parts = np.split(vector, ends[:-1])
    return {
        name: part.reshape(shape) for (name, shape), part in zip(rows.items(), parts, strict=True)
    }


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
        target=own_module(MODULES[deterministic], graph, arrays),
    )
