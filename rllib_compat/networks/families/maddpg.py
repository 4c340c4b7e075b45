"""Reads the networks of MADDPG (`contrib/maddpg` of Ray 0.6 – 1.13, `algorithms/maddpg` since).

Each agent has an actor that sees its own observations, a critic that sees what all agents observe
and do, and targets of both; all are dense layers. They become `MADDPGModule`. TensorFlow stored the
arrays without names, and no state of an optimizer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import Arrays
from rllib_compat.networks.graph import CRITIC, EVERYONE, POLICY, Array, Builder, Graph
from rllib_compat.networks.mapping import Move
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.network import OWN_PREFIX, TARGET_PREFIX, Reading, Target
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import (
    OUTPUTS,
    add_stack,
    describe_stack,
    layers_of_stack,
    module_names,
    module_names_in,
    with_targets,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.spaces import Box, Discrete, Space

MODULE = "rllib_compat.modules:MADDPGModule"
#: What today's module, and the config, call each stack.
_PARTS = {CRITIC: "critic", POLICY: "actor"}
#: The order of the old policy's variables.
_ORDER = (CRITIC, POLICY, TARGET_PREFIX + CRITIC, TARGET_PREFIX + POLICY)


def draw(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws the actor of an agent, and its critic.

    Raises:
        ConfigError: The agent observes no vector, or has other actions than Discrete or a vector.
    """
    observed, acted = sizes_of(seen, actions)
    sizes = {POLICY: (observed, acted), CRITIC: (observed + acted, 1)}
    if "critic_inputs" in settings.config:
        sizes[CRITIC] = settings.config["critic_inputs"], 1
    for stack, (takes, gives) in sizes.items():
        layers = [takes, *_hiddens(settings, stack), gives]
        for number, (before, after) in enumerate(itertools.pairwise(layers)):
            arrays.dense(f"{OWN_PREFIX}{_PARTS[stack]}.{2 * number}", before, after)


def sizes_of(seen: Space | None, actions: Space | None) -> tuple[int, int]:
    """How many numbers an agent observes, and an action of it has: a point of a simplex.

    Raises:
        ConfigError: The observations are no vector; the actions are neither Discrete nor a vector.
    """
    if not _is_vector(seen):
        raise ConfigError(
            f"MADDPG needs observations that are vectors; these are {seen}.",
            where="observation_space",
            fix="Add FlattenObservations(multi_agent=True) to the env_to_module_connector.",
        )
    if actions is None or (acted := _width(actions)) is None:
        raise ConfigError(
            f"MADDPG needs Discrete actions or vectors (Box); these are {actions}.",
            where="action_space",
            fix="Wrap the environment, so that its actions are Discrete or vectors.",
        )
    return seen.flat_size(), acted


def _is_vector(space: Space | None) -> TypeGuard[Box]:
    return isinstance(space, Box) and len(space.shape) == 1


def _width(actions: Space) -> int | None:
    return actions.flat_size() if isinstance(actions, Discrete) or _is_vector(actions) else None


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the networks of an agent's policy."""
    if isinstance(policy.weights, dict):  # of a module
        plain, table = policy.weights, module_names_in(_PARTS, policy.weights)
    else:
        plain = dict(_named(policy, settings))
        table = tuple(Move(name, name) for name in plain)
    named = Named.take(policy, settings, plain, "list", table, of="MADDPG network")
    for stack in _PARTS:
        named.require(f"{stack}.out.kernel", f"{stack}.out.bias")
    graph = _graph(named)
    arrays, findings = with_targets(named)
    hiddens = {stack: len(named.layers(f"{stack}.hidden")) for stack in _PARTS}
    target = Target(MODULE, _told(named, graph), module_names(_PARTS, hiddens))
    described = (describe_stack(named, stack) for stack in (POLICY, CRITIC))
    summary = f"maddpg {next(described)}, critic of all agents {next(described)}"
    network = named.network("actor of one agent", summary, graph, target, arrays)
    return named.reading(network, *findings)


def _named(policy: PolicyState, settings: ModelSettings) -> Iterator[tuple[str, Array]]:
    """The arrays by canonical name, in the order in which they were stored.

    Raises:
        NotYetError: There was something before the dense layers (`use_state_preprocessor`).
        CheckpointError: They are not those of these layers.
    """
    where, weights = where_of(policy), policy.weights
    if settings.config.get("use_state_preprocessor"):
        raise refusals.not_yet("MADDPG with use_state_preprocessor", where)
    sizes = {stack: _hiddens(settings, stack) for stack in _PARTS}
    layers = [
        (f"{stack}.hidden.{i}" if i < len(hiddens) else f"{stack}.out", size)
        for stack in _ORDER
        for hiddens in [sizes[stack.removeprefix(TARGET_PREFIX)]]
        for i, size in enumerate([*hiddens, None])
    ]
    arrays = weights if isinstance(weights, list) else []
    fits = len(arrays) == 2 * len(layers)
    pairs = zip(arrays[::2], arrays[1::2], strict=True) if fits else ()
    for (name, size), (kernel, bias) in zip(layers, pairs, strict=fits):
        if kernel.ndim != 2 or bias.shape != kernel.shape[1:] or size not in (None, len(bias)):
            fits = False
            break
        yield f"{name}.kernel", kernel
        yield f"{name}.bias", bias
    if not fits:
        names = ", ".join(f"{_PARTS[stack]}_hiddens {list(size)}" for stack, size in sizes.items())
        raise refusals.contradiction(
            f"The {len(weights)} arrays are not those of {names}, and of their targets.", where
        )


def _hiddens(settings: ModelSettings, stack: str) -> Sequence[int]:
    hiddens: Sequence[int] = settings.setting(f"{_PARTS[stack]}_hiddens")
    return hiddens


def _graph(named: Named) -> Graph:
    """What actor and critic compute.

    Raises:
        CheckpointError: The layers do not fit the spaces, or each other.
    """
    build = Builder()
    seen, everyone = (named.takes(layers_of_stack(named, stack)[0]) for stack in (POLICY, CRITIC))
    named.require_inputs((seen,))
    space, gives = named.policy.action_space, named.gives(f"{POLICY}.out")
    if space is not None and (wanted := _width(space)) != gives:
        if wanted is None:
            raise refusals.not_yet(f"MADDPG with the actions {space}", named.where)
        raise refusals.other_space("action", space, gives, wanted, named.where)
    logits = add_stack(build, named, POLICY, "obs", _activation(named, POLICY))
    value = add_stack(build, named, CRITIC, EVERYONE, _activation(named, CRITIC))
    outputs = {OUTPUTS[POLICY]: logits, OUTPUTS[CRITIC]: build.add("scalar", "q_values", value)}
    return Graph({"obs": (seen,), EVERYONE: (everyone,)}, tuple(build.steps), outputs)


def _activation(named: Named, stack: str) -> str:
    options = {**named.settings.config, **named.policy.extra.get("module_config", {})}
    return str(options.get(f"{_PARTS[stack]}_hidden_activation") or "relu")


def _told(named: Named, graph: Graph) -> Mapping[str, object]:
    """The module's options; the algorithm adds what its critic sees, and in which order."""
    options: dict[str, object] = {
        "critic_inputs": int(np.prod(graph.inputs[EVERYONE])),
        "distribution": {"kind": "simplex"},
    }
    for stack, part in _PARTS.items():
        options[f"{part}_hiddens"] = list(named.sizes(f"{stack}.hidden"))
        options[f"{part}_hidden_activation"] = _activation(named, stack)
    return options
