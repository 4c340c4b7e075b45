"""Writes what a plan says into an empty folder: a file of this package for each kind of target."""

from __future__ import annotations

from pathlib import Path

from rllib_compat.conversion.plan import Form, Plan
from rllib_compat.formats.msgpack import write as msgpack
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.report import Finding


def write(plan: Plan, target: Path, *, state_format: str, budget: Budget) -> list[Finding]:
    """Writes what a plan says.

    Args:
        plan: What is written.
        target: An empty folder.
        state_format: How a Checkpointable tree keeps its state: `pkl` or `msgpack`.
        budget: What the job may cost.

    Returns:
        What became of each part.
    """
    if plan.form is Form.MSGPACK:
        budget.start_clock()
        return msgpack.write(plan.checkpoint, target, budget)
    if plan.form in (Form.ONNX, Form.SAFETENSORS):
        from rllib_compat.conversion.write import exports

        onnx = plan.form is Form.ONNX
        return (exports.write_onnx if onnx else exports.write_safetensors)(plan, target)
    from rllib_compat.conversion.write import checkpointable, modules

    if plan.form is Form.MODULES:
        return modules.write(plan, target)
    return checkpointable.write(plan, target, state_format=state_format)
