"""Proof: the old network and the new module compute the same numbers on the same inputs.

The old network is computed in numpy from the old file's weights, without Ray. The new module is
loaded from the new files, as a user would. What differs by more than the tolerance fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks import Network, Outputs
from rllib_compat.networks.graph import Graph
from rllib_compat.neutral.errors import VerificationError
from rllib_compat.neutral.spaces import Box, Space

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
#: A batch of each input of a network by name, `obs` among them.
Inputs: TypeAlias = Mapping[str, Array]
Forward: TypeAlias = Callable[[Inputs], Outputs]

#: What stands for the outputs of a module where only its numbers can be compared.
WEIGHTS = "weights"

#: The length of the random sequences that a network with states is compared on.
SEQUENCE = 20

#: float32 keeps about 7 digits; a few layers lose one or two of them.
TOLERANCE = 1e-5
#: A convolution adds up thousands of products, and a recurrent network its own errors.
DEEP_TOLERANCE = 1e-4

#: Bounds beyond this say "anything" (gym used the largest float32), and are sampled as a normal.
_UNBOUNDED = 1e4


@dataclass(frozen=True)
class Difference:
    """How far one output of one policy is off.

    Attributes:
        policy_id: The policy.
        output: `action_dist_inputs` or `vf_preds`.
        absolute: The largest absolute difference over all inputs.
        relative: The largest relative difference, where the old output is not tiny.
        inputs: How many inputs were compared.
        ok: Whether every number is within the tolerance.
        tolerance: What is allowed, absolute and relative.
    """

    policy_id: str
    output: str
    absolute: float
    relative: float
    inputs: int
    ok: bool
    tolerance: float = TOLERANCE


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
    policy_id: str, old: Outputs, new: Outputs, tolerance: float = TOLERANCE
) -> list[Difference]:
    """Compares the outputs of both networks for the same inputs.

    Args:
        policy_id: The policy.
        old: What the old network gives.
        new: What the new one gives; it may give more.
        tolerance: What is allowed, absolute and once more relative to the old output.

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
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        # A network that had diverged gives what it gave: the same infinity, or NaN.
        alike = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            difference = np.where(alike, 0.0, np.abs(a - b))
            relative = np.where(alike, 0.0, difference / np.maximum(np.abs(a), 1e-3))
        allowed = tolerance * (1 + np.abs(a))
        rows.append(
            Difference(
                policy_id,
                name,
                float(difference.max(initial=0.0)),
                float(relative.max(initial=0.0)),
                len(a),
                bool(np.all(alike | (difference <= allowed))),  # NaN is never within bounds
                tolerance,
            )
        )
    return rows


def compare_weights(
    policy_id: str, old: Mapping[str, Array], new: Mapping[str, Array]
) -> list[Difference]:
    """Compares the numbers of a module whose outputs can't be computed, all one after the other."""

    def numbers(state: Mapping[str, Array]) -> Array:
        parts = [np.asarray(state[name], np.float64).reshape(-1) for name in sorted(state)]
        return np.concatenate(parts) if parts else np.empty(0)

    return compare(policy_id, {WEIGHTS: numbers(old)}, {WEIGHTS: numbers(new)})


def compare_all(
    old: Mapping[str, Network],
    new: Mapping[str, Forward],
    inputs: Mapping[str, Inputs],
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
        tolerance = DEEP_TOLERANCE if network.graph.deep else TOLERANCE
        rows += compare(policy_id, network.forward(batch), new[policy_id](batch), tolerance)
    return rows


def require_equal(rows: list[Difference]) -> None:
    """Raises where a difference is beyond the tolerance.

    Raises:
        VerificationError: The worst difference, and where it is.
    """
    bad = [row for row in rows if not row.ok]
    if bad:
        worst = max(bad, key=lambda row: row.absolute)
        raise VerificationError(
            f"Old and new differ by up to {worst.absolute:.2e} ({worst.output}); "
            f"{worst.tolerance:.0e} is allowed.",
            where=f"policies.{worst.policy_id}",
            fix="Nothing was written. Please report this checkpoint's network and Ray version.",
        )
