"""A graph as a torch network that trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from rllib_compat.networks.graph import Graph
from rllib_compat.networks.ops.basic_torch import OPS


class GraphNet(nn.Module):  # type: ignore[misc]  # torch's stubs are not installed for the check
    """Computes the outputs of a graph; its parameters have the canonical names of the arrays.

    The arrays of a step with the setting `trained: False` are constants.

    Args:
        graph: What to compute.
        shapes: The shape of each array by name; matrices start as keras' do, vectors at zero.
    """

    def __init__(self, graph: Graph, shapes: Mapping[str, Iterable[int]]) -> None:
        super().__init__()
        self.graph = graph
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
            made = OPS[step.op](own, [values[name] for name in step.takes], step.settings)
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

    def _array(self, name: str) -> Tensor:
        found: Any = self
        for part in name.split("."):
            found = getattr(found, part)
        return found


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
    if len(shape) >= 2:
        # fan_in and fan_out of `[..., in, out]`, as keras' glorot_uniform counts them.
        area = int(torch.tensor(shape[:-2]).prod()) if len(shape) > 2 else 1
        bound = (6.0 / (area * (shape[-2] + shape[-1]))) ** 0.5
        value.uniform_(-bound, bound)
    return value
