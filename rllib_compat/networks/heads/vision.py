"""Reads the vision networks of actor-critic algorithms: convolutions, and heads on 1×1 images.

The convolutions are the trunk's (`networks.trunk_vision`). Behind them the frameworks differed
(`models/tf/visionnet*.py`, `models/torch/visionnet.py`, 0.5 – 2.x):

* TensorFlow makes the outputs, or with `post_fcnet_hiddens` the first hidden layer, with a 1×1
  convolution `conv_out`; with `no_final_linear`, `conv_out` is the last convolution itself.
* torch makes them with a dense layer until 0.8.6, with a 1×1 convolution later, and with a dense
  layer again behind `post_fcnet_hiddens`, the last of which then has no activation.
* The value function sits on the last hidden layer, or has convolutions of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.version import Version

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads import encoder_rl_module, fully_connected
from rllib_compat.networks.heads.fcnet import ACTOR_CRITIC_MODULE
from rllib_compat.networks.mapping import Table, keras, to_canonical, torch_layer
from rllib_compat.networks.names.plain import keep_kl_coefficient, plain_names
from rllib_compat.networks.names.unnamed_vision import name_vision
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.vision import NO_PADDING, TABLES, add_convolutions, is_torch
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.report import Finding, Severity, Verdict

KIND = "vision"

SCHEMES: Mapping[str, Table] = {
    "keras": (
        *TABLES["keras"],
        *keras("conv_value_out", "value"),
        *keras("value_out", "value"),
    ),
    "torch": (
        *TABLES["torch"],
        *torch_layer("_logits._model.0", "logits"),
        *torch_layer("_logits._model.1", "logits"),
        *torch_layer("_value_branch._model.0", "value"),
    ),
}

#: Ray 0.8.7 put a relu behind the own value function of torch's vision network, since
#: `SlimConv2d` has one by default (`models/torch/visionnet.py`).
_RELU_VALUES = Version("0.8.7")


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the network of a policy.

    Returns:
        The network with its arrays, and what was noticed on the way.

    Raises:
        NotYetError: The network is not one that can be converted; it is named.
        MissingInformationError: The observation or action space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    if isinstance(policy.weights, dict) and encoder_rl_module.is_meant(policy.weights):
        return encoder_rl_module.read(policy, settings)
    scheme = "torch" if is_torch(policy) else "keras"
    arrays, scalars = _arrays(policy, settings, scheme)
    keep_kl_coefficient(policy, scalars)
    heads = Heads(arrays, policy, settings)
    (heads.add_torch if scheme == "torch" else heads.add_keras)()
    graph = heads.graph()
    network = Network(
        kind=KIND,
        summary=heads.describe(),
        scheme=scheme,
        graph=graph,
        arrays=arrays,
        target=own_module(ACTOR_CRITIC_MODULE, graph, arrays),
        names=SCHEMES[scheme],
    )
    return network, heads.findings()


def read_vector(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the flat vector of a policy with images.

    Ray 0.7.5 and 0.7.6 gave images a fully connected network, since they counted the axes wrong
    (`models/catalog.py`, `_get_v2_model`); a vector does not tell its Ray, so its size has to.
    """
    try:
        return read(policy, settings)
    except CheckpointError as error:
        try:
            return fully_connected.read(policy, settings)
        except CheckpointError:
            raise error from None


def _arrays(
    policy: PolicyState, settings: ModelSettings, scheme: str
) -> tuple[dict[str, Array], dict[str, float]]:
    """The canonical arrays, and the scalars found between them."""
    if not isinstance(policy.weights, dict):
        return name_vision(policy, settings)
    plain, scalars = plain_names(policy)
    arrays, left = to_canonical(SCHEMES[scheme], plain)
    if left:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(plain)} arrays belong to no vision network, "
            f"for example {left[0]!r}.",
            where=f"policies.{policy.policy_id}.weights",
            fix="`--to msgpack` keeps all weights by name.",
        )
    return arrays, scalars


@dataclass
class Heads:
    """Builds the graph of a vision network with its heads.

    Attributes:
        arrays: The canonical arrays.
        policy: Whose network it is.
        settings: What the config says of it.
        build: Collects the steps.
        logits: The value of the action distribution's inputs.
        hidden: The value that a shared value function takes.
    """

    arrays: Mapping[str, Array]
    policy: PolicyState
    settings: ModelSettings
    build: Builder = field(default_factory=Builder)
    logits: str = ""
    hidden: str = ""

    def add_keras(self) -> None:
        """Adds the policy as TensorFlow has it (`models/tf/visionnet*.py`)."""
        image, self.hidden = self._convolutions("")
        post = [f"post.{i}" for i in self._numbers("post")]
        made_by_last = any(step.name == "conv_out" for step in self.build.steps)
        if made_by_last:
            self.logits = self.hidden
        else:
            self.logits = self._head("conv_out", image, self._post if post else None)
        for name in post:
            # The outputs are activated where the last convolution would have made them.
            linear = name == post[-1] and not made_by_last
            self.hidden = self.logits
            self.logits = self._dense(name, self.hidden, None if linear else self._post)

    def add_torch(self) -> None:
        """Adds the policy as torch has it (`models/torch/visionnet.py`)."""
        image, self.hidden = self._convolutions("")
        dense = [f"conv.{i}" for i in self._numbers("conv")]
        dense = [name for name in dense if self.arrays[f"{name}.kernel"].ndim == 2]
        for name in dense:
            # The activation stops one layer early: the last hidden layer has none.
            last = name == dense[-1]
            self.hidden = self._dense(name, self.hidden, None if last else self._post)
        self.logits = self.hidden
        if "logits.kernel" in self.arrays:
            taken = image if self.arrays["logits.kernel"].ndim == 4 else self.hidden
            self.logits = self._head("logits", taken, None)

    def graph(self) -> Graph:
        """Adds what is left, and makes the graph."""
        if "log_std.value" in self.arrays:
            self.logits = self.build.add("free_log_std", "log_std", self.logits)
        value = self._head("value", self.hidden, None) if self.shares_layers else self._value()
        outputs = {
            "action_dist_inputs": self.logits,
            "vf_preds": self.build.add("scalar", "vf_preds", value),
        }
        image = require_image(self.policy, self.settings)
        return Graph({"obs": image}, tuple(self.build.steps), outputs)

    @property
    def shares_layers(self) -> bool:
        """Whether the value function sits on the policy's layers."""
        return not any(name.startswith("value_conv.") for name in self.arrays)

    @property
    def _post(self) -> str | None:
        activation = self.settings.model.get("post_fcnet_activation", "relu")
        return None if activation is None else str(activation)

    def _value(self) -> str:
        """The value function with convolutions of its own."""
        image, _ = self._convolutions("value_")
        if "value.kernel" in self.arrays:
            return self._head("value", image, None)
        relu = self.settings.ray is not None and Version(self.settings.ray) == _RELU_VALUES
        last = self._numbers("value_conv")[-1]
        return self._head(f"value_conv.{last}", image, "relu" if relu else None)

    def _convolutions(self, prefix: str) -> tuple[str, str]:
        """Adds convolutions; gives their last image, of one pixel, and the same as a vector."""
        image, size = add_convolutions(self.build, self.arrays, self.policy, self.settings, prefix)
        if size != (1, 1):
            raise CheckpointError(
                f"The convolutions leave an image of {size}, where the policy needs (1, 1).",
                where="model.conv_filters",
                fix="Give the right config with --config, or the right --observation-space.",
            )
        return image, self.build.add("flatten", f"{prefix}features", image)

    def _numbers(self, stack: str) -> list[int]:
        """The numbers of the layers `<stack>.{i}`."""
        parts = (name.split(".") for name in self.arrays if name.endswith(".kernel"))
        return sorted(int(part[1]) for part in parts if part[0] == stack)

    def _dense(self, name: str, takes: str, activation: str | None) -> str:
        return self.build.add("dense", name, takes, activation=activation)

    def _head(self, name: str, takes: str, activation: str | None) -> str:
        """Adds a dense layer, or a 1×1 convolution, and gives its value as a vector."""
        if self.arrays[f"{name}.kernel"].ndim == 2:
            return self._dense(name, takes, activation)
        image = self.build.add(
            "conv", name, takes, activation=activation, stride=[1, 1], padding=NO_PADDING
        )
        return self.build.add("flatten", f"{name}.flat", image)

    def _outputs(self) -> int:
        """How many numbers the action distribution gets."""
        if "log_std.value" in self.arrays:
            return 2 * len(self.arrays["log_std.value"])
        steps = {step.name: step for step in self.build.steps}
        step = steps[self.logits]
        while f"{step.name}.bias" not in self.arrays:
            step = steps[step.takes[0]]
        return len(self.arrays[f"{step.name}.bias"])

    def describe(self) -> str:
        """One line for tables: `conv 84x84x4 16-32-256 relu, 6 outputs, shared value layers`."""
        image = "x".join(map(str, require_image(self.policy, self.settings)))
        channels = [
            str(len(self.arrays[f"{step.name}.bias"]))
            for step in self.build.steps
            if step.op == "conv" and step.name.startswith(("conv.", "conv_out"))
        ]
        activation = self.settings.model.get("conv_activation", "relu")
        value = "shared value layers" if self.shares_layers else "own value network"
        sizes = "-".join(channels)
        return f"conv {image} {sizes} {activation}, {self._outputs()} outputs, {value}"

    def findings(self) -> list[Finding]:
        """Holds the network against the config and the spaces.

        Raises:
            CheckpointError: The number of outputs is not that of the action space.
        """
        where = f"policies.{self.policy.policy_id}.weights"
        space = self.policy.action_space
        wanted = distribution_inputs(space) if space is not None else None
        if wanted is not None and wanted != self._outputs():
            raise CheckpointError(
                f"The network has {self._outputs()} outputs, the action space {space} needs "
                f"{wanted}.",
                where=where,
                fix="Give the right one with --action-space.",
            )
        found = []
        if self.settings.shares_layers != self.shares_layers:
            found.append(
                Finding(
                    "network",
                    Severity.INFO,
                    Verdict.NOTE,
                    where,
                    f"the config says vf_share_layers={self.settings.shares_layers}, the weights "
                    f"were made with {self.shares_layers} (some Rays ignored the key); the "
                    "weights are followed",
                )
            )
        return found
