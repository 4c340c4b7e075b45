"""Reads the policies of MARWIL and of BC, which was MARWIL without advantages.

Both had the network of an actor-critic algorithm. Today's default module of BC has no value
function, and no loss would train one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rllib_compat import ray_versions
from rllib_compat.networks.graph import Array
from rllib_compat.networks.heads.fcnet import BUFFERS
from rllib_compat.networks.heads.policy_only import policy_only
from rllib_compat.networks.mapping import Move, Table, from_canonical, to_canonical, torch_dense
from rllib_compat.networks.names.unnamed import MOVING_AVERAGE
from rllib_compat.networks.network import Network, Target
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState


def _default_module(encoder: str, head: str, *, linear: bool) -> Table:
    layer = "net.mlp.{i}" if linear else "net.mlp.{2*i}"
    return (
        *torch_dense(f"{encoder}.{layer}", "hidden.{i}"),
        *torch_dense(f"{head}.net.mlp.0", "logits"),
        Move(f"{head}.log_std", "log_std.value"),
    )


def without_moving_average(policy: PolicyState) -> PolicyState:
    """The policy without the scalar that MARWIL kept among its weights (Ray 0.6 – 2.x).

    The scalar goes into the policy's `extra`.
    """
    if not isinstance(policy.weights, dict):
        return policy
    found = [name for name in policy.weights if name.endswith(MOVING_AVERAGE)]
    for name in found:
        policy.extra[MOVING_AVERAGE] = float(policy.weights[name])
    return replace(policy, weights={k: v for k, v in policy.weights.items() if k not in found})


def read_today(policy: PolicyState, settings: ModelSettings) -> Network | None:
    """Reads the weights of a default module of BC of the new API stack; None: they are not."""
    if not isinstance(policy.weights, dict):
        return None
    plain = {k: np.asarray(v) for k, v in policy.weights.items() if k not in BUFFERS}
    for encoder, head in ray_versions.BC_MODULE_NAMES:
        for linear in (False, True):
            table = _default_module(encoder, head, linear=linear)
            arrays, left = to_canonical(table, plain)
            if not left and set(from_canonical(table, arrays)) == set(plain):
                network = policy_only(arrays, settings.activation, "rl_module")
                return replace(network, target=_target(arrays, settings.activation), names=table)
    return None


def without_value(network: Network) -> Network:
    """The network of BC in today's default module, without its value function."""
    arrays = {k: v for k, v in network.arrays.items() if not k.startswith("value")}
    activation = next(
        (str(s.settings["activation"]) for s in network.graph.steps if s.name == "hidden.0"),
        "linear",
    )
    own = {k: v for k, v in network.arrays.items() if k not in arrays}
    unused = (*network.unused, *from_canonical(network.names, own))
    stripped = policy_only(arrays, activation, network.scheme, unused=unused)
    return replace(stripped, target=_target(arrays, activation), names=network.names)


def _target(arrays: Mapping[str, Array], name: str) -> Target:
    """Today's default module of BC, as the installed Ray names its parts."""
    from rllib_compat.networks.ops.activations import activation

    target = activation(name, where="model.fcnet_activation").target
    hiddens = [len(arrays[n]) for n in arrays if n.startswith("hidden.") and n.endswith(".bias")]
    encoder, head = ray_versions.bc_module_names()
    return Target(
        module=None,
        model_config={
            "fcnet_hiddens": hiddens,
            "fcnet_activation": target,
            "head_fcnet_hiddens": [],
            "free_log_std": "log_std.value" in arrays,
            "log_std_clip_param": float("inf"),
        },
        table=_default_module(encoder, head, linear=target == "linear"),
    )
