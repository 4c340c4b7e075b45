"""Which network each policy of a checkpoint has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from rllib_compat import registry
from rllib_compat.conversion import find_algorithm
from rllib_compat.conversion.complete import with_spaces_of_network
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.without_weights import has_weights
from rllib_compat.networks import (
    AnyNetwork,
    CustomModel,
    CustomNetwork,
    ModelSettings,
    Network,
    custom,
)
from rllib_compat.networks import read as read_network
from rllib_compat.networks.custom import without_custom_model
from rllib_compat.networks.custom_module import has_parts
from rllib_compat.networks.names.plain import MOVING_AVERAGE
from rllib_compat.networks.wrappers.previous_steps import with_own_observations
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.report import Finding

#: How many policies an error names.
_NAMED = 5


def identify_all(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[LegacyCheckpoint, dict[str, AnyNetwork]]:
    """Finds the network of every policy with weights, and makes sure that each has its spaces.

    Returns:
        The checkpoint, which knows what the networks told of its policies; and the networks.

    Raises:
        CheckpointError: A network is not known, or a space was found nowhere.
    """
    policies, networks, findings = [], dict[str, AnyNetwork](), list[Finding]()
    refused: dict[str, CheckpointError] = {}
    for policy in checkpoint.policies.values():
        if not has_weights(policy):
            policies.append(policy)
            continue
        try:
            network, completed, found = _identified(checkpoint, policy, given)
        except CheckpointError as error:
            refused[policy.policy_id] = error
            continue
        policies.append(completed)
        networks[policy.policy_id] = network
        findings += found
    if refused:
        raise _refusal(refused, networks)
    checkpoint = checkpoint.with_policies(policies).with_findings(findings)
    if any(isinstance(network, CustomNetwork) for network in networks.values()):
        checkpoint = replace(checkpoint, config=without_custom_model(checkpoint.config))
    return checkpoint, networks


def _identified(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[AnyNetwork, PolicyState, list[Finding]]:
    """The network of a policy, the policy with its spaces, and what was noticed."""
    network, policy, found = identify_one(checkpoint, policy, given)
    choices = network.choices if isinstance(network, Network) else None
    policy, more = with_spaces_of_network(policy, network.inputs, checkpoint.config, choices)
    if isinstance(network, CustomNetwork):
        policy = replace(policy, config=without_custom_model(policy.config))
    return network, policy, [*found, *more]


def _refusal(refused: Mapping[str, CheckpointError], known: Collection[str]) -> CheckpointError:
    """The first policy's error; it says how the others are converted, where that is possible."""
    first, *more = refused.values()
    if not known:
        return first
    found = first.found
    if more:
        others = ", ".join(list(refused)[1 : 1 + _NAMED])
        found += f" ({len(more)} more policies likewise: {others}{', …' * (len(more) > _NAMED)})"
    options = " ".join(f"--policy {policy_id}" for policy_id in list(known)[:_NAMED])
    rest = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    fix = f"{first.fix or ''} The others can be converted without it: {options}{rest}.".strip()
    return type(first)(found, where=first.where, fix=fix)


def _of_another_algorithm(checkpoint: LegacyCheckpoint, error: CheckpointError) -> CheckpointError:
    """The error, with the algorithm whose arrays these are: folders and flags can be wrong."""
    family = find_algorithm.family_of_arrays(checkpoint)
    named = checkpoint.algorithm
    if family is None or named is None or named in registry.family(family):
        return error
    fix = f"{named} has no arrays of such names, {family} has: --algorithm {family}, if it was."
    return type(error)(error.found, where=error.where, fix=f"{fix} {error.fix or ''}".strip())


def identify_one(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[AnyNetwork, PolicyState, tuple[Finding, ...]]:
    """Finds the network of one policy.

    Returns:
        The network, the policy with the state that was among its weights, and what was noticed.

    Raises:
        CheckpointError: The network is not known.
    """
    model = None
    if given.model:
        # Where no config names a custom model, the caller says that the policies have one.
        own = [
            custom.is_custom(p, ModelSettings.of(checkpoint, p))
            for p in checkpoint.policies.values()
        ]
        seen = [p.observation_space for p in checkpoint.policies.values()]
        others = any(has_parts(s) and not o for s, o in zip(seen, own, strict=True))
        model = CustomModel(
            given.model,
            given.weights_map,
            everywhere=not any(own),
            in_parts=not (any(own) and others),
        )
    policy = with_own_observations(policy)
    try:
        reading = read_network(policy, ModelSettings.of(checkpoint, policy), model)
    except CheckpointError as error:
        raise _of_another_algorithm(checkpoint, error) from error.__cause__
    return reading.network, _with_state(policy, reading.state), reading.findings


def _with_state(policy: PolicyState, state: Mapping[str, float]) -> PolicyState:
    """The policy with what was stored among its weights, where it has no such state yet."""
    missing = [name for name in state if getattr(policy, name, state) is None]
    own: dict[str, Any] = {name: state[name] for name in missing}
    extra = {name: state[name] for name in state if name == MOVING_AVERAGE}
    return replace(policy, extra={**policy.extra, **extra}, **own)
