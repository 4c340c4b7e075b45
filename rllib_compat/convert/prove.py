"""The proof of a conversion: the new files, loaded, compute what the old network did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from rllib_compat.convert import verify
from rllib_compat.convert.complete import complete
from rllib_compat.convert.decide import Form, Plan
from rllib_compat.convert.given import Given
from rllib_compat.convert.identify import identify_all
from rllib_compat.convert.verify import WEIGHTS, Difference
from rllib_compat.formats import layouts
from rllib_compat.networks import AnyNetwork, CustomNetwork, ModelSettings, Network, known
from rllib_compat.networks import read as read_network
from rllib_compat.networks.mapping import Array
from rllib_compat.networks.wrappers.filter import STEP as FILTER
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.report import Finding, Severity, Verdict


def compare(
    plan: Plan,
    target: Path,
    *,
    inputs: int,
    observations: Mapping[str, Array] | None = None,
) -> Iterator[tuple[str, Difference]]:
    """Compares the networks of a plan with what lies in a target.

    Args:
        plan: What was to be written.
        target: The new checkpoint.
        inputs: How many random inputs they are compared on.
        observations: More inputs to compare on, by policy: `[B, network inputs]`.

    Yields:
        What the inputs were (`random`, `given`), and a difference for each policy and output.
    """
    networks = known(plan.networks)
    forwards = load_forwards(target, networks, plan.form)
    random = _random(plan.checkpoint, networks, inputs)
    for kind, batches in (("random", random), ("given", _given(networks, observations or {}))):
        for row in verify.compare_all({k: networks[k] for k in batches}, forwards, batches):
            yield kind, row
    if plan.form is not Form.MSGPACK:
        for row in _compare_custom(target, plan.networks):
            yield "random", row


def _compare_custom(target: Path, networks: Mapping[str, AnyNetwork]) -> Iterator[Difference]:
    """Compares the numbers of custom models, whose outputs can't be computed."""
    from rllib_compat.convert.write import modules

    for policy_id, network in networks.items():
        if isinstance(network, CustomNetwork):
            new = modules.load_weights(target, policy_id)
            yield from verify.compare_weights(policy_id, network.module_state(), new)


def compare_reading(
    plan: Plan,
    target: Path,
    *,
    inputs: int,
    observations: Mapping[str, Array] | None = None,
) -> list[Difference]:
    """Compares the networks of a plan with a tree that anybody may have written.

    Nothing of the tree is handed to Ray, whose loading would run what its pickles hold. Our own
    reading of it is computed in numpy, and in torch by modules that are built from that reading.

    Returns:
        A difference for each policy and output: the worse of the two.
    """
    networks = known(plan.networks)
    tree, readings = _readings(target, plan)
    rows = []
    for batches in (
        _random(plan.checkpoint, networks, inputs),
        _given(networks, observations or {}),
    ):
        old = {policy_id: networks[policy_id] for policy_id in batches}
        compared = (verify.compare_all(old, reading, batches) for reading in readings)
        rows += [max(pair, key=_badness) for pair in zip(*compared, strict=True)]
    for policy_id, network in plan.networks.items():
        if isinstance(network, CustomNetwork):
            policy = tree.policies.get(policy_id)
            numbers = policy.weights if policy and isinstance(policy.weights, dict) else {}
            rows += verify.compare_weights(policy_id, network.module_state(), numbers)
    return rows


def _badness(row: Difference) -> tuple[bool, float]:
    return not row.ok, row.absolute


def _readings(
    target: Path, plan: Plan
) -> tuple[LegacyCheckpoint, tuple[Mapping[str, verify.Forward], Mapping[str, verify.Forward]]]:
    """A tree as it was read, and its networks as functions, by numpy and by torch."""
    from rllib_compat.convert.write import modules

    given = Given(algorithm=plan.checkpoint.algorithm)
    tree = complete(layouts.read(target), given)
    wanted = known(plan.networks)
    some = tree.with_policies(p for k, p in tree.policies.items() if k in wanted)
    some, networks = identify_all(some, given)
    numpy = {policy_id: network.forward for policy_id, network in known(networks).items()}
    return tree, (numpy, modules.build(some, networks))


def finding(kind: str, row: Difference) -> Finding:
    """The row of a report for a comparison that went well."""
    shown = (
        f"all {row.inputs} numbers are the same; outputs were not compared"
        if row.output == WEIGHTS
        else f"largest difference {row.absolute:.2e} absolute, {row.relative:.2e} relative, on "
        f"{row.inputs} {kind} inputs"
    )
    path = f"policies.{row.policy_id}.{row.output}"
    return Finding("verify", Severity.INFO, Verdict.EXACT, path, shown)


def load_forwards(
    target: Path, networks: Mapping[str, Network], form: Form
) -> dict[str, verify.Forward]:
    """The new networks as functions, loaded from the files that were written."""
    if form is Form.MSGPACK:
        again = layouts.read(target)
        forwards: dict[str, verify.Forward] = {}
        for policy_id in networks:
            policy = again.policies[policy_id]
            reading = read_network(policy, ModelSettings.of(again, policy))
            forwards[policy_id] = reading.known.forward
        return forwards
    from rllib_compat.convert.write import modules

    return {policy_id: modules.load(target, policy_id) for policy_id in networks}


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
