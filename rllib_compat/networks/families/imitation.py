"""Reads the policies of BC, which was MARWIL without advantages.

Both had the network of an actor-critic algorithm. Today's default module of BC has no value
function, and no loss would train one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rllib_compat.networks.families import actor_critic
from rllib_compat.networks.families.outputs import (
    clipless,
    own_actor_critic,
    sequence_length,
    todays_default,
)
from rllib_compat.networks.families.policy import policy_only
from rllib_compat.networks.mapping import Move, Table, from_canonical, to_canonical, torch_dense
from rllib_compat.networks.named import Named
from rllib_compat.networks.names.plain import plain_names
from rllib_compat.networks.network import Network, Reading, Target
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.ray_versions import modules


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the policy of BC; in today's default module where that can compute it."""
    if named := named_today(policy, settings):
        return Reading(policy_only(named, target=_target(named)))
    reading = actor_critic.read(policy, settings)
    network = reading.known
    if network.target.module is not None:
        return reading
    if network.graph.recurrent:  # today's module of BC has no place for an LSTM
        length = sequence_length(settings)
        own = own_actor_critic(network.graph, network.arrays, max_seq_len=length)
        return replace(reading, network=replace(network, target=own))
    return replace(reading, network=_without_value(network, policy, settings))


def named_today(policy: PolicyState, settings: ModelSettings) -> Named | None:
    """Names the weights of a default module of BC of the new API stack; None: they are not."""
    if not isinstance(policy.weights, dict):
        return None
    plain, _ = plain_names(policy)
    for encoder, head in modules.BC_MODULE_NAMES:
        for linear in (False, True):
            table = _default_module(encoder, head, linear=linear)
            arrays, left = to_canonical(table, plain)
            if not left and set(from_canonical(table, arrays)) == set(plain):
                return Named(policy, settings, arrays, "rl_module", table)
    return None


def _without_value(network: Network, policy: PolicyState, settings: ModelSettings) -> Network:
    """The network of BC in today's default module, without its value function."""
    arrays = {k: v for k, v in network.arrays.items() if not k.startswith("value")}
    own = {k: v for k, v in network.arrays.items() if k not in arrays}
    unused = (*network.unused, *from_canonical(network.names, own))
    named = Named(policy, settings, arrays, network.scheme, network.names, unused)
    return policy_only(named, target=_target(named))


def _target(named: Named) -> Target:
    """Today's default module of BC, as the installed Ray names its parts."""
    encoder, head = modules.bc_module_names()
    return todays_default(named, partial(_default_module, encoder, head), **clipless(named))


def _default_module(encoder: str, head: str, *, linear: bool) -> Table:
    layer = "net.mlp.{i}" if linear else "net.mlp.{2*i}"
    return (
        *torch_dense(f"{encoder}.{layer}", "hidden.{i}"),
        *torch_dense(f"{head}.net.mlp.0", "logits"),
        Move(f"{head}.log_std", "log_std.value"),
    )
