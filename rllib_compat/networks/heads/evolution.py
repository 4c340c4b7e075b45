"""Reads the policies of ES and ARS: one flat vector, whatever framework wrote it.

    tf      the policy's layers, input to output: what the actions depend on (Ray 0.5 – 2.x)
    tf2     the model's variables in the order of keras, a value function among them
    torch   the model's `state_dict` by *sorted* names, a value function among them (Ray 0.8.6 on)

The value function was made by the model and never trained. A Box action is the output itself;
everything else is drawn from the usual distribution. Sources: `es/policies.py`, `es_tf_policy.py`,
`es_torch_policy.py` and the same of ARS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.heads import evolution_vision
from rllib_compat.networks.heads.fcnet import SCHEMES, Shape, fold_slopes
from rllib_compat.networks.heads.policy_only import policy_only
from rllib_compat.networks.mapping import from_canonical, to_canonical
from rllib_compat.networks.names.unnamed import keras_order
from rllib_compat.networks.network import Network
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box, Space

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

_EAGER = ("tf2", "tfe")
_SWISH = ("swish", "silu")


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the network of a policy of ES or ARS.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        MissingInformationError: The size of the observations has to be given.
        CheckpointError: No order of the vector fits the config and the spaces.
    """
    where = f"policies.{policy.policy_id}.weights"
    vector = np.asarray(policy.weights).reshape(-1)
    outputs = None if policy.action_space is None else deterministic_inputs(policy.action_space)
    if outputs is not None and _sees_images(policy, settings):
        deterministic = isinstance(policy.action_space, Box)
        network, findings = evolution_vision.read(
            policy, settings, outputs, deterministic=deterministic
        )
        return network, findings + _findings(policy, settings)
    inputs = _inputs(policy, where)
    hiddens, activation = _layers(settings)
    wanted = range(1, vector.size) if outputs is None else (outputs,)
    for size in wanted:
        for shares_layers in (settings.shares_layers, not settings.shares_layers):
            shape = Shape(inputs, hiddens, size, shares_layers, free_log_std=False)
            for scheme, rows in _orders(shape, activation, settings):
                if sum(map(math.prod, rows.values())) != vector.size:
                    continue
                arrays = fold_slopes(_cut(vector, rows, scheme), where=where)
                kept = {k: v for k, v in arrays.items() if not k.startswith("value")}
                network = policy_only(
                    kept,
                    activation,
                    scheme,
                    deterministic=isinstance(policy.action_space, Box),
                    unused=tuple(name for name in rows if "value" in name),
                )
                return network, _findings(policy, settings)
    raise CheckpointError(
        f"The vector of {vector.size} numbers fits no fully connected network with {inputs} "
        f"inputs, hidden layers {list(hiddens)} and {outputs or 'unknown'} outputs.",
        where=where,
        fix="Check that the config (params.json) and the spaces belong to this checkpoint.",
    )


def _sees_images(policy: PolicyState, settings: ModelSettings) -> bool:
    image = preprocessed_image(policy.observation_space, settings)
    return image is not None and not (settings.ray or "").startswith("0.5")


def deterministic_inputs(space: Space) -> int | None:
    """How many numbers a policy gives for an action: for a Box, the action itself."""
    return space.flat_size() if isinstance(space, Box) else distribution_inputs(space)


def _inputs(policy: PolicyState, where: str) -> int:
    if policy.observation_space is not None:
        size = policy.observation_space.flat_size()
        if size is not None:
            return size
    if policy.observation_filter is not None and policy.observation_filter.stats:
        return sum(stat.mean.size for stat in policy.observation_filter.stats)
    raise MissingInformationError(
        "The weights are one vector without names; the size of the observations is needed to cut "
        "it.",
        where=where,
        fix="Give --observation-space 'Box(4,)' or --env CartPole-v1 (Python: "
        "observation_space=, env=).",
    )


def _layers(settings: ModelSettings) -> tuple[tuple[int, ...], str]:
    """The hidden layers and their activation. Ray 0.5 did not look at `model`."""
    if not (settings.ray or "").startswith("0.5"):
        return (256, 256) if settings.hiddens is None else settings.hiddens, settings.activation
    if settings.algorithm == "ES":
        return (256, 256), "tanh"
    if settings.config.get("policy_type", "LinearPolicy") == "LinearPolicy":
        return (), "tanh"
    return tuple(settings.config.get("fcnet_hiddens", (32, 32))), "tanh"


def _orders(
    shape: Shape, activation: str, settings: ModelSettings
) -> Iterator[tuple[str, dict[str, tuple[int, ...]]]]:
    """The orders in which a vector may hold the network: the scheme, and names and shapes."""
    policy, value = dict(shape.policy()), dict(shape.value())
    yield "vector", policy
    both = policy | value
    if settings.config.get("framework") in _EAGER:
        order = keras_order(
            len(shape.hiddens), shares_layers=shape.shares_layers, free_log_std=False
        )
        names = [f"{layer}.{part}" for layer in order for part in ("kernel", "bias")]
        yield "list", {name: both[name] for name in names}
    yield "torch", _sorted(both)
    if activation.lower() in _SWISH:
        # Ray 1.0 – 2.x had a slope in each of torch's swish.
        slopes = {n.replace("kernel", "beta"): (1,) for n in both if "hidden." in n}
        yield "torch", _sorted(both | {k: v for k, v in slopes.items() if k.endswith("beta")})


def _sorted(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Names and shapes as torch's `state_dict` has them, sorted."""
    named = from_canonical(SCHEMES["torch"], {k: np.empty(v) for k, v in shapes.items()})
    return {name: named[name].shape for name in sorted(named)}


def _cut(vector: Array, rows: Shapes, scheme: str) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    start = 0
    for name, shape in rows.items():
        arrays[name] = vector[start : start + math.prod(shape)].reshape(shape)
        start += math.prod(shape)
    return to_canonical(SCHEMES["torch"], arrays)[0] if scheme == "torch" else arrays


def _findings(policy: PolicyState, settings: ModelSettings) -> list[Finding]:
    """What else decided the actions, and is not in the weights."""
    findings = []
    config: Mapping[str, Any] = settings.config
    filtered = config.get("observation_filter", "MeanStdFilter") != "NoFilter"
    if filtered and not (policy.observation_filter and policy.observation_filter.stats):
        findings.append(
            Finding(
                "observation-filter",
                Severity.WARNING,
                Verdict.ABSENT,
                f"policies.{policy.policy_id}.observation_filter",
                "observations were normalised, and the checkpoint does not hold their mean and "
                "deviation (Ray 0.5 did not store them)",
                "give the module observations that are normalised as they were then",
            )
        )
    if isinstance(policy.action_space, Box):
        findings.append(
            Finding(
                "network",
                Severity.INFO,
                Verdict.NOTE,
                f"policies.{policy.policy_id}",
                "the output is the action; the noise that training added "
                f"(action_noise_std={config.get('action_noise_std', 0.01)}) is not part of it",
            )
        )
    return findings
