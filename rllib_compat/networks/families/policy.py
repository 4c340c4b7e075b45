"""Fully connected policies without a value function: those of PG, ES, ARS, and today's BC."""

from __future__ import annotations

import numpy as np

from rllib_compat.networks import refusals
from rllib_compat.networks.families.outputs import ACTOR, DETERMINISTIC, with_log_std
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.names.actor_critic import SCHEMES
from rllib_compat.networks.network import Network, Reading, Target, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.unnamed import DEFAULT_HIDDENS, Shape, cut, total
from rllib_compat.neutral.checkpoint import PolicyState


def policy_only(
    named: Named, *, deterministic: bool = False, target: Target | None = None
) -> Network:
    """The network of a policy that only acts.

    Args:
        named: The arrays, without those of a value function.
        deterministic: Whether the last layer's output is the action, not what a distribution
            takes.
        target: The module that takes it; None: one of ours.
    """
    build = Builder()
    out = build.add("dense", "logits", DENSE.add(build, named))
    out = with_log_std(build, named, out)
    outputs = {"action_dist_inputs": out} | ({"actions": out} if deterministic else {})
    inputs = (named.takes(build.steps[0].name),)
    graph = Graph({"obs": inputs}, tuple(build.steps), outputs)
    sizes = "-".join(map(str, [*inputs, *named.sizes("hidden"), named.gives("logits")]))
    free = ", free log std" if "log_std.value" in named.arrays else ""
    summary = f"fc {sizes} {named.settings.activation}{free}, no value function"
    own = own_module(DETERMINISTIC if deterministic else ACTOR, graph, named.arrays)
    return named.network(DENSE.kind, summary, graph, target or own)


def read_vector(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the flat vector of PG: Ray 0.5 – 0.7 kept only what the loss depended on.

    That was the policy; the value function that the model had made was not stored.

    Raises:
        MissingInformationError: The spaces have to be given.
        CheckpointError: The vector does not fit the config and the spaces.
    """
    where, vector = where_of(policy), np.asarray(policy.weights)
    if policy.observation_space is None or policy.action_space is None:
        raise refusals.needed(
            f"The weights are one vector of {vector.size} numbers without names; both spaces are "
            "needed to cut it.",
            "both",
            where,
        )
    hiddens = DEFAULT_HIDDENS if settings.hiddens is None else settings.hiddens
    inputs = policy.observation_space.flat_size()
    outputs = distribution_inputs(policy.action_space) or 0
    # Ray 0.7.5 – 0.8.5 ignored `free_log_std` on TensorFlow.
    for free_log_std in (settings.free_log_std, False):
        rows = Shape(inputs, hiddens, outputs, True, free_log_std).policy()
        if total(rows) == vector.size:
            named = Named(policy, settings, cut(vector, rows), "vector", SCHEMES["keras"])
            return named.reading(policy_only(named))
    raise refusals.no_fit(
        f"The vector of {vector.size} numbers",
        f"policy with {inputs} inputs, hidden layers {list(hiddens)} and {outputs} outputs",
        where,
    )
