"""Compares the outputs of an old and a new network, within the errors of float32.

Two correct implementations of a network differ by rounding. How much depends on the network and its
inputs: little for two small layers, much for large values, long sums and sequences. So it is
measured: the old network is computed in float64, and several times in float32, unchanged and with
its inputs and the value of every operation changed by one unit in the last place. (Changing only
inputs is not enough: behind saturated layers, nothing changes.)
A difference of more than a small multiple of that error fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.conversion.given import Samples
from rllib_compat.networks import Network, Outputs
from rllib_compat.networks.custom import UNSETTLED
from rllib_compat.networks.graph import Compiled, Graph
from rllib_compat.networks.observation_filter import STEP as FILTER
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import VerificationError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.neutral.spaces import Box, Space

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: A batch of each input of a network by name, including `obs`.
Inputs: TypeAlias = Mapping[str, Array]
Forward: TypeAlias = Callable[[Inputs], Outputs]

#: The output's name for the comparison of weights only.
WEIGHTS = "weights"

#: The output's name for actions that are computed from the outputs.
HEAD = "head"

#: The kind of inputs that are from the old Ray's recording.
RECORDED = "recorded"

#: The largest allowed difference, in multiples of the measured error. Libraries sum in different
#: orders: for 600 networks of real checkpoints, torch's error is up to 6.1 times that of numpy's
#: float32.
TIMES = 10

#: The number of numbers to compare at once.
_AT_ONCE = 1 << 18

#: If float32 allows a larger part of the largest output, the report says so.
_BLURRED = 1e-2


@frozen
class OutputDifference:
    """The difference of one output of one policy.

    Attributes:
        policy_id: The policy.
        output: `action_dist_inputs` or `vf_preds`.
        absolute: The largest absolute difference over all inputs.
        relative: The largest relative difference of outputs that are not tiny.
        inputs: The number of inputs.
        ok: Whether every number is within `TIMES` times the old network's own error.
        own_error: The largest error of the old network in float32; 0: no difference is allowed.
        times: The largest difference in multiples of that number's own error.
        size: The largest absolute output.
        kind: The kind of inputs: `random`, `given`, or `recorded` in the old Ray.
    """

    policy_id: str
    output: str
    absolute: float
    relative: float
    inputs: int
    ok: bool
    own_error: float = 0.0
    times: float = 0.0
    size: float = 0.0
    kind: str = "random"

    @property
    def inconclusive(self) -> bool:
        """Whether the errors of float32 are so large that the comparison proves little."""
        return TIMES * self.own_error > _BLURRED * self.size > 0

    def finding(self) -> Finding:
        """Returns it as a row of a report."""
        if self.output == WEIGHTS:
            shown = f"all {self.inputs:,} numbers are the same in the new files"
        else:
            shown = (
                f"largest difference {self.absolute:.2e} absolute, {self.relative:.2e} relative, "
                f"on {self.inputs} {self.kind} inputs; {self.times:.1f} times the network's own "
                f"float32 error of up to {self.own_error:.2e} ({TIMES} times is allowed)"
            )
        path = f"policies.{self.policy_id}.{self.output}"
        if self.inconclusive:
            shown += "; float32 itself strays so far here that smaller mistakes could not be seen"
            return Finding.warning("verify", Verdict.NOTE, path, shown)
        return Finding.info("verify", Verdict.EXACT, path, shown)


#: The largest number of differences in an error.
_LISTED = 5

#: The length of random sequences for recurrent networks.
SEQUENCE = 20

#: Larger bounds count as unbounded (gym used the largest float32), and are sampled as a normal.
_UNBOUNDED = 1e4

#: The number of state values (of an LSTM, of attention) in a batch of a policy.
_MOST_REMEMBERED = 1 << 19


def sample_inputs(graph: Graph, space: Space | None, n: int, seed: int = 0) -> Inputs:
    """Draws a batch of every input.

    Observations are uniform in a bounded Box, and normal without bounds. A recurrent graph gets
    sequences of `SEQUENCE` steps, `n` steps in total.
    """
    sequences = max(n // SEQUENCE, 1) if graph.recurrent else n
    rng = np.random.default_rng(seed)
    shape = graph.inputs["obs"]
    lead = (sequences, SEQUENCE) if graph.recurrent else (n,)
    return inputs_with(graph, _observations(rng, space, shape, lead), seed=seed + 1)


def random_inputs(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, Network], n: int
) -> dict[str, Inputs]:
    """Draws random inputs; for a network with a filter, in the range of its statistics."""
    batches: dict[str, Inputs] = {}
    for policy_id, network in networks.items():
        space = checkpoint.policies[policy_id].observation_space
        filtered = f"{FILTER}.mean" in network.arrays
        graph = network.graph
        remembers = sum(math.prod(graph.inputs[name]) for name in graph.states)
        few = max(1, _MOST_REMEMBERED // max(1, remembers))  # a config may say how much that is
        steps = min(n, few * SEQUENCE if graph.recurrent else few)
        batch = dict(sample_inputs(graph, None if filtered else space, steps))
        if filtered:
            mean, std = (network.arrays[f"{FILTER}.{part}"] for part in ("mean", "std"))
            batch["obs"] = (mean + std * batch["obs"]).astype(np.float32)
        batches[policy_id] = batch
    return batches


def inputs_with(graph: Graph, observations: Array, seed: int = 0) -> Inputs:
    """Returns a batch of given observations, with random values for the graph's other inputs."""
    rng = np.random.default_rng(seed)
    lead = observations.shape[: 2 if graph.recurrent else 1]
    batch = {"obs": np.asarray(observations, np.float32)}
    for name, shape in graph.inputs.items():
        if name != "obs":
            own = lead[:1] if name in graph.states else lead
            batch[name] = rng.normal(size=(*own, *shape)).astype(np.float32)
    return batch


def _observations(
    rng: np.random.Generator, space: Space | None, shape: tuple[int, ...], lead: tuple[int, ...]
) -> Array:
    normal = rng.normal(size=(*lead, *shape))
    if not isinstance(space, Box) or space.flat_size() != math.prod(shape):
        return normal
    low, high = space.low.reshape(shape), space.high.reshape(shape)
    bounded = (np.abs(low) < _UNBOUNDED) & (np.abs(high) < _UNBOUNDED)
    low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 1.0)
    uniform = low + (high - low) * rng.uniform(size=(*lead, *shape))
    return np.where(bounded, uniform, normal)


def compare(
    policy_id: str,
    old: Outputs,
    new: Outputs,
    errors: Outputs | None = None,
    *,
    kind: str = "random",
) -> list[OutputDifference]:
    """Compares the outputs of both networks for the same inputs; the new one may give more.

    `errors` has the error of each number in float32; None: 0.

    Raises:
        VerificationError: The new network lacks an output, or has it in another shape.
    """
    rows = []
    for name in old:
        if name not in new:
            raise VerificationError(
                f"The new module has no output {name}.", where=f"policies.{policy_id}"
            )
        a, b = old[name], new[name]
        if np.shape(a) != np.shape(b) or not np.ndim(a):
            raise VerificationError(
                f"The output {name} has the shape {np.shape(a)} in the old network, and "
                f"{np.shape(b)} in the new one.",
                where=f"policies.{policy_id}",
            )
        error = np.zeros(np.shape(a)) if errors is None else errors[name]
        rows.append(_output_difference(policy_id, name, np.asarray(a), np.asarray(b), error, kind))
    return rows


def _output_difference(
    policy_id: str, name: str, old: Array, new: Array, error: Array, kind: str
) -> OutputDifference:
    a, b = old.astype(np.float64), new.astype(np.float64)
    overflows = ~np.isfinite(error)
    # A diverged network has the same infinities or NaN. If float32 overflows and float64 does not,
    # the new network overflows as the old one did.
    alike = (a == b) | (np.isnan(a) & np.isnan(b))
    alike |= overflows & np.isfinite(a) & ~np.isfinite(b)
    error = np.where(overflows, 0.0, error)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.where(alike, 0.0, np.abs(a - b))
        relative = np.where(alike, 0.0, difference / np.maximum(np.abs(a), 1e-3))
        times = np.where(alike, 0.0, difference / error)
    return OutputDifference(
        policy_id,
        name,
        absolute=float(difference.max(initial=0.0)),
        relative=float(relative.max(initial=0.0)),
        inputs=len(a),
        ok=bool(np.all(alike | (difference <= TIMES * error))),  # NaN is never within bounds
        own_error=float(error.max(initial=0.0)),
        times=float(times.max(initial=0.0)),
        size=float(np.abs(a[np.isfinite(a)]).max(initial=0.0)),
        kind=kind,
    )


def compare_weights(
    policy_id: str, old: Mapping[str, Array], new: Mapping[str, Array]
) -> list[OutputDifference]:
    """Compares the weights of a module with the converted ones; they have to be equal.

    Other arrays of the module (its own constants) are not compared.

    Raises:
        VerificationError: The module lacks an array, or has it in another shape.
    """
    if missing := sorted(old.keys() - new.keys()):
        raise VerificationError(
            f"The new module has no {', '.join(missing)}.", where=f"policies.{policy_id}"
        )
    for name, array in old.items():
        if np.shape(array) != np.shape(new[name]):
            raise VerificationError(
                f"The array {name} should have the shape {np.shape(array)}, and has "
                f"{np.shape(new[name])}.",
                where=f"policies.{policy_id}",
            )

    rows = [
        _output_difference(policy_id, WEIGHTS, part, other, np.zeros(len(part)), "stored")
        for name in sorted(old)
        for part, other in zip(_pieces(old[name]), _pieces(new[name]), strict=True)
    ]
    nothing = np.zeros(0)
    none = _output_difference(policy_id, WEIGHTS, nothing, nothing, nothing, "stored")
    return [reduce(_of_both, rows, none)]


def _pieces(array: Array) -> Iterator[Array]:
    """Yields parts of an array: a comparison needs many times their memory."""
    rows = np.atleast_1d(np.asarray(array, np.float32))
    at_once = max(1, _AT_ONCE * len(rows) // max(1, rows.size))
    for start in range(0, len(rows), at_once):
        yield rows[start : start + at_once].reshape(-1)


def _of_both(one: OutputDifference, other: OutputDifference) -> OutputDifference:
    """Combines the differences of two parts of an output."""
    worst: dict[str, Any] = {
        name: float(np.maximum(getattr(one, name), getattr(other, name)))  # keeps NaN
        for name in ("absolute", "relative", "own_error", "times", "size")
    }
    return replace(one, inputs=one.inputs + other.inputs, ok=one.ok and other.ok, **worst)


def compare_networks(
    old: Mapping[str, Network],
    new: Mapping[str, Forward],
    inputs: Mapping[str, Inputs],
    kind: str = "random",
) -> list[OutputDifference]:
    """Compares every policy on its inputs.

    Raises:
        VerificationError: A policy is missing on the new side.
    """
    rows = []
    for policy_id, network in old.items():
        if policy_id not in new:
            raise VerificationError(
                "The new checkpoint has no module for this policy.", where=f"policies.{policy_id}"
            )
        batch = inputs[policy_id]
        exact = network.forward(batch)
        errors = float32_errors(network, batch, exact)
        rows += compare(policy_id, exact, new[policy_id](batch), errors, kind=kind)
    return rows


def compare_on_samples(
    checkpoint: LegacyCheckpoint,
    networks: Mapping[str, Network],
    forwards: Mapping[str, Forward],
    samples: Samples,
    prepare: Callable[[Graph, Inputs], Inputs] = lambda _, batch: batch,
) -> list[OutputDifference]:
    """Compares networks on random and given inputs, which `prepare` converts for the new ones."""
    given = {
        policy_id: inputs_with(network.graph, samples.observations[policy_id])
        for policy_id, network in networks.items()
        if policy_id in samples.observations
    }
    rows = []
    for kind, found in (
        ("random", random_inputs(checkpoint, networks, samples.random)),
        ("given", given),
    ):
        batches = {k: prepare(networks[k].graph, batch) for k, batch in found.items()}
        some = {policy_id: networks[policy_id] for policy_id in batches}
        rows += compare_networks(some, forwards, batches, kind)
    return rows


def require_equal(rows: list[OutputDifference]) -> None:
    """Checks that all differences are within the tolerance.

    Raises:
        VerificationError: They are not; it names the worst.
    """
    bad = [row for row in rows if not row.ok]
    if not bad:
        return
    worst = max(bad, key=lambda row: row.absolute if math.isfinite(row.absolute) else math.inf)
    listed = "; ".join(f"{row.policy_id}: {describe(row)}" for row in bad[:_LISTED])
    more = f"; and {len(bad) - _LISTED} more" if len(bad) > _LISTED else ""
    if worst.kind == RECORDED:
        raise VerificationError(
            f"The checkpoint's network does not compute what the old Ray recorded: {listed}{more}.",
            where=f"policies.{worst.policy_id}",
            fix="Nothing was written. Check the assumptions (`rllib-compat inspect` lists them): "
            "the config may be another one. Pass the one of the training: --config.",
        )
    raise VerificationError(
        f"Old and new differ: {listed}{more}.",
        where=f"policies.{worst.policy_id}",
    )


def confirm_custom_modules(
    findings: Iterable[Finding], rows: Iterable[OutputDifference]
) -> list[Finding]:
    """Updates findings about custom modules that a recording confirms."""
    shown = {
        f"policies.{row.policy_id}.weights"
        for row in rows
        if row.kind == RECORDED and row.ok and row.output not in (FILTER, HEAD)
    }
    return [
        replace(
            f,
            severity=Severity.INFO,
            message=f"{f.message.removesuffix(UNSETTLED)}; it computes what the recording says",
            hint="",
        )
        if f.rule == "custom-model" and f.path in shown
        else f
        for f in findings
    ]


def describe(row: OutputDifference) -> str:
    """Describes a difference, with the tolerance."""
    if row.output == WEIGHTS:
        return f"the weights differ by up to {row.absolute:.2e}"
    return (
        f"{row.output} is off by up to {row.absolute:.2e}, {row.times:.1f} times the network's own "
        f"float32 error ({row.own_error:.2e}; {TIMES} times is allowed)"
    )


#: The distance from 1.0 to the next float32.
ULP = float(np.finfo(np.float32).eps)

#: The number of float32 runs: a single one may happen to be exact.
_TRIES = 4


def float32_errors(
    network: Network, inputs: Mapping[str, Array], exact: Outputs
) -> dict[str, Array]:
    """Measures the error of a network in float32, like `measure_errors`."""
    graph = network.graph
    choices = {name for step in graph.steps if step.op == "one_hot" for name in step.takes}
    plain = Compiled(graph, network.arrays, where=network.kind, dtype=np.float32)
    rng = np.random.default_rng(1)
    perturbed = Compiled(
        graph,
        network.arrays,
        where=network.kind,
        dtype=np.float32,
        after=partial(_perturb, rng=rng),
    )
    return measure_errors(plain, inputs, exact, choices, perturbed)


def measure_errors(
    float32: Callable[[Mapping[str, Array]], Outputs],
    inputs: Mapping[str, Array],
    exact: Outputs,
    fixed: Collection[str] = (),
    perturbed: Callable[[Mapping[str, Array]], Outputs] | None = None,
) -> dict[str, Array]:
    """Measures the error of a function in float32.

    Args:
        float32: The function.
        inputs: Its inputs.
        exact: The exact outputs.
        fixed: The names of inputs that are discrete, and are not changed.
        perturbed: The function with a change at every operation, for all runs but the first; None:
            the function itself.

    Returns:
        For each output, an error of each number. It is the largest in the number's row of the
        batch, at least the usual error of rows of that size, and at least one unit in the last
        place. It is infinite if float32 overflows.
    """
    rng = np.random.default_rng(0)
    worst = {name: np.zeros(np.shape(out)) for name, out in exact.items()}
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(_TRIES):
            moved = {
                name: value if i == 0 or name in fixed else _perturb(value, rng)
                for name, value in inputs.items()
            }
            tried = (perturbed or float32)(moved) if i else float32(moved)
            for name, out in exact.items():
                off = np.abs(np.asarray(tried[name], np.float64) - out)
                worst[name] = np.maximum(worst[name], off)  # keeps NaN
        return {name: _error_of_rows(off, np.asarray(exact[name])) for name, off in worst.items()}


def _perturb(value: Array, rng: np.random.Generator) -> Array:
    """Changes numbers by one unit in the last place, each up or down."""
    rounded = np.asarray(value, np.float32)
    towards = rng.choice(np.array([-np.inf, np.inf], np.float32), rounded.shape)
    return np.asarray(np.nextafter(rounded, towards))


def _error_of_rows(off: Array, exact: Array) -> Array:
    finite = np.isfinite(off)
    rows = _largest(np.where(finite, off, 0.0))
    sizes = np.maximum(_largest(np.where(np.isfinite(exact), np.abs(exact), 0.0)), 1.0)
    # If all runs of a row happen to be exact, it has the usual error of its size, and that of 90 %
    # of the rows: sums that cancel have small values with the errors of large ones.
    usual = np.maximum(np.quantile(rows, 0.1), np.median(rows / sizes) * sizes)
    unit = ULP * np.maximum(np.abs(exact), 1.0)
    errors = np.maximum(np.maximum(rows, usual), unit)
    return np.asarray(np.where(finite, errors, np.inf))


def _largest(numbers: Array) -> Array:
    """Returns the largest number of each row, for each of its numbers."""
    axes = tuple(range(1, numbers.ndim))
    return np.broadcast_to(numbers.max(axes, keepdims=True, initial=0.0), numbers.shape)
