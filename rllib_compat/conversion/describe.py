"""What a plan keeps, derives and leaves out, as the rows of a report."""

from __future__ import annotations

from typing import Any

from rllib_compat.conversion.decide import Form, Plan
from rllib_compat.conversion.without_weights import has_weights
from rllib_compat.neutral.checkpoint import PolicyState, size_of
from rllib_compat.neutral.report import Report, Verdict


def facts(plan: Plan) -> dict[str, Any]:
    """What heads the report."""
    return {
        "algorithm": plan.checkpoint.algorithm or "unknown",
        "ray": plan.checkpoint.source.ray_version or "unknown",
        "policies": len(plan.checkpoint.policies),
    }


def result(plan: Plan) -> str:
    """The last line: what the new checkpoint can be used for."""
    told = {
        Form.WHOLE: "resumes training",
        Form.MODULES: "inference only (RLModule.from_checkpoint)",
        Form.MSGPACK: "kept whole, readable without Ray; convert it once more to train on",
        Form.ONNX: "a model for onnxruntime and others, for each policy",
        Form.SAFETENSORS: "arrays by name, for each policy",
    }[plan.form]
    diverged = any(finding.rule == "not-finite" for finding in plan.checkpoint.findings)
    return f"{told}, though not all of its weights are numbers" if diverged else told


def describe(plan: Plan, report: Report) -> None:
    """Adds what was read, and what the target has no place for."""
    checkpoint = plan.checkpoint
    report.facts |= facts(plan)
    report.extend(checkpoint.findings)
    report.extend(plan.findings)
    for policy_id, policy in checkpoint.policies.items():
        network = plan.networks.get(policy_id)
        what = network.summary if network else _size(policy)
        path = f"policies.{policy_id}.weights"
        report.add("weights", Verdict.EXACT, path, what)
        if network and network.unused and plan.form is not Form.MSGPACK:
            names = ", ".join(network.unused)
            report.add("weights", Verdict.DROPPED, path, f"no output depends on them: {names}")
    if plan.form is Form.MSGPACK:
        _describe_optimizers(plan, report)
    for name, count in sorted(checkpoint.stand_ins.items()):
        report.add(
            "stand-in",
            Verdict.NOTE,
            name,
            f"named {count} times; kept as an inert record, not imported or run",
        )
    for part in ("replay buffers", "running episodes"):
        report.add("absent", Verdict.ABSENT, part, "not stored in this checkpoint")
    if plan.form is not Form.MSGPACK:
        for key in checkpoint.extra:
            report.add("extra", Verdict.DROPPED, key, "the new files have no place for it")
    if plan.translation is not None:
        report.extend(plan.translation.report)
        if trusted := plan.translation.report.facts.get("trusted"):
            report.facts["trusted"] = trusted


def _size(policy: PolicyState) -> str:
    return f"{size_of(policy.weights):,} numbers" if has_weights(policy) else "it has none"


def _describe_optimizers(plan: Plan, report: Report) -> None:
    stored = sum(policy.optimizer is not None for policy in plan.checkpoint.policies.values())
    path = "policies.*.optimizer"
    if stored:
        report.add("optimizer", Verdict.EXACT, path, f"kept for {stored} policies")
    else:
        report.add("optimizer", Verdict.ABSENT, path, "no optimizer state is stored")
