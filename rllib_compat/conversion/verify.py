"""Proof: the old network and the new module compute the same numbers on the same inputs.

The old network is computed in numpy from the old file's weights, without Ray. The new module is
loaded from the new files, as a user would. What differs by more than a small multiple of the old
network's own error in float32 (see `rounding`) fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.conversion import rounding
from rllib_compat.conversion.difference import RECORDED, TIMES, WEIGHTS, Difference
from rllib_compat.networks import Network, Outputs
from rllib_compat.networks.graph import Graph
from rllib_compat.neutral.errors import VerificationError
from rllib_compat.neutral.spaces import Box, Space

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: A batch of each input of a network by name, `obs` among them.
Inputs: TypeAlias = Mapping[str, Array]
Forward: TypeAlias = Callable[[Inputs], Outputs]

#: How many differences an error names.
_LISTED = 5

#: The length of the random sequences that a network with states is compared on.
SEQUENCE = 20

#: Bounds beyond this say "anything" (gym used the largest float32), and are sampled as a normal.
_UNBOUNDED = 1e4


def sample_inputs(graph: Graph, space: Space | None, n: int, seed: int = 0) -> Inputs:
    """Draws a batch of every input.

    Observations lie within a bounded Box, and are normal where there are no bounds. A graph with
    states gets sequences of `SEQUENCE` steps, `n` steps in all.
    """
    sequences = max(n // SEQUENCE, 1) if graph.recurrent else n
    rng = np.random.default_rng(seed)
    shape = graph.inputs["obs"]
    lead = (sequences, SEQUENCE) if graph.recurrent else (n,)
    return inputs_with(graph, _observations(rng, space, shape, lead), seed=seed + 1)


def inputs_with(graph: Graph, observations: Array, seed: int = 0) -> Inputs:
    """A batch of given observations, and of whatever else the graph takes at random."""
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
) -> list[Difference]:
    """Compares the outputs of both networks for the same inputs.

    Args:
        policy_id: The policy.
        old: What the old network gives.
        new: What the new one gives; it may give more.
        errors: How far float32 lets each number of the old outputs stray; None: not at all.
        kind: What the inputs were.

    Raises:
        VerificationError: The new network lacks an output, or has it in another shape.
    """
    rows = []
    for name in old:
        if name not in new:
            raise VerificationError(
                f"The new module gives no {name}.", where=f"policies.{policy_id}"
            )
        a, b = old[name], new[name]
        if np.shape(a) != np.shape(b):
            raise VerificationError(
                f"The old network gives {name} of shape {np.shape(a)}, the new {np.shape(b)}.",
                where=f"policies.{policy_id}",
            )
        error = np.zeros(np.shape(a)) if errors is None else errors[name]
        rows.append(_difference(policy_id, name, np.asarray(a), np.asarray(b), error, kind))
    return rows


def _difference(
    policy_id: str, name: str, old: Array, new: Array, error: Array, kind: str
) -> Difference:
    a, b = old.astype(np.float64), new.astype(np.float64)
    overflows = ~np.isfinite(error)
    # A network that had diverged gives what it gave: the same infinity, or NaN. Where float32
    # overflows and float64 does not, the new network overflows as the old one did.
    alike = (a == b) | (np.isnan(a) & np.isnan(b))
    alike |= overflows & np.isfinite(a) & ~np.isfinite(b)
    error = np.where(overflows, 0.0, error)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.where(alike, 0.0, np.abs(a - b))
        relative = np.where(alike, 0.0, difference / np.maximum(np.abs(a), 1e-3))
        times = np.where(alike, 0.0, difference / error)
    return Difference(
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
) -> list[Difference]:
    """Compares the numbers of a module with those that it was to get; they have to be the same.

    What the module has besides (constants that it makes itself) is not compared.

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

    def numbers(state: Mapping[str, Array]) -> Array:
        parts = [np.asarray(state[name], np.float32).reshape(-1) for name in sorted(old)]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    return compare(policy_id, {WEIGHTS: numbers(old)}, {WEIGHTS: numbers(new)}, kind="stored")


def compare_all(
    old: Mapping[str, Network],
    new: Mapping[str, Forward],
    inputs: Mapping[str, Inputs],
    kind: str = "random",
) -> list[Difference]:
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
        errors = rounding.of_network(network, batch, exact)
        rows += compare(policy_id, exact, new[policy_id](batch), errors, kind=kind)
    return rows


def require_equal(rows: list[Difference]) -> None:
    """Raises where a difference is beyond the tolerance.

    Raises:
        VerificationError: The worst difference, and where it is.
    """
    bad = [row for row in rows if not row.ok]
    if not bad:
        return
    worst = max(bad, key=lambda row: row.absolute if math.isfinite(row.absolute) else math.inf)
    listed = "; ".join(f"{row.policy_id}: {told(row)}" for row in bad[:_LISTED])
    more = f"; and {len(bad) - _LISTED} more" if len(bad) > _LISTED else ""
    if worst.kind == RECORDED:
        raise VerificationError(
            "What the old Ray recorded is not what the checkpoint computes as it was read: "
            f"{listed}{more}.",
            where=f"policies.{worst.policy_id}",
            fix="Nothing was written. Arrays do not show everything: look at what is assumed from "
            "the config (inspect lists it), and give the one that was trained with: --config.",
        )
    raise VerificationError(
        f"Old and new differ: {listed}{more}.",
        where=f"policies.{worst.policy_id}",
        fix="Nothing was written. Please report this checkpoint's network and Ray version.",
    )


def told(row: Difference) -> str:
    """A difference in words, with the yardstick beside it."""
    if row.output == WEIGHTS:
        return f"the weights differ by up to {row.absolute:.2e}"
    return (
        f"{row.output} is off by up to {row.absolute:.2e}, {row.times:.1f} times the network's own "
        f"float32 error ({row.own_error:.2e}; {TIMES} times is allowed)"
    )
