"""What modules of ours call dense layers that `networks.modules.layers` made.

They count what activates a layer, too: `net.<part>.0.weight`, `net.<part>.2.weight`, ….
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rllib_compat.networks.mapping import Table, torch_dense
from rllib_compat.networks.network import OWN_PREFIX, OWN_TARGET_PREFIX, TARGET_PREFIX


def names(parts: Mapping[str, str], hiddens: Mapping[str, int]) -> Table:
    """The rows of all stacks, and of their targets.

    Args:
        parts: What the module calls each stack.
        hiddens: How many hidden layers each stack has.
    """
    return tuple(
        move
        for ours, theirs in (("", OWN_PREFIX), (TARGET_PREFIX, OWN_TARGET_PREFIX))
        for stack, part in parts.items()
        for move in (
            *torch_dense(f"{theirs}{part}.{2 * hiddens[stack]}", f"{ours}{stack}.out"),
            *torch_dense(f"{theirs}{part}.{{2*i}}", f"{ours}{stack}.hidden.{{i}}"),
        )
    )


def of_module(parts: Mapping[str, str], found: Iterable[str]) -> Table:
    """The same for a module that was converted before, by the names of its arrays."""
    weights = [name for name in found if name.endswith(".weight")]
    layers = {
        stack: sum(name.startswith(f"{OWN_PREFIX}{part}.") for name in weights)
        for stack, part in parts.items()
    }
    return names(parts, {stack: max(count - 1, 0) for stack, count in layers.items()})
