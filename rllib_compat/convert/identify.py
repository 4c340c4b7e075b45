"""Which network each policy of a checkpoint has."""

from __future__ import annotations

from dataclasses import replace

from rllib_compat.convert.complete import with_spaces_of_network
from rllib_compat.convert.given import Given
from rllib_compat.networks import ModelSettings, Network, identify
from rllib_compat.networks.custom import CustomModel, CustomNetwork, without_custom_model
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.report import Finding


def identify_all(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[LegacyCheckpoint, dict[str, Network]]:
    """Finds the network of every policy, and makes sure that each has its spaces.

    Returns:
        The checkpoint, which knows what the networks told of its policies; and the networks.

    Raises:
        CheckpointError: A network is not known, or a space was found nowhere.
    """
    policies, networks, findings = [], {}, list[Finding]()
    for policy in checkpoint.policies.values():
        network, policy, found = identify_one(checkpoint, policy, given)
        policy, more = with_spaces_of_network(policy, network.inputs, checkpoint.config)
        if isinstance(network, CustomNetwork):
            policy = replace(policy, config=without_custom_model(policy.config))
        policies.append(policy)
        networks[policy.policy_id] = network
        findings += [*found, *more]
    checkpoint = checkpoint.with_policies(policies).with_findings(findings)
    if any(isinstance(network, CustomNetwork) for network in networks.values()):
        checkpoint = replace(checkpoint, config=without_custom_model(checkpoint.config))
    return checkpoint, networks


def identify_one(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[Network, PolicyState, list[Finding]]:
    """Finds the network of one policy.

    Returns:
        The network, the policy with the state that was among its weights, and what was noticed.

    Raises:
        CheckpointError: The network is not known.
    """
    model = CustomModel(given.model, given.weights_map) if given.model else None
    # Readers note what they find among the weights in the policy that they read.
    policy = replace(policy, extra=dict(policy.extra))
    network, findings = identify(policy, ModelSettings.of(checkpoint, policy), model)
    return network, policy, findings
