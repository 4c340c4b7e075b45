"""Reads the Q-networks of DQN, SimpleQ, APEX and R2D2: a base model, and a head of Q-values.

The weights' names say which layers there are; the config adds what no array shows (activations,
atoms) and is held against the rest. A contradiction is an error: then the config belongs to another
checkpoint, and what it adds would be a guess.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rllib_compat.checkpoints.state import PolicyState
from rllib_compat.errors import CheckpointError, NotYetError
from rllib_compat.networks.families import q_head, q_names, q_new, q_unnamed
from rllib_compat.networks.families.names import plain_names
from rllib_compat.networks.families.q_head import Head
from rllib_compat.networks.families.q_network import network
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.networks.network import Network
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunk_vision import VISION
from rllib_compat.networks.trunks import FULLY_CONNECTED, Trunk
from rllib_compat.report import Finding, Severity, Verdict


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the Q-network of a policy, and its target network.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A size has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    if isinstance(policy.weights, dict) and q_new.is_new(policy.weights):
        return q_new.read(policy, settings)
    arrays, names, scheme, unused = _arrays(policy, settings, where)
    trunk = _trunk(arrays)
    head = Head.of(settings)
    _require_head(arrays, head, scheme, where, simple=settings.algorithm == "SimpleQ")
    build = Builder()
    inputs = {"obs": _observation(arrays, trunk, policy, settings)}
    features = trunk.add(build, arrays, policy, settings, "")
    outputs = q_head.add(build, arrays, features, head, scheme)
    graph = Graph(inputs, tuple(build.steps), outputs)
    findings = _compare(arrays, policy, settings, graph, head, where)
    made, more = network(
        graph,
        arrays,
        head,
        settings,
        trunk=trunk.kind,
        scheme=scheme,
        names=names,
        unused=unused,
        where=where,
    )
    return made, findings + more


def _arrays(
    policy: PolicyState, settings: ModelSettings, where: str
) -> tuple[dict[str, Array], Table, str, tuple[str, ...]]:
    """The canonical arrays, their names, the scheme of the names, and what nothing reads."""
    if settings.wrapper and not isinstance(policy.weights, dict):
        raise NotYetError(
            f"Not yet: a Q-network with {settings.wrapper} whose arrays have no names.",
            where=where,
            fix="`--to msgpack` keeps all weights.",
        )
    if isinstance(policy.weights, list):
        arrays, unused = q_unnamed.name_list(policy.weights, settings, where)
        return arrays, (), "list", tuple(unused)
    if not isinstance(policy.weights, dict):
        arrays = q_unnamed.name_vector(np.asarray(policy.weights), policy, settings, where)
        return arrays, (), "vector", ()
    plain, _ = plain_names(policy)
    torch = any(name.endswith((".weight", ".bias", ".w")) for name in plain)
    scheme = "torch" if torch else "keras"
    trunk = VISION if any("conv" in name for name in plain) else FULLY_CONNECTED
    find = q_names.torch_names if torch else q_names.keras_names
    names = find(plain, trunk.tables[scheme])
    if names.left:
        raise NotYetError(
            f"Not yet: {len(names.left)} of the {len(plain)} arrays belong to no Q-network that "
            f"is known, for example {names.left[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    arrays, _ = to_canonical(names.table, {k: v for k, v in plain.items() if k not in names.unused})
    return arrays, names.table, scheme, names.unused


def _trunk(arrays: Mapping[str, Array]) -> Trunk:
    return VISION if any(name.startswith(("conv", "last.")) for name in arrays) else FULLY_CONNECTED


def _observation(
    arrays: Mapping[str, Array], trunk: Trunk, policy: PolicyState, settings: ModelSettings
) -> tuple[int, ...]:
    """The shape of the observation; a base model may have no layers at all."""
    if trunk is FULLY_CONNECTED and not {"hidden.0.kernel", "out.kernel"} & arrays.keys():
        first = ("logits", "advantage_hidden.0", "advantage")
        return (next(arrays[f"{n}.kernel"].shape[0] for n in first if f"{n}.kernel" in arrays),)
    return trunk.inputs(arrays, policy, settings)


def _require_head(
    arrays: Mapping[str, Array], head: Head, scheme: str, where: str, *, simple: bool
) -> None:
    """Holds the head against the config: what no array shows would be a guess otherwise.

    Raises:
        NotYetError: That Ray lost the head.
        CheckpointError: The config is another checkpoint's.
    """
    if head.noisy and not any(".sigma_" in name for name in arrays):
        raise NotYetError(
            "Not yet, and never: the noisy layers of the Q-head are not in this checkpoint. "
            "TensorFlow policies of Ray 0.8.1 – 0.8.5 left them out when they were saved.",
            where=where,
            fix="That Ray restores such a checkpoint with a random head, too. Train it anew.",
        )
    made = tuple(
        arrays[f"advantage_hidden.{i}.kernel"].shape[1]
        for i in range(len(arrays))
        if f"advantage_hidden.{i}.kernel" in arrays
    )
    dueling = "state.kernel" in arrays
    lone = "advantage.kernel" in arrays and not made
    said = [
        # SimpleQ ignored `hiddens` from Ray 0.8 on; torch of Ray 0.8.5 did without dueling.
        ("hiddens", list(head.hiddens), list(made), simple or (lone and not dueling)),
        # Without hidden layers, torch's streams are empty: both give what they take.
        ("dueling", head.dueling, dueling, scheme == "torch" and not head.hiddens),
        ("noisy", head.noisy, any(".sigma_" in name for name in arrays), False),
    ]
    for key, theirs, ours, ignored in said:
        if theirs != ours and not ignored:
            raise CheckpointError(
                f"The weights were made with {key}={ours}, the config says {theirs}: the config "
                "is not this checkpoint's.",
                where=where,
                fix="Give the right config with --config, or check --policy names.",
            )


def _compare(
    arrays: Mapping[str, Array],
    policy: PolicyState,
    settings: ModelSettings,
    graph: Graph,
    head: Head,
    where: str,
) -> list[Finding]:
    """Holds the network against the spaces and the hidden layers of the config."""
    inputs = graph.inputs["obs"]
    actions = q_head.width_of(arrays, "advantage", "logits") // head.num_atoms
    seen = policy.observation_space.flat_size() if policy.observation_space else None
    acts = distribution_inputs(policy.action_space) if policy.action_space else None
    for what, have, need, space in (
        ("inputs", int(np.prod(inputs)), seen if len(inputs) == 1 else None, "observation"),
        ("actions", actions, acts, "action"),
    ):
        if need is not None and need != have:
            raise CheckpointError(
                f"The network has {have} {what}, the {space} space needs {need}.",
                where=where,
                fix=f"Give the right one with --{space}-space.",
            )
    made = _hiddens(arrays)
    if settings.hiddens is not None and made and made[:-1] != settings.hiddens[: len(made) - 1]:
        raise CheckpointError(
            f"The weights have hidden layers {list(made)}, the config says "
            f"{list(settings.hiddens)}: the config is not this checkpoint's.",
            where=where,
            fix="Give the right config with --config, or check --policy names.",
        )
    if head.norm:
        message = (
            "the weights were stored as they were; with parameter noise that may include the "
            "noise of the running episode"
        )
        return [Finding("network", Severity.INFO, Verdict.NOTE, where, message)]
    return []


def _hiddens(arrays: Mapping[str, Array]) -> tuple[int, ...]:
    """The sizes of the base model's dense layers."""
    names = [f"hidden.{i}.kernel" for i in range(len(arrays))] + ["out.kernel"]
    return tuple(arrays[name].shape[1] for name in names if name in arrays)
