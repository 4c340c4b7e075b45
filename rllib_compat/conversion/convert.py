"""The conversion, step by step: read, complete, identify, plan, write, prove; and what comes next.

The target appears only after the proof, and the source is never changed.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat.conversion import prove as proof
from rllib_compat.conversion.compare import (
    Array,
    OutputDifference,
    confirm_custom_modules,
    require_equal,
)
from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given, Samples
from rllib_compat.conversion.identify import identify
from rllib_compat.conversion.plan import Plan, make_plan
from rllib_compat.conversion.prove import Assumption, find_assumptions
from rllib_compat.formats import layouts
from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.layouts import exported
from rllib_compat.formats.layouts.search import why_not_replaceable
from rllib_compat.formats.manifest import require_whole, write_manifest
from rllib_compat.formats.msgpack import write as msgpack
from rllib_compat.formats.paths import is_address, local_path
from rllib_compat.formats.stores import source_path, target_directory
from rllib_compat.networks import AnyNetwork, known, optimizers
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState, size_of
from rllib_compat.neutral.choices import FORMS, OF_RAY, STATE_FORMATS, Form, require_one_of
from rllib_compat.neutral.errors import ConfigError, NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.origins import describe_place
from rllib_compat.neutral.report import Finding, Report, Verdict
from rllib_compat.ray_versions import releases

if TYPE_CHECKING:
    from rllib_compat.config import Translation


@frozen
class Verification:
    """The result of `verify`: the comparison of an old and a new checkpoint.

    Attributes:
        differences: A row for each policy and output, and for its weights.
        assumptions: The settings that weights do not show, which both sides have from one source.
    """

    differences: tuple[OutputDifference, ...]
    assumptions: tuple[Assumption, ...]

    @property
    def equal(self) -> bool:
        """Whether all outputs and weights are equal, within the errors of float32."""
        return all(row.ok for row in self.differences)

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data, for JSON."""
        return {
            "compared": [vars(row) for row in self.differences],
            "assumed": [vars(row) for row in self.assumptions],
        }


@frozen
class Conversion:
    """The result of `convert`.

    Attributes:
        plan: The form that was written, and why.
        report: A `Finding` for each part of the checkpoint, below its `facts`.
        differences: The proof: old against new, a row for each policy and output.
        assumptions: The settings that weights do not show, which the proof cannot check.
        target: The new checkpoint; None for a dry run.
        next_step: Lines of code that continue training or act; empty for a dry run, and for files
            for other libraries.
    """

    plan: Plan
    report: Report
    differences: tuple[OutputDifference, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    target: str | Path | None = None
    next_step: str = ""

    @property
    def checkpoint(self) -> LegacyCheckpoint:
        """The checkpoint that was read, completed with facts from other sources."""
        return self.plan.checkpoint

    @property
    def networks(self) -> Mapping[str, AnyNetwork]:
        """The network of each policy; empty for msgpack of an unknown network."""
        return self.plan.networks

    @property
    def translation(self) -> Translation | None:
        """The translated config, if an algorithm was written."""
        return self.plan.translation

    @property
    def trains_on(self) -> bool:
        """Whether the installed Ray can continue training from the new checkpoint."""
        return self.plan.form is Form.ALGORITHM

    @property
    def largest_difference(self) -> float | None:
        """The largest absolute difference over all policies and outputs; None without a proof."""
        return max((d.absolute for d in self.differences), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report and the proof as plain data, for JSON."""
        return {
            **self.report.to_dict(),
            "largest_difference": self.largest_difference,
            **Verification(self.differences, self.assumptions).to_dict(),
        }


def convert(
    old: str | Path,
    new: str | Path,
    *,
    to: str = "checkpointable",
    state_format: str = "pkl",
    algorithm: str | None = None,
    config: Mapping[str, Any] | str | Path | None = None,
    env: object = None,
    observation_space: object = None,
    action_space: object = None,
    model: str | type | None = None,
    given: Given | None = None,
    prove: bool = True,
    inputs: int = 1000,
    observations: str | Path | Mapping[str, Array] | None = None,
    recorded: str | Path | Mapping[str, Array] | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    budget: Budget | None = None,
) -> Conversion:
    """Converts a legacy checkpoint, and proves that old and new networks have equal outputs.

    Nothing in the old checkpoint is executed, and it is not changed.

    Args:
        old: A checkpoint file or folder of any Ray from 0.5 on: its path, or its address
            (`s3://bucket/path`).
        new: The folder to write, or its address.
        to: `checkpointable` (for the installed Ray), or a form that needs no Ray: `msgpack` (all
            data), `onnx` or `safetensors` (the networks, for other libraries), `hub` (networks
            with a model card, for sharing), or `policy` (one policy in the file `new`, for
            `load_policy`).
        state_format: The file format of the Checkpointable tree's states: `pkl` or `msgpack`.
        algorithm: The algorithm that was trained, if the checkpoint does not name it.
        config: The trainer's config, likewise, or its file; `{}` for the defaults.
        env: The environment: a registered name, a class, or a function of the env config.
        observation_space: The environment's observations, likewise: a space of gymnasium or gym,
            or text like `Box(4,)`.
        action_space: The environment's actions, likewise; another for each policy in a dict.
        model: The RLModule that takes the weights of a custom model, or `module:Class`.
        given: The options of the command line; the other arguments have precedence.
        prove: Whether to compare old and new before the target appears.
        inputs: The number of random inputs for the comparison.
        observations: More inputs for it: `[B, network inputs]` by policy, or a `.npz` file.
        recorded: Outputs of the old Ray: a file of `rllib-compat recorder`, or its arrays.
        overwrite: Whether to replace `new`, if it is a converted checkpoint.
        dry_run: Whether to stop before writing.
        budget: The limits of memory and time, by default enough for any valid checkpoint.

    Returns:
        The report, the proof, and the assumptions.

    Raises:
        CheckpointError: The checkpoint cannot be read, completed or converted.
        VerificationError: Old and new differ; nothing was written.
    """
    require_one_of(FORMS, to=to)
    require_one_of(STATE_FORMATS, state_format=state_format)
    samples = Samples.of(inputs, observations, recorded)
    facts = algorithm, config, env, observation_space, action_space, model
    known_facts = (given or Given()).with_arguments(*facts)
    budget = budget or Budget()
    checkpoint = layouts.read(old, budget)
    if checkpoint.source.path.is_dir():
        require_whole(checkpoint.source.path)
    plan = prepare(checkpoint, known_facts, to=to)
    report = Report(f"Conversion of {describe_place(old)}", {"layout": checkpoint.source.layout})
    _describe(plan, report)
    rows: list[OutputDifference] = []
    if dry_run:
        report.extend(_dry_run_findings(plan))
    else:
        with _new_target(plan, new, overwrite=overwrite) as target:
            report.extend(_write(plan, target, state_format=state_format, budget=budget))
            if prove:
                rows = proof.compare_written(plan, target, samples, budget)
                require_equal(rows)
                report.extend(row.finding() for row in rows)
                report.findings = confirm_custom_modules(report.findings, rows)
            else:
                not_compared = Finding.warning("verify", Verdict.NOTE, "weights", "not compared")
                report.extend([not_compared])
            write_manifest(target)
    assumptions = find_assumptions(plan.checkpoint, known(plan.networks), rows)
    report.extend(row.finding() for row in assumptions)
    done = Conversion(plan, report, tuple(rows), tuple(assumptions))
    if dry_run:
        return done
    there = describe_place(new) if is_address(new) else local_path(new)
    lines = describe_next_step(plan, there, known_facts)
    return replace(done, target=there, next_step=lines)


def verify(
    old: str | Path,
    new: str | Path,
    *,
    algorithm: str | None = None,
    config: Mapping[str, Any] | str | Path | None = None,
    env: object = None,
    observation_space: object = None,
    action_space: object = None,
    model: str | type | None = None,
    given: Given | None = None,
    inputs: int = 1000,
    observations: str | Path | Mapping[str, Array] | None = None,
    recorded: str | Path | Mapping[str, Array] | None = None,
    budget: Budget | None = None,
) -> Verification:
    """Compares an old checkpoint with an existing converted one.

    Nothing in either is executed. If they differ, `equal` is False, and no error is raised. The
    arguments are those of `convert`.

    Raises:
        CheckpointError: One of them cannot be read, or the old network is not known.
    """
    samples = Samples.of(inputs, observations, recorded)
    facts = algorithm, config, env, observation_space, action_space, model
    known_facts = (given or Given()).with_arguments(*facts)
    new = source_path(new)
    to = "checkpointable" if (new / "learner_group").is_dir() else "msgpack"
    budget = budget or Budget()
    plan = prepare(layouts.read(old, budget), known_facts, to=to, keep_unknown=False)
    if not plan.networks:
        raise NotYetError(
            "Nothing can be compared: no policy has weights.",
            where="policies",
            fix="Pass a checkpoint with a trained policy.",
        )
    compare = proof.compare_tree if to == "checkpointable" else proof.compare_written
    rows = compare(plan, new, samples, budget)
    assumptions = find_assumptions(plan.checkpoint, known(plan.networks), rows)
    return Verification(tuple(rows), tuple(assumptions))


def prepare(
    checkpoint: LegacyCheckpoint,
    given: Given,
    *,
    to: str = "checkpointable",
    keep_unknown: bool = True,
) -> Plan:
    """Does all steps between reading and writing for the form `to`.

    `keep_unknown` keeps weights without a known network, where the form can.

    Raises:
        CheckpointError: A fact is missing, or a network is not known; `msgpack` and `safetensors`
            keep the weights of such a checkpoint.
        RayNotSupportedError: No supported Ray is installed.
    """
    if to == "checkpointable":
        releases.installed()  # raises before the work, not after it
    completed = complete(checkpoint, given)
    identified = identify(
        completed,
        given,
        keep_unknown=keep_unknown and to in ("msgpack", "safetensors", "hub"),
        keep_weightless=to == "msgpack",
    )
    return make_plan(identified, given, to=to)


@contextmanager
def _new_target(plan: Plan, new: str | Path, *, overwrite: bool) -> Iterator[Path]:
    """Yields a temporary folder, which becomes the target if the block raises no error."""
    source = plan.checkpoint.source.path
    if plan.form is not Form.POLICY:
        with target_directory(
            new, overwrite=overwrite, source=source, why_not=why_not_replaceable
        ) as target:
            yield target
        return
    if is_address(new) or Path(new).suffix != exported.ARCHIVE:
        raise ConfigError(
            "`--to policy` writes one local file.",
            where=describe_place(new),
            fix=f"Pass a path that ends with {exported.ARCHIVE}.",
        )
    with tempfile.TemporaryDirectory(prefix="rllib_compat_") as folder:
        yield Path(folder)
        (made,) = Path(folder).glob(f"*{exported.ARCHIVE}")
        with made.open("rb") as data, atomic_file(Path(new), overwrite=overwrite) as out:
            shutil.copyfileobj(data, out)


def _write(plan: Plan, target: Path, *, state_format: str, budget: Budget) -> list[Finding]:
    """Writes the form of a plan into an empty folder; returns a finding for each part."""
    if plan.form is Form.MSGPACK:
        budget.start_clock()
        return msgpack.write(plan.checkpoint, target, budget)
    if plan.form not in OF_RAY:
        from rllib_compat.conversion.write import exports, hub

        writers = {**exports.WRITERS, Form.HUB: hub.write}
        return writers[plan.form](plan, target)
    from rllib_compat.conversion.write import checkpointable, modules

    if plan.form is Form.MODULES:
        return modules.write(plan, target)
    return checkpointable.write(plan, target, state_format=state_format)


def _describe(plan: Plan, report: Report) -> None:
    """Adds what was read, and what the target lacks, to the report."""
    checkpoint = plan.checkpoint
    report.facts |= {
        "algorithm": checkpoint.algorithm or "unknown",
        "ray": checkpoint.source.ray_version or "unknown",
        "policies": len(checkpoint.policies),
    }
    report.extend(checkpoint.findings)
    report.extend(plan.findings)
    for policy_id, policy in checkpoint.policies.items():
        network = plan.networks.get(policy_id)
        path = f"policies.{policy_id}.weights"
        report.add("weights", Verdict.EXACT, path, network.summary if network else _size(policy))
        if network and network.unused and plan.form is not Form.MSGPACK:
            names = ", ".join(network.unused)
            report.add("weights", Verdict.DROPPED, path, f"no output depends on them: {names}")
    if plan.form is Form.MSGPACK:
        stored = sum(policy.optimizer is not None for policy in checkpoint.policies.values())
        verdict = Verdict.EXACT if stored else Verdict.ABSENT
        message = f"kept for {stored} policies" if stored else "no optimizer state is stored"
        report.add("optimizer", verdict, "policies.*.optimizer", message)
    for name, count in sorted(checkpoint.stand_ins.items()):
        message = f"named {count} times; kept as an inert record, not imported or run"
        report.add("stand-in", Verdict.NOTE, name, message)
    for part in ("replay buffers", "running episodes"):
        report.add("absent", Verdict.ABSENT, part, "not stored in this checkpoint")
    if plan.form is not Form.MSGPACK:
        for key in checkpoint.extra:
            report.add("extra", Verdict.DROPPED, key, "the new files have no place for it")
    if plan.translation is not None:
        report.extend(plan.translation.report)
        if trusted := plan.translation.report.facts.get("trusted"):
            report.facts["trusted"] = trusted
    report.facts["result"] = result_of(plan)


def _size(policy: PolicyState) -> str:
    return f"{size_of(policy.weights):,} numbers" if policy.has_weights else "it has none"


def _dry_run_findings(plan: Plan) -> list[Finding]:
    findings: list[Finding] = []
    if plan.form in OF_RAY:
        findings += optimizers.plan(plan.checkpoint.policies, plan.networks)[1]
    if plan.form is Form.MODULES:
        from rllib_compat.conversion.write import modules

        findings += modules.dropped_parts(plan)
    return findings


def result_of(plan: Plan) -> str:
    """Returns the last line of a report: the use of the new checkpoint."""
    use = {
        Form.ALGORITHM: "resumes training",
        Form.MODULES: "inference only (RLModule.from_checkpoint)",
        Form.MSGPACK: "complete, readable without Ray; to train from it, convert it again",
        Form.ONNX: "a model for onnxruntime and others, for each policy",
        Form.SAFETENSORS: "arrays by name, for each policy",
        Form.HUB: "a folder to share: networks, model card, config and metrics",
        Form.POLICY: "a policy in one file, for load_policy",
    }[plan.form]
    diverged = any(finding.rule == "not-finite" for finding in plan.checkpoint.findings)
    return f"{use}, though not all of its weights are numbers" if diverged else use


#: The largest length of a space's text.
_SPACE = 60
#: The largest number of policy ids.
_POLICIES = 4


def describe_next_step(plan: Plan, target: str | Path, given: Given) -> str:
    """Returns the code that continues training from a checkpoint, or acts with it.

    Returns:
        Python code or a command, below a line with its purpose; empty for files for other
        libraries, and for unknown networks.
    """
    if plan.form is Form.ALGORITHM:
        return _train(plan, target, given)
    if plan.form in (Form.MODULES, Form.POLICY, Form.HUB):
        return _act(plan, target)
    if plan.form is Form.MSGPACK and plan.networks:
        model = ["--model", given.model] if given.model else []
        command = shlex.join(["rllib-compat", "convert", str(target), f"{target}-trains", *model])
        return f"to continue training:\n  {command}"
    return ""


def _train(plan: Plan, target: str | Path, given: Given) -> str:
    arguments, notes = [repr(str(target))], list[str]()
    rules = {finding.rule for finding in plan.findings if finding.verdict is not Verdict.DROPPED}
    policies = plan.checkpoint.policies
    if "environment" in rules or not (given.env is None or isinstance(given.env, str)):
        arguments.append("env=MyEnv")
        notes.append(f"MyEnv: the class of your environment, {_describe_spaces(policies)}")
    if "policy-mapping" in rules and len(policies) == 1:
        arguments.append(f"policy_mapping_fn=lambda *_, **__: {next(iter(policies))!r}")
    elif "policy-mapping" in rules:
        arguments.append("policy_mapping_fn=policy_of")
        listed = [repr(policy_id) for policy_id in policies][:_POLICIES]
        ids = ", ".join([*listed, "…"] if len(policies) > _POLICIES else listed)
        notes.append(f"policy_of(agent_id, *args, **kwargs): which of {ids} an agent has")
    if "offline-data" in rules:
        arguments.append('input="/path/to/recordings"')
        notes.append("input: your recorded steps, of any Ray")
    if given.model:
        arguments.append(f"given=compat.Given(model={given.model!r})")
    lines = [
        *(f"# {note}" for note in notes),
        "import rllib_compat as compat",
        f"algorithm = compat.load({', '.join(arguments)})",
        "algorithm.train()",
    ]
    return "\n  ".join(["to continue training, in Python:", *lines])


def _describe_spaces(policies: Mapping[str, PolicyState]) -> str:
    if len(policies) != 1:
        return "with the agents' spaces that `rllib-compat inspect` lists"
    (policy,) = policies.values()
    seen, acts = (
        text if len(text) <= _SPACE else f"{text[:_SPACE]}…"
        for text in map(str, (policy.observation_space, policy.action_space))
    )
    return f"with observations {seen} and actions {acts}"


def _act(plan: Plan, target: str | Path) -> str:
    policy_id = next(iter(plan.networks))
    which = "" if len(plan.networks) == 1 else f", policy_id={policy_id!r}"
    lines = [
        "import rllib_compat as compat",
        f"policy = compat.load_policy({str(target)!r}{which})",
        "action = policy.compute_single_action(observation).actions",
    ]
    if plan.reason.startswith("$.exploration_config "):
        old = plan.checkpoint.source.place
        lines.append("# to continue training with the exploration of its algorithm:")
        lines.append(f"# algorithm = compat.load({old!r}, exploration_config={{}})")
    why = f" ({plan.reason}, so nothing trains it)" if plan.reason else ""
    return "\n  ".join([f"to let it act{why}, in Python:", *lines])
