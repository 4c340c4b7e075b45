"""Reads the networks of actor-critic algorithms for observations of several parts.

The parts and the layers behind them are the trunk's (`networks.trunk_complex`); on these sit one
layer for the outputs and one for the value function (`models/**/complex_input_net.py`, 1.2 – 2.x).
"""

from __future__ import annotations

from collections.abc import Mapping

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads.fcnet import ACTOR_CRITIC_MODULE
from rllib_compat.networks.mapping import Move, Table, keras, to_canonical, torch_dense
from rllib_compat.networks.names.plain import keep_kl_coefficient, plain_names
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.complex import COMPLEX, TABLES, dead_names, second_names
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.report import Finding

SCHEMES: Mapping[str, Table] = {
    "torch": (
        *TABLES["torch"],
        *torch_dense("logits_layer._model.0", "logits"),
        *torch_dense("value_layer._model.0", "value"),
    ),
    "keras": (
        *TABLES["keras"],
        *keras("logits", "logits"),
        *keras("value_out", "value"),
        Move("value_out_{i}/kernel", "value.kernel"),
        Move("value_out_{i}/bias", "value.bias"),
    ),
}


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the network of a policy.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: The observation space has to be given.
        CheckpointError: The weights and the config contradict each other, or that Ray did not save
            all of them.
    """
    where = f"policies.{policy.policy_id}.weights"
    if not isinstance(policy.weights, dict):
        raise NotYetError(
            "Not yet: weights without names of a network for observations of several parts.",
            where=where,
            fix="`--to msgpack` keeps all weights.",
        )
    plain, scalars = plain_names(policy)
    keep_kl_coefficient(policy, scalars)
    scheme = "torch" if "logits_layer._model.0.weight" in plain else "keras"
    unused = dead_names(plain, heads=True)
    arrays, left = to_canonical(
        SCHEMES[scheme], {k: v for k, v in plain.items() if k not in set(unused)}
    )
    if left:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(plain)} arrays belong to no network for complex "
            f"observations, for example {left[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    graph = _graph(arrays, policy, settings)
    _require_outputs(arrays, policy, where)
    network = Network(
        kind=COMPLEX.kind,
        summary=_summary(graph, arrays),
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=own_module(ACTOR_CRITIC_MODULE, graph, arrays),
        names=SCHEMES[scheme],
        unused=tuple(unused),
        aliases=tuple(second_names(plain)),
    )
    return network, []


def _graph(arrays: Mapping[str, Array], policy: PolicyState, settings: ModelSettings) -> Graph:
    build = Builder()
    features = COMPLEX.add(build, arrays, policy, settings, "")
    logits = build.add("dense", "logits", features)
    value = build.add("dense", "value", features)
    outputs = {"action_dist_inputs": logits, "vf_preds": build.add("scalar", "vf_preds", value)}
    return Graph({"obs": COMPLEX.inputs(arrays, policy, settings)}, tuple(build.steps), outputs)


def _require_outputs(arrays: Mapping[str, Array], policy: PolicyState, where: str) -> None:
    space, outputs = policy.action_space, len(arrays["logits.bias"])
    wanted = distribution_inputs(space) if space is not None else None
    if wanted is not None and wanted != outputs:
        raise CheckpointError(
            f"The network has {outputs} outputs, the action space {space} needs {wanted}.",
            where=where,
            fix="Give the right one with --action-space.",
        )


def _summary(graph: Graph, arrays: Mapping[str, Array]) -> str:
    """One line for tables: `5300 inputs in 3 parts, 1 of them images, 4 outputs`."""
    cuts = [step for step in graph.steps if step.op == "cut"]
    images = sum(len(step.settings["shape"]) == 3 for step in cuts)
    return (
        f"{graph.inputs['obs'][0]} inputs in {len(cuts)} parts, {images} of them images, "
        f"{len(arrays['logits.bias'])} outputs"
    )
