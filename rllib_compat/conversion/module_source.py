"""Writes the source of an RLModule for a custom model that is a plain chain of layers.

The old model is code, and is not run. Its arrays show the layers; the activation is taken from a
recording of the old Ray if there is one, and is to be filled in otherwise. The module's arrays have
the old names, so that `--model` finds them.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping

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

#: The class that is written.
CLASS = "MyModule"

#: What is tried against a recording, and the torch functions that are written.
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
    """A module's source, and what is known of it.

    Attributes:
        source: The Python source.
        policy_id: The policy whose layers it has.
        chain: The layers.
        activation: What a recording says; None: nothing does, and the source says so.
    """

    source: str
    policy_id: str
    chain: Chain
    activation: str | None


def make_module_source(
    checkpoint: LegacyCheckpoint, given: Given, recorded: Mapping[str, Array] | None = None
) -> ModuleSource:
    """Makes the source of a module for the custom model of a checkpoint's first policy.

    Args:
        checkpoint: What a layout has read.
        given: What the caller knows besides; `policies` says which policy.
        recorded: What the old Ray computed; it shows the activation.

    Raises:
        MissingInformationError: The spaces have to be given.
        NotYetError: The model is no custom one, or no plain chain.
        CheckpointError: No activation gives what was recorded.
    """
    checkpoint = complete(checkpoint, given)
    require_algorithm(checkpoint)
    policy = next(
        (p for p in checkpoint.policies.values() if _is_custom(checkpoint, p)),
        None,
    )
    if policy is None:
        raise NotYetError(
            "No policy has a custom model.",
            where=str(checkpoint.source.path),
            fix="Leave out --write-model: RLlib's own networks need no module of yours.",
        )
    chain = chain_of(policy)
    activation = _activation(chain, recordings.arrays_of(recorded, policy)) if recorded else None
    return ModuleSource(source_of(chain, activation, policy), policy.policy_id, chain, activation)


def _is_custom(checkpoint: LegacyCheckpoint, policy: PolicyState) -> bool:
    return custom.is_custom(policy, ModelSettings.of(checkpoint, policy))


def chain_of(policy: PolicyState) -> Chain:
    """The chain of layers of a policy's custom model.

    Raises:
        MissingInformationError: The spaces have to be given.
        NotYetError: It is no plain chain.
    """
    where = f"policies.{policy.policy_id}.weights"
    outputs = distribution_inputs(policy.action_space) if policy.action_space else None
    if policy.observation_space is None or outputs is None:
        raise MissingInformationError(
            "The policy's spaces are not known.",
            where=where,
            fix="Give --observation-space and --action-space.",
        )
    if not isinstance(policy.weights, dict):
        raise NotYetError(
            "The weights have no names.",
            where=where,
            fix="Write the RLModule yourself, and give it with --model: its arrays are matched by "
            "their shapes. `inspect --arrays` lists them.",
        )
    chain, why = guess(plain_names(policy)[0], custom.inputs_of(policy), outputs)
    if chain is None:
        raise NotYetError(
            f"The custom model is not a plain chain of dense or convolution layers: {why}.",
            where=where,
            fix="Write the RLModule yourself; `inspect --arrays` lists its arrays.",
        )
    return chain


def _activation(chain: Chain, arrays: Mapping[str, Array]) -> str:
    """The activation with which a chain computes what was recorded."""
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
        "No activation gives what was recorded: " + (said or "the recording lacks what it takes"),
        where="--recorded",
        fix="Leave out --recorded, and edit what is written.",
    )


def source_of(chain: Chain, activation: str | None, policy: PolicyState) -> str:
    """The module's source.

    Raises:
        NotYetError: An array's name can't be that of a torch module.
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
            raise NotYetError(f"{name!r} can't be the name of a layer in Python.")
    setup = [f"        self.{name} = {_expression(part)}" for name, part in tree.items()]
    space = policy.observation_space
    known = (
        f"# The recording says {activation}."
        if activation
        else "# No array shows it: put in what your model had, and prove it with --recorded."
    )
    lines = [
        f'"""The custom model of policy {policy.policy_id}, as an RLModule.',
        "",
        f"Written by rllib-compat from the arrays of a checkpoint: {chain}.",
        f"It takes observations {space} as RLlib preprocessed them.",
        "",
        f"    rllib-compat convert OLD NEW --model {{this file without .py}}:{CLASS}",
        '"""',
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


def _expression(part: object) -> str:
    """A layer, or a dict of layers, as an expression."""
    if isinstance(part, dict):
        inner = ", ".join(f'"{name}": {_expression(below)}' for name, below in part.items())
        return f"nn.ModuleDict({{{inner}}})"
    assert isinstance(part, Layer)
    bias = "" if part.bias is not None else ", bias=False"
    if part.is_conv:
        rows, columns = part.kernel.shape[:2]
        return (
            f"nn.Conv2d({part.takes}, {part.gives}, ({rows}, {columns}), "
            f"stride={part.stride}{bias})"
        )
    return f"nn.Linear({part.takes}, {part.gives}{bias})"


def _function(name: str, chain: Chain, layers: tuple[Layer, ...]) -> list[str]:
    """A method that computes a chain."""
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
        first, *rest = layer.name.split(".")
        call = f"self.{first}" + "".join(f'["{part}"]' for part in rest) + "(x)"
        if layer is layers[-1]:
            lines.append(f"        return {call}")
        else:
            lines.append(f"        x = activation({call})")
    return [*lines, ""]
