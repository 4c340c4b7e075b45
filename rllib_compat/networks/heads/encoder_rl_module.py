"""Reads the RLModules that Ray made for images, or with hidden layers in their heads.

What they are (`core/models/torch/{encoder,heads,primitives}.py`, 2.5 – 2.60): an encoder, or one
each for actor and critic, of convolutions (all with "same" padding if the filter says nothing else)
or of dense layers; and a head each for actions and values, with hidden layers of its own
(`post_fcnet_hiddens`, later `head_fcnet_hiddens`). Log standard deviations are clipped where the
head has a constant for it.

Canonical arrays: `conv.{i}` or `hidden.{i}`, with the prefix `value_` of the critic's own encoder,
`pi.{i}` and `vf.{i}`, each numbered as torch numbers modules in a sequence, and `log_std.value`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.heads.fcnet import ACTOR_CRITIC_MODULE, BUFFERS
from rllib_compat.networks.mapping import Move, Table, to_canonical, torch_dense, torch_layer
from rllib_compat.networks.network import Network, own_module
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.conv_filters import filters_for, same_padding, size_after
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.vision import NO_PADDING
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, NotYetError
from rllib_compat.neutral.report import Finding
from rllib_compat.neutral.spaces import Box

NAMES: Table = (
    *(
        row
        for theirs, ours in (
            ("encoder.encoder", ""),
            ("encoder.actor_encoder", ""),
            ("encoder.critic_encoder", "value_"),
        )
        for row in (
            *torch_layer(f"{theirs}.net.0.cnn.{{i}}", f"{ours}conv.{{i}}"),
            *torch_dense(f"{theirs}.net.mlp.{{i}}", f"{ours}hidden.{{i}}"),
        )
    ),
    *torch_dense("pi.net.mlp.{i}", "pi.{i}"),
    *torch_dense("vf.net.mlp.{i}", "vf.{i}"),
    Move("pi.log_std", "log_std.value"),
)


def is_meant(names: Mapping[str, Array]) -> bool:
    """Whether arrays with these names are of an RLModule that `fcnet` does not describe."""
    heads = sum(name.startswith("pi.net.mlp.") and name.endswith(".weight") for name in names)
    return heads > 1 or any(".net.0.cnn." in name for name in names)


def read(policy: PolicyState, settings: ModelSettings) -> tuple[Network, list[Finding]]:
    """Reads the module of a policy.

    Returns:
        The network with its arrays, and nothing that was noticed.

    Raises:
        NotYetError: It has parts that are not known (layer norm).
        MissingInformationError: The observation space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    where = f"policies.{policy.policy_id}.weights"
    assert isinstance(policy.weights, dict)
    plain = {name: np.asarray(array) for name, array in policy.weights.items()}
    limits = {name: plain.pop(name) for name in BUFFERS if name in plain}
    arrays, left = to_canonical(NAMES, plain)
    left += [n for n in arrays if n.endswith(".kernel") and arrays[n].ndim not in (2, 4)]
    if left:
        raise NotYetError(
            f"Not yet: {len(left)} of the {len(plain)} arrays belong to no RLModule of "
            f"convolutions and dense layers, for example {left[0]!r}.",
            where=where,
            fix="`--to msgpack` keeps all weights by name.",
        )
    module = _Module(arrays, policy, settings)
    limit = float(limits[BUFFERS[0]].reshape(())) if BUFFERS[0] in limits else None
    graph = module.graph(limit)
    return (
        Network(
            kind="vision" if module.has_images else "fully connected",
            summary=module.describe(graph),
            scheme="rl_module",
            graph=graph,
            arrays=arrays,
            target=own_module(ACTOR_CRITIC_MODULE, graph, arrays),
            names=NAMES,
        ),
        [],
    )


class _Module:
    """Builds the graph of a module.

    Args:
        arrays: The canonical arrays.
        policy: Whose module it is.
        settings: What the config says of it.
    """

    def __init__(
        self, arrays: Mapping[str, Array], policy: PolicyState, settings: ModelSettings
    ) -> None:
        self.arrays, self.policy, self.settings = arrays, policy, settings
        self.build = Builder()
        self.has_images = bool(self._layers("conv"))

    def graph(self, limit: float | None) -> Graph:
        """What it computes, with log standard deviations within ±`limit` if there is one."""
        actor = self._encoder("")
        own = bool(self._layers("value_conv") or self._layers("value_hidden"))
        critic = self._encoder("value_") if own else actor
        logits = self._head("pi", actor)
        outputs = len(self.arrays[f"{logits}.bias"])
        if "log_std.value" in self.arrays:
            outputs += len(self.arrays["log_std.value"])
            logits = self.build.add("free_log_std", "log_std", logits)
        space = self.policy.action_space
        wanted = None if space is None else distribution_inputs(space)
        if wanted is not None and wanted != outputs:
            raise CheckpointError(
                f"The network has {outputs} outputs, the action space {space} needs {wanted}.",
                where=f"policies.{self.policy.policy_id}.weights",
                fix="Give the right one with --action-space.",
            )
        if limit is not None and isinstance(space, Box):
            logits = self.build.add("clip_log_std", "clipped", logits, limit=limit)
        value = self.build.add("scalar", "vf_preds", self._head("vf", critic))
        shape = (
            require_image(self.policy, self.settings)
            if self.has_images
            else (len(self.arrays[f"{self._layers('hidden')[0]}.kernel"]),)
        )
        made = {"action_dist_inputs": logits, "vf_preds": value}
        return Graph({"obs": shape}, tuple(self.build.steps), made)

    def describe(self, graph: Graph) -> str:
        """One line for tables: `RLModule 10x10x3, encoder 16-32, head 12, 3 outputs`."""
        layers = self._layers("conv") or self._layers("hidden")
        heads = [self._width(name) for name in self._layers("pi")]
        head = f", head {'-'.join(map(str, heads[:-1]))}" if len(heads) > 1 else ""
        shape = "x".join(map(str, graph.inputs["obs"]))
        sizes = "-".join(str(self._width(name)) for name in layers)
        return f"RLModule {shape}, encoder {sizes}{head}, {heads[-1]} outputs"

    def _width(self, name: str) -> int:
        return len(self.arrays[f"{name}.bias"])

    def _layers(self, stack: str) -> list[str]:
        """The names of a stack's layers in order."""
        parts = (name.split(".") for name in self.arrays if name.endswith(".kernel"))
        return [f"{stack}.{i}" for i in sorted(int(p[1]) for p in parts if p[0] == stack)]

    def _encoder(self, prefix: str) -> str:
        if not self.has_images:
            layers = self._layers(f"{prefix}hidden")
            return self._dense(layers, "obs", self._activation("fcnet_activation", default="tanh"))
        image = require_image(self.policy, self.settings)
        filters = filters_for(self.settings.model, image)
        names = self._layers(f"{prefix}conv")
        kernels = [self.arrays[f"{name}.kernel"].shape[:2] for name in names]
        if kernels != [filter_.kernel for filter_ in filters]:
            raise CheckpointError(
                f"The convolutions have kernels of {kernels}, the config says "
                f"{[filter_.kernel for filter_ in filters]}.",
                where="model.conv_filters",
                fix="Give the right config with --config, or the right --observation-space.",
            )
        takes, size = "obs", image[:2]
        for name, filter_ in zip(names, filters, strict=True):
            valid = filter_.padding == "valid"
            rows, columns = size
            padding = NO_PADDING if valid else same_padding((rows, columns), filter_, torch=True)
            size = size_after((rows, columns), filter_, padding)
            takes = self.build.add(
                "conv",
                name,
                takes,
                activation=self._activation("conv_activation", default="relu"),
                stride=list(filter_.stride),
                padding=[list(sides) for sides in padding],
            )
        return self.build.add("flatten", f"{prefix}features", takes)

    def _head(self, stack: str, takes: str) -> str:
        *hidden, last = self._layers(stack)
        old = self.settings.model.get("post_fcnet_activation", "relu")
        takes = self._dense(hidden, takes, self._activation("head_fcnet_activation", default=old))
        return self.build.add("dense", last, takes)

    def _dense(self, layers: list[str], takes: str, activation: str | None) -> str:
        for name in layers:
            takes = self.build.add("dense", name, takes, activation=activation)
        return takes

    def _activation(self, key: str, default: str | None) -> str | None:
        given = self.settings.model.get(key, default)
        return None if given is None else str(given)
