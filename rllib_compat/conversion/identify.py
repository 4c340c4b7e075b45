"""Identifies the network of each policy.

Errors ask for the facts that are missing.
"""

from __future__ import annotations

import importlib.util
import math
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from rllib_compat import registry
from rllib_compat.conversion.complete import algorithm_of_arrays, candidates
from rllib_compat.conversion.given import Given
from rllib_compat.formats.layouts.configs import NEIGHBOUR
from rllib_compat.networks import (
    AnyNetwork,
    CustomModel,
    CustomNetwork,
    ModelSettings,
    Network,
    custom,
)
from rllib_compat.networks import read as read_network
from rllib_compat.networks.custom import has_parts, without_custom_model
from rllib_compat.networks.named import MOVING_AVERAGE
from rllib_compat.networks.previous_steps import with_own_observations
from rllib_compat.networks.read import is_own
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import (
    CheckpointError,
    CompatError,
    MissingInformationError,
    NotConvertibleError,
)
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict

#: Ray's module that acts randomly.
RANDOM_MODULE = "ray.rllib.examples.rl_modules.classes.random_rlm:RandomRLModule"

#: The names of Ray's own random policies and of its module in all Rays.
_RANDOM_POLICIES = {
    "ray.rllib.examples.multi_agent_custom_policy.RandomPolicy",
    "ray.rllib.examples.policy.random_policy.RandomPolicy",
    "ray.rllib.examples._old_api_stack.policy.random_policy.RandomPolicy",
    RANDOM_MODULE.replace(":", "."),
}

#: The largest number of policies in an error.
_LISTED = 5


def require_facts(checkpoint: LegacyCheckpoint, given: Given) -> None:
    """Checks that algorithm and config are known, if a network cannot be read without them.

    Modules of this package have the graph of their network.

    Raises:
        MissingInformationError: One of them is not known.
    """
    if not (checkpoint.modules_alone and all(map(is_own, checkpoint.policies.values()))):
        require_algorithm(checkpoint)
        _require_config(checkpoint, given)


def require_algorithm(checkpoint: LegacyCheckpoint) -> None:
    """Checks that the algorithm is known.

    Raises:
        MissingInformationError: It is not.
    """
    if checkpoint.algorithm is None:
        names = candidates(checkpoint)
        several = f" It may be {', '.join(names[:-1])} or {names[-1]}." if len(names) > 1 else ""
        example = names[0] if names else "PPO"
        raise MissingInformationError(
            f"The checkpoint does not name its algorithm.{several}",
            where=str(checkpoint.source.path),
            fix=f"Pass the algorithm that was trained: --algorithm {example}.",
        )


def _require_config(checkpoint: LegacyCheckpoint, given: Given) -> None:
    """Checks that there is a config: arrays do not show the activation of a network.

    An empty config of the caller or the trial means Ray's defaults.

    Raises:
        MissingInformationError: There is none.
    """
    callers = given.config is not None or given.config_if_none is not None
    if not (callers or checkpoint.has_config):
        damaged = [
            f"{f.path} was {f.message}"
            for f in checkpoint.findings
            if f.rule == "side-file" and f.path.startswith("params.")
        ]
        why = "; ".join(damaged) or "no params.pkl or params.json lies with the checkpoint"
        beside = [f.hint for f in checkpoint.findings if f.rule == NEIGHBOUR]
        fix = "Pass --config params.json, or --config '{}' if the trainer had Ray's defaults."
        raise MissingInformationError(
            f"No config was found: {why.rstrip('.')}. The weights do not show the network's "
            "activation.",
            where=str(checkpoint.source.path),
            fix=" ".join([fix, *(f"One is in a folder beside: {hint}." for hint in beside)]),
        )


@frozen
class Identified:
    """A checkpoint with its networks.

    Attributes:
        checkpoint: The checkpoint, with facts that the networks show.
        networks: The network of each policy with weights; empty if one is not known.
        unknown: The reason why they are not known.
    """

    checkpoint: LegacyCheckpoint
    networks: Mapping[str, AnyNetwork] = field(default_factory=dict)
    unknown: CompatError | None = None


def identify(
    checkpoint: LegacyCheckpoint,
    given: Given,
    *,
    keep_unknown: bool = False,
    keep_weightless: bool = False,
) -> Identified:
    """Identifies the networks of a checkpoint that `complete` has returned.

    `keep_unknown` keeps weights without a known network, `keep_weightless` policies without
    weights.

    Raises:
        CheckpointError: A fact is missing, or a network is not known.
    """
    unknown: CompatError | None = None
    try:
        require_facts(checkpoint, given)
    except CompatError as error:
        if not keep_unknown:
            raise
        unknown = error
    if not keep_weightless:
        checkpoint = drop_weightless(checkpoint)
    if unknown is None:
        try:
            return Identified(*identify_networks(checkpoint, given))
        except CompatError as error:
            if not keep_unknown:
                raise
            unknown = error
    return Identified(checkpoint, unknown=unknown)


def identify_networks(
    checkpoint: LegacyCheckpoint, given: Given
) -> tuple[LegacyCheckpoint, dict[str, AnyNetwork]]:
    """Identifies the network of every policy with weights, and completes their spaces.

    Returns:
        The checkpoint with facts that the networks show, and the networks.

    Raises:
        CheckpointError: A network or a space is not known.
    """
    policies, networks, findings = [], dict[str, AnyNetwork](), list[Finding]()
    refused: dict[str, CheckpointError] = {}
    for policy in checkpoint.policies.values():
        if not policy.has_weights:
            policies.append(policy)
            continue
        try:
            network, completed, found = _identify_with_spaces(checkpoint, policy, given)
        except CheckpointError as error:
            refused[policy.policy_id] = error
            continue
        policies.append(completed)
        networks[policy.policy_id] = network
        findings += found
    if refused:
        raise _combined_error(refused, networks)
    checkpoint = checkpoint.with_policies(policies).with_findings(findings)
    if any(isinstance(network, CustomNetwork) for network in networks.values()):
        checkpoint = replace(checkpoint, config=without_custom_model(checkpoint.config))
    return checkpoint, networks


def identify_network(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[AnyNetwork, PolicyState, tuple[Finding, ...]]:
    """Identifies the network of one policy.

    Returns:
        The network, the policy with the state from its weights, and findings.

    Raises:
        CheckpointError: The network is not known.
    """
    model = None
    if given.model:
        # Without a custom model in the config, the caller's model is for all policies.
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
    settings = ModelSettings.of(checkpoint, policy)
    try:
        reading = read_network(policy, settings, model)
    except CheckpointError as error:
        if custom.is_custom(policy, settings):  # whose arrays may have any names
            raise
        raise _with_likely_algorithm(checkpoint, policy, error) from error.__cause__
    return reading.network, _with_state(policy, reading.state), reading.findings


def _identify_with_spaces(
    checkpoint: LegacyCheckpoint, policy: PolicyState, given: Given
) -> tuple[AnyNetwork, PolicyState, list[Finding]]:
    """Returns a policy's network, the policy with its spaces, and findings."""
    network, policy, found = identify_network(checkpoint, policy, given)
    choices = network.choices if isinstance(network, Network) else None
    policy, more = add_spaces_of_network(policy, network.inputs, checkpoint.config, choices)
    if isinstance(network, CustomNetwork):
        policy = replace(policy, config=without_custom_model(policy.config))
    return network, policy, [*found, *more]


def add_spaces_of_network(
    policy: PolicyState,
    inputs: tuple[int, ...],
    config: Mapping[str, Any],
    choices: int | None = None,
) -> tuple[PolicyState, list[Finding]]:
    """Completes the spaces of a policy.

    If no other source has the observation space, it is derived from the network's inputs: a flat,
    unbounded Box.

    `choices` is the number of discrete actions of a Q-network.

    Returns:
        The policy with both spaces, and findings.

    Raises:
        MissingInformationError: The action space is not known; the number of outputs fits a
            Discrete space and a Box.
    """
    here = f"policies.{policy.policy_id}"
    notes = []
    if policy.action_space is None and choices is not None:
        policy = replace(policy, action_space=spaces.Discrete(choices))
        message = f"derived from the network's head: {choices} actions, a Q-value for each"
        path = f"{here}.action_space"
        notes.append(Finding.info("derived", Verdict.DERIVED, path, message))
    if policy.action_space is None:
        raise MissingInformationError(
            "The action space is neither in the checkpoint nor in its params, and "
            + _why_no_env_helps(config.get("env")),
            where=f"{here}.action_space",
            fix=f"Pass --action-space {policy.policy_id}='Discrete(2)', or the environment: --env.",
        )
    if policy.observation_space is not None:
        return policy, notes
    note = Finding.warning(
        "derived",
        Verdict.DERIVED,
        f"{here}.observation_space",
        f"derived from the network's {math.prod(inputs)} inputs: the preprocessed observation",
    )
    return replace(policy, observation_space=spaces.box(-np.inf, np.inf, inputs)), [*notes, note]


def _why_no_env_helps(env: object) -> str:
    named = isinstance(env, str) or isinstance(getattr(env, "label", None), str)
    if not named:
        return "no environment is named."
    if importlib.util.find_spec("gymnasium") is None:
        return f"gymnasium, which may know {env!r}, is not installed."
    from rllib_compat.runtime.envs import why_not_importable

    why = why_not_importable(env) if isinstance(env, str) else None
    return (
        f"gymnasium can't make {env!r}: {why}" if why else f"gymnasium has no environment {env!r}."
    )


def _with_state(policy: PolicyState, state: Mapping[str, float]) -> PolicyState:
    """Adds the state that was stored among the weights, if the policy lacks it."""
    missing = [name for name in state if getattr(policy, name, state) is None]
    own: dict[str, Any] = {name: state[name] for name in missing}
    extra = {name: state[name] for name in state if name == MOVING_AVERAGE}
    return replace(policy, extra={**policy.extra, **extra}, **own)


def _with_likely_algorithm(
    checkpoint: LegacyCheckpoint, policy: PolicyState, error: CheckpointError
) -> CheckpointError:
    """Adds the likely algorithm to an error: the named one may be wrong."""
    named, family = checkpoint.algorithm, algorithm_of_arrays([policy])
    if named is None:
        return error
    if family is not None and named not in registry.family(family):
        fix = f"{named} has no arrays of such names, {family} has: --algorithm {family}, if it was."
    else:
        likely = candidates(checkpoint)
        if not likely or named in likely:
            return error
        fix = f"It looks like a checkpoint of {likely[0]}: --algorithm {likely[0]}, if it was."
    return type(error)(error.found, where=error.where, fix=f"{fix} {error.fix or ''}".strip())


def _combined_error(
    refused: Mapping[str, CheckpointError], known: Collection[str]
) -> CheckpointError:
    """Returns the first policy's error, with the options that convert the other policies."""
    first, *more = refused.values()
    if not known:
        return first
    found = first.found
    if more:
        others = ", ".join(list(refused)[1 : 1 + _LISTED])
        found += f" ({len(more)} more policies likewise: {others}{', …' * (len(more) > _LISTED)})"
    options = " ".join(f"--policy {shlex.quote(policy_id)}" for policy_id in list(known)[:_LISTED])
    rest = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    fix = f"{first.fix or ''} The others can be converted without it: {options}{rest}.".strip()
    return type(first)(found, where=first.where, fix=fix)


def is_random(policy: PolicyState) -> bool:
    """Whether a policy is Ray's own random one, with known spaces."""
    known = policy.action_space is not None and policy.observation_space is not None
    return known and not policy.has_weights and policy.policy_class in _RANDOM_POLICIES


def drop_weightless(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Drops policies without weights, which were code (a heuristic, random actions).

    Ray's own random policy is kept, because Ray has a module for it. Each has a row in the report.

    Raises:
        NotConvertibleError: No policy has weights.
    """
    policies = checkpoint.policies.values()
    if not any(p.has_weights for p in policies):
        raise NotConvertibleError(
            "No policy has weights: these policies were code, which is not in a checkpoint.",
            where=str(checkpoint.source.path),
            fix="Write RLModules with the same behavior (Ray has an example: "
            "ray/rllib/examples/rl_modules/classes/rock_paper_scissors_heuristic_rlm.py).",
        )
    kept = checkpoint.with_policies(p for p in policies if p.has_weights or is_random(p))
    return kept.with_findings(_weightless_findings(checkpoint))


def _weightless_findings(checkpoint: LegacyCheckpoint) -> Iterator[Finding]:
    for policy in checkpoint.policies.values():
        if policy.has_weights:
            continue
        path, cls = f"policies.{policy.policy_id}", policy.policy_class
        if is_random(policy):
            message = "it has no weights, as Ray's random policy; it is a RandomRLModule now"
            yield Finding.info("no-weights", Verdict.CONVERTED, path, message)
            continue
        yield Finding.warning(
            "no-weights",
            Verdict.DROPPED,
            path,
            "it has no weights: its behavior was the code of its class"
            f"{f' {cls}' if cls else ''}, which was not executed",
            "write an RLModule with the same behavior and add it: "
            f"algorithm.add_module({policy.policy_id!r}, RLModuleSpec(module_class=MyModule)); "
            "it must not be among policies_to_train",
        )
