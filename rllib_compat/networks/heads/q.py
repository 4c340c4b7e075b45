"""Reads the Q-networks of DQN, SimpleQ, APEX and R2D2: a base model, and a head of Q-values.

The weights' names say which layers there are; the config adds what no array shows (activations,
atoms) and is held against the rest. A contradiction is an error: then the config belongs to another
checkpoint, and what it adds would be a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads import q_head
from rllib_compat.networks.heads import q_rl_module as q_new
from rllib_compat.networks.heads.q_head import Head
from rllib_compat.networks.heads.q_network import network
from rllib_compat.networks.mapping import Table, to_canonical
from rllib_compat.networks.named import Named
from rllib_compat.networks.names import q as q_names
from rllib_compat.networks.names import q_unnamed
from rllib_compat.networks.names.kind import trunk_of
from rllib_compat.networks.names.lstm import LSTM_TABLES
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import Reading
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.complex import COMPLEX, is_complex
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.trunks.trunk import Trunk
from rllib_compat.networks.trunks.vision import VISION
from rllib_compat.networks.wrappers.lstm import add_lstm
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotConvertibleError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
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
    found = _find(policy, settings, where)
    arrays, trunk, scheme = found.arrays, found.trunk, found.scheme
    head, findings = _head(found, settings, where)
    build = Builder()
    states: Mapping[str, str] = {}
    named = Named(policy, settings, arrays, scheme, found.names, found.unused)
    if "lstm" in named:
        core = add_lstm(build, named, trunk)
        inputs, states, features = core.inputs, core.states, core.value
    else:
        inputs = {"obs": _observation(named, trunk)}
        features = trunk.add(build, named)
    outputs = q_head.add(build, arrays, features, head, scheme)
    graph = Graph(inputs, tuple(build.steps), outputs, states)
    findings += _compare(arrays, policy, settings, graph, head, where)
    made, more = network(
        graph,
        arrays,
        head,
        settings,
        trunk=f"LSTM over {trunk.kind}" if states else trunk.kind,
        scheme=scheme,
        names=found.names,
        unused=found.unused,
        where=where,
    )
    return Reading(made, (*findings, *more))


@dataclass(frozen=True)
class _Found:
    """The arrays of a policy under their canonical names.

    Attributes:
        arrays: They.
        scheme: The scheme of the names that they had.
        trunk: What the base model is made of.
        names: The names that they had.
        unused: Names of arrays that nothing reads.
    """

    arrays: dict[str, Array]
    scheme: str
    trunk: Trunk
    names: Table = ()
    unused: tuple[str, ...] = ()


def _find(policy: PolicyState, settings: ModelSettings, where: str) -> _Found:
    if isinstance(policy.weights, dict):
        return _find_named(policy, where)
    if settings.wrapper:
        raise NotYetError(
            f"Not yet: a Q-network with {settings.wrapper} whose arrays have no names.",
            where=where,
            fix="`--to msgpack` keeps all weights.",
        )
    if isinstance(policy.weights, list):
        arrays, unused = q_unnamed.name_list(policy.weights, settings, where)
        return _Found(arrays, "list", _trunk(arrays), unused=tuple(unused))
    arrays = q_unnamed.name_vector(np.asarray(policy.weights), policy, settings, where)
    return _Found(arrays, "vector", _trunk(arrays))


def _trunk(arrays: Mapping[str, Array]) -> Trunk:
    return VISION if any(name.startswith(("conv", "last.")) for name in arrays) else DENSE


def _find_named(policy: PolicyState, where: str) -> _Found:
    plain, _ = plain_names(policy)
    torch = any(name.endswith((".weight", ".bias", ".w")) for name in plain)
    scheme, parts = "torch" if torch else "keras", is_complex(policy, plain)
    trunk = COMPLEX if parts else trunk_of(plain)
    table = (*trunk.tables[scheme], *LSTM_TABLES[scheme])
    if torch:
        names = q_names.torch_names(plain, table)
    else:
        names = q_names.keras_names(plain, table, parts=parts)
    if names.left:
        raise NotYetError(
            f"Not yet: {len(names.left)} of the {len(plain)} arrays belong to no Q-network that "
            f"is known, for example {names.left[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    arrays, _ = to_canonical(names.table, {k: v for k, v in plain.items() if k not in names.unused})
    return _Found(arrays, scheme, trunk, names.table, names.unused)


def _observation(named: Named, trunk: Trunk) -> tuple[int, ...]:
    """The shape of the observation; a base model may have no layers at all."""
    if trunk is DENSE and not named.layers("hidden") and "out" not in named:
        first = ("logits", "advantage_hidden.0", "advantage")
        return (next(named.takes(n) for n in first if n in named),)
    return trunk.inputs(named)


def _head(found: _Found, settings: ModelSettings, where: str) -> tuple[Head, list[Finding]]:
    """The head by the config, held against the arrays: what no array shows would be a guess.

    Raises:
        NotYetError: What the Ray stored is not the network.
        CheckpointError: The config is another checkpoint's.
    """
    head, arrays, torch = Head.of(settings), found.arrays, found.scheme == "torch"
    noisy = any(".sigma_" in name for name in arrays)
    _require_stored(head, arrays, where, torch=torch, noisy=noisy)
    made = q_head.hiddens_of(arrays)
    lone = "advantage.kernel" in arrays and not made
    dueling = "state.kernel" in arrays
    findings = []
    for key, said, is_so, ignored in (
        # SimpleQ ignored `hiddens` from Ray 0.8 on; torch of Ray 0.8.5 did without dueling.
        ("hiddens", list(head.hiddens), made, settings.algorithm == "SimpleQ" or lone),
        # Without hidden layers, torch's streams are empty: both give what they take.
        ("dueling", head.dueling, dueling, torch and not head.hiddens),
        # torch of Ray 0.8.5 had no noisy layers.
        ("noisy", head.noisy, noisy, torch),
    ):
        if said != is_so and not ignored:
            raise CheckpointError(
                f"The weights were made with {key}={is_so}, the config says {said}: the config is "
                "not this checkpoint's.",
                where=where,
                fix="Give the right config with --config, or check --policy names.",
            )
        if said != is_so and key != "dueling" and settings.algorithm != "SimpleQ":
            message = f"that Ray ignored {key}={said} on torch; the weights are followed"
            findings.append(Finding("network", Severity.INFO, Verdict.NOTE, where, message))
    return replace(head, noisy=noisy), findings


def _require_stored(
    head: Head, arrays: Mapping[str, Array], where: str, *, torch: bool, noisy: bool
) -> None:
    # torch policies of Ray 0.8.5 had plain layers in spite of `noisy`.
    if head.noisy and not noisy and not (torch and "advantage.kernel" in arrays):
        raise NotConvertibleError(
            "The noisy layers of the Q-head are not in this checkpoint. Ray "
            "0.8.1 – 0.8.5 on TensorFlow and 0.8.6 – 1.0 on torch left them out when they saved.",
            where=where,
            fix="That Ray restores such a checkpoint with a random head, too. Train it anew.",
        )
    one = len(arrays.get("state.bias", ())) == 1
    if torch and one and head.num_atoms > 1:
        raise NotConvertibleError(
            "This Ray's Q-values depended on the batch. With dueling and "
            "num_atoms > 1, torch policies up to Ray 1.4 normalised over the batch instead of the "
            "atoms.",
            where=where,
            fix="There is no network that gives what it gave. Train it anew.",
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
