"""Writes the source of an RLModule for a custom model that is a simple sequence of layers.

The old model is code, which is not executed. Its arrays show the layers. The activation is found
with a recording of the old Ray; without one, the user has to fill it in. The module's arrays have
the old names, so that `--model` finds them. These names are not trusted: each is written as a
constant or a checked identifier of a syntax tree.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping

from rllib_compat.config.code import format_line
from rllib_compat.conversion import recordings
from rllib_compat.conversion.compare import compare, float32_errors
from rllib_compat.conversion.complete import complete
from rllib_compat.conversion.given import Given
from rllib_compat.conversion.identify import require_algorithm
from rllib_compat.networks import ModelSettings, custom
from rllib_compat.networks.chain import Chain, Layer, guess
from rllib_compat.networks.graph import Array
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
