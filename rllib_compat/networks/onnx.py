"""Networks as ONNX models, for people who leave RLlib; needs neither Ray nor torch.

A model takes `obs` (preprocessed; the observation filter is a part of it), `prev_actions` and
`prev_rewards` where the network does, and `state_in_0`, …. It gives the network's outputs by their
names, `state_out_0`, …, and `action`: what the environment takes, of a policy that does not
explore: the best action of its distribution, stretched or clipped to the action space, as
`actions.py` computes it in numpy. A recurrent network is one step. (`trainer/policies.py` exports
what a live `Trainer` has trained, through torch.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.networks import Network, Outputs
from rllib_compat.networks.actions import ActionChooser, ActionFitting
from rllib_compat.networks.distributions import (
    Categorical,
    Deterministic,
    Distribution,
    Gaussian,
    Joint,
    Squashed,
)
from rllib_compat.networks.graph import OF_CRITICS, Array, Compiled, Graph
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.ops.in_onnx import OPS, Nodes, Taken
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, MultiDiscrete, Space

#: Opset 18 and its version of the file format: onnxruntime 1.14 (2023) and later read them.
OPSET, _FORMAT = 18, 8
_FLOAT, _INT64 = 1, 7


def outputs_without_critics(network: Network) -> list[str]:
    """The outputs that need no action: all but those of critics."""
    graph = network.graph
    taken = {*OF_CRITICS} & graph.inputs.keys()
    return [
        name
        for name in graph.outputs
        if not any(taken & {*step.takes} for step in graph.needed([name]))
    ]


def without_critics(network: Network) -> Network:
    """A network with those outputs alone."""
    kept = {name: network.graph.outputs[name] for name in outputs_without_critics(network)}
    return replace(network, graph=replace(network.graph, outputs=kept))


@frozen
class Acting:
    """How a policy acts.

    Attributes:
        chooser: Chooses an action by an output of the network.
        fitting: How actions are fitted to their space.
        space: The action space.
    """

    chooser: ActionChooser
    fitting: ActionFitting
    space: Space

    def __call__(self, output: Array) -> Array:
        """The actions by a batch of the network's output."""
        made: Array = self.fitting(self.chooser.distribution.best(output), self.space)
        return made

    @property
    def in_onnx(self) -> bool:
        """Whether its action is one array, of a distribution that has nodes."""
        chosen = self.chooser.distribution
        return isinstance(chosen, (Categorical, Gaussian, Deterministic)) or (
            isinstance(chosen, Joint) and isinstance(self.space, MultiDiscrete)
        )

    def add_to(self, nodes: Nodes) -> tuple[str, tuple[int, ...]]:
        """Adds nodes behind the model's outputs; gives the action's name and shape."""
        value = _best(nodes, self.chooser.distribution, self.chooser.output)
        if not isinstance(self.space, Box):
            return value, (len(self.space.nvec),) if isinstance(self.space, MultiDiscrete) else ()
        value = nodes.reshape(value, *self.space.shape)
        return self._fitted(nodes, value, self.space), self.space.shape

    def _fitted(self, nodes: Nodes, value: str, space: Box) -> str:
        stretches = self.fitting.unsquash and space.bounded and space.dtype.startswith("float")
        if stretches:
            scale = (space.high - space.low) / 2.0
            value = nodes.add("Mul", nodes.add("Add", value, np.array(1.0)), scale)
            value = nodes.add("Add", value, space.low)
        elif not self.fitting.clip:
            return value
        return _clipped(nodes, value, space.low, space.high)


def _best(nodes: Nodes, chosen: Distribution, output: str) -> str:
    if isinstance(chosen, Categorical):
        return str(nodes.add("ArgMax", output, axis=-1, keepdims=0))
    if isinstance(chosen, Joint):  # of choices
        ends = np.cumsum([0, *(part.size for part in chosen.parts)])
        parts = [nodes.slice(output, int(a), int(b)) for a, b in pairwise(ends)]
        made = [nodes.add("ArgMax", part, axis=-1, keepdims=1) for part in parts]
        return str(nodes.add("Concat", *made, axis=-1))
    if isinstance(chosen, Deterministic):
        return output
    assert isinstance(chosen, Gaussian), "in_onnx has said so"
    value = nodes.slice(output, 0, math.prod(chosen.shape))
    if isinstance(chosen, Squashed):
        low, high = (np.asarray(bound, np.float64) for bound in (chosen.low, chosen.high))
        for _ in range(chosen.squashes):
            value = nodes.add("Tanh", value)
        scale = np.asarray((high - low) / 2)
        value = nodes.add("Mul", nodes.add("Add", value, np.array(1.0)), scale)
        value = _clipped(nodes, nodes.add("Add", value, low), low, high)
    return value


def _clipped(nodes: Nodes, value: str, low: Array, high: Array) -> str:
    return str(nodes.add("Min", nodes.add("Max", value, low), high))


def to_onnx(network: Network, metadata: Mapping[str, Any], acting: Acting | None = None) -> Any:
    """A network as an `onnx.ModelProto`; metadata are text, or plain data that becomes JSON.

    `acting` is how its policy acts, for the output `action`; None: the model has none.
    """
    from onnx import helper, numpy_helper

    graph, wanted = network.graph, outputs_without_critics(network)
    steps = graph.steps if graph.recurrent else graph.needed(wanted)
    taken = {name for step in steps for name in step.takes}
    inputs = {name: shape for name, shape in graph.inputs.items() if name in taken}
    names = {name: _input_name(name, graph.states) for name in inputs}
    shapes = {**graph.inputs, **_shapes(network, tuple(step.name for step in steps))}
    # Noisy layers began with all weights alike: little of what float32 adds up differs between the
    # outputs.
    exact = any(step.op == "noisy_dense" for step in steps)
    nodes = Nodes(np.float64 if exact else np.float32)
    values = {name: nodes.cast(outer) if exact else outer for name, outer in names.items()}
    for step in steps:
        prefix = f"{step.name}."
        own = {
            name.removeprefix(prefix): np.asarray(array)
            for name, array in network.arrays.items()
            if name.startswith(prefix) and "." not in name.removeprefix(prefix)
        }
        takes = [values[name] for name in step.takes]
        made = OPS[step.op](
            nodes, Taken(own, takes, [shapes[name] for name in step.takes], step.settings)
        )
        if isinstance(made, tuple):
            made, states = made
            values |= {f"{prefix}{name}": value for name, value in states.items()}
        values[step.name] = made
    outputs = {name: values[graph.outputs[name]] for name in wanted}
    outputs |= {f"state_out_{i}": values[value] for i, value in enumerate(graph.states.values())}
    given = {name: shapes[graph.outputs[name]] for name in wanted}
    given |= {f"state_out_{i}": graph.inputs[name] for i, name in enumerate(graph.states)}
    nodes.nodes += [
        helper.make_node("Cast", [value], [name], to=_FLOAT) for name, value in outputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, _FLOAT, ["batch", *shape])
        for name, shape in given.items()
    ]
    if acting is not None:
        action, shape = acting.add_to(nodes)
        kind = _FLOAT if isinstance(acting.space, Box) else _INT64
        results.append(helper.make_tensor_value_info("action", kind, ["batch", *shape]))
        nodes.nodes.append(helper.make_node("Cast", [action], ["action"], to=kind))
    made_graph = helper.make_graph(
        nodes.nodes,
        "policy",
        [
            helper.make_tensor_value_info(names[name], _FLOAT, ["batch", *shape])
            for name, shape in inputs.items()
        ],
        results,
        [numpy_helper.from_array(array, name) for name, array in nodes.constants.items()],
    )
    made_model = helper.make_model(
        made_graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="rllib-compat"
    )
    made_model.ir_version = _FORMAT
    helper.set_model_props(
        made_model, {k: v if isinstance(v, str) else json.dumps(v) for k, v in metadata.items()}
    )
    return made_model


def _input_name(name: str, states: Mapping[str, str]) -> str:
    """What the model calls an input."""
    return f"state_in_{list(states).index(name)}" if name in states else name


def _shapes(network: Network, steps: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The shape of each step's value for one item, and without time."""
    graph = replace(network.graph, outputs={name: name for name in steps})
    own = {k: v for k, v in network.arrays.items() if not k.startswith(TARGET_PREFIX)}
    made = Compiled(graph, own, None if graph.recurrent else steps)(graph.zeros())
    return {name: made[name].shape[2 if graph.recurrent else 1 :] for name in steps}


def single_steps(graph: Graph, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Sequences as many sequences of one step, each with the state that began the whole one."""
    if not graph.recurrent:
        return dict(inputs)
    batch, steps = inputs["obs"].shape[:2]
    return {
        name: np.repeat(value, steps, axis=0)
        if name in graph.states
        else value.reshape(batch * steps, 1, *value.shape[2:])
        for name, value in inputs.items()
    }


class OnnxNetwork:
    """A model that was written, as a function of what its network takes.

    It is run by onnxruntime where that is installed, else by the reference implementation in the
    package onnx.
    """

    def __init__(self, path: Path, network: Network) -> None:
        self._network = network
        try:
            import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
        except ModuleNotFoundError:
            from onnx import reference

            self._session: Any = reference.ReferenceEvaluator(str(path))
            self._takes = list(self._session.input_names)
            self._gives = list(self._session.output_names)
        else:
            self._session = onnxruntime.InferenceSession(
                str(path), providers=["CPUExecutionProvider"]
            )
            self._takes = [value.name for value in self._session.get_inputs()]
            self._gives = [value.name for value in self._session.get_outputs()]

    def __call__(self, inputs: Mapping[str, Any]) -> Outputs:
        """Computes outputs, and the next state under the states' names; sequences have one step."""
        graph, made = self._network.graph, self.step(inputs)
        if not graph.recurrent:
            return made
        states = graph.states
        out = {name: made[name][:, None] for name in graph.outputs if name in made}
        return out | {k: made[f"state_out_{i}"] for i, k in enumerate(states)}

    def step(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """All outputs of the model by their own names, without an axis for time; see `__call__`."""
        states = self._network.graph.states
        if not states:
            return self._run(inputs)
        return self._run(
            {_input_name(k, states): v if k in states else v[:, 0] for k, v in inputs.items()}
        )

    def _run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        fed = {name: np.asarray(inputs[name], np.float32) for name in self._takes}
        return dict(zip(self._gives, self._session.run(self._gives, fed), strict=True))
