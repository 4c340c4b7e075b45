"""The states of SAC's optimizers: of the policy, of each critic, and of the temperature.

torch's old policies had the same four (three without a twin) as today's learner, so each goes over
by itself. TensorFlow's stored none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rllib_compat.networks.mapping import Array, Move
from rllib_compat.networks.names.sac import CONSTANT, MULTIPLIER
from rllib_compat.networks.network import Network
from rllib_compat.networks.optimizers.adam import (
    Adam,
    finding,
    from_torch,
    require_whole,
    stored_state,
)
from rllib_compat.networks.stacks import CRITIC, POLICY, TWIN
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.report import Finding, Verdict

#: The temperature, as the learner trains it.
ALPHA = "log_alpha"

#: Today's optimizers in the order of the old ones: the stack that each trains, and the modules of
#: an old policy (ModelV2, RLModule) that its parameters were in.
OPTIMIZERS = {
    "policy": (POLICY, ("action_model.", "pi_encoder.", "pi.")),
    "qf": (CRITIC, ("q_net.", "qf_encoder.", "qf.")),
    "qf_twin": (TWIN, ("twin_q_net.", "qf_twin_encoder.", "qf_twin.")),
    "alpha": (ALPHA, ()),
}


def plan(
    policies: Mapping[str, PolicyState], networks: Mapping[str, Network]
) -> tuple[dict[str, dict[str, Adam]], list[Finding]]:
    """Finds what can be carried.

    Returns:
        The states by policy and today's name of the optimizer, and what becomes of each policy's.
    """
    if all(stored_state(policies[policy_id]) is None for policy_id in networks):
        return {}, [finding("*", Verdict.ABSENT, "no optimizer state is stored")]
    states: dict[str, dict[str, Adam]] = {}
    findings = []
    for policy_id, network in networks.items():
        try:
            states[policy_id] = read(policies[policy_id], network)
        except CheckpointError as error:
            message = f"the optimizers start anew: {error.found}"
            findings.append(finding(policy_id, Verdict.RESET, message))
            continue
        shown = ", ".join(f"{k} after {v.step:,} updates" for k, v in states[policy_id].items())
        message = f"Adam of {shown}" if shown else "they had made no update yet"
        findings.append(finding(policy_id, Verdict.EXACT, message))
    return states, findings


def read(policy: PolicyState, network: Network) -> dict[str, Adam]:
    """Reads the states of a policy's optimizers.

    Returns:
        Each by today's name, complete for its stack; without those that made no update yet.

    Raises:
        CheckpointError: They can't go over; `found` is the reason.
    """
    try:
        stored = _by_name(stored_state(policy), network)
        states = {name: _read(name, state, policy, network) for name, state in stored.items()}
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"their state has no form that is known ({error})") from error
    return {name: state for name, state in states.items() if state is not None}


def _by_name(stored: Any, network: Network) -> dict[str, Any]:
    """The old optimizers by today's names."""
    twin = f"{TWIN}.out.kernel" in network.arrays
    names = [name for name in OPTIMIZERS if twin or name != "qf_twin"]
    if isinstance(stored, list):
        if any(name.startswith(MULTIPLIER) for name in network.unused):
            stored = stored[:-1]  # CQL's fifth, of its Lagrange multiplier
        if len(stored) != len(names):
            raise CheckpointError(
                f"the policy had {len(stored)} optimizers, its module has {len(names)}"
            )
        return dict(zip(names, stored, strict=True))
    if not isinstance(stored, Mapping) or stored.keys() != set(names):
        raise CheckpointError("they are none of SAC's")
    return {name: stored[name] for name in names}


def _read(name: str, stored: Any, policy: PolicyState, network: Network) -> Adam | None:
    stack, modules = OPTIMIZERS[name]
    if stack == ALPHA:
        trained: dict[str, Array] = {ALPHA: np.zeros(1)}
        state = from_torch(stored, [ALPHA], (Move(ALPHA, ALPHA),))
    else:
        assert isinstance(policy.weights, dict)  # torch's always have names
        own = [k for k in policy.weights if k.startswith(modules) and not k.endswith(CONSTANT)]
        trained = {k: v for k, v in network.arrays.items() if k.startswith(f"{stack}.")}
        state = from_torch(stored, own, network.names, network.unused)
    if state is not None:
        require_whole(state, trained)
    return state
