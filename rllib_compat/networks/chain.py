"""What a custom model may be: plain chains of dense or convolution layers, guessed from arrays.

Arrays show the layers and, if the sizes leave one order, how they are connected. They do not show
activations, nor the strides of convolutions. So this is a guess, to be shown and edited.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.neutral.frozen import frozen

#: Strides that are tried, the usual ones for large images first.
_STRIDES = (4, 2, 1, 3)

#: How many ways to stride convolutions are tried at most.
_MOST = 4096

#: How a value function's last layer is mostly called.
_VALUE_NAMES = ("v", "value", "vf", "critic", "baseline")


@frozen
class Layer:
    """One layer.

    Attributes:
        name: Its arrays' common name, with dots: `enc.0`.
        kernel: `[in, out]`, or `[h, w, in, out]` of a convolution.
        bias: `[out]`, or None.
        stride: Of a convolution, in both directions.
    """

    name: str
    kernel: Array
    bias: Array | None
    stride: int = 1

    @property
    def is_conv(self) -> bool:
        """Whether it is a convolution."""
        return self.kernel.ndim == 4

    @property
    def takes(self) -> int:
        """How many numbers or channels it takes."""
        return int(self.kernel.shape[-2])

    @property
    def gives(self) -> int:
        """How many numbers or channels it gives."""
        return int(self.kernel.shape[-1])


@frozen
class Chain:
    """Layers one after the other, for actions and for the value function.

    Attributes:
        inputs: The shape of an observation.
        policy: From the observation to the inputs of the action distribution.
        value: From the observation to the value, if there is one; it may begin as `policy` does.
        torch: Whether images are flattened in torch's order, channels first.
    """

    inputs: tuple[int, ...]
    policy: tuple[Layer, ...]
    value: tuple[Layer, ...]
    torch: bool

    @property
    def shared(self) -> int:
        """How many layers both begin with."""
        pairs = zip(self.policy, self.value, strict=False)
        return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] is pair[1], pairs))

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All layers, each once."""
        return (*self.policy, *self.value[self.shared :])

    def __str__(self) -> str:
        """One line for tables: `4-20-2, value from the same 20`."""

        def sizes(layers: Sequence[Layer]) -> str:
            return "-".join(_size(layer) for layer in layers)

        text = f"{'x'.join(map(str, self.inputs))}-{sizes(self.policy)}"
        if self.value and self.shared:
            text += (
                f", value {sizes(self.value[self.shared :])} on {self.shared} of the same layers"
            )
        elif self.value:
            text += f", value {'x'.join(map(str, self.inputs))}-{sizes(self.value)}"
        return text

    def graph(self, activation: str) -> tuple[Graph, dict[str, Array]]:
        """The network with an activation behind every layer but the last ones."""
        build, arrays = Builder(), dict[str, Array]()
        ends = {"action_dist_inputs": self._add(build, arrays, self.policy, activation)}
        if self.value:
            end = self._add(build, arrays, self.value, activation)
            ends["vf_preds"] = build.add("scalar", "vf_preds", end)
        return Graph({"obs": self.inputs}, tuple(build.steps), ends), arrays

    def _add(
        self, build: Builder, arrays: dict[str, Array], layers: Sequence[Layer], activation: str
    ) -> str:
        takes, image = "obs", len(self.inputs) == 3
        for layer in layers:
            name = layer.name
            if image and not layer.is_conv:
                flattened, takes, image = takes, f"{takes}.flat", False
                if takes not in {step.name for step in build.steps}:
                    build.add("flatten", takes, flattened, channels_first=self.torch)
            settings: dict[str, Any] = {} if layer is layers[-1] else {"activation": activation}
            if layer.is_conv:
                settings |= {"stride": [layer.stride] * 2, "padding": [[0, 0], [0, 0]]}
            if name not in {step.name for step in build.steps}:
                build.add("conv" if layer.is_conv else "dense", name, takes, **settings)
                arrays[f"{name}.kernel"] = layer.kernel
                if layer.bias is not None:
                    arrays[f"{name}.bias"] = layer.bias
            takes = name
        return takes


def _size(layer: Layer) -> str:
    if not layer.is_conv:
        return str(layer.gives)
    rows, columns = layer.kernel.shape[:2]
    return f"conv {layer.gives} {rows}x{columns}/{layer.stride}"


def guess(
    arrays: Mapping[str, Array], inputs: tuple[int, ...], outputs: int
) -> tuple[Chain | None, str]:
    """Guesses the chains of a model.

    Args:
        arrays: All arrays of the model by name, torch's or TensorFlow's.
        inputs: The shape of the preprocessed observation.
        outputs: How many numbers the action distribution takes.

    Returns:
        The chain, or None and what speaks against one.
    """
    layers, odd = _layers(arrays)
    if odd:
        return None, f"arrays that are of no dense or convolution layer: {', '.join(odd[:5])}"
    for policy, value in _splits(layers, outputs):
        strided = _strided(policy, inputs)
        if strided is None:
            continue
        renewed = {id(old): new for old, new in zip(policy, strided, strict=True)}
        of_value = tuple(renewed.get(id(layer), layer) for layer in value)
        if not value or (of_value := _strided(of_value, inputs) or ()):
            return Chain(inputs, strided, of_value, not any("/" in name for name in arrays)), ""
    shapes = ", ".join(f"{layer.name} {layer.kernel.shape}" for layer in layers[:8])
    return None, f"no chain from {inputs} to {outputs} numbers takes all of {shapes}"


def _layers(arrays: Mapping[str, Array]) -> tuple[list[Layer], list[str]]:
    """The layers in the order in which they are stored, and the names that are of none."""
    kernels, biases = dict[str, Array](), dict[str, Array]()
    for name, array in arrays.items():
        tensorflow = "/" in name
        layer, _, part = name.replace("/", ".").rpartition(".")
        if part in ("kernel", "weight") and array.ndim in (2, 4) and layer:
            turned = array.T if array.ndim == 2 else np.transpose(array, (2, 3, 1, 0))
            kernels[layer] = array if tensorflow else turned
        elif part == "bias" and array.ndim == 1 and layer:
            biases[layer] = array
    found = [Layer(name, kernel, biases.get(name)) for name, kernel in kernels.items()]
    taken = {one.name for one in found if one.bias is None or len(one.bias) == one.gives}
    odd = [name for name in arrays if name.replace("/", ".").rpartition(".")[0] not in taken]
    return found, odd


_Split = tuple[tuple[Layer, ...], tuple[Layer, ...]]


def _splits(layers: list[Layer], outputs: int) -> Iterator[_Split]:
    """Ways to make two chains of all layers, the likeliest first."""
    heads = [layer for layer in layers if layer.gives == outputs and not layer.is_conv]
    values = [layer for layer in layers if layer.gives == 1 and not layer.is_conv]
    values.sort(key=lambda layer: not any(n in layer.name.lower() for n in _VALUE_NAMES))
    for head in reversed(heads):
        for value in values:
            if value is head:
                continue
            rest = [layer for layer in layers if layer is not head and layer is not value]
            for cut in range(len(rest), -1, -1):
                first, then = tuple(rest[:cut]), tuple(rest[cut:])
                if not then:
                    yield (*first, head), (*first, value)
                    if not first:
                        continue
                for own in range(cut):  # a common beginning, then a part for each
                    common = first[:own]
                    yield (*first, head), (*common, *then, value)
                    yield (*common, *then, head), (*first, value)
        if not values or values == [head]:
            yield (*(layer for layer in layers if layer is not head), head), ()


def _strided(layers: Sequence[Layer], inputs: tuple[int, ...]) -> tuple[Layer, ...] | None:
    """The layers with strides with which each takes what the one before gives; None: none fit."""
    convs = list(itertools.takewhile(lambda layer: layer.is_conv, layers))
    dense = layers[len(convs) :]
    if any(layer.is_conv for layer in dense) or not dense:
        return None
    if any(a.gives != b.takes for a, b in itertools.pairwise(dense)):
        return None
    if not convs:
        return tuple(layers) if math.prod(inputs) == dense[0].takes else None
    if len(inputs) != 3 or convs[0].takes != inputs[2]:
        return None
    if any(a.gives != b.takes for a, b in itertools.pairwise(convs)):
        return None
    ways = itertools.product(_STRIDES, repeat=len(convs))
    for strides in itertools.islice(ways, _MOST):
        rows, columns = inputs[:2]
        for layer, stride in zip(convs, strides, strict=True):
            rows = (rows - layer.kernel.shape[0]) // stride + 1
            columns = (columns - layer.kernel.shape[1]) // stride + 1
        fitting = min(rows, columns) > 0 and rows * columns * convs[-1].gives == dense[0].takes
        if fitting and list(strides) == sorted(strides, reverse=True):
            made = zip(convs, strides, strict=True)
            return (*(Layer(c.name, c.kernel, c.bias, stride) for c, stride in made), *dense)
    return None
