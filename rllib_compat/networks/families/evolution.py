"""Reads and draws the policies of ES and ARS: one flat vector, whatever framework wrote it.

    tf      the policy's layers, input to output: what the actions depend on (Ray 0.5 – 2.x)
    tf2     the model's variables in the order of keras, a value function among them
    torch   the model's `state_dict` by *sorted* names, a value function among them (Ray 0.8.6 on)

The value function was made by the model and never trained. A Box action is the output itself;
everything else is drawn from the usual distribution. Sources: `es/policies.py`, `es_tf_policy.py`,
`es_torch_policy.py` and the same of ARS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays, NewModel
from rllib_compat.networks.families import actor_critic, vision
from rllib_compat.networks.families.actor_critic import named_today
from rllib_compat.networks.families.dense import (
    ACTOR,
    DETERMINISTIC,
    SCHEMES,
    VISION_SCHEMES,
    draw_trunk,
    fold_slopes,
    policy_only,
)
from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.mapping import Table, from_canonical, to_canonical
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.network import Network, Reading, own_module
from rllib_compat.networks.observations import preprocessed_image, require_image
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.vision import Filter, filters_for
from rllib_compat.networks.unnamed import (
    Rows,
    Shape,
    conv_rows,
    cut,
    dense_rows,
    layers,
    observation_size,
    total,
)
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Box, Space


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy, with the value function that nothing asks.

    Raises:
        ConfigError: No policy gives such actions, or the config asks for a memory.
    """
    outputs = deterministic_inputs(actions)
    if outputs is None:
        raise ConfigError(
            f"The action space {actions} is not supported.",
            where="action_space",
            fix="Use Discrete, MultiDiscrete, Box, or a Tuple or Dict of them.",
        )
    if settings.wrapper is not None:
        key = "use_lstm" if settings.model.get("use_lstm") else "use_attention"
        raise ConfigError(
            "ES and ARS do not support recurrent policies.",
            where=f"model.{key}",
            fix="Remove the key, or train PPO.",
        )
    draw_trunk(NewModel(arrays, _as_model(settings), outputs, value=True), seen)


def read_images(
    policy: PolicyState, settings: ModelSettings, outputs: int, *, deterministic: bool
) -> Reading:
    """Reads a vision network, whose weights are one vector.

    If it is `deterministic`, its outputs are the action itself.

    Raises:
        CheckpointError: The vector does not fit the config and the spaces.
    """
    vector = np.asarray(policy.weights).reshape(-1)
    rows = _torch_rows(policy, settings, outputs, vector.size)
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


def _torch_rows(policy: PolicyState, settings: ModelSettings, outputs: int, size: int) -> Rows:
    """The names and shapes in torch's `state_dict`, sorted (`models/torch/visionnet.py`).

    Of networks of another size than `size`, in any order.
    """
    image = require_image(policy, settings)
    filters = filters_for(settings.model, image)
    channels = filters[-1].channels
    made = [*filters, Filter(outputs, (1, 1), (1, 1))]
    rows = dict(conv_rows([*layers("conv", len(filters)), "logits"], image[-1], made))
    rows |= dict(dense_rows(["value"], (channels, 1)))
    return _sorted(rows, size, VISION_SCHEMES["torch"])


def _without_value(network: Network, *, deterministic: bool) -> Network:
    """The network's policy alone; its value function is among what nothing reads."""
    steps = network.graph.needed(["action_dist_inputs"])
    out = network.graph.outputs["action_dist_inputs"]
    outputs = {"action_dist_inputs": out} | ({"actions": out} if deterministic else {})
    graph = Graph(network.graph.inputs, steps, outputs)
    kept = {step.name for step in steps}
    arrays = {k: v for k, v in network.arrays.items() if k.rpartition(".")[0] in kept}
    own = {k: v for k, v in network.arrays.items() if k not in arrays}
    return replace(
        network,
        unused=(*network.unused, *from_canonical(network.names, own)),
        summary=f"{network.summary}; no value function",
        graph=graph,
        arrays=arrays,
        target=own_module(DETERMINISTIC if deterministic else ACTOR, graph, arrays),
    )


_EAGER = ("tf2", "tfe")
_SWISH = ("swish", "silu")

#: What to do about a vector of Ray 0.5 that does not fit: configs of ES and ARS have the same keys,
#: and the default of ARS's `policy_type` is linear.
_OTHER_POLICY = {
    "ES": "If ARS was trained, give --algorithm ARS. ",
    "ARS": 'If it was an MLPPolicy, give a config with "policy_type": "MLPPolicy" and its '
    '"fcnet_hiddens": --config FILE. ',
}

#: Without an action space, the number of outputs is searched for, up to this.
_MOST_OUTPUTS = 512


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy of ES or ARS."""
    if isinstance(policy.weights, dict):
        return _read_named(policy, settings)
    where, vector = where_of(policy), np.asarray(policy.weights).reshape(-1)
    outputs = None if policy.action_space is None else deterministic_inputs(policy.action_space)
    deterministic = isinstance(policy.action_space, Box)
    if outputs is not None and _sees_images(policy, settings):
        reading = read_images(policy, settings, outputs, deterministic=deterministic)
        return reading.noting(*_findings(policy, settings))
    inputs = observation_size(policy, settings)
    hiddens, name = layers_of(settings)
    for size in range(1, min(vector.size, _MOST_OUTPUTS)) if outputs is None else (outputs,):
        for shares_layers in (settings.shares_layers, not settings.shares_layers):
            shape = Shape(inputs, hiddens, size, shares_layers)
            for scheme, rows in _orders(shape, name, settings, vector.size):
                if total(rows) != vector.size:
                    continue
                arrays = cut(vector, rows)
                if scheme == "torch":
                    arrays, _ = to_canonical(SCHEMES["torch"], arrays)
                arrays = fold_slopes(arrays, where=where)
                named = Named(
                    policy,
                    replace(settings, activation=name),
                    {k: v for k, v in arrays.items() if not k.startswith("value")},
                    scheme,
                    SCHEMES["torch" if scheme == "torch" else "keras"],
                    unused=tuple(name for name, _ in rows if "value" in name),
                )
                network = policy_only(named, deterministic=deterministic)
                return named.reading(network, *_findings(policy, settings))
    may_have_own = settings.ray is None or _has_own_layers(settings)
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"fully connected network with {inputs} inputs, hidden layers {list(hiddens)} and "
        f"{outputs or 'unknown'} outputs",
        where,
        fix=_OTHER_POLICY.get(settings.algorithm, "") if may_have_own else "",
    )


def _read_named(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads arrays with names: of a new policy, or of BC's module, which trainers had."""
    deterministic = isinstance(policy.action_space, Box)
    if named := named_today(policy, settings):
        return named.reading(policy_only(named, deterministic=deterministic))
    outputs = None if policy.action_space is None else deterministic_inputs(policy.action_space)
    if outputs is None:
        raise refusals.needed(
            "The action space is needed: it decides the network's outputs.",
            "action",
            f"policies.{policy.policy_id}.action_space",
        )
    # With actions of as many choices as it gives numbers, it is that of an actor-critic.
    like = replace(policy, action_space=spaces.Discrete(outputs))
    reading = actor_critic.read(like, _as_model(settings))
    return replace(reading, network=_without_value(reading.known, deterministic=deterministic))


def _sees_images(policy: PolicyState, settings: ModelSettings) -> bool:
    image = preprocessed_image(policy.observation_space, settings)
    return image is not None and not _has_own_layers(settings)


def deterministic_inputs(space: Space) -> int | None:
    """How many numbers a policy gives for an action: for a Box, the action itself."""
    return space.flat_size() if isinstance(space, Box) else distribution_inputs(space)


def _has_own_layers(settings: ModelSettings) -> bool:
    """Whether it is of Ray 0.5, which did not read `model`; a key of its ARS shows it, too."""
    if settings.ray is None:
        return "policy_type" in settings.config
    return settings.ray.startswith("0.5")


def _as_model(settings: ModelSettings) -> ModelSettings:
    """The settings with the layers of Ray 0.5, where it is one, as those of a model."""
    if not _has_own_layers(settings):
        return settings
    hiddens, activation = layers_of(settings)
    return replace(settings, hiddens=hiddens, activation=activation, model={})


def layers_of(settings: ModelSettings) -> tuple[tuple[int, ...], str]:
    """The hidden layers and their activation."""
    if not _has_own_layers(settings):
        hiddens = settings.hidden_sizes
        return hiddens, settings.activation
    if settings.algorithm == "ES":
        return (256, 256), "tanh"
    if settings.config.get("policy_type", "LinearPolicy") == "LinearPolicy":
        return (), "tanh"
    return tuple(settings.config.get("fcnet_hiddens", (32, 32))), "tanh"


def _orders(
    shape: Shape, activation: str, settings: ModelSettings, size: int
) -> Iterator[tuple[str, Rows]]:
    """The orders in which a vector may hold the network: the scheme, and names and shapes."""
    yield "vector", shape.policy()
    both = dict([*shape.policy(), *shape.value()])
    if settings.config.get("framework") in _EAGER:
        order = shape.keras_order()
        names = [f"{layer}.{part}" for layer in order for part in ("kernel", "bias")]
        yield "list", [(name, both[name]) for name in names]
    table = SCHEMES["torch"]
    yield "torch", _sorted(both, size, table)
    if activation.lower() in _SWISH:
        # Ray 1.0 – 2.x had a slope in each of torch's swish.
        slopes = {n.replace("kernel", "beta"): (1,) for n in both if "hidden." in n}
        both |= {k: v for k, v in slopes.items() if k.endswith("beta")}
        yield "torch", _sorted(both, size, table)


def _sorted(shapes: Mapping[str, tuple[int, ...]], size: int, table: Table) -> Rows:
    """Names and shapes as torch's `state_dict` has them, sorted; of another size, in any order."""
    if total(shapes.items()) != size:  # a config's sizes take no memory, where they do not fit
        return list(shapes.items())
    named = from_canonical(table, {k: np.empty(v) for k, v in shapes.items()})
    return [(name, named[name].shape) for name in sorted(named)]


def _findings(policy: PolicyState, settings: ModelSettings) -> list[Finding]:
    """What else decided the actions, and is not in the weights."""
    findings = []
    config: Mapping[str, Any] = settings.config
    filtered = config.get("observation_filter", "MeanStdFilter") != "NoFilter"
    if filtered and not (policy.observation_filter and policy.observation_filter.stats):
        findings.append(
            Finding.warning(
                "observation-filter",
                Verdict.ABSENT,
                f"policies.{policy.policy_id}.observation_filter",
                "observations were normalised, and the checkpoint does not hold their mean and "
                "deviation (Ray 0.5 did not store them)",
                "give the module observations that are normalised as they were then",
            )
        )
    if isinstance(policy.action_space, Box):
        message = (
            "the output is the action; the noise that training added "
            f"(action_noise_std={config.get('action_noise_std', 0.01)}) is not part of it"
        )
        path = f"policies.{policy.policy_id}"
        findings.append(Finding.info("network", Verdict.NOTE, path, message))
    return findings
