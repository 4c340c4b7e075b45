"""Reads the policies of APPO, whose target network is a second copy of the policy.

TensorFlow stored the copy (Ray 0.7 – 2.x), torch did not. Where it is missing, it starts as the
network itself, which is what every Ray made of it when it loaded a checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from rllib_compat.networks.families import actor_critic
from rllib_compat.networks.families.dense import SCHEMES
from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Move, Table, from_canonical, row_to
from rllib_compat.networks.named import where_of
from rllib_compat.networks.network import TARGET_PREFIX, Network, Reading
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import DENSE
from rllib_compat.networks.unnamed import name_vector
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.report import Finding, Severity, Verdict

_Copy: TypeAlias = dict[str, Array] | list[Array]

#: A new one begins as that of PPO.
draw = actor_critic.draw

#: The module of ours that has a target network.
MODULE = "rllib_compat.modules:AsynchronousModule"

#: What today's default module copies, and calls the copies: `encoder` → `_old_encoder`.
_COPY = "_old_"
_COPIED = ("encoder.", "pi.")


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy, and its target network."""
    vector = actor_critic.is_vector(policy)
    if vector and actor_critic.kind_of(policy, settings) != DENSE.kind:
        return actor_critic.read(policy, settings)
    main, copy, state = _split(policy, settings)
    reading = actor_critic.read(main, settings)
    copied = _read_copy(copy, main, settings) if copy else {}
    if not copied:
        reading = reading.noting(
            Finding(
                "target-network",
                Severity.INFO,
                Verdict.DERIVED,
                where_of(policy),
                "the target network is not stored; it starts as a copy of the network, as it did "
                "when the old Ray loaded the checkpoint",
            )
        )
    network = with_target(reading.known, copied)
    return replace(reading, network=network, state={**state, **reading.state})


def with_target(network: Network, copied: Mapping[str, Array]) -> Network:
    """A network with a target network, in a module that has one.

    What is not stored of the target (`copied`) is the network's own.
    """
    target, own = network.target, {**network.arrays, **copied}
    if target.table is None:
        target = replace(target, module=MODULE)
    else:
        copies = _copies(target.table)
        own = {k: v for k, v in own.items() if row_to(copies, TARGET_PREFIX + k)}
        target = replace(target, table=target.table + copies)
    arrays = {TARGET_PREFIX + name: array for name, array in own.items()}
    return replace(network, arrays={**network.arrays, **arrays}, target=target)


def _copies(table: Table) -> Table:
    """The rows of the default module's copies: `_old_encoder` and `_old_pi`."""
    return tuple(
        Move(_COPY + row.theirs, TARGET_PREFIX + row.ours, row.change)
        for row in table
        if row.theirs.startswith(_COPIED)
    )


def _split(
    policy: PolicyState, settings: ModelSettings
) -> tuple[PolicyState, _Copy | None, dict[str, float]]:
    """The policy without the copy; the copy's weights by the names of the originals; scalars."""
    weights = policy.weights
    if isinstance(weights, dict):
        copies = {name: original for name in weights if (original := _original(name, weights))}
        main = {k: v for k, v in weights.items() if k not in copies}
        return replace(policy, weights=main), {copies[k]: weights[k] for k in copies} or None, {}
    if isinstance(weights, list):
        half = len(weights) // 2
        if [a.shape for a in weights[:half]] == [a.shape for a in weights[half:]]:
            return replace(policy, weights=weights[:half]), weights[half:], {}
        return policy, None, {}
    # A flat vector (Ray 0.7), in which the copy is if V-trace was on.
    arrays, state = name_vector(policy, settings, target=True)
    plain = {
        k.removeprefix(TARGET_PREFIX): v for k, v in arrays.items() if k.startswith(TARGET_PREFIX)
    }
    own = {k: v for k, v in arrays.items() if not k.startswith(TARGET_PREFIX)}
    table = SCHEMES["keras"]
    renamed = replace(policy, weights=from_canonical(table, own))
    return renamed, from_canonical(table, plain) or None, state


def _original(name: str, weights: Mapping[str, Array]) -> str | None:
    """The array that this is a copy of.

    `fc_1_1/kernel` is one of `fc_1/kernel`: TensorFlow counted names that were taken. Today's
    module calls its copies `_old_encoder…` and `_old_pi…`.
    """
    if name.startswith(_COPY):
        return name.removeprefix(_COPY)
    parts = name.split("/")
    options = [[re.sub(r"_1$", "", part) for part in parts]]
    options += [
        [*parts[:i], re.sub(r"_1$", "", part), *parts[i + 1 :]] for i, part in enumerate(parts)
    ]
    for option in options:
        found = "/".join(option)
        if found != name and found in weights and weights[found].shape == weights[name].shape:
            return found
    return None


def _read_copy(copy: _Copy, main: PolicyState, settings: ModelSettings) -> Mapping[str, Array]:
    """The canonical arrays of the copy; where it has no value function, the original's is read."""
    if isinstance(copy, dict) and isinstance(main.weights, dict):
        copy = {**main.weights, **copy}
    return actor_critic.read(replace(main, weights=copy), settings).network.arrays
