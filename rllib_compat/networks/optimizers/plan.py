"""What of the old optimizers goes on: a plan for every algorithm, by the networks they trained.

A moment has the shape of its weight, so moments take the way of the weights, through the same
tables. What a policy had goes over whole or not at all: where one parameter has no counterpart,
its optimizers start anew, and the report says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rllib_compat.networks.network import TARGET_PREFIX, Weights
from rllib_compat.networks.optimizers import adam
from rllib_compat.networks.optimizers.adam import Adam
from rllib_compat.networks.optimizers.groups import Group
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.records import StandIn
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: The states of one policy's optimizers, by the names that today's learner has for them.
States: TypeAlias = Mapping[str, Adam]

_HINT = "the first updates may be larger or smaller than before"


def plan(
    policies: Mapping[str, PolicyState], networks: Mapping[str, Weights]
) -> tuple[dict[str, States], list[Finding]]:
    """Finds what can be carried.

    Returns:
        The states of those policies whose optimizers go on, and what becomes of each policy's.
    """
    if all(stored_state(policies[policy_id]) is None for policy_id in networks):
        return {}, [_finding("*", Verdict.ABSENT, "no optimizer state is stored")]
    plans: dict[str, States] = {}
    findings = []
    for policy_id, network in networks.items():
        try:
            states = read(policies[policy_id], network)
        except CheckpointError as error:
            message = f"{_subject(network)} anew: {error.found}"
            findings.append(_finding(policy_id, Verdict.RESET, message))
            continue
        if states is None:
            findings.append(_finding(policy_id, Verdict.ABSENT, "no optimizer state is stored"))
            continue
        findings.append(_told(policy_id, states))
        if states:
            plans[policy_id] = states
    return plans, findings


def read(policy: PolicyState, network: Weights) -> States | None:
    """Reads what is stored of a policy's optimizers.

    Returns:
        Each state, complete for its part of the network, without those that made no update yet;
        None where nothing is stored.

    Raises:
        CheckpointError: They can't go over; `found` is the reason.
    """
    stored = stored_state(policy)
    if stored is None:
        return None
    try:
        by_group = _by_group(stored, network)
        states = {
            group.name: state
            for group, theirs in by_group.items()
            if group.name and (state := _read(group, theirs, policy, network)) is not None
        }
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"the stored state has no known form ({error})") from error
    return states


def stored_state(policy: PolicyState) -> Any:
    """What was stored of a policy's optimizers, or None.

    With the first Learner API, the policy itself had an empty list.
    """
    stored = policy.optimizer if policy.learner_optimizer is None else policy.learner_optimizer
    empty = isinstance(stored, (list, Mapping)) and not stored
    return None if empty else stored


def _by_group(stored: Any, network: Weights) -> dict[Group, Any]:
    """What is stored for each of the optimizers that trained a network."""
    groups = network.optimizers
    if isinstance(stored, Mapping) and stored.keys() == {group.name for group in groups}:
        return {group: stored[group.name] for group in groups}
    if isinstance(stored, Mapping) or all(isinstance(part, StandIn) for part in stored):
        stored = [stored]  # one optimizer: torch's by itself, or TensorFlow's variables
    if not isinstance(stored, list):
        raise TypeError(type(stored).__name__)
    if len(stored) != len(groups):
        had = "1 optimizer" if len(stored) == 1 else f"{len(stored)} optimizers"
        raise CheckpointError(f"the policy had {had}, its module has {len(groups)}")
    return dict(zip(groups, stored, strict=True))


def _read(group: Group, stored: Any, policy: PolicyState, network: Weights) -> Adam | None:
    if isinstance(stored, list):
        state = adam.from_eager(stored, policy, network.names)
    elif "param_groups" in stored:
        state = adam.from_torch(stored, group, [str(name) for name in policy.weights], network)
    else:
        state = adam.from_graph(stored, policy, network.names)
    if state is not None and group.scale != 1.0:
        state = adam.scaled(state, group.scale)
    if state is not None and group.modules:
        if any(n.endswith(".beta") and n not in network.arrays for n in state.mean):
            raise CheckpointError(
                "the trained slopes of swish were moved into the weights, whose moments are of "
                "gradients before that"
            )
        own = {k: v for k, v in network.arrays.items() if k.startswith(group.stack)}
        trained = {k: v for k, v in own.items() if not k.startswith(TARGET_PREFIX)}
        state = adam.with_idle_critic(state, trained)
        adam.require_whole(state, trained)
    elif state is not None and any(array.size != 1 for array in state.mean.values()):
        raise CheckpointError(f"{group.stack} is one number, and its moments are more")
    return state


def _subject(network: Weights) -> str:
    return "the optimizers start" if len(network.optimizers) > 1 else "the optimizer starts"


def _told(policy_id: str, states: States) -> Finding:
    """What the report says of states that go over."""
    if not states:
        return _finding(policy_id, Verdict.EXACT, "it had made no update yet, and starts as it was")
    updates = {name: f"after {state.step:,} updates" for name, state in states.items()}
    arrays = sum(len(state.mean) for state in states.values())
    each = ", ".join(f"{name} {updates[name]}" for name in states)
    which = f"Adam of {each}" if len(states) > 1 else f"Adam {next(iter(updates.values()))}"
    notes = dict.fromkeys(note for state in states.values() for note in adam.notes(state))
    told = [f"{which}, both moments of {arrays} arrays", *notes]
    derived = any(state.derived for state in states.values())
    message = "; ".join([*told, "the learning rate is the config's"])
    return _finding(policy_id, Verdict.DERIVED if derived else Verdict.EXACT, message)


def _finding(policy_id: str, verdict: Verdict, message: str) -> Finding:
    lost = verdict is Verdict.RESET
    severity = Severity.WARNING if lost else Severity.INFO
    path = f"policies.{policy_id}.optimizer"
    return Finding("optimizer", severity, verdict, path, message, _HINT if lost else "")
