"""The multi-agent part of a config: the policies that are there, and which of them are trained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config import Origin, default_config
from rllib_compat.config.rules import find
from rllib_compat.config.validation import validate_config
from rllib_compat.conversion.given import ConfigSources, Given, same_value
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.records import is_stand_in
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.runtime.policy_mapping import PolicyOfSameName

#: Keys of the multi-agent part, by era in a dict of their own or at the top level. What else is in
#: the dict goes the way of all keys.
_KEYS = ("policies", "policy_graphs", "policy_mapping_fn", "policies_to_train")

#: A config with more keys is no override of somebody, but all that there was.
_COMPLETE = 60

_NO_VALUE = object()


def with_policies(
    sources: ConfigSources, checkpoint: LegacyCheckpoint, given: Given
) -> ConfigSources:
    """Puts a `multiagent` part of the checkpoint's policies in place of the file's."""
    config = sources.from_file
    section = config.get("multiagent")
    part = dict(section) if isinstance(section, Mapping) else {}
    sources = sources.without("multiagent", *_KEYS)
    if not checkpoint.is_multi_agent:
        return sources
    rest = {key: value for key, value in part.items() if key not in _KEYS}
    others = validate_config({"multiagent": rest}, _algorithms(checkpoint), Origin.FILE)
    made: dict[str, Any] = dict(others.config.get("multiagent") or {})
    made["policies"] = {}
    findings = list(others.findings)
    for policy_id, policy in checkpoint.policies.items():
        spec, found = _spec(checkpoint, policy)
        made["policies"][policy_id] = spec
        findings += found
    callers = dict(given.overrides.get("multiagent") or {})
    made |= callers
    if "policy_mapping_fn" not in callers:
        made["policy_mapping_fn"] = PolicyOfSameName(tuple(checkpoint.policies))
        lost = Finding.warning(
            "policy-mapping",
            Verdict.RESET,
            "policy_mapping_fn",
            "the mapping function is code and was not executed; an agent now gets the policy of "
            "its own name",
            "to train on: rllib_compat.load(NEW, env=MyEnv, policy_mapping_fn=my_function)",
        )
        findings.append(lost)
    if "policies_to_train" in callers:
        return sources.giving(multiagent=made).with_findings(*findings)
    key = "policies_to_train"
    said = (checkpoint.policies_to_train, part.get(key), config.get(key))
    trained, found = _to_train(checkpoint, [one for one in said if one is not None])
    can_learn = [k for k, policy in checkpoint.policies.items() if policy.has_weights]
    if len(can_learn) < len(checkpoint.policies):
        trained = [k for k in can_learn if trained is None or k in trained]
    if trained is not None:
        made[key] = trained
    return sources.giving(multiagent=made).with_findings(*findings, *found)


def _to_train(
    checkpoint: LegacyCheckpoint, sources: list[Any]
) -> tuple[list[str] | None, list[Finding]]:
    """Which policies are trained: as the state says, else as the config does; None: all."""
    path = "policies_to_train"
    named = next((s for s in sources if isinstance(s, (list, tuple, set, frozenset))), None)
    if named is None:
        reset = Finding.warning(
            "policies-to-train",
            Verdict.RESET,
            path,
            "which policies are trained is decided by code, which was not executed; all of them "
            "are trained now",
            "before training goes on: config.multi_agent(policies_to_train=[…])",
        )
        return None, [reset] if sources else []
    trained, unknown = _ids(checkpoint, named)
    frozen = [policy_id for policy_id in checkpoint.policies if policy_id not in trained]
    message = f"trained: {', '.join(trained) or 'none'}; as they are: {', '.join(frozen) or 'none'}"
    if any(is_stand_in(source) for source in sources):
        message += " (by the config; code that may have changed it was not executed)"
    if unknown:
        message += f"; not in this checkpoint: {', '.join(unknown)}"
    severity = Severity.WARNING if unknown else Severity.INFO
    return trained, [Finding("policies-to-train", severity, Verdict.KEPT, path, message)]


def _ids(checkpoint: LegacyCheckpoint, named: Iterable[Any]) -> tuple[list[str], list[str]]:
    """Today's ids of policies that a file names, in the checkpoint's order; and unknown names."""
    names = {str(name) for name in named}
    old = {policy.old_id: policy_id for policy_id, policy in checkpoint.policies.items()}
    known = [policy_id for old_id, policy_id in old.items() if old_id in names]
    return known, sorted(names - old.keys())


def _spec(checkpoint: LegacyCheckpoint, policy: PolicyState) -> tuple[Any, list[Finding]]:
    """A policy's tuple: class, spaces, and what of its own config fits."""
    assert policy.observation_space is not None
    assert policy.action_space is not None
    valid = validate_config(_overrides(checkpoint, policy), _algorithms(checkpoint), Origin.FILE)
    spec = (
        None,
        spaces.to_gymnasium(policy.observation_space),
        spaces.to_gymnasium(policy.action_space),
        valid.config,
    )
    return spec, valid.findings


def _overrides(checkpoint: LegacyCheckpoint, policy: PolicyState) -> dict[str, Any]:
    """What a policy has for itself.

    Ray 2.1 and later stored the whole config for each, as its worker had it. Of that, only how a
    policy is trained can differ from the others'.
    """
    own, algorithms = policy.config, _algorithms(checkpoint)
    base = dict(checkpoint.config)
    if len(own) > _COMPLETE:
        defaults = default_config(algorithms[0], checkpoint.source.ray_version or "2.10.0")
        base = {**defaults, **base}
        own = {key: value for key, value in own.items() if _is_for_training(key, algorithms)}
    return {
        key: value
        for key, value in own.items()
        if key != "model" and not same_value(value, base.get(key, _NO_VALUE))
    }


def _is_for_training(key: str, algorithms: tuple[str, str]) -> bool:
    rule = find(key, algorithms)
    return rule is not None and rule.target.startswith("training.")


def _algorithms(checkpoint: LegacyCheckpoint) -> tuple[str, str]:
    algorithm = registry.of(checkpoint.algorithm)
    return algorithm.name, algorithm.becomes
