"""Proof: the old network and the new module compute the same numbers on the same inputs.

The old network is computed in numpy from the old file's weights, without Ray. The new module is
loaded from the new files, as a user would. What differs by more than the tolerance fails.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.errors import VerificationError
from rllib_compat.networks import FullyConnected, Outputs
from rllib_compat.spaces import Box, Space

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Forward: TypeAlias = Callable[[Array], Outputs]

#: float32 keeps about 7 digits; a few layers lose one or two of them.
ABSOLUTE_TOLERANCE = 1e-5
RELATIVE_TOLERANCE = 1e-5

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
    """

    policy_id: str
    output: str
    absolute: float
    relative: float
    inputs: int
    ok: bool


def sample_inputs(space: Space | None, size: int, n: int, seed: int = 0) -> Array:
    """Draws network inputs `[n, size]`: within a bounded Box, normal where there are no bounds."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(n, size))
    if not isinstance(space, Box) or space.flat_size() != size:
        return normal.astype(np.float32)
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    bounded = (np.abs(low) < _UNBOUNDED) & (np.abs(high) < _UNBOUNDED)
    low, high = np.where(bounded, low, 0.0), np.where(bounded, high, 1.0)
    uniform = low + (high - low) * rng.uniform(size=(n, size))
    return np.where(bounded, uniform, normal).astype(np.float32)


def compare(policy_id: str, old: Outputs, new: Outputs) -> list[Difference]:
    """Compares the outputs of both networks for the same inputs."""
    rows = []
    for name in ("action_dist_inputs", "vf_preds"):
        a, b = getattr(old, name), getattr(new, name)
        if a is None or b is None:
            continue
        if np.shape(a) != np.shape(b):
            raise VerificationError(
                f"The old network gives {name} of shape {np.shape(a)}, the new {np.shape(b)}.",
                where=f"policies.{policy_id}",
            )
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        difference = np.abs(a - b)
        allowed = ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * np.abs(a)
        scale = np.maximum(np.abs(a), 1e-3)
        rows.append(
            Difference(
                policy_id,
                name,
                float(difference.max(initial=0.0)),
                float((difference / scale).max(initial=0.0)),
                len(a),
                bool(np.all(difference <= allowed)),  # NaN is never within bounds
            )
        )
    return rows


def compare_all(
    old: Mapping[str, FullyConnected],
    new: Mapping[str, Forward],
    inputs: Mapping[str, Array],
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
        rows += compare(policy_id, network.forward(batch), new[policy_id](batch))
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
            f"{ABSOLUTE_TOLERANCE:.0e} is allowed.",
            where=f"policies.{worst.policy_id}",
            fix="Nothing was written. Please report this checkpoint's network and Ray version.",
        )
