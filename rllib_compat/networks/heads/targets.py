"""Target networks, which torch and TF2 policies never stored."""

from __future__ import annotations

from rllib_compat.networks.graph import Array
from rllib_compat.networks.named import Named
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.neutral.report import Finding, Verdict


def with_targets(named: Named, *stacks: str) -> tuple[dict[str, Array], list[Finding]]:
    """Completes the arrays of target networks, which start as copies where they are not stored.

    Args:
        named: The arrays.
        stacks: What the names of those arrays begin with that a target follows; none: all.

    Returns:
        All arrays, and what the report says.
    """
    arrays = dict(named.arrays)
    missing = [
        name
        for name in arrays
        if name.startswith(stacks or "")
        and not name.startswith(TARGET_PREFIX)
        and TARGET_PREFIX + name not in arrays
    ]
    if not missing:
        return arrays, []
    message = "the target networks are not stored; they start as copies of those that they follow"
    finding = named.note(message, code="target-network", verdict=Verdict.DERIVED)
    return arrays | {TARGET_PREFIX + name: arrays[name] for name in missing}, [finding]
