"""The pipeline: read, complete, identify, write, prove. Top to bottom.

Nothing appears under the target's name before the proof is done, and the source is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import ray_versions, registry
from rllib_compat.convert import complete as resolve
from rllib_compat.convert import verify
from rllib_compat.convert.complete import Given
from rllib_compat.convert.verify import Difference
from rllib_compat.convert.write import already
from rllib_compat.formats import layouts
from rllib_compat.formats.atomic import atomic_directory
from rllib_compat.formats.msgpack import write as msgpack
from rllib_compat.networks import ModelSettings, Network, identify
from rllib_compat.networks.custom import (
    WEIGHTS,
    CustomModel,
    CustomNetwork,
    without_custom_model,
)
from rllib_compat.networks.mapping import Array
from rllib_compat.networks.optimizers.plan import plan
from rllib_compat.networks.wrappers.filter import STEP as FILTER
from rllib_compat.networks.wrappers.filter import can_hold, with_filter
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, size_of
from rllib_compat.neutral.errors import CompatError
from rllib_compat.neutral.report import Report, Severity, Verdict
from rllib_compat.neutral.spaces import Discrete

if TYPE_CHECKING:
    from rllib_compat.config import Translation


@dataclass
class Conversion:
    """What a conversion did.

    Attributes:
        checkpoint: The neutral state.
        networks: The network of each policy; empty for `to="msgpack"` of an unknown network.
        report: What became of each part.
        differences: The proof: old against new, a row per policy and output.
        target: Where the new checkpoint is; None for a dry run.
        translation: The translated config, where one was needed.
    """

    checkpoint: LegacyCheckpoint
    report: Report
    networks: dict[str, Network] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    target: Path | None = None
    translation: Translation | None = None

    @property
    def largest_difference(self) -> float | None:
        """The largest absolute difference over all policies and outputs."""
        return max((d.absolute for d in self.differences), default=None)


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
    overwrite: bool = False,
    dry_run: bool = False,
) -> Conversion:
    """Converts a legacy checkpoint.

    Args:
        old: A checkpoint file or folder of any Ray from 0.5 on.
        new: The folder to make.
        to: `checkpointable` (what the installed Ray reads) or `msgpack` (needs no Ray).
        state_format: How the Checkpointable tree keeps its state: `pkl` or `msgpack`.
        given: What the checkpoint does not tell.
        prove: Whether old and new are compared before the target appears.
        inputs: How many random inputs they are compared on.
        observations: More inputs to compare on, by policy: `[B, network inputs]`.
        overwrite: Whether `new` may be there already.
        dry_run: Whether to stop before anything is written.

    Returns:
        What was done, with the report.

    Raises:
        CheckpointError: It can't be read, completed or converted.
        VerificationError: Old and new differ; nothing was written.
    """
    checkpoint = layouts.read(old)
    given = given or Given()
    report = Report(f"Conversion of {old}", {"layout": checkpoint.source.layout})
    conversion = Conversion(checkpoint, report)
    if to == "msgpack":
        _complete_leniently(checkpoint, given, conversion)
    elif given == Given() and already.is_current(checkpoint):
        return _copy(conversion, Path(new), overwrite=overwrite, dry_run=dry_run)
    else:
        _complete(checkpoint, given, conversion)
        if why_not_whole(checkpoint, conversion.networks) is None:
            conversion.translation = translate_config(checkpoint)
        else:
            conversion.networks = hold_filters(checkpoint, conversion.networks)
    _describe(conversion, to)
    if dry_run:
        if to != "msgpack":
            report.extend(plan(checkpoint.policies, conversion.networks)[1])
        return conversion

    with atomic_directory(new, overwrite=overwrite, source=checkpoint.source.path) as target:
        if to == "msgpack":
            report.extend(msgpack.write(checkpoint, target))
        else:
            _write_checkpointable(conversion, target, state_format)
        if prove:
            _prove(conversion, target, to, inputs, observations or {})
        else:
            report.add("verify", Verdict.NOTE, "weights", "not compared", severity=Severity.WARNING)
    conversion.target = Path(new)
    report.facts["result"] = _summary(to, resumable=conversion.translation is not None)
    return conversion


def _copy(conversion: Conversion, new: Path, *, overwrite: bool, dry_run: bool) -> Conversion:
    """Copies what the installed Ray wrote itself."""
    checkpoint, report = conversion.checkpoint, conversion.report
    source = checkpoint.source
    report.facts |= {
        "algorithm": checkpoint.algorithm or "not told",
        "ray": source.ray_version,
        "policies": len(checkpoint.policies),
    }
    report.add(
        "already-current",
        Verdict.NOTE,
        ".",
        f"already {source.layout}, written by the installed Ray {source.ray_version}: there is "
        "nothing to convert, and the files are copied as they are",
        severity=Severity.WARNING,
    )
    if dry_run:
        return conversion
    with atomic_directory(new, overwrite=overwrite, source=source.path) as target:
        report.extend([already.copy(source.path, target)])
    conversion.target = new
    report.facts["result"] = f"a copy; it was {source.layout} already"
    return conversion


def _complete(checkpoint: LegacyCheckpoint, given: Given, conversion: Conversion) -> None:
    """Fills in what is missing, and finds every policy's network."""
    resolve.complete(checkpoint, given)
    resolve.require_config(checkpoint)
    conversion.networks = identify_all(checkpoint, given)


def _complete_leniently(checkpoint: LegacyCheckpoint, given: Given, conversion: Conversion) -> None:
    """The same for msgpack, which keeps any network: what is not known is told, not refused."""
    try:
        _complete(checkpoint, given, conversion)
    except CompatError as error:
        conversion.report.add(
            "network",
            Verdict.NOTE,
            error.where or "policies",
            f"the weights are kept as they are: {error.found}",
            severity=Severity.WARNING,
            hint="only their equality can be shown, not the network's outputs",
        )
        conversion.networks = {}


def identify_all(checkpoint: LegacyCheckpoint, given: Given) -> dict[str, Network]:
    """Finds the network of every policy, and makes sure that each has its spaces."""
    networks = {}
    model = CustomModel(given.model, given.weights_map) if given.model else None
    for policy_id, policy in checkpoint.policies.items():
        network, findings = identify(policy, ModelSettings.of(checkpoint, policy), model)
        checkpoint.findings += findings
        resolve.require_spaces(checkpoint, policy, network.inputs)
        networks[policy_id] = network
        if isinstance(network, CustomNetwork):
            policy.config = without_custom_model(policy.config)
    if any(isinstance(network, CustomNetwork) for network in networks.values()):
        checkpoint.config = without_custom_model(checkpoint.config)
    return networks


def hold_filters(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, Network]
) -> dict[str, Network]:
    """Puts observation filters into networks that are written alone, without connectors."""
    held = {}
    for policy_id, network in networks.items():
        old = checkpoint.policies[policy_id].observation_filter
        can = old is not None and can_hold(network, old)
        held[policy_id] = with_filter(network, old) if old is not None and can else network
    return held


def why_not_whole(checkpoint: LegacyCheckpoint, networks: Mapping[str, Network]) -> str | None:
    """Why only the modules of a checkpoint can be written; None where all of it can be."""
    if not registry.of(checkpoint.algorithm).trains_on:
        return f"today's Ray has no {checkpoint.algorithm}"
    critics = registry.of(checkpoint.algorithm).soft_actor_critic
    if critics and any("q_values" not in n.graph.outputs for n in networks.values()):
        return "the checkpoint has no whole critics"
    discrete = any(isinstance(p.action_space, Discrete) for p in checkpoint.policies.values())
    if checkpoint.algorithm == "SAC" and discrete and not ray_versions.trains_discrete_sac():
        return f"the SAC of Ray {ray_versions.installed()} learns no discrete actions (2.60's does)"
    if keys := _old_stack_keys(checkpoint):
        return f"{keys} can be trained on the old API stack only"
    return None


def _old_stack_keys(checkpoint: LegacyCheckpoint) -> str | None:
    """The keys of the config (noisy nets, …) that only the old API stack can train with."""
    findings = list(checkpoint.findings)  # what this look finds is told when it counts
    translation = translate_config(checkpoint)
    checkpoint.findings[:] = findings
    keys = translation.report.facts.get("old API stack because of")
    return str(keys) if translation.api_stack == "old" else None


def translate_config(checkpoint: LegacyCheckpoint) -> Translation:
    """Translates the checkpoint's config, with the defaults of the Ray that wrote it."""
    from rllib_compat.convert.config import config_for_target

    return config_for_target(checkpoint)


def _write_checkpointable(conversion: Conversion, target: Path, state_format: str) -> None:
    from rllib_compat.convert.write import checkpointable, modules

    if conversion.translation is None:
        why = why_not_whole(conversion.checkpoint, conversion.networks) or ""
        conversion.report.extend(
            modules.write(conversion.checkpoint, conversion.networks, target, why=why)
        )
        return
    conversion.report.extend(
        checkpointable.write(
            conversion.checkpoint,
            conversion.networks,
            conversion.translation.algorithm_config,
            target,
            state_format=state_format,
        )
    )


def _describe(conversion: Conversion, to: str) -> None:
    """Puts into the report what was read, and what the target has no place for."""
    checkpoint, report = conversion.checkpoint, conversion.report
    report.facts |= {
        "algorithm": checkpoint.algorithm or "unknown",
        "ray": checkpoint.source.ray_version or "not told",
        "policies": len(checkpoint.policies),
    }
    report.extend(checkpoint.findings)
    for policy_id, policy in checkpoint.policies.items():
        network = conversion.networks.get(policy_id)
        what = network.summary if network else f"{size_of(policy.weights):,} numbers"
        path = f"policies.{policy_id}.weights"
        report.add("weights", Verdict.EXACT, path, what)
        if network and network.unused and to != "msgpack":
            names = ", ".join(network.unused)
            report.add("weights", Verdict.DROPPED, path, f"no output depends on them: {names}")
    if to == "msgpack":
        _describe_optimizers(conversion)
    for name, count in sorted(checkpoint.stand_ins.items()):
        report.add(
            "stand-in",
            Verdict.NOTE,
            name,
            f"named {count} times; kept as an inert record, not imported or run",
        )
    for part in ("replay buffers", "running episodes"):
        report.add("absent", Verdict.ABSENT, part, "not stored in this checkpoint")
    if to != "msgpack":
        for key in checkpoint.extra:
            report.add("extra", Verdict.DROPPED, key, "today's checkpoints have no place for it")
    if conversion.translation is not None:
        report.extend(conversion.translation.report)


def _describe_optimizers(conversion: Conversion) -> None:
    policies = conversion.checkpoint.policies.values()
    stored = sum(policy.optimizer is not None for policy in policies)
    path = "policies.*.optimizer"
    if stored:
        conversion.report.add("optimizer", Verdict.EXACT, path, f"kept for {stored} policies")
    else:
        conversion.report.add("optimizer", Verdict.ABSENT, path, "no optimizer state is stored")


def _prove(
    conversion: Conversion,
    target: Path,
    to: str,
    inputs: int,
    observations: Mapping[str, Array],
) -> None:
    """Compares old and new, and raises (so that nothing is written) where they differ."""
    checkpoint, report = conversion.checkpoint, conversion.report
    new = load_forwards(target, conversion.networks, to=to)
    for batch_name, batches in (
        ("random", _random(checkpoint, conversion.networks, inputs)),
        ("given", _given(conversion.networks, observations)),
    ):
        networks = {k: n for k, n in conversion.networks.items() if k in batches}
        rows = verify.compare_all(networks, new, batches)
        verify.require_equal(rows)
        conversion.differences += rows
        for row in rows:
            shown = (
                f"all {row.inputs} numbers are the same; outputs were not compared"
                if row.output == WEIGHTS
                else f"largest difference {row.absolute:.2e} absolute, {row.relative:.2e} "
                f"relative, on {row.inputs} {batch_name} inputs"
            )
            path = f"policies.{row.policy_id}.{row.output}"
            report.add("verify", Verdict.EXACT, path, shown)


def load_forwards(
    target: Path, networks: Mapping[str, Network], *, to: str
) -> dict[str, verify.Forward]:
    """The new networks as functions, loaded from the files that were written."""
    if to == "msgpack":
        again = layouts.read(target)
        forwards: dict[str, verify.Forward] = {}
        for policy_id in networks:
            policy = again.policies[policy_id]
            forwards[policy_id] = identify(policy, ModelSettings.of(again, policy))[0].forward
        return forwards
    from rllib_compat.convert.write import modules

    return {
        policy_id: modules.load_weights(target, policy_id)
        if isinstance(network, CustomNetwork)
        else modules.load(target, policy_id)
        for policy_id, network in networks.items()
    }


def _random(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, Network], n: int
) -> dict[str, verify.Inputs]:
    """Random inputs; a network with a filter gets them where the filter saw observations."""
    batches: dict[str, verify.Inputs] = {}
    for policy_id, network in networks.items():
        space = checkpoint.policies[policy_id].observation_space
        filtered = f"{FILTER}.mean" in network.arrays
        batch = dict(verify.sample_inputs(network.graph, None if filtered else space, n))
        if filtered:
            mean, std = (network.arrays[f"{FILTER}.{part}"] for part in ("mean", "std"))
            batch["obs"] = (mean + std * batch["obs"]).astype(np.float32)
        batches[policy_id] = batch
    return batches


def _given(
    networks: Mapping[str, Network], observations: Mapping[str, Array]
) -> dict[str, verify.Inputs]:
    """The user's observations as inputs; what else a network takes is drawn at random."""
    return {
        policy_id: verify.inputs_with(network.graph, observations[policy_id])
        for policy_id, network in networks.items()
        if policy_id in observations
    }


def _summary(to: str, *, resumable: bool) -> str:
    """The last line: what the new checkpoint can be used for."""
    if to == "msgpack":
        return "kept whole, readable without Ray; convert it once more to train on"
    return "resumes training" if resumable else "inference only (RLModule.from_checkpoint)"


def verify_pair(
    old: str | Path,
    new: str | Path,
    *,
    given: Given | None = None,
    inputs: int = 1000,
    observations: Mapping[str, Array] | None = None,
) -> list[Difference]:
    """Compares an old checkpoint with a converted one that is there already.

    Returns:
        The differences, a row per policy and output, within the tolerance or not.
    """
    checkpoint = layouts.read(old)
    resolve.complete(checkpoint, given or Given())
    resolve.require_config(checkpoint)
    networks = identify_all(checkpoint, given or Given())
    again: Any = Path(new)
    to = "checkpointable" if (again / "learner_group").is_dir() else "msgpack"
    if to != "msgpack" and why_not_whole(checkpoint, networks) is not None:
        networks = hold_filters(checkpoint, networks)
    forwards = load_forwards(again, networks, to=to)
    rows = verify.compare_all(networks, forwards, _random(checkpoint, networks, inputs))
    if observations:
        batches = _given(networks, observations)
        rows += verify.compare_all({k: networks[k] for k in batches}, forwards, batches)
    return rows
