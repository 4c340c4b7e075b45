"""The pipeline: read, decide, write, prove. Top to bottom.

Nothing appears under the target's name before the proof is done, and the source is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.conversion import assumed as assumptions
from rllib_compat.conversion import prove as proof
from rllib_compat.conversion import verify
from rllib_compat.conversion.assumed import Assumption
from rllib_compat.conversion.decide import Form, Plan, decide, optimizer_findings
from rllib_compat.conversion.describe import describe, result
from rllib_compat.conversion.difference import Difference
from rllib_compat.conversion.given import Given
from rllib_compat.formats import layouts
from rllib_compat.formats.atomic import atomic_directory
from rllib_compat.formats.layouts import search
from rllib_compat.formats.msgpack import write as msgpack
from rllib_compat.networks import AnyNetwork
from rllib_compat.networks.mapping import Array
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Report, Severity, Verdict

if TYPE_CHECKING:
    from rllib_compat.config import Translation


@frozen
class Conversion:
    """What a conversion did.

    Attributes:
        plan: What was written, and why.
        report: What became of each part.
        differences: The proof: old against new, a row for each policy and output.
        assumed: What no array shows, so that the proof could not see it.
        target: Where the new checkpoint is; None for a dry run.
    """

    plan: Plan
    report: Report
    differences: tuple[Difference, ...] = ()
    assumed: tuple[Assumption, ...] = ()
    target: Path | None = None

    @property
    def checkpoint(self) -> LegacyCheckpoint:
        """The neutral state."""
        return self.plan.checkpoint

    @property
    def networks(self) -> Mapping[str, AnyNetwork]:
        """The network of each policy; empty for msgpack of an unknown network."""
        return self.plan.networks

    @property
    def translation(self) -> Translation | None:
        """The translated config, where one was needed."""
        return self.plan.translation

    @property
    def largest_difference(self) -> float | None:
        """The largest absolute difference over all policies and outputs."""
        return max((d.absolute for d in self.differences), default=None)

    def to_dict(self) -> dict[str, Any]:
        """The report and the proof as plain data, for JSON."""
        return {
            **self.report.to_dict(),
            "largest_difference": self.largest_difference,
            **Comparison(self.differences, self.assumed).to_dict(),
        }


@frozen
class Comparison:
    """What an old and a new checkpoint have in common.

    Attributes:
        differences: A row for each policy and output, equal or not.
        assumed: What no array shows, so that both sides took it from the same place.
    """

    differences: tuple[Difference, ...]
    assumed: tuple[Assumption, ...]

    @property
    def equal(self) -> bool:
        """Whether all that was compared is equal, within rounding."""
        return all(row.ok for row in self.differences)

    def to_dict(self) -> dict[str, Any]:
        """It as plain data, for JSON."""
        return {
            "compared": [vars(row) for row in self.differences],
            "assumed": [vars(row) for row in self.assumed],
        }


def convert(
    old: str | Path,
    new: str | Path,
    *,
    to: str = "checkpointable",
    state_format: str = "pkl",
    given: Given | None = None,
    prove: bool = True,
    inputs: int = 1000,
    observations: Mapping[str, Array] | None = None,
    recorded: Mapping[str, Array] | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    budget: Budget | None = None,
) -> Conversion:
    """Converts a legacy checkpoint.

    Args:
        old: A checkpoint file or folder of any Ray from 0.5 on.
        new: The folder to make.
        to: `checkpointable` (what the installed Ray reads), or one of those that need no Ray:
            `msgpack` (all of it), `onnx` or `safetensors` (the networks, for other libraries).
        state_format: How the Checkpointable tree keeps its state: `pkl` or `msgpack`.
        given: What the checkpoint does not tell.
        prove: Whether old and new are compared before the target appears.
        inputs: How many random inputs they are compared on.
        observations: More inputs to compare on, by policy: `[B, network inputs]`.
        recorded: What the old Ray computed, as `convert.recorded.load` reads it from a file.
        overwrite: Whether `new` may be there already, if it is a converted checkpoint.
        dry_run: Whether to stop before anything is written.
        budget: What the job may cost, if not as much as any honest checkpoint takes.

    Returns:
        What was done, with the report.

    Raises:
        CheckpointError: It can't be read, completed or converted.
        VerificationError: Old and new differ; nothing was written.
    """
    budget = budget or Budget()
    checkpoint = layouts.read(old, budget)
    plan = decide(checkpoint, given or Given(), to=to)
    report = Report(f"Conversion of {old}", {"layout": checkpoint.source.layout})
    describe(plan, report)
    if dry_run:
        if plan.form.of_ray:
            report.extend(optimizer_findings(plan))
        if plan.form is Form.MODULES:
            from rllib_compat.conversion.write import modules

            report.extend(modules.left_out(plan))
        report.facts["result"] = result(plan)
        assumed = tuple(assumptions.of_plan(plan))
        report.extend(row.finding() for row in assumed)
        return Conversion(plan, report, assumed=assumed)

    rows: list[Difference] = []
    with atomic_directory(
        new, overwrite=overwrite, source=checkpoint.source.path, why_not=search.why_not_replaceable
    ) as target:
        report.extend(_write(plan, target, state_format, budget))
        if prove:
            rows = proof.compare(
                plan,
                target,
                inputs=inputs,
                observations=observations,
                recorded=recorded,
                budget=budget,
            )
            verify.require_equal(rows)
            report.findings = proof.settled(report.findings, rows)
            report.extend(proof.finding(row) for row in rows)
        else:
            report.add("verify", Verdict.NOTE, "weights", "not compared", severity=Severity.WARNING)
    assumed = tuple(assumptions.of_plan(plan, rows))
    report.extend(row.finding() for row in assumed)
    report.facts["result"] = result(plan)
    return Conversion(plan, report, tuple(rows), assumed, Path(new))


def _write(plan: Plan, target: Path, state_format: str, budget: Budget) -> list[Finding]:
    """Writes what was decided into an empty folder."""
    if plan.form is Form.MSGPACK:
        budget.start_clock()
        return msgpack.write(plan.checkpoint, target, budget)
    if plan.form is Form.ONNX:
        from rllib_compat.conversion.write import onnx

        return onnx.write(plan, target)
    if plan.form is Form.SAFETENSORS:
        from rllib_compat.conversion.write import safetensors

        return safetensors.write(plan, target)
    from rllib_compat.conversion.write import checkpointable, modules

    if plan.form is Form.MODULES:
        return modules.write(plan, target)
    return checkpointable.write(plan, target, state_format=state_format)


def verify_pair(
    old: str | Path,
    new: str | Path,
    *,
    given: Given | None = None,
    inputs: int = 1000,
    observations: Mapping[str, Array] | None = None,
    recorded: Mapping[str, Array] | None = None,
    budget: Budget | None = None,
) -> Comparison:
    """Compares an old checkpoint with a converted one that is there already.

    The arguments are those of `convert`.

    Raises:
        CheckpointError: One of them can't be read, or the old network is not known.
    """
    new = Path(new)
    to = "checkpointable" if (new / "learner_group").is_dir() else "msgpack"
    budget = budget or Budget()
    plan = decide(layouts.read(old, budget), given or Given(), to=to)
    if not plan.networks:
        raise _nothing_to_compare(plan)
    if to == "checkpointable":
        rows = proof.compare_reading(
            plan, new, inputs=inputs, observations=observations, recorded=recorded, budget=budget
        )
    else:
        rows = proof.compare(
            plan, new, inputs=inputs, observations=observations, recorded=recorded, budget=budget
        )
    return Comparison(tuple(rows), tuple(assumptions.of_plan(plan, rows)))


def _nothing_to_compare(plan: Plan) -> NotYetError:
    """The error where no network of the old checkpoint is known."""
    for row in plan.findings:
        if row.rule == "network":
            return NotYetError(
                f"Nothing can be compared: {row.message}", where=row.path, fix=row.hint
            )
    return NotYetError(
        "Nothing can be compared: no policy has weights.",
        where="policies",
        fix="Give a checkpoint of a policy that has learned.",
    )
