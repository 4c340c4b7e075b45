"""Writes the source of an RLModule for a custom model that is a simple sequence of layers.

The old model is code, which is not executed. Its arrays show the layers and, if the sizes leave one
order, how they are connected. They show neither activations nor the strides of convolutions, so
this is a guess, to be shown and edited. The activation is found with a recording of the old Ray;
without one, the user has to fill it in. The module's arrays have the old names, so that `--model`
finds them. These names are not trusted: each is written as a constant or a checked identifier of a
syntax tree.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rllib_compat.config.code import format_line
from rllib_compat.conversion import recordings
from rllib_compat.conversion.compare import compare, float32_errors
from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import require_algorithm
from rllib_compat.networks import ModelSettings, custom
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.named import plain_names
from rllib_compat.networks.network import Network, Target
from rllib_compat.networks.settings import distribution_inputs
from rllib_compat.neutral.checkpoint import LegacyCheckpoint, PolicyState
from rllib_compat.neutral.errors import CheckpointError, MissingInformationError, NotYetError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.text import printable

#: The name of the written class.
CLASS = "MyModule"

#: The activations to try with a recording → the torch functions in the source.
ACTIVATIONS = {
    "relu": "torch.relu",
    "tanh": "torch.tanh",
    "elu": "nn.functional.elu",
    "swish": "nn.functional.silu",
    "linear": "nn.Identity()",
    "sigmoid": "torch.sigmoid",
    "selu": "nn.functional.selu",
    "softplus": "nn.functional.softplus",
}


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

    Returns:
        The chain, or None and what speaks against one.
    """
    layers, odd = _layers_in(arrays)
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


def _layers_in(arrays: Mapping[str, Array]) -> tuple[list[Layer], list[str]]:
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


@frozen
class ModuleSource:
    """The source of a module, and facts about it.

    Attributes:
        source: The Python source.
        policy_id: The policy whose layers it has.
        chain: The layers.
        activation: The activation, if a recording shows it.
    """

    source: str
    policy_id: str
    chain: Chain
    activation: str | None


def make_module_source(
    checkpoint: LegacyCheckpoint, given: Given, recorded: Mapping[str, Array] | None = None
) -> ModuleSource:
    """Creates the source of a module for the custom model of a checkpoint's first policy.

    The old Ray's recording shows the activation.

    Raises:
        MissingInformationError: The spaces are not known.
        NotYetError: The model is not a custom one, or not a simple sequence of layers.
        CheckpointError: No known activation reproduces the recording.
    """
    checkpoint = complete(checkpoint, given)
    require_algorithm(checkpoint)
    policy = next((p for p in checkpoint.policies.values() if _is_custom(checkpoint, p)), None)
    if policy is None:
        raise NotYetError(
            "No policy has a custom model.",
            where=str(checkpoint.source.path),
            fix="Omit --write-model: only custom models need your own module.",
        )
    chain = chain_of(policy)
    activation = _activation(chain, recordings.arrays_of(recorded, policy)) if recorded else None
    return ModuleSource(source_of(chain, activation, policy), policy.policy_id, chain, activation)


def _is_custom(checkpoint: LegacyCheckpoint, policy: PolicyState) -> bool:
    return custom.is_custom(policy, ModelSettings.of(checkpoint, policy))


def chain_of(policy: PolicyState) -> Chain:
    """Returns the sequence of layers of a policy's custom model.

    Raises:
        MissingInformationError: The spaces are not known.
        NotYetError: It is not a simple sequence of layers.
    """
    where = f"policies.{policy.policy_id}.weights"
    outputs = distribution_inputs(policy.action_space) if policy.action_space else None
    if policy.observation_space is None or outputs is None:
        raise MissingInformationError(
            "The policy's spaces are not known.",
            where=where,
            fix="Pass --observation-space and --action-space.",
        )
    if not isinstance(policy.weights, dict):
        raise NotYetError(
            "The weights have no names, so no module can be written for them.",
            where=where,
            fix="Write the RLModule yourself, and pass it with --model: its arrays are matched by "
            "their shapes. `rllib-compat inspect OLD --arrays` lists them.",
        )
    chain, why = guess(plain_names(policy)[0], custom.inputs_of(policy), outputs)
    if chain is None:
        raise NotYetError(
            f"The custom model is not a simple sequence of dense or convolution layers: {why}.",
            where=where,
            fix="Write the RLModule yourself; `rllib-compat inspect OLD --arrays` lists its "
            "arrays.",
        )
    return chain


def _activation(chain: Chain, arrays: Mapping[str, Array]) -> str:
    """Returns the activation with which a chain reproduces a recording."""
    best: dict[str, float] = {}
    for name in ACTIVATIONS:
        graph, own = chain.graph(name)
        network = Network(
            kind="chain",
            summary="",
            scheme="",
            arrays=own,
            target=Target(None, {}),
            names=(),
            graph=graph,
        )
        kept = recordings.find_recording(arrays, network)
        if kept is None:
            break
        made = network.forward(kept.inputs)
        errors = float32_errors(network, kept.inputs, made)
        rows = compare("p", kept.outputs, made, errors, kind="recorded")
        if all(row.ok for row in rows):
            return name
        best[name] = max(row.absolute for row in rows)
    said = ", ".join(f"{name} is off by {off:.2g}" for name, off in best.items())
    raise CheckpointError(
        "No known activation reproduces the recording: "
        + (said or "the recording lacks inputs or outputs"),
        where="--recorded",
        fix="Omit --recorded, and edit the activation in the written file.",
    )


def source_of(chain: Chain, activation: str | None, policy: PolicyState) -> str:
    """Returns the module's source.

    Raises:
        NotYetError: An array's name is not valid in a torch module.
    """
    layers = {layer.name: layer for layer in chain.layers}
    tree: dict[str, object] = {}
    for name, layer in layers.items():
        *parents, last = name.split(".")
        node = tree
        for part in parents:
            node = node.setdefault(part, {})  # type: ignore[assignment]
        node[last] = layer
    for name in tree:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise NotYetError(
                f"{name!r} can't be the name of a layer in Python.",
                fix="Write the RLModule yourself, and pass it with --model.",
            )
    setup = [f"        self.{name} = {format_line(_layers(part))}" for name, part in tree.items()]
    about = f"""The custom model of policy {policy.policy_id}, as an RLModule.

Written by rllib-compat from the arrays of a checkpoint: {chain}.
It takes observations {printable(str(policy.observation_space))} as RLlib preprocessed them.

    rllib-compat convert OLD NEW --model {{this file without .py}}:{CLASS}
"""
    known = (
        f"# The recording says {activation}."
        if activation
        else "# The weights do not show it: put in your model's, and prove it with --recorded."
    )
    lines = [
        ast.unparse(ast.Module([ast.Expr(ast.Constant(about))], [])),
        "",
        "import torch",
        "from ray.rllib.core.columns import Columns",
        "from ray.rllib.core.rl_module.apis import ValueFunctionAPI",
        "from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule",
        "from torch import nn",
        "",
        known,
        f"activation = {ACTIVATIONS[activation or 'relu']}",
        "",
        "",
        f"class {CLASS}(TorchRLModule{', ValueFunctionAPI' if chain.value else ''}):",
        "    def setup(self):",
        *setup,
        "",
    ]
    lines += _function("_logits_of", chain, chain.policy)
    if chain.value:
        lines += _function("_value_of", chain, chain.value)
    lines += [
        "    def _forward(self, batch, **kwargs):",
        "        return {Columns.ACTION_DIST_INPUTS: self._logits_of(batch[Columns.OBS])}",
    ]
    if chain.value:
        lines += [
            "",
            "    def compute_values(self, batch, embeddings=None):",
            "        return self._value_of(batch[Columns.OBS]).squeeze(-1)",
        ]
    return "\n".join(lines) + "\n"


def _layers(part: object) -> ast.expr:
    if isinstance(part, dict):
        names: list[ast.expr | None] = [ast.Constant(name) for name in part]
        return _of_nn("ModuleDict", ast.Dict(names, [_layers(below) for below in part.values()]))
    assert isinstance(part, Layer)
    sizes = [ast.Constant(part.takes), ast.Constant(part.gives)]
    more = {} if part.bias is not None else {"bias": ast.Constant(value=False)}
    if not part.is_conv:
        return _of_nn("Linear", *sizes, **more)
    kernel = ast.Tuple([ast.Constant(size) for size in part.kernel.shape[:2]], ast.Load())
    return _of_nn("Conv2d", *sizes, kernel, stride=ast.Constant(part.stride), **more)


def _of_nn(cls: str, *args: ast.expr, **kwargs: ast.expr) -> ast.expr:
    named = [ast.keyword(name, value) for name, value in kwargs.items()]
    return ast.Call(ast.Attribute(ast.Name("nn"), cls, ast.Load()), list(args), named)


def _called(layer: Layer) -> ast.expr:
    """Returns `self.name(x)` of a layer, or `self.name["part"](x)`."""
    first, *rest = layer.name.split(".")
    found: ast.expr = ast.Attribute(ast.Name("self"), first, ast.Load())
    for part in rest:
        found = ast.Subscript(found, ast.Constant(part), ast.Load())
    return ast.Call(found, [ast.Name("x")], [])


def _function(name: str, chain: Chain, layers: tuple[Layer, ...]) -> list[str]:
    lines = [f"    def {name}(self, obs):"]
    image = layers[0].is_conv
    if image:
        lines.append("        x = obs.float().permute(0, 3, 1, 2)  # strides: guessed by sizes")
    else:
        lines.append("        x = torch.flatten(obs.float(), 1)")
    for layer in layers:
        if image and not layer.is_conv:
            order = "" if chain.torch else ".permute(0, 2, 3, 1)"
            lines.append(f"        x = torch.flatten(x{order}, 1)")
            image = False
        call = format_line(_called(layer))
        if layer is layers[-1]:
            lines.append(f"        return {call}")
        else:
            lines.append(f"        x = activation({call})")
    return [*lines, ""]
