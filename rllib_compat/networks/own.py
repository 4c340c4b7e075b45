"""Reads the modules of this package: what an earlier conversion wrote, on whichever Ray.

They hold the graph of their network, so there is nothing to find out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_compat.networks.families import ddpg
from rllib_compat.networks.graph import Graph
from rllib_compat.networks.mapping import Move
from rllib_compat.networks.network import (
    OWN_PREFIX,
    OWN_TARGET_PREFIX,
    TARGET_PREFIX,
    Network,
    Reading,
    own_module,
    own_name,
)
from rllib_compat.networks.ops.in_numpy import OPS
from rllib_compat.networks.optimizers.groups import (
    ACTOR_AND_CRITIC,
    WHOLE,
    Group,
    soft_actor_critic,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.spaces import Box

_PACKAGE = "rllib_compat.modules"

_SOFT_ACTOR_CRITICS = ("SACModule", "CQLModule")

#: The modules that keep their network as `net.<array>`.
MODULES = (
    "ActorModule",
    "ActorCriticModule",
    "AsynchronousModule",
    "DeterministicModule",
    "PolicyModule",
    "QModule",
    "R2D2GraphModule",
    *_SOFT_ACTOR_CRITICS,
)


def is_own(policy: PolicyState) -> bool:
    """Whether a policy is a module of this package."""
    module, _, cls = (policy.policy_class or "").rpartition(".")
    return cls in MODULES and module == _PACKAGE


def read(policy: PolicyState) -> Reading:
    """Reads the network of a module of ours.

    Raises:
        CheckpointError: Its graph is damaged, or has operations that this version does not know.
    """
    where = f"policies.{policy.policy_id}"
    model = policy.extra.get("module_config", {})
    cls = str(policy.policy_class).rpartition(".")[2]
    if "graph" not in model and cls == "DeterministicModule":
        model = {**model, **_of_new_ddpg(policy, model)}
    try:
        graph = Graph.from_plain(model["graph"])
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"The module's graph is damaged ({error!r}).", where=where) from error
    if unknown := {step.op for step in graph.steps} - OPS.keys():
        raise CheckpointError(
            f"The module has operations that are not known: {', '.join(sorted(unknown))}.",
            where=where,
            fix="Use the version of rllib-compat that wrote it, or a newer one.",
        )
    assert isinstance(policy.weights, dict)
    arrays = {_canonical(k): np.asarray(v) for k, v in policy.weights.items() if _is_net(k)}
    rest = {k: v for k, v in model.items() if k not in ("graph", "shapes")}
    unused = tuple(name for name in policy.weights if not _is_net(name))
    optimizers: tuple[Group, ...] = WHOLE
    if cls in _SOFT_ACTOR_CRITICS:
        optimizers = soft_actor_critic(arrays, unused)
    elif cls == "DeterministicModule":
        optimizers = ACTOR_AND_CRITIC
    network = Network(
        kind="converted",
        summary=f"converted before: {len(graph.steps)} steps, {len(arrays)} arrays",
        scheme="own",
        graph=graph,
        arrays=arrays,
        target=own_module(f"{_PACKAGE}:{cls}", graph, arrays, **rest),
        names=tuple(Move(own_name(name), name) for name in arrays),
        unused=unused,
        optimizers=optimizers,
    )
    return Reading(network)


def _of_new_ddpg(policy: PolicyState, model: Mapping[str, Any]) -> Mapping[str, Any]:
    """The graph of a new module of DDPG, which is told the sizes of its layers alone.

    Raises:
        CheckpointError: They are not there, or no network has them.
    """
    where = f"policies.{policy.policy_id}"
    seen, actions = policy.observation_space, policy.action_space
    if seen is None or not isinstance(actions, Box):
        raise CheckpointError("The module's spaces are not those of DDPG.", where=where)
    try:
        return ddpg.fresh(model, seen.flat_size(), actions).target.model_config
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"The module's settings are damaged ({error!r}).", where=where
        ) from error


def _is_net(name: str) -> bool:
    return name.startswith((OWN_PREFIX, OWN_TARGET_PREFIX))


def _canonical(name: str) -> str:
    if name.startswith(OWN_TARGET_PREFIX):
        return TARGET_PREFIX + name.removeprefix(OWN_TARGET_PREFIX)
    return name.removeprefix(OWN_PREFIX)
