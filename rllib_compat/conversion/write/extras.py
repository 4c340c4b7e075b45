"""What the forms for other libraries (ONNX, safetensors) share."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from rllib_compat.conversion.decide import Plan
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.report import Finding, Severity, Verdict


def require_library(name: str, *, extra: str) -> Any:
    """Imports a library of an extra.

    Raises:
        CompatError: It is not installed; the error tells the command.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CompatError(
            f"This needs the package {name}, which is not installed.",
            where=f"--to {extra}",
            fix=f"pip install 'rllib-compat[{extra}]'",
        ) from error


def describe(plan: Plan, policy_id: str) -> Mapping[str, Any]:
    """What a file of one policy tells about itself, as text or plain data."""
    checkpoint = plan.checkpoint
    policy, network = checkpoint.policies[policy_id], plan.networks.get(policy_id)
    told: dict[str, Any] = {
        "policy": policy_id,
        "algorithm": checkpoint.algorithm or "",
        "ray_version": checkpoint.source.ray_version or "",
        "observation_space": str(policy.observation_space or ""),
        "action_space": str(policy.action_space or ""),
    }
    if network is not None:
        told["network"] = network.summary
        if "distribution" in network.target.model_config:
            told["distribution"] = network.target.model_config["distribution"]
    return told


def dropped(plan: Plan) -> list[Finding]:
    """What such a file has no place for."""
    parts = [("config", "the config"), ("counters", "the counters")]
    if any(policy.optimizer is not None for policy in plan.checkpoint.policies.values()):
        parts.append(("policies.*.optimizer", "the optimizers' states"))
    for policy_id, policy in plan.checkpoint.policies.items():
        held = policy_id in plan.networks and "filter.mean" in plan.networks[policy_id].arrays
        stats = policy.observation_filter is not None and bool(policy.observation_filter.stats)
        if stats and not held:
            parts.append((f"policies.{policy_id}.observation_filter", "the observation filter"))
    return [
        Finding(
            "weights-only",
            Severity.INFO,
            Verdict.DROPPED,
            path,
            f"{what}: the new files hold networks alone",
            "`--to msgpack` keeps all of it without Ray",
        )
        for path, what in parts
    ]
