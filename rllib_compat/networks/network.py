"""What every legacy network is to the converter: arrays, a graph, and the module to take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.graph import Array, Graph
from rllib_compat.networks.mapping import Table, from_canonical
from rllib_compat.networks.optimizers.groups import WHOLE, Group
from rllib_compat.neutral.errors import CheckpointError

#: Outputs by name: `action_dist_inputs` `[B, n]`, `vf_preds` `[B]`, `q_values` `[B, actions]`, …
Outputs: TypeAlias = Mapping[str, Array]

#: Canonical names of a target network's arrays: this, and the name of the array that it follows.
TARGET_PREFIX = "target."

#: Where a module of ours keeps its arrays: `net.<canonical name>`, and those of target networks.
OWN_PREFIX = "net."
OWN_TARGET_PREFIX = "target_net."


@dataclass(frozen=True)
class Target:
    """The RLModule that takes a network.

    Attributes:
        module: Its class as `module:Class`; None: the algorithm's default of the installed Ray.
        model_config: What its config has to say for it to compute the same.
        table: The module's names for the canonical arrays; None: they are kept as they are.
    """

    module: str | None
    model_config: Mapping[str, Any]
    table: Table | None = None

    def arrays(self, canonical: Mapping[str, Array]) -> dict[str, Array]:
        """Canonical arrays (or what is kept for each of them) under the module's names, float32.

        Raises:
            CheckpointError: The module has no place for one of them.
        """
        if self.table is None:
            named = {own_name(k): np.ascontiguousarray(v) for k, v in canonical.items()}
        else:
            named = from_canonical(self.table, canonical)
        return {k: v.astype(np.float32) for k, v in named.items()}


def own_name(canonical: str) -> str:
    """What a module of ours calls an array."""
    if canonical.startswith(TARGET_PREFIX):
        return OWN_TARGET_PREFIX + canonical.removeprefix(TARGET_PREFIX)
    return OWN_PREFIX + canonical


def own_module(name: str, graph: Graph, arrays: Mapping[str, Array], **model_config: Any) -> Target:
    """A module of ours that takes a graph.

    Args:
        name: Its class as `module:Class`.
        graph: What it computes.
        arrays: The arrays of the graph's steps; those of target networks are its own business.
        model_config: What else it has to be told.
    """
    shapes = {k: list(v.shape) for k, v in arrays.items() if not k.startswith(TARGET_PREFIX)}
    return Target(name, {**model_config, "graph": graph.to_plain(), "shapes": shapes})


@dataclass(frozen=True)
class Network:
    """One policy's network.

    Attributes:
        kind: What it is, in a word or two (`vision`, `fully connected`).
        summary: One line for tables: `fc 4-32-32-2 relu, own value network`.
        scheme: The naming scheme in which its arrays were found.
        graph: What it computes.
        arrays: Its arrays by canonical name.
        target: The RLModule that takes it.
        names: The scheme's names for the arrays; optimizers keep their state under them. For
            arrays that were stored without names, those that their variables had.
        unused: Arrays of the checkpoint that no output of the network depends on, by the names
            they had (Ray made value branches that nothing read). They are told, not carried.
        aliases: Second names of arrays that the checkpoint holds twice, and the optimizer once.
        optimizers: The optimizers that trained it.
    """

    kind: str
    summary: str
    scheme: str
    graph: Graph
    arrays: Mapping[str, Array]
    target: Target
    names: Table
    unused: tuple[str, ...] = field(default=())
    aliases: tuple[str, ...] = field(default=())
    optimizers: tuple[Group, ...] = WHOLE

    def __post_init__(self) -> None:
        self.graph.check(self.arrays, where=self.kind)
        odd = [name for name, array in self.arrays.items() if not np.isfinite(array).all()]
        if odd:
            raise CheckpointError(
                f"Weights that are no finite numbers: {', '.join(odd)}.",
                where=self.kind,
                fix="The training had diverged; take an earlier checkpoint.",
            )

    @property
    def inputs(self) -> tuple[int, ...]:
        """The shape of the preprocessed observation that it takes."""
        return tuple(self.graph.inputs["obs"])

    @property
    def parameters(self) -> int:
        """How many numbers it was trained in."""
        return sum(array.size for array in self.arrays.values())

    def forward(self, inputs: Mapping[str, Array]) -> Outputs:
        """Computes its outputs in float64.

        Args:
            inputs: `obs` `[B, …]`, preprocessed and filtered, and whatever else the graph takes;
                with a time axis `[B, T, …]`, and states `[B, …]`, where the graph has states.
        """
        return self.graph.evaluate(self.arrays, inputs)

    def module_state(self) -> dict[str, Array]:
        """Its weights as its module has them."""
        return self.target.arrays(self.arrays)
