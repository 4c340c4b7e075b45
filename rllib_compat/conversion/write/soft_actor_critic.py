"""What a SAC or CQL policy had besides its networks: temperature, entropy, range of actions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rllib_compat.conversion.write.per_policy import set_for_policies
from rllib_compat.networks import AnyNetwork
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Discrete

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


def carry_temperatures(config: AlgorithmConfig, checkpoint: LegacyCheckpoint) -> list[Finding]:
    """Puts temperatures and target entropies into the config.

    Today's learner keeps its temperature in no state; it starts from the config's. And it takes
    the target entropy of discrete actions for that of continuous ones, which is never reached.
    """
    findings = []
    alphas = {
        p.policy_id: math.exp(p.log_alpha)
        for p in checkpoint.policies.values()
        if p.log_alpha is not None
    }
    if alphas:
        set_for_policies(config, "initial_alpha", alphas)
        shown = ", ".join(f"{k}: {v:g}" for k, v in alphas.items())
        message = f"the current temperature became the config's initial_alpha ({shown})"
        findings.append(_derived("temperature", "policies.*.log_alpha", message))
    entropies = {
        p.policy_id: target
        for p in checkpoint.policies.values()
        if (target := _target_entropy(p, config)) is not None
    }
    if entropies:
        others = dict.fromkeys(checkpoint.policies, config.target_entropy)
        set_for_policies(config, "target_entropy", {**others, **entropies})
        shown = ", ".join(f"{k}: {v:g}" for k, v in entropies.items())
        message = f"the target entropy became a number, as before ({shown})"
        findings.append(_derived("target-entropy", "policies.*.target_entropy", message))
    return findings


def keep_action_range(config: AlgorithmConfig, networks: Mapping[str, AnyNetwork]) -> list[Finding]:
    """Lets actions be what the policies of Ray 0.7 and 0.8.0 gave: in the environment's range.

    Later ones gave actions within -1 … 1, which the config's `normalize_actions` stretches; the
    checkpoint does not tell which Ray's default is the config's.
    """
    told = [n.target.model_config["distribution"] for n in networks.values()]
    if not any(d.get("squashes", 1) > 1 for d in told) or not config.normalize_actions:
        return []
    config.environment(normalize_actions=False)
    message = "switched off: this policy's actions are in the environment's range already"
    return [_derived("normalize-actions", "config.normalize_actions", message)]


def _target_entropy(policy: PolicyState, config: Any) -> float | None:
    """The target entropy where today's "auto" means another: 98 % of the greatest possible."""
    if not isinstance(policy.action_space, Discrete) or config.target_entropy not in (None, "auto"):
        return None
    if policy.target_entropy is not None:
        return policy.target_entropy
    return 0.98 * math.log(policy.action_space.n)


def _derived(rule: str, path: str, message: str) -> Finding:
    return Finding(rule, Severity.INFO, Verdict.DERIVED, path, message)
