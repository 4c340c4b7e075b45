"""A case's networks as the converter reads them, and what the original ones took and gave."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rllib_compat import Given
from rllib_compat.conversion import complete_checkpoint
from rllib_compat.conversion.identify import require_facts
from rllib_compat.conversion.recordings import find_recording, inputs_of
from rllib_compat.formats import read_checkpoint
from rllib_compat.networks import ModelSettings, Network
from rllib_compat.networks import read as read_policy
from rllib_compat.neutral import LegacyCheckpoint, PolicyState, spaces
from rllib_compat.neutral.spaces import parse_repr
from tests.legacy.cases import Case


def given_of(case: Case) -> Given:
    """The spaces that a user would give for a checkpoint that has none."""
    about = case.about
    told_spaces: dict[str, dict] = {"observation_space": {}, "action_space": {}}
    for kind, by_policy in told_spaces.items():
        for policy_id in case.policies:
            told = about.get(kind) or {}
            text = told.get(policy_id) or about["policies"][policy_id].get(kind)
            if isinstance(text, str) and parse_repr(text) is not None:
                by_policy[policy_id] = parse_repr(text)
    return Given(
        algorithm=case.algorithm,
        observation_spaces=told_spaces["observation_space"],
        action_spaces=told_spaces["action_space"],
    )


def raw_space(case: Case, policy_id: str) -> spaces.Space | None:
    """The environment's observations, as the run of the old Ray printed them."""
    about = case.about
    text = about["policies"][policy_id].get("raw_space") or about.get("env_observation_space")
    return parse_repr(text) if isinstance(text, str) else None


def given_if_asked(case: Case) -> Given:
    """The same, where the checkpoint itself has no spaces; a user would only be asked then."""
    known = any(p.action_space for p in read_checkpoint(case.checkpoint).policies.values())
    return Given(algorithm=case.algorithm) if known else given_of(case)


def completed(case: Case) -> LegacyCheckpoint:
    """A case's checkpoint, with what it does not hold."""
    return complete_checkpoint(read_checkpoint(case.checkpoint), given_if_asked(case))


def only_policy(case: Case) -> tuple[LegacyCheckpoint, PolicyState, ModelSettings]:
    """A case's checkpoint, its only policy, and what its config says of the network."""
    checkpoint = completed(case)
    (policy,) = checkpoint.policies.values()
    return checkpoint, policy, ModelSettings.of(checkpoint, policy)


def read(case: Case) -> tuple[LegacyCheckpoint, dict[str, Network]]:
    """A case's checkpoint, and the network of each policy under its id in the checkpoint."""
    checkpoint = completed(case)
    require_facts(checkpoint, given_if_asked(case))
    networks = {
        policy_id: read_policy(policy, ModelSettings.of(checkpoint, policy)).known
        for policy_id, policy in checkpoint.policies.items()
    }
    return checkpoint, networks


def recorded(
    case: Case, policy_id: str, network: Network
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None:
    """What a policy's original network took and gave, as its graph takes and gives it.

    None where the case did not record everything that the network takes.
    """
    found = find_recording(_arrays(case, policy_id), network)
    return (dict(found.inputs), dict(found.outputs)) if found else None


def _arrays(case: Case, policy_id: str) -> Mapping[str, np.ndarray]:
    resolve_policy_id = policy_id if policy_id in case.policies else "default"  # the id of Ray 0.5
    return case.expected(resolve_policy_id).arrays


def greedy(
    case: Case, policy_id: str, network: Network
) -> tuple[dict[str, np.ndarray], np.ndarray] | None:
    """What a Q-network took and which actions it chose, where only those were recorded."""
    arrays = case.expected(policy_id).arrays
    inputs = inputs_of(arrays, network)
    known = "q_values" in network.graph.outputs and "out/actions" in arrays
    return (dict(inputs), arrays["out/actions"]) if inputs is not None and known else None
