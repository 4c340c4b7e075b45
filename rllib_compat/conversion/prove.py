"""The proof of a conversion: the new files, loaded, compute what the old network did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from rllib_compat.conversion import recorded as recordings
from rllib_compat.conversion import rounding, verify
from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.decide import Form, Plan
from rllib_compat.conversion.difference import HEAD, RECORDED, TIMES, WEIGHTS, Difference
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import identify_all
from rllib_compat.formats import layouts
from rllib_compat.networks import AnyNetwork, CustomNetwork, ModelSettings, Network, Outputs, known
from rllib_compat.networks import read as read_network
from rllib_compat.networks.custom import UNSETTLED
from rllib_compat.networks.mapping import Array
from rllib_compat.networks.wrappers.filter import STEP as FILTER
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box, Discrete


@np.errstate(over="ignore", invalid="ignore")  # weights that are no numbers have a row of their own
def compare(
    plan: Plan,
    target: Path,
    *,
    inputs: int,
    observations: Mapping[str, Array] | None = None,
    recorded: Mapping[str, Array] | None = None,
    budget: Budget | None = None,
) -> list[Difference]:
    """Compares the networks of a plan with what lies in a target.

    Args:
        plan: What was to be written.
        target: The new checkpoint.
        inputs: How many random inputs they are compared on.
        observations: More inputs to compare on, by policy: `[B, network inputs]`.
        recorded: What the old Ray computed (see `recorded`).
        budget: What the job may cost.

    Returns:
        A difference for each policy and output, and one for each policy's weights.

    Raises:
        CheckpointError: What was recorded fits no policy.
    """
    if plan.form in (Form.ONNX, Form.SAFETENSORS):
        return _compare_export(plan, target, inputs, observations, recorded)
    # Our msgpack form keeps a custom model's arrays as they were, not as its module has them.
    networks = known(plan.networks)
    written = networks if plan.form is Form.MSGPACK else plan.networks
    new = load(target, written, plan.form, budget or Budget())
    rows = []
    for policy_id, network in written.items():
        rows += verify.compare_weights(policy_id, network.module_state(), new[policy_id].weights())
    rows += _on_inputs(plan, networks, new, inputs, observations)
    if recorded is not None:
        rows += compare_recorded(plan, new, recorded)
    return rows


def _compare_export(
    plan: Plan,
    target: Path,
    inputs: int,
    observations: Mapping[str, Array] | None,
    recorded: Mapping[str, Array] | None,
) -> list[Difference]:
    """Compares files for other libraries: arrays bit by bit, models on inputs."""
    from rllib_compat.conversion.write import onnx, safetensors

    if recorded is not None:
        raise CheckpointError(
            f"A recording is not compared with {plan.form.value}.",
            where="--recorded",
            fix="Give it to a conversion `--to msgpack`, which needs no Ray either.",
        )
    if plan.form is Form.SAFETENSORS:
        return safetensors.compare(plan, target)
    networks = {k: onnx.acting_network(network) for k, network in known(plan.networks).items()}
    models = {k: onnx.Loaded(target / f"{k}.onnx", network) for k, network in networks.items()}
    rows = []
    kinds = {
        "random": _random(plan.checkpoint, networks, inputs),
        "given": _given(networks, observations or {}),
    }
    for kind, found in kinds.items():
        batches = {k: onnx.single_steps(networks[k].graph, batch) for k, batch in found.items()}
        some = {policy_id: networks[policy_id] for policy_id in batches}
        rows += verify.compare_all(some, models, batches, kind)
    return rows


def _on_inputs(
    plan: Plan,
    networks: Mapping[str, Network],
    forwards: Mapping[str, verify.Forward],
    inputs: int,
    observations: Mapping[str, Array] | None,
) -> list[Difference]:
    """Compares networks on random inputs and on given ones."""
    rows = []
    kinds = {
        "random": _random(plan.checkpoint, networks, inputs),
        "given": _given(networks, observations or {}),
    }
    for kind, batches in kinds.items():
        some = {policy_id: networks[policy_id] for policy_id in batches}
        rows += verify.compare_all(some, forwards, batches, kind)
    return rows


def compare_recorded(
    plan: Plan, forwards: Mapping[str, verify.Forward], arrays: Mapping[str, Array]
) -> list[Difference]:
    """Compares new modules with what the old Ray computed.

    Raises:
        CheckpointError: Nothing of it can be compared.
    """
    if not plan.networks:
        (unknown,) = plan.findings
        raise CheckpointError(
            f"The recording can't be compared: {unknown.message}.",
            where=unknown.path,
            fix="Give what is missing, or leave out --recorded.",
        )
    rows = []
    for policy_id, network in plan.networks.items():
        policy = plan.checkpoint.policies[policy_id]
        own = recordings.of_policy(arrays, policy)
        rows += _compare_filter(policy, own)
        if isinstance(network, CustomNetwork):
            kept = recordings.recording_of_custom(own, network)
        else:
            kept = recordings.recording(own, network)
        if kept is None or policy_id not in forwards:
            continue
        made = forwards[policy_id](kept.inputs)
        outputs: Outputs
        if isinstance(network, CustomNetwork):
            # Its own float32 is all that there is to measure.
            errors = rounding.measure(forwards[policy_id], kept.inputs, made)
            outputs = {name: theirs for name, theirs in kept.outputs.items() if name in made}
            outputs = {name: theirs.reshape(made[name].shape) for name, theirs in outputs.items()}
        else:
            exact, outputs = network.forward(kept.inputs), kept.outputs
            errors = rounding.of_network(network, kept.inputs, exact)
        rows += verify.compare(policy_id, outputs, made, errors, kind=RECORDED)
        rows += _compare_head(policy, own, made, errors)
    if not rows:
        raise CheckpointError(
            f"Nothing of the recording can be compared; it has {_named(arrays)}.",
            where="--recorded",
            fix="`rllib-compat recorder` prints a script that records what is needed.",
        )
    return rows


def _compare_head(
    policy: PolicyState, arrays: Mapping[str, Array], made: Outputs, errors: Outputs
) -> list[Difference]:
    """Compares greedy actions with what the head means, if they agree.

    A recording may hold actions that were drawn (Ray 0.5 to 0.7 always drew): then they prove
    nothing, and are no mistake either.
    """
    space, taken = policy.action_space, arrays.get("action")
    logits = made.get("action_dist_inputs")
    if taken is None or logits is None:
        return []
    logits = logits.reshape(len(logits), -1)
    if isinstance(space, Discrete) and taken.shape == (len(logits),):
        means, allowed = logits.argmax(-1) + space.start, None
    elif isinstance(space, Box) and logits.shape[1] == 2 * space.flat_size():
        means = logits[:, : space.flat_size()].reshape(-1, *space.shape)
        allowed = {HEAD: errors["action_dist_inputs"].reshape(logits.shape)[:, : space.flat_size()]}
        allowed[HEAD] = allowed[HEAD].reshape(means.shape)
    else:
        return []
    if taken.shape != means.shape:
        return []
    rows = verify.compare(policy.policy_id, {HEAD: taken}, {HEAD: means}, allowed, kind=RECORDED)
    return [row for row in rows if row.ok]


def _named(arrays: Mapping[str, Array]) -> str:
    names = sorted(arrays)
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "no arrays"


def _compare_filter(policy: PolicyState, arrays: Mapping[str, Array]) -> list[Difference]:
    """Compares the observation filter, where observations were recorded before and behind it."""
    old = policy.observation_filter
    before = next((arrays[name] for name in recordings.UNFILTERED if name in arrays), None)
    behind = next((arrays[name] for name in ("net_in", "obs_in") if name in arrays), None)
    if old is None or len(old.stats) != 1 or before is None or behind is None:
        return []
    shape = old.stats[0].mean.shape
    if before.shape != behind.shape or before.shape[1:] != shape:
        return []

    def filtered(inputs: Mapping[str, Array]) -> dict[str, Array]:
        return {FILTER: np.asarray(old(inputs["obs"]))}

    made = filtered({"obs": before})
    errors = rounding.measure(filtered, {"obs": before}, made)
    return verify.compare(policy.policy_id, {FILTER: behind}, made, errors, kind=RECORDED)


def compare_reading(
    plan: Plan,
    target: Path,
    *,
    inputs: int,
    observations: Mapping[str, Array] | None = None,
    recorded: Mapping[str, Array] | None = None,
    budget: Budget | None = None,
) -> list[Difference]:
    """Compares the networks of a plan with a tree that anybody may have written.

    Nothing of the tree is handed to Ray, whose loading would run what its pickles hold. Our own
    reading of it is computed in numpy, and in torch by modules that are built from that reading.

    Returns:
        A difference for each policy and output: the worse of the two.
    """
    networks = known(plan.networks)
    tree, readings = _readings(target, plan, budget or Budget())
    compared = [_on_inputs(plan, networks, reading, inputs, observations) for reading in readings]
    if recorded is not None:
        for rows, reading in zip(compared, readings, strict=True):
            rows += compare_recorded(plan, reading, recorded)
    worse = [max(pair, key=_badness) for pair in zip(*compared, strict=True)]
    for policy_id, network in plan.networks.items():
        if isinstance(network, CustomNetwork):
            policy = tree.policies.get(policy_id)
            numbers = policy.weights if policy and isinstance(policy.weights, dict) else {}
            worse += verify.compare_weights(policy_id, network.module_state(), numbers)
    return worse


def _badness(row: Difference) -> tuple[bool, float]:
    return not row.ok, row.times


def _readings(
    target: Path, plan: Plan, budget: Budget
) -> tuple[LegacyCheckpoint, tuple[Mapping[str, verify.Forward], Mapping[str, verify.Forward]]]:
    """A tree as it was read, and its networks as functions, by numpy and by torch."""
    from rllib_compat.conversion.write import modules

    given = Given(algorithm=plan.checkpoint.algorithm)
    budget.start_clock()
    tree = complete(layouts.read(target, budget), given)
    wanted = known(plan.networks)
    some = tree.with_policies(p for k, p in tree.policies.items() if k in wanted)
    some, networks = identify_all(some, given)
    numpy = {policy_id: network.forward for policy_id, network in known(networks).items()}
    return tree, (numpy, modules.build(some, networks))


def finding(row: Difference) -> Finding:
    """The row of a report for a comparison that went well."""
    if row.output == WEIGHTS:
        shown = f"all {row.inputs:,} numbers are the same in the new files"
    else:
        shown = (
            f"largest difference {row.absolute:.2e} absolute, {row.relative:.2e} relative, on "
            f"{row.inputs} {row.kind} inputs; {row.times:.1f} times the network's own float32 "
            f"error of up to {row.own_error:.2e} ({TIMES} times is allowed)"
        )
    path = f"policies.{row.policy_id}.{row.output}"
    if row.blurred:
        shown += "; float32 itself strays so far here that smaller mistakes could not be seen"
        return Finding("verify", Severity.WARNING, Verdict.NOTE, path, shown)
    return Finding("verify", Severity.INFO, Verdict.EXACT, path, shown)


def settled(findings: Iterable[Finding], rows: Iterable[Difference]) -> list[Finding]:
    """Findings once a recording has shown what a user's own modules compute."""
    outputs = [row for row in rows if row.kind == RECORDED and row.output not in (FILTER, HEAD)]
    shown = {row.policy_id for row in outputs if row.ok}
    open_ = {f"policies.{policy_id}.weights": policy_id for policy_id in shown}
    return [
        replace(
            f,
            severity=Severity.INFO,
            message=f"{f.message.removesuffix(UNSETTLED)}; it computes what the recording says",
            hint="",
        )
        if f.rule == "custom-model" and f.path in open_
        else f
        for f in findings
    ]


@frozen
class _Packed:
    """A network of our msgpack form, computed by numpy."""

    network: Network

    def __call__(self, inputs: verify.Inputs) -> Outputs:
        return self.network.forward(inputs)

    def weights(self) -> Mapping[str, Array]:
        return self.network.module_state()


class Written(Protocol):
    """A network that was read back from what was written: a function, and its arrays."""

    def __call__(self, inputs: verify.Inputs, /) -> Outputs:
        """Its outputs."""
        ...

    def weights(self) -> Mapping[str, Array]:
        """Its arrays by their new names."""
        ...


def load(
    target: Path, networks: Mapping[str, AnyNetwork], form: Form, budget: Budget
) -> dict[str, Written]:
    """The new networks as functions, loaded from the files that were written."""
    if form is Form.MSGPACK:
        budget.start_clock()
        again = layouts.read(target, budget)
        packed: dict[str, Written] = {}
        for policy_id in networks:
            policy = again.policies[policy_id]
            packed[policy_id] = _Packed(read_network(policy, ModelSettings.of(again, policy)).known)
        return packed
    from rllib_compat.conversion.write import modules

    return dict(modules.load(target, networks))


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
