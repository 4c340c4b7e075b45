"""Every operation of a graph as nodes of ONNX (opset 18): those of `in_numpy`.

A recurrent network is written as one step: no value has a time axis, and states go in and out.
Each function adds nodes to a `Nodes` and gives the name of what they make; recurrent ones give
their next states, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from rllib_compat.networks.ops import in_numpy
from rllib_compat.networks.ops.in_numpy import positions
from rllib_compat.neutral.frozen import frozen

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Nodes:
    """Nodes and constants of an ONNX graph, collected in the order in which they are computed.

    Attributes:
        nodes: The nodes, as `onnx.helper` makes them.
        constants: Arrays by name.

    Args:
        real: The type in which it is computed: float32, or float64.
    """

    def __init__(self, real: type[np.floating[Any]] = np.float32) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}
        self._real = real

    def add(self, operator: str, *takes: str | Array, outputs: int = 1, **settings: object) -> Any:
        """Adds a node; arrays become constants. Returns the name of what it makes, or several."""
        from onnx import helper

        names = [self.constant(t) if isinstance(t, np.ndarray) else t for t in takes]
        made = [f"{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, names, made, **settings))
        return made[0] if outputs == 1 else made

    def constant(self, array: Array) -> str:
        """A constant: integers are sizes and axes."""
        kind = np.int64 if array.dtype.kind in "iu" else self._real
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(array, kind)
        return name

    def cast(self, value: str) -> str:
        """A value in the type in which the graph is computed."""
        from onnx import TensorProto

        kind = TensorProto.DOUBLE if self._real is np.float64 else TensorProto.FLOAT
        return str(self.add("Cast", value, to=kind))

    def reshape(self, value: str, *tail: int) -> str:
        """A value in another shape; the batch stays."""
        return str(self.add("Reshape", value, np.array([0, *tail])))

    def slice(self, value: str, start: int, stop: int, axis: int = -1) -> str:
        """A part of a value along an axis."""
        ends = (np.array([i]) for i in (start, stop, axis))
        return str(self.add("Slice", value, *ends))

    def split(self, value: str, parts: int) -> list[str]:
        """Equal parts of a value along its last axis."""
        return list(self.add("Split", value, outputs=parts, axis=-1, num_outputs=parts))


@frozen
class Taken:
    """What a step has to write itself.

    Attributes:
        own: Its arrays by part.
        takes: The names of the values that go in.
        shapes: Their shapes for one item.
        settings: The step's settings.
    """

    own: Mapping[str, Array]
    takes: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    settings: Mapping[str, Any]


Made: TypeAlias = "str | tuple[str, dict[str, str]]"


def _sigmoid_of(nodes: Nodes, value: str, slope: Array | None = None) -> str:
    inner = value if slope is None else nodes.add("Mul", value, slope)
    return str(nodes.add("Mul", value, nodes.add("Sigmoid", inner)))


#: By the names of `in_numpy`.
ACTIVATIONS: dict[str, Callable[[Nodes, str], str]] = {
    "linear": lambda _, x: x,
    "relu": lambda nodes, x: nodes.add("Relu", x),
    "tanh": lambda nodes, x: nodes.add("Tanh", x),
    "swish": _sigmoid_of,
    "silu": _sigmoid_of,
    "elu": lambda nodes, x: nodes.add("Elu", x, alpha=1.0),
    "selu": lambda nodes, x: nodes.add("Selu", x),
    "sigmoid": lambda nodes, x: nodes.add("Sigmoid", x),
    "softplus": lambda nodes, x: nodes.add("Softplus", x),
    "softsign": lambda nodes, x: nodes.add("Softsign", x),
    "relu6": lambda nodes, x: nodes.add("Clip", x, np.array(0.0), np.array(6.0)),
}


def _act(nodes: Nodes, value: str, settings: Mapping[str, Any]) -> str:
    return ACTIVATIONS[str(settings.get("activation") or "linear").lower()](nodes, value)


def _linear(nodes: Nodes, value: str, own: Mapping[str, Array]) -> str:
    out = nodes.add("MatMul", value, own["kernel"])
    return str(nodes.add("Add", out, own["bias"]) if "bias" in own else out)


def dense(nodes: Nodes, step: Taken) -> str:
    """A fully connected layer; of a noisy one, what it computes on average."""
    return _act(nodes, _linear(nodes, step.takes[0], step.own), step.settings)


noisy_dense = dense


def sloped_dense(nodes: Nodes, step: Taken) -> str:
    return _sigmoid_of(nodes, _linear(nodes, step.takes[0], step.own), step.own["beta"])


def swish(nodes: Nodes, step: Taken) -> str:
    return _sigmoid_of(nodes, step.takes[0], step.own["slope"])


def conv(nodes: Nodes, step: Taken) -> str:
    """A convolution; images are `[B, h, w, c]` here, and channels first in ONNX."""
    value, (rows, columns, _) = step.takes[0], step.shapes[0]
    (top, bottom), (left, right) = step.settings["padding"]
    value = nodes.slice(value, max(-top, 0), rows - max(-bottom, 0), axis=1)
    value = nodes.slice(value, max(-left, 0), columns - max(-right, 0), axis=2)
    value = nodes.add("Transpose", value, perm=[0, 3, 1, 2])
    kernel = step.own["kernel"].transpose(3, 2, 0, 1)
    bias = [step.own["bias"]] if "bias" in step.own else []
    value = nodes.add(
        "Conv",
        value,
        kernel,
        *bias,
        kernel_shape=list(kernel.shape[2:]),
        strides=list(step.settings["stride"]),
        pads=[max(side, 0) for side in (top, left, bottom, right)],
    )
    return _act(nodes, nodes.add("Transpose", value, perm=[0, 2, 3, 1]), step.settings)


def flatten(nodes: Nodes, step: Taken) -> str:
    value = step.takes[0]
    if step.settings.get("channels_first"):
        value = nodes.add("Transpose", value, perm=[0, 3, 1, 2])
    return nodes.reshape(value, -1)


def ravel(nodes: Nodes, step: Taken) -> str:
    kept = step.shapes[0][: -step.settings["axes"]]
    return nodes.reshape(step.takes[0], *kept, -1)


def concat(nodes: Nodes, step: Taken) -> str:
    return str(nodes.add("Concat", *step.takes, axis=-1))


def cut(nodes: Nodes, step: Taken) -> str:
    part = nodes.slice(step.takes[0], step.settings["start"], step.settings["stop"])
    return nodes.reshape(part, *step.settings["shape"])


def free_log_std(nodes: Nodes, step: Taken) -> str:
    (value,) = step.takes
    batch = nodes.add("Shape", value, start=0, end=-1)
    size = nodes.constant(np.array([len(step.own["value"])]))
    shape = nodes.add("Concat", batch, size, axis=0)
    return str(nodes.add("Concat", value, nodes.add("Expand", step.own["value"], shape), axis=-1))


def scalar(nodes: Nodes, step: Taken) -> str:
    return str(nodes.add("Squeeze", step.takes[0], np.array([-1])))


def divide(nodes: Nodes, step: Taken) -> str:
    return str(nodes.add("Div", step.takes[0], np.array(float(step.settings["by"]))))


def linear_bandit(nodes: Nodes, step: Taken) -> str:
    (x,), theta, covariance = step.takes, step.own["theta"], step.own["covariance"]
    if step.settings["items"]:
        scores = nodes.add("MatMul", x, theta[0])
        wide = nodes.add("Mul", nodes.add("MatMul", x, covariance[0]), x)
        wide = nodes.add("ReduceSum", wide, np.array([-1]), keepdims=0)
    else:
        scores = nodes.add("MatMul", x, theta.T)
        x, each = nodes.add("Unsqueeze", x, np.array([1, 2])), nodes.constant(covariance)
        wide = nodes.add("Mul", nodes.add("MatMul", x, each), x)  # [B, k, 1, d]
        wide = nodes.add("ReduceSum", wide, np.array([-1, -2]), keepdims=0)
    bonus = nodes.add("Mul", nodes.add("Sqrt", wide), np.array(float(step.settings["bonus"])))
    scores = nodes.add("Mul", scores, np.array(float(step.settings["times"])))
    return str(nodes.add("Add", scores, bonus))


def normalize(nodes: Nodes, step: Taken) -> str:
    (value,) = step.takes
    if step.settings["demean"]:
        value = nodes.add("Sub", value, step.own["mean"])
    if step.settings["destd"]:
        value = nodes.add("Div", value, step.own["std"] + step.settings["epsilon"])
    if (clip := step.settings["clip"]) is not None:
        value = nodes.add("Clip", value, np.array(-clip), np.array(clip))
    if (kind := step.settings.get("integers")) is not None:
        from onnx import helper

        for into in (np.int64, kind):
            to = helper.np_dtype_to_tensor_dtype(np.dtype(into))
            value = nodes.add("Cast", value, to=to)
        value = nodes.cast(value)
    return value


def activate(nodes: Nodes, step: Taken) -> str:
    return _act(nodes, step.takes[0], step.settings)


def squash(nodes: Nodes, step: Taken) -> str:
    low, size = (np.asarray(step.settings[key], np.float64) for key in ("low", "range"))
    unit = nodes.add("Mul", step.takes[0], np.array(float(step.settings["factor"])))
    return str(nodes.add("Add", nodes.add("Mul", nodes.add("Sigmoid", unit), size), low))


def softplus_log_std(nodes: Nodes, step: Taken) -> str:
    mean, raw = nodes.split(step.takes[0], 2)
    bounds = (np.array(float(step.settings[key])) for key in ("low", "high"))
    std = nodes.add("Softplus", nodes.add("Clip", raw, *bounds))
    std = nodes.add("Add", std, np.array(float(step.settings["shift"])))
    return str(nodes.add("Concat", mean, nodes.add("Log", std), axis=-1))


def layer_norm(nodes: Nodes, step: Taken) -> str:
    value = _norm(nodes, step.takes[0], step.own, step.settings["epsilon"])
    return _act(nodes, value, step.settings)


def _norm(nodes: Nodes, value: str, own: Mapping[str, Array], epsilon: float) -> str:
    return str(
        nodes.add("LayerNormalization", value, own["gamma"], own["beta"], axis=-1, epsilon=epsilon)
    )


def dueling(nodes: Nodes, step: Taken) -> str:
    advantages, value = step.takes
    return str(nodes.add("Add", _centred(nodes, advantages, -1), value))


def _centred(nodes: Nodes, value: str, axis: int) -> str:
    mean = nodes.add("ReduceMean", value, np.array([axis]), keepdims=1)
    return str(nodes.add("Sub", value, mean))


def atoms(nodes: Nodes, step: Taken) -> str:
    logits = nodes.reshape(step.takes[0], -1, step.settings["num_atoms"])
    if len(step.takes) == 1:
        return logits
    centred = _centred(nodes, logits, step.settings["centred"])
    return str(nodes.add("Add", centred, nodes.add("Unsqueeze", step.takes[1], np.array([-2]))))


def expectation(nodes: Nodes, step: Taken) -> str:
    count = step.shapes[0][-1]
    support = np.linspace(step.settings["v_min"], step.settings["v_max"], count)
    weighted = nodes.add("Mul", nodes.add("Softmax", step.takes[0], axis=-1), support)
    return str(nodes.add("ReduceSum", weighted, np.array([-1]), keepdims=0))


def one_hot(nodes: Nodes, step: Taken) -> str:
    columns = []
    for k, choices in enumerate(step.settings["parts"]):
        column = nodes.slice(step.takes[0], k, k + 1)
        if choices:
            same = nodes.add("Equal", nodes.add("Round", column), np.arange(choices, dtype=float))
            column = nodes.cast(same)
        columns.append(column)
    return str(nodes.add("Concat", *columns, axis=-1))


def lstm(nodes: Nodes, step: Taken) -> Made:
    """One step of an LSTM."""
    x, h, c = step.takes
    own = step.own
    bias = own["bias"] + own.get("recurrent_bias", np.zeros_like(own["bias"]))
    inner = nodes.add("Add", nodes.add("MatMul", x, own["kernel"]), bias)
    inner = nodes.add("Add", inner, nodes.add("MatMul", h, own["recurrent_kernel"]))
    i, f, g, o = nodes.split(inner, 4)
    hard = step.settings.get("gates", "sigmoid") == "hard_sigmoid"
    settings: dict[str, Any] = {"alpha": 0.2, "beta": 0.5} if hard else {}
    i, f, o = (nodes.add("HardSigmoid" if hard else "Sigmoid", v, **settings) for v in (i, f, o))
    kept, new = nodes.add("Mul", f, c), nodes.add("Mul", i, nodes.add("Tanh", g))
    c = nodes.add("Add", kept, new)
    h = nodes.add("Mul", o, nodes.add("Tanh", c))
    return h, {"h": h, "c": c}


def relative_attention(nodes: Nodes, step: Taken) -> Made:
    """One step of attention over a memory; a single step sees all of it, so nothing is masked."""
    x, memory = step.takes
    own, (heads, size) = step.own, step.own["u"].shape
    steps, width = step.shapes[1]
    row = nodes.add("Unsqueeze", x, np.array([1]))
    seen = nodes.add("Concat", memory, row, axis=1)
    normed = _norm(nodes, seen, own, step.settings["epsilon"])
    inner = nodes.add("MatMul", normed, own["qkv"])
    queries, keys, contents = (
        nodes.reshape(part, steps + 1, heads, size) for part in nodes.split(inner, 3)
    )
    query = nodes.slice(queries, steps, steps + 1, axis=1)
    places = (positions(steps + 1, width) @ own["pos"]).reshape(steps + 1, heads, size)
    # [B, M + 1, h, d], added up over d
    of_keys = nodes.add("Mul", nodes.add("Add", query, own["u"]), keys)
    of_places = nodes.add("Mul", nodes.add("Add", query, own["v"]), places)
    both = nodes.add("Add", of_keys, of_places)
    score = nodes.add("ReduceSum", both, np.array([-1]), keepdims=1)
    score = nodes.add("Mul", score, np.array(1 / np.sqrt(size)))
    weighted = nodes.add("Mul", nodes.add("Softmax", score, axis=1), contents)
    out = nodes.add("ReduceSum", weighted, np.array([1]), keepdims=0)
    out = nodes.add("MatMul", nodes.reshape(out, heads * size), own["out"])
    return nodes.add("Relu", out), {"memory": nodes.slice(seen, 1, steps + 1, axis=1)}


def gru_gate(nodes: Nodes, step: Taken) -> str:
    h, x = step.takes
    own = step.own

    def mixed(kind: str, old: str) -> Any:
        theirs = nodes.add("MatMul", x, own[f"w_{kind}"])
        return nodes.add("Add", theirs, nodes.add("MatMul", old, own[f"u_{kind}"]))

    r = nodes.add("Sigmoid", mixed("r", h))
    z = nodes.add("Sigmoid", nodes.add("Sub", mixed("z", h), own["bias_z"]))
    new = nodes.add("Tanh", mixed("h", nodes.add("Mul", h, r)))
    rest = nodes.add("Sub", np.array(1.0), z)
    return str(nodes.add("Add", nodes.add("Mul", rest, h), nodes.add("Mul", z, new)))


#: The operations by name.
OPS: dict[str, Callable[[Nodes, Taken], Made]] = {name: globals()[name] for name in in_numpy.OPS}
