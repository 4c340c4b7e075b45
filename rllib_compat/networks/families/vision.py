"""Reads the vision networks of actor-critic algorithms: convolutions, and heads on 1×1 images.

The convolutions are the trunk's (`networks.trunks.vision`). Behind them the frameworks differed
(`models/tf/visionnet*.py`, `models/torch/visionnet.py`, 0.5 – 2.x):

* TensorFlow makes the outputs, or with `post_fcnet_hiddens` the first hidden layer, with a 1×1
  convolution `conv_out`; with `no_final_linear`, `conv_out` is the last convolution itself.
* torch makes them with a dense layer until 0.8.6, with a 1×1 convolution later, and with a dense
  layer again behind `post_fcnet_hiddens`, the last of which then has no activation.
* The value function sits on the last hidden layer, or has convolutions of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from packaging.version import Version

from rllib_compat.networks import refusals
from rllib_compat.networks.families.dense import (
    VISION_SCHEMES,
    actor_critic,
    own_actor_critic,
    with_log_std,
)
from rllib_compat.networks.graph import Builder, Graph
from rllib_compat.networks.named import Named, plain_names
from rllib_compat.networks.network import Reading
from rllib_compat.networks.observations import require_image
from rllib_compat.networks.settings import ModelSettings, model_setting
from rllib_compat.networks.trunks.dense import add_layers
from rllib_compat.networks.trunks.vision import NO_PADDING, VISION, add_convolutions
from rllib_compat.networks.unnamed import name_vision
from rllib_compat.neutral.checkpoint import PolicyState

#: Ray 0.8.7 put a relu behind the own value function of torch's vision network, since
#: `SlimConv2d` has one by default (`models/torch/visionnet.py`).
_RELU_VALUES = Version("0.8.7")


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the network of a policy."""
    named = name(policy, settings)
    heads = Heads(named)
    heads.add_policy()
    graph = heads.graph()
    named.require_outputs(heads.outputs())
    network = named.network(
        VISION.kind, heads.describe(), graph, own_actor_critic(graph, named.arrays)
    )
    return named.reading(network, *named.ignored(vf_share_layers=heads.shares_layers))


def name(policy: PolicyState, settings: ModelSettings) -> Named:
    """Names the arrays of a vision network, in whatever form they are."""
    if not isinstance(policy.weights, dict):
        arrays, state = name_vision(policy, settings)
        return Named(policy, settings, arrays, "keras", VISION_SCHEMES["keras"], state=state)
    plain, state = plain_names(policy)
    scheme = "torch" if any("_convs." in name for name in plain) else "keras"
    table = VISION_SCHEMES[scheme]
    return Named.take(policy, settings, plain, scheme, table, of="vision network", state=state)


@dataclass
class Heads:
    """Builds the graph of a vision network with its heads.

    Attributes:
        named: The arrays.
        build: Collects the steps.
        logits: The value of the action distribution's inputs.
        hidden: The value that a shared value function takes.
    """

    named: Named
    build: Builder = field(default_factory=Builder)
    logits: str = ""
    hidden: str = ""

    def add_policy(self) -> None:
        """Adds the policy, as its framework has it."""
        if self.named.torch:
            self._add_torch()
        else:
            self._add_keras()

    def _add_keras(self) -> None:
        """As TensorFlow has it (`models/tf/visionnet*.py`)."""
        image, self.hidden = self._convolutions("")
        post = self.named.layers("post")
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

    def _add_torch(self) -> None:
        """As torch has it (`models/torch/visionnet.py`)."""
        image, self.hidden = self._convolutions("")
        dense = [n for n in self.named.layers("conv") if self._ndim(n) == 2]
        # The activation stops one layer early: the last hidden layer has none.
        last = None if "logits" in self.named else self._post
        activations = [self._post] * (len(dense) - 1) + [last]
        self.hidden = add_layers(self.build, self.named.arrays, dense, self.hidden, activations)
        post = self.named.layers("post")  # as TensorFlow had them
        self.hidden = add_layers(self.build, self.named.arrays, post, self.hidden, self._post)
        self.logits = self.hidden
        if "logits" in self.named:
            taken = image if self._ndim("logits") == 4 else self.hidden
            self.logits = self._head("logits", taken, None)

    def graph(self) -> Graph:
        """Adds what is left, and makes the graph."""
        self.logits = with_log_std(self.build, self.named, self.logits)
        value = self._head("value", self.hidden, None) if self.shares_layers else self._value()
        outputs = actor_critic(self.build, self.logits, value)
        image = require_image(self.named.policy, self.named.settings)
        return Graph({"obs": image}, tuple(self.build.steps), outputs)

    @property
    def shares_layers(self) -> bool:
        """Whether the value function sits on the policy's layers."""
        return not self.named.layers("value_conv")

    @property
    def _post(self) -> str | None:
        return self.named.activation("post_fcnet_activation")

    def _value(self) -> str:
        """The value function with convolutions of its own."""
        image, _ = self._convolutions("value_")
        if "value" in self.named:
            return self._head("value", image, None)
        ray = self.named.settings.ray
        relu = ray is not None and Version(ray) == _RELU_VALUES
        return self._head(self.named.layers("value_conv")[-1], image, "relu" if relu else None)

    def _convolutions(self, prefix: str) -> tuple[str, str]:
        """Adds convolutions; gives their last image, of one pixel, and the same as a vector."""
        image, size = add_convolutions(self.build, self.named, prefix)
        if size != (1, 1):
            raise refusals.contradiction(
                f"The convolutions leave an image of {size}, where the policy needs (1, 1).",
                "model.conv_filters",
            )
        return image, self.build.add("flatten", f"{prefix}features", image)

    def _ndim(self, name: str) -> int:
        return int(self.named.arrays[f"{name}.kernel"].ndim)

    def _dense(self, name: str, takes: str, activation: str | None) -> str:
        return self.build.add("dense", name, takes, activation=activation)

    def _head(self, name: str, takes: str, activation: str | None) -> str:
        """Adds a dense layer, or a 1×1 convolution, and gives its value as a vector."""
        self.named.require(f"{name}.kernel")
        if self._ndim(name) == 2:
            return self._dense(name, takes, activation)
        image = self.build.add(
            "conv", name, takes, activation=activation, stride=[1, 1], padding=NO_PADDING
        )
        return self.build.add("flatten", f"{name}.flat", image)

    def outputs(self) -> int:
        """How many numbers the action distribution gets."""
        if "log_std.value" in self.named.arrays:
            return 2 * len(self.named.arrays["log_std.value"])
        steps = {step.name: step for step in self.build.steps}
        step = steps[self.logits]
        while step.name not in self.named:
            step = steps[step.takes[0]]
        return self.named.gives(step.name)

    def describe(self) -> str:
        """One line for tables: `conv 84x84x4 16-32-256 relu, 6 outputs, shared value layers`."""
        named = self.named
        image = "x".join(map(str, require_image(named.policy, named.settings)))
        channels = [
            str(named.gives(step.name))
            for step in self.build.steps
            if step.op == "conv" and step.name.startswith(("conv.", "conv_out"))
        ]
        activation = model_setting(named.settings.model, "conv_activation")
        value = "shared value layers" if self.shares_layers else "own value network"
        sizes = "-".join(channels)
        return f"conv {image} {sizes} {activation}, {self.outputs()} outputs, {value}"
