"""Reads networks with attention (`use_attention`, GTrXL): RLlib's wrapper around its models.

A unit's memory is what went into it in the last `attention_memory_inference` steps, zeros before
the first one: the states `memory_0`, `memory_1`, … `[memory, attention_dim]`, oldest first. In
training, old Rays remembered `attention_memory_training` steps in front of each sequence; modules
have one memory for both.

Sources: `models/{torch,tf}/attention_net.py` (Ray 1.2 – 2.x; the same in all of them).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import to_canonical
from rllib_compat.networks.names import attention as names
from rllib_compat.networks.names.lstm import dead
from rllib_compat.networks.names.plain import keep_kl_coefficient, plain_names
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.complex import COMPLEX, second_names
from rllib_compat.networks.wrappers.previous_steps import (
    add_trunk,
    observation_shape,
    one_hot_size,
    previous,
    size_of_features,
    trunk_of,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict

KIND = "attention"

MODULE = "rllib_compat.modules:ActorCriticModule"

#: What each framework's layer norm adds to the variance.
_EPSILON = {"torch": 1e-5, "keras": 1e-3}


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the network of an actor-critic algorithm with attention.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: A space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    if not isinstance(policy.weights, dict):
        raise NotYetError(
            "Not yet: attention in weights without names (TF2).",
            where=where,
            fix="`--to msgpack` keeps all weights.",
        )
    plain, scalars = plain_names(policy)
    keep_kl_coefficient(policy, scalars)
    scheme = "torch" if any(name.startswith("gtrxl.") for name in plain) else "keras"
    trunk = trunk_of(plain, policy)
    constants = [name for name in plain if names.CONSTANT.fullmatch(name)]
    unused = dead(trunk, scheme, plain)
    alive = {k: v for k, v in plain.items() if k not in unused and k not in constants}
    renamed = names.ordered(alive) if scheme == "keras" else {name: name for name in alive}
    rows = (*names.ATTENTION_TABLES[scheme], *trunk.tables[scheme])
    table = names.concrete(rows, renamed)
    arrays, left = to_canonical(table, alive)
    if left:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(plain)} arrays belong to no attention around a "
            f"{trunk.kind} network, for example {left[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    units = _require_units(arrays, policy, settings, where)
    build = Builder()
    shape = observation_shape(trunk, arrays, policy, settings)
    actions, rewards = _previous_of(settings)
    kernel = arrays["embed.kernel"]
    behind = kernel[: len(kernel) - one_hot_size(policy, actions, rewards)]
    features = add_trunk(build, trunk, arrays, policy, settings, behind)
    size = len(kernel) - size_of_features(build, arrays, shape, features)
    before = previous(policy, actions, rewards, size, raw_first=False, where=where)
    top = build.add("dense", "embed", before.add(build, features))
    for unit in range(units):
        top = _add_unit(build, unit, top, _EPSILON[scheme])
    logits, value = build.add("dense", "logits", top), build.add("dense", "value", top)
    outputs = {"action_dist_inputs": logits, "vf_preds": build.add("scalar", "vf_preds", value)}
    memory = (int(settings.model.get("attention_memory_inference", 50)), _size(arrays))
    states = {f"memory_{i}": f"attention.{i}.memory" for i in range(units)}
    inputs = {"obs": shape, **before.inputs(), **dict.fromkeys(states, memory)}
    graph = Graph(inputs, tuple(build.steps), outputs, states)
    network = Network(
        kind=KIND,
        summary=_describe(arrays, graph, trunk.kind, units, memory),
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=own_module(
            MODULE, graph, arrays, max_seq_len=int(settings.model.get("max_seq_len", 20))
        ),
        names=table,
        unused=tuple(unused),
        aliases=tuple(second_names(plain)) if trunk is COMPLEX else (),
    )
    return network, _findings(settings, memory[0], where)


def _add_unit(build: Builder, unit: int, takes: str, epsilon: float) -> str:
    """Adds one transformer unit: attention, then two dense layers, each behind a gate."""
    seen = build.add(
        "relative_attention", f"attention.{unit}", takes, f"memory_{unit}", epsilon=epsilon
    )
    between = build.add("gru_gate", f"attention_gate.{unit}", takes, seen)
    normed = build.add("layer_norm", f"mlp_norm.{unit}", between, epsilon=epsilon)
    hidden = build.add("dense", f"mlp_hidden.{unit}", normed, activation="relu")
    out = build.add("dense", f"mlp_out.{unit}", hidden, activation="relu")
    return build.add("gru_gate", f"mlp_gate.{unit}", between, out)


def _size(arrays: Mapping[str, Array]) -> int:
    return len(arrays["embed.bias"])


def _previous_of(settings: ModelSettings) -> tuple[int, int]:
    """How many previous actions and rewards the config asks for."""
    model = settings.model
    actions = model.get("attention_use_n_prev_actions")
    return int(actions or 0), int(model.get("attention_use_n_prev_rewards") or 0)


def _require_units(
    arrays: Mapping[str, Array], policy: PolicyState, settings: ModelSettings, where: str
) -> int:
    """How many units there are; the arrays are held against the config and the action space."""
    for name in ("embed.bias", "attention.0.u", "logits.bias", "value.bias"):
        if name not in arrays:
            raise CheckpointError(f"The network has no {name}.", where=where)
    units = sum(bool(re.fullmatch(r"attention\.\d+\.u", name)) for name in arrays)
    heads, head = arrays["attention.0.u"].shape
    found = {
        "attention_num_transformer_units": units,
        "attention_dim": _size(arrays),
        "attention_num_heads": int(heads),
        "attention_head_dim": int(head),
    }
    for key, have in found.items():
        said = settings.model.get(key)
        if said is not None and said != have:
            raise CheckpointError(
                f"The weights were made with {key} {have}, the config says {said}: the config is "
                "not this checkpoint's.",
                where=where,
                fix="Give the right config with --config, or check --policy names.",
            )
    outputs = len(arrays["logits.bias"])
    wanted = distribution_inputs(policy.action_space) if policy.action_space else None
    if wanted is not None and wanted != outputs:
        raise CheckpointError(
            f"The network has {outputs} outputs, the action space {policy.action_space} needs "
            f"{wanted}.",
            where=where,
            fix="Give the right one with --action-space.",
        )
    return units


def _describe(
    arrays: Mapping[str, Array], graph: Graph, trunk: str, units: int, memory: tuple[int, int]
) -> str:
    """One line for tables: `attention 2 x 16, memory 50, over fully connected 4, 2 outputs`."""
    shape = "x".join(map(str, graph.inputs["obs"]))
    outputs = np.size(arrays["logits.bias"])
    net = f"attention {units} x {memory[1]}, memory {memory[0]}"
    return f"{net}, over {trunk} {shape}, {outputs} outputs"


def _findings(settings: ModelSettings, memory: int, where: str) -> list[Finding]:
    training = settings.model.get("attention_memory_training", 50)
    if training == memory:
        return []
    return [
        Finding(
            "network",
            Severity.WARNING,
            Verdict.DERIVED,
            where,
            f"training remembered {training} steps in front of a sequence, acting {memory}; the "
            "module remembers as many for both",
            "actions are as before; further training sees another memory",
        )
    ]
