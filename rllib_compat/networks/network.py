"""What every old network is to the converter: arrays, a graph, and the module that takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rllib_compat.networks.graph import OF_CRITICS, Array, Graph
from rllib_compat.networks.mapping import Table, from_canonical
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding
from rllib_compat.neutral.spaces import Space

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

#: What today's learner calls the only optimizer of a module.
DEFAULT = "default_optimizer"

#: The temperature, as a learner of SAC trains it.
ALPHA = "log_alpha"


@frozen
class Group:
    """One of the optimizers that an old policy had.

    Attributes:
        name: What today's learner calls it; None: it has none of the kind.
        stack: What the canonical names of its arrays begin with; with `modules=()`, it trained
            this number alone, which is in no network.
        modules: What their names in the old policy began with, of every torch.
        eps: The epsilon of today's learner's Adam.
        scale: What today's gradients are of those of that Ray, where its loss was a multiple.
    """

    name: str | None
    stack: str | tuple[str, ...] = ""
    modules: tuple[str, ...] = ()
    eps: float = 1e-8
    scale: float = 1.0


#: One optimizer for all of a network.
WHOLE = (Group(DEFAULT, modules=("",)),)

#: Outputs by name: `action_dist_inputs` `[B, n]`, `vf_preds` `[B]`, `q_values` `[B, actions]`, …
Outputs: TypeAlias = Mapping[str, Array]

#: Canonical names of a target network's arrays: this, and the name of the array that it follows.
TARGET_PREFIX = "target."

#: Where a module of ours keeps its arrays: `net.<canonical name>`, and those of target networks.
OWN_PREFIX = "net."
OWN_TARGET_PREFIX = "target_net."


@frozen
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

        They may share their memory with the canonical ones.

        Raises:
            CheckpointError: The module has no place for one of them.
        """
        if self.table is None:
            named = {own_name(k): v for k, v in canonical.items()}
        else:
            named = from_canonical(self.table, canonical)
        return {k: np.asarray(v, np.float32) for k, v in named.items()}


def own_name(canonical: str) -> str:
    """What a module of ours calls an array."""
    if canonical.startswith(TARGET_PREFIX):
        return OWN_TARGET_PREFIX + canonical.removeprefix(TARGET_PREFIX)
    return OWN_PREFIX + canonical


def own_module(
    name: str, graph: Graph, arrays: Mapping[str, Array], **model_config: object
) -> Target:
    """A module of ours that takes a graph; the arrays of target networks are its own business."""
    shapes = {k: list(v.shape) for k, v in arrays.items() if not k.startswith(TARGET_PREFIX)}
    return Target(name, {**model_config, "graph": graph.to_plain(), "shapes": shapes})


@frozen(kw_only=True)
class Weights:
    """A policy's arrays, and the RLModule that takes them.

    Attributes:
        kind: What they are of, in a word or two (`vision`, `fully connected`).
        summary: One line for tables: `fc 4-32-32-2 relu, own value network`.
        scheme: The naming scheme in which the arrays were found.
        arrays: The arrays by canonical name.
        target: The RLModule that takes them.
        names: The scheme's names for the arrays; optimizers keep their state under them. For
            arrays that were stored without names, those that their variables had.
        unused: Arrays of the checkpoint that no output of the network depends on, by the names
            they had (Ray made value branches that nothing read). They are reported, not carried.
        aliases: Second names of arrays that the checkpoint holds twice, and the optimizer once.
        optimizers: The optimizers that trained it.
        besides: What its module keeps besides, by the module's names: a temperature.
    """

    kind: str
    summary: str
    scheme: str
    arrays: Mapping[str, Array]
    target: Target
    names: Table
    unused: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    optimizers: tuple[Group, ...] = WHOLE
    besides: Mapping[str, Array] = field(default_factory=dict)

    @property
    def parameters(self) -> int:
        """How many numbers were trained."""
        return sum(array.size for array in self.arrays.values())

    def module_state(self) -> dict[str, Array]:
        """The weights as the module has them."""
        besides = {name: np.asarray(array, np.float32) for name, array in self.besides.items()}
        return self.target.arrays(self.arrays) | besides


@frozen(kw_only=True)
class Network(Weights):
    """One policy's network: weights, and what they compute.

    Attributes:
        graph: What it computes.
        space: What its module takes, where that is in parts or has the step before behind it; None:
            the graph's `obs`.
    """

    graph: Graph
    space: Space | None = None

    def __post_init__(self) -> None:
        self.graph.check(self.arrays, where=self.kind)

    @property
    def inputs(self) -> tuple[int, ...]:
        """The shape of the preprocessed observation that it takes."""
        return tuple(self.graph.inputs["obs"])

    @property
    def choices(self) -> int | None:
        """How many discrete actions it gives a value for each; None: that is not what it gives."""
        graph = self.graph
        if "q_values" not in graph.outputs or not graph.inputs.keys().isdisjoint(OF_CRITICS):
            return None
        return int(self.forward(graph.zeros())["q_values"].shape[-1])

    def forward(self, inputs: Mapping[str, Array], dtype: DTypeLike = np.float64) -> Outputs:
        """Computes its outputs.

        Args:
            inputs: `obs` `[B, …]`, preprocessed and filtered, and whatever else the graph takes;
                with a time axis `[B, T, …]`, and states `[B, …]`, where the graph has states.
            dtype: What it computes in: float64, or float32 to see how far that rounds.
        """
        return self.graph.evaluate(self.arrays, inputs, dtype=dtype)


@frozen(kw_only=True)
class CustomNetwork(Weights):
    """The weights of a user's own model. What it computes is not known.

    Attributes:
        inputs: The shape of the preprocessed observation that it takes.
        space: What its module takes: that vector or image, or a Dict or Tuple in parts.
    """

    inputs: tuple[int, ...]
    space: Space


AnyNetwork: TypeAlias = Network | CustomNetwork


def known(networks: Mapping[str, AnyNetwork]) -> dict[str, Network]:
    """The networks whose outputs can be computed: all but those of custom models."""
    return {k: n for k, n in networks.items() if isinstance(n, Network)}


@frozen
class Reading:
    """What was read from one policy.

    Attributes:
        network: Its network.
        findings: What was noticed on the way.
        state: Numbers that were stored among the weights and belong to the policy's state, by
            name: `kl_coeff`, `entropy_coeff`, `lr`, `log_alpha`, `target_entropy`,
            `moving_average_of_advantage_norm`.
    """

    network: AnyNetwork
    findings: tuple[Finding, ...] = ()
    state: Mapping[str, float] = field(default_factory=dict)

    @property
    def known(self) -> Network:
        """The network, where it has to be one whose outputs can be computed."""
        assert isinstance(self.network, Network), "a custom model"
        return self.network

    def noting(self, *findings: Finding) -> Reading:
        """The same with more findings."""
        return replace(self, findings=(*self.findings, *findings))
