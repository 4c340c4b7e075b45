"""A checkpoint of any Ray as a policy that acts, without Ray."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import drop_weightless, identify_networks, require_facts
from rllib_compat.formats import layouts
from rllib_compat.networks import AnyNetwork, ModelSettings, Network, custom, refusals
from rllib_compat.networks.actions import find_fitting, make_chooser
from rllib_compat.networks.observation_filter import can_hold, with_filter
from rllib_compat.neutral.advice import for_python
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import MissingInformationError, NotConvertibleError, NotYetError
from rllib_compat.neutral.report import Severity
from rllib_compat.policy.observations import preprocessor
from rllib_compat.policy.policy import Policy

logger = logging.getLogger(__name__)


def load_policy(
    path: str | Path,
    policy_id: str | None = None,
    *,
    algorithm: str | None = None,
    config: Mapping[str, Any] | str | Path | None = None,
    observation_space: object = None,
    action_space: object = None,
    explore: bool = False,
    given: Given | None = None,
) -> Policy:
    """Loads a policy of any readable checkpoint: of Ray 0.5 – 2.x, converted, or as msgpack.

    It needs numpy, and neither Ray nor torch. Nothing in the checkpoint is executed. Actions come
    out as that Ray gave them to the environment: with its preprocessing and observation filter,
    stretched or clipped as its config and its defaults said.

    Args:
        path: The checkpoint.
        policy_id: Which policy; None: the only one.
        algorithm: The algorithm that was trained, where the checkpoint does not say.
        config: The trainer's config, where the checkpoint has none, or a file of it; `{}` for its
            defaults.
        observation_space: The environment's observations, where the checkpoint has none:
            a space of gymnasium or gym, or text like `Box(4,)`.
        action_space: The environment's actions, likewise.
        explore: Whether the policy explores where a call does not say.
        given: The same as the command line's options; the other arguments go before it.

    Returns:
        The policy.

    Raises:
        CheckpointError: It can't be read, or something has to be given.
        NotYetError: Its network or its actions can't be computed; the error says why.
    """
    given = (given or Given()).with_arguments(
        algorithm=algorithm,
        config=config,
        observation_space=observation_space,
        action_space=action_space,
    )
    # What a custom model computes is torch code, which is not run here.
    given = replace(given, model=None)
    checkpoint = layouts.read(path)
    if policy_id is not None:
        given = replace(given, policies=(policy_id,))
    checkpoint = drop_weightless(complete(checkpoint, given))
    if len(checkpoint.policies) != 1:
        raise MissingInformationError(
            f"The checkpoint has {len(checkpoint.policies)} policies, and one has to be chosen.",
            where=str(checkpoint.source.path),
            fix=f"Pass policy_id=, one of {', '.join(map(repr, checkpoint.policies))}.",
        )
    require_facts(checkpoint, given)
    (state,) = checkpoint.policies.values()
    try:
        checkpoint, networks = identify_networks(checkpoint, given)
    except MissingInformationError as error:
        if custom.is_custom(state, ModelSettings.of(checkpoint, state)):
            raise _custom_model(state.policy_id) from error
        raise
    if state.policy_id not in networks:
        raise NotConvertibleError(
            "The policy has no weights: it acted randomly.",
            where=f"policies.{state.policy_id}",
            fix="Draw its actions with `action_space.sample()`.",
        )
    state, network = checkpoint.policies[state.policy_id], networks[state.policy_id]
    policy = _policy(checkpoint, state, network, explore)
    for finding in policy.findings:
        if finding.severity is not Severity.INFO:
            logger.warning("%s: %s (%s)", finding.path, finding.message, for_python(finding.hint))
    return policy


def _policy(
    checkpoint: LegacyCheckpoint, policy: PolicyState, network: AnyNetwork, explore: bool
) -> Policy:
    where = f"policies.{policy.policy_id}"
    if not isinstance(network, Network):
        raise _custom_model(policy.policy_id)
    settings = ModelSettings.of(checkpoint, policy)
    observations, actions = policy.observation_space, policy.action_space
    assert observations is not None, "identify_networks has asked for both"
    assert actions is not None, "identify_networks has asked for both"
    preprocess = preprocessor(observations, settings, network.inputs, where=where)
    network = _with_filter(network, policy, where)
    fit, findings = find_fitting(checkpoint, policy, network)
    return Policy(
        policy.policy_id,
        network,
        spaces=(observations.original_space or observations, actions),
        preprocess=preprocess,
        chooser=make_chooser(network, policy, settings),
        fitting=fit,
        explore=explore,
        findings=(*checkpoint.findings, *findings),
    )


def _custom_model(policy_id: str) -> NotYetError:
    return NotYetError(
        "The weights are of a custom model, whose code is not in the checkpoint.",
        where=f"policies.{policy_id}",
        fix="`rllib-compat convert --to safetensors` writes its arrays by name",
    )


def _with_filter(network: Network, policy: PolicyState, where: str) -> Network:
    """The network on observations that are not filtered yet."""
    found = policy.observation_filter
    if found is None or found.kind == "NoFilter" or not found.stats:
        return network
    if not can_hold(network, found):
        raise NotYetError(
            f"Not supported yet: an observation filter of {len(found.stats)} parts on observations "
            f"of the shape {network.inputs}.",
            where=f"{where}.observation_filter",
            fix=refusals.KEEPS,
        )
    return with_filter(network, found)
