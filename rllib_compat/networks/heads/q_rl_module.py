"""Reads the Q-networks of the new API stack (Ray 2.35 – today)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.heads import q_head
from rllib_compat.networks.heads.q_network import default_table, network
from rllib_compat.networks.mapping import to_canonical
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import Reading
from rllib_compat.networks.ops.activations import activation
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError

#: Releases whose module centred the advantages' logits over the actions; later ones over the atoms.
_CENTRED_OVER_ACTIONS = re.compile(r"2\.([1-3]\d|40)\.")
_OVER_ATOMS = -1


def is_new(names: Iterable[str]) -> bool:
    """Whether arrays have a new-stack DQN module's names."""
    return any(name.startswith("encoder.") for name in names)


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads a new-stack module: an encoder, `af` for the advantages or Q-values, and maybe `vf`.

    Raises:
        NotYetError: Its encoder or its heads are none of dense layers.
        CheckpointError: The module and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    plain, _ = plain_names(policy)
    linear = activation(settings.activation, where="model").target == "linear"
    layers = sum(bool(re.fullmatch(r"af\.net\.mlp\.\d+\.weight", name)) for name in plain)
    names = default_table(0, layers - 1, linear=linear)
    arrays, left = to_canonical(names, plain)
    if left or not layers:
        raise NotYetError(
            f"Not yet: {len(left)} arrays of the module are no dense layers, for example "
            f"{(left or list(plain))[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    head = q_head.Head.of(settings)
    if head.dueling != ("state.kernel" in arrays):
        raise CheckpointError(
            f"The config says dueling={head.dueling}, the module was made with the opposite.",
            where=where,
            fix="Give the right config with --config.",
        )
    build = Builder()
    features = DENSE.add(build, Named(policy, settings, arrays, "rl_module", names))
    old = _CENTRED_OVER_ACTIONS.match(settings.ray or "")
    axis = q_head.OVER_ACTIONS if old else _OVER_ATOMS
    outputs = q_head.add(build, arrays, features, head, "torch", centred=axis)
    first = build.steps[0].name
    graph = Graph({"obs": (int(arrays[f"{first}.kernel"].shape[0]),)}, tuple(build.steps), outputs)
    made, findings = network(
        graph,
        arrays,
        head,
        settings,
        trunk="fully connected",
        scheme="rl_module",
        names=names,
        where=where,
    )
    return Reading(made, tuple(findings))
