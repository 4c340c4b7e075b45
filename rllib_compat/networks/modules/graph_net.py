"""A graph as a torch network that trains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from ray.rllib.core.columns import Columns
from torch import Tensor, nn

from rllib_compat.networks.graph import Graph
from rllib_compat.networks.modules.noisy import DrawsNoise, noised
from rllib_compat.networks.ops.in_torch import OPS

#: The operations of noisy layers and of layer norms.
NOISY, NORM = "noisy_dense", "layer_norm"


class GraphNet(DrawsNoise):
    """Computes the outputs of a graph; its parameters have the canonical names of the arrays.

    The arrays of a step with the setting `trained: False` are constants. Noisy layers draw noise
    while the network is told to.

    Args:
        graph: What to compute.
        shapes: The shape of each array by name; matrices start as keras' do, vectors at zero.
    """

    def __init__(self, graph: Graph, shapes: Mapping[str, Iterable[int]]) -> None:
        super().__init__()
        self.graph = graph
        self.is_noisy = any(step.op == NOISY for step in graph.steps)
        self._parts: dict[str, list[str]] = {step.name: [] for step in graph.steps}
        constant = {s.name for s in graph.steps if not s.settings.get("trained", True)}
        for name, shape in shapes.items():
            step, _, part = name.rpartition(".")
            self._parts[step].append(part)
            _place(self, name, _initial(tuple(shape)), trained=step not in constant)

    def forward(
        self, inputs: Mapping[str, Tensor], outputs: Iterable[str] | None = None
    ) -> dict[str, Tensor]:
        """Computes outputs from a batch of inputs, and the next states of those it passed.

        Args:
            inputs: As `Graph.evaluate` takes them.
            outputs: Which outputs; None: all.
        """
        wanted = tuple(self.graph.outputs if outputs is None else outputs)
        values: dict[str, Any] = {k: v.to(torch.float32) for k, v in inputs.items()}
        for step in self.graph.needed(wanted):
            own = {part: self._array(f"{step.name}.{part}") for part in self._parts[step.name]}
            if self.noise and step.op == NOISY:
                own = dict(zip(("kernel", "bias"), noised(**own), strict=True))
            made = OPS[step.op](own, step.settings, *(values[name] for name in step.takes))
            if isinstance(made, tuple):
                made, states = made
                values |= {f"{step.name}.{k}": v for k, v in states.items()}
            values[step.name] = made
        out = {name: values[self.graph.outputs[name]] for name in wanted}
        reached = {k: v for k, v in self.graph.states.items() if v in values}
        return out | {name: values[value] for name, value in reached.items()}

    def only_for(self, outputs: Iterable[str]) -> list[str]:
        """The steps with parameters that nothing but these outputs depends on."""
        others = [name for name in self.graph.outputs if name not in set(outputs)]
        kept = {step.name for step in self.graph.needed(others)}
        return [name for name, parts in self._parts.items() if parts and name not in kept]

    def without_norms(self, outputs: Iterable[str] | None = None) -> list[nn.Parameter]:
        """The parameters that outputs (None: all) depend on, but for those of layer norms."""
        wanted = self.graph.outputs if outputs is None else outputs
        steps = [s for s in self.graph.needed(wanted) if s.op != NORM]
        names = [f"{s.name}.{part}" for s in steps for part in self._parts[s.name]]
        found = map(self._array, names)
        return [array for array in found if isinstance(array, nn.Parameter)]

    def _array(self, name: str) -> Tensor:
        found: Any = self
        for part in name.split("."):
            found = getattr(found, part)
        return found


def inputs_in(graph: Graph, batch: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a graph in a batch of today's.

    Args:
        graph: The graph.
        batch: Each input stands beside `obs`, or in it, where `obs` is a dict or one vector of all
            of them, as the connector `PreviousSteps` makes it in env runners; states stand in
            `state_in`.
    """
    names, seen = [name for name in graph.inputs if name not in graph.states], batch[Columns.OBS]
    if isinstance(seen, Mapping):
        found: Mapping[str, Any] = seen
    else:
        found = batch if all(name in batch for name in names) else _cut(graph, names, seen)
    return {name: found[name] for name in names} | dict(batch.get(Columns.STATE_IN, {}))


def _cut(graph: Graph, names: Iterable[str], whole: Any) -> dict[str, Any]:
    """The inputs from one vector of all of them."""
    shapes = [graph.inputs[name] for name in names]
    parts = whole.split([math.prod(shape) for shape in shapes], dim=-1)
    cut = zip(names, parts, shapes, strict=True)
    return {name: part.unflatten(-1, shape) for name, part, shape in cut}


def _place(root: nn.Module, name: str, value: Tensor, *, trained: bool) -> None:
    """Registers a parameter (or a constant) under a dotted name, a module for each part of it."""
    *path, last = name.split(".")
    for part in path:
        if not hasattr(root, part):
            root.add_module(part, nn.Module())
        root = getattr(root, part)
    if trained:
        root.register_parameter(last, nn.Parameter(value))
    else:
        root.register_buffer(last, value)


def _initial(shape: tuple[int, ...]) -> Tensor:
    value = torch.zeros(shape)
    if len(shape) == 4:  # a convolution's: in memory as torch has it, `[out, in, h, w]`
        value = value.permute(3, 2, 0, 1).contiguous().permute(2, 3, 1, 0)
    if len(shape) >= 2:
        # fan_in and fan_out of `[..., in, out]`, as keras' glorot_uniform counts them.
        area = int(torch.tensor(shape[:-2]).prod()) if len(shape) > 2 else 1
        bound = (6.0 / (area * (shape[-2] + shape[-1]))) ** 0.5
        value.uniform_(-bound, bound)
    return value
