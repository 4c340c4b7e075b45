"""Reads the fully connected networks of actor-critic algorithms, with and without names.

Named weights say themselves what network they are; the config adds what no array shows (the
activation) and is held against the rest. A contradiction is an error: then the config belongs to
another checkpoint, and its activation would be a guess.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rllib_compat.networks.graph import Array, Step
from rllib_compat.networks.heads import activated_outputs, encoder_rl_module
from rllib_compat.networks.heads.fcnet import (
    ACTOR_CRITIC_MODULE,
    SCHEMES,
    Shape,
    fold_slopes,
    fully_connected,
)
from rllib_compat.networks.mapping import to_canonical
from rllib_compat.networks.names.plain import keep_kl_coefficient, plain_names
from rllib_compat.networks.names.unnamed import (
    MOVING_AVERAGE,
    name_list,
    name_vector,
    scalars_of,
)
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.images import preprocessed_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the network of a policy.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    if isinstance(policy.weights, dict) and encoder_rl_module.is_meant(policy.weights):
        return encoder_rl_module.read(policy, settings)
    scalars: dict[str, float] = {}
    if isinstance(policy.weights, dict):
        arrays, scheme, scalars = _named(policy, where)
    else:
        arrays, scheme, scalars = _unnamed(policy, settings, where)
    keep_kl_coefficient(policy, scalars)
    if settings.model.get("no_final_linear"):
        return activated_outputs.network_of(arrays, scheme, policy, settings), []
    slopes = any(name.endswith(".beta") for name in arrays)
    arrays = fold_slopes(arrays, where=where)
    findings = _compare(Shape.of(arrays), policy, settings, where)
    network = fully_connected(arrays, settings.activation, scheme)
    if slopes:
        findings.append(
            Finding(
                "network",
                Severity.INFO,
                Verdict.DERIVED,
                where,
                "the trained slopes of swish were moved into the weights around them: the same "
                "function, with slopes that are not trained any further",
            )
        )
    if MOVING_AVERAGE in scalars:
        policy.extra[MOVING_AVERAGE] = scalars[MOVING_AVERAGE]
    return _of_arrays(network, policy, settings), findings


def _of_arrays(network: Network, policy: PolicyState, settings: ModelSettings) -> Network:
    """The same network for observations that are matrices or images, which it flattens itself."""
    space = policy.observation_space
    if not isinstance(space, Box) or len(space.shape) < 2:
        return network
    shape = preprocessed_image(space, settings) or space.shape
    steps = (
        replace(step, takes=tuple("flat" if name == "obs" else name for name in step.takes))
        for step in network.graph.steps
    )
    ravel = Step("ravel", "flat", ("obs",), {"axes": len(shape)})
    graph = replace(network.graph, inputs={"obs": shape}, steps=(ravel, *steps))
    target = own_module(ACTOR_CRITIC_MODULE, graph, network.arrays)
    return replace(network, graph=graph, target=target)


def _named(policy: PolicyState, where: str) -> tuple[dict[str, Array], str, dict[str, float]]:
    plain, scalars = plain_names(policy)
    found: list[tuple[int, str, dict[str, Array], list[str]]] = []
    for scheme, table in SCHEMES.items():
        arrays, left = to_canonical(table, plain)
        if arrays:
            found.append((len(left), scheme, arrays, left))
    left = min(found, key=lambda f: f[0])[3] if found else list(plain)
    if left:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(plain)} arrays belong to no fully connected "
            f"network, for example {left[0] if left else 'none'!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    _, scheme, arrays, _ = min(found, key=lambda f: f[0])
    return arrays, scheme, scalars


def _unnamed(
    policy: PolicyState, settings: ModelSettings, where: str
) -> tuple[dict[str, Array], str, dict[str, float]]:
    """Names the arrays of a list or a flat vector."""
    if isinstance(policy.weights, list):
        return name_list(policy.weights, where=where), "list", {}
    arrays, scalars = _cut_vector(policy, settings, where)
    return arrays, "vector", scalars


def _inputs(policy: PolicyState, settings: ModelSettings) -> int | None:
    """How many numbers the preprocessor makes of an observation."""
    if (image := preprocessed_image(policy.observation_space, settings)) is not None:
        return math.prod(image)
    return policy.observation_space.flat_size() if policy.observation_space else None


def _cut_vector(
    policy: PolicyState, settings: ModelSettings, where: str
) -> tuple[dict[str, Array], dict[str, float]]:
    inputs = _inputs(policy, settings)
    if inputs is None and policy.observation_filter and policy.observation_filter.stats:
        inputs = sum(stat.mean.size for stat in policy.observation_filter.stats)
    outputs = distribution_inputs(policy.action_space) if policy.action_space else None
    return name_vector(
        np.asarray(policy.weights),
        inputs=inputs,
        outputs=outputs,
        hiddens=settings.hiddens if settings.hiddens is not None else (256, 256),
        shares_layers=settings.shares_layers,
        free_log_std=settings.free_log_std,
        scalars=scalars_of(settings),
        where=where,
    )


def _compare(
    shape: Shape, policy: PolicyState, settings: ModelSettings, where: str
) -> list[Finding]:
    """Holds the network against the config and the spaces."""
    if settings.hiddens is not None and settings.hiddens != shape.hiddens:
        raise CheckpointError(
            f"The weights have hidden layers {list(shape.hiddens)}, the config says "
            f"{list(settings.hiddens)}: the config is not this checkpoint's.",
            where=where,
            fix="Give the right config with --config, or check --policy names.",
        )
    wanted = [("observation", policy.observation_space, shape.inputs, "inputs")]
    wanted += [("action", policy.action_space, shape.outputs, "outputs")]
    for name, space, have, what in wanted:
        size = None
        if space is not None:
            observed = name == "observation"
            size = _inputs(policy, settings) if observed else distribution_inputs(space)
        if size is not None and size != have:
            raise CheckpointError(
                f"The network has {have} {what}, the {name} space {space} needs {size}.",
                where=where,
                fix=f"Give the right one with --{name}-space.",
            )
    findings = []
    for key, said, is_so in (
        ("vf_share_layers", settings.shares_layers, shape.shares_layers),
        ("free_log_std", settings.free_log_std, shape.free_log_std),
    ):
        if said != is_so:
            findings.append(
                Finding(
                    "network",
                    Severity.INFO,
                    Verdict.NOTE,
                    where,
                    f"the config says {key}={said}, the weights were made with {is_so} "
                    "(some Rays ignored the key); the weights are followed",
                )
            )
    return findings
