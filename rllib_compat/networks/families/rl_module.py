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

from rllib_compat.networks import compare, refusals
from rllib_compat.networks.families.outputs import actor_critic, own_actor_critic, with_log_std
from rllib_compat.networks.graph import Array, Builder, Graph
from rllib_compat.networks.mapping import Move, Table, torch_dense, torch_layer
from rllib_compat.networks.named import Named, where_of
from rllib_compat.networks.names.plain import BUFFERS, plain_names
from rllib_compat.networks.network import Reading
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.conv_filters import filters_for, same_padding, size_after
from rllib_compat.networks.trunks.dense import DENSE, add_layers
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.vision import NO_PADDING, VISION, add_convolution
from rllib_compat.neutral.checkpoint import PolicyState
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
    """Whether arrays with these names are of an RLModule with convolutions or larger heads."""
    heads = sum(name.startswith("pi.net.mlp.") and name.endswith(".weight") for name in names)
    return heads > 1 or any(".net.0.cnn." in name for name in names)


def read(policy: PolicyState, settings: ModelSettings) -> Reading:
    """Reads the module of a policy.

    Raises:
        NotYetError: It has parts that are not known (layer norm).
        MissingInformationError: The observation space has to be given.
        CheckpointError: The weights and the config contradict each other.
    """
    assert isinstance(policy.weights, dict)
    plain, state = plain_names(policy)
    of = "RLModule of convolutions and dense layers"
    named = Named.take(policy, settings, plain, "rl_module", NAMES, of=of, state=state)
    kernels = [name for name in named.arrays if name.endswith(".kernel")]
    if odd := [name for name in kernels if named.arrays[name].ndim not in (2, 4)]:
        raise refusals.unknown_arrays(odd, plain, of, where_of(policy))
    limit = policy.weights.get(BUFFERS[0])
    build = Builder()
    actor = _add_encoder(build, named, "")
    own = named.layers("value_conv") or named.layers("value_hidden")
    critic = _add_encoder(build, named, "value_") if own else actor
    logits = with_log_std(build, named, _add_head(build, named, "pi", actor))
    heads = named.sizes("pi")
    compare.require_outputs(named, heads[-1] + len(named.arrays.get("log_std.value", ())))
    if limit is not None and isinstance(policy.action_space, Box):
        bound = float(np.reshape(limit, ()))
        logits = build.add("clip_log_std", "clipped", logits, limit=bound)
    outputs = actor_critic(build, logits, _add_head(build, named, "vf", critic))
    images = named.layers("conv")
    inputs = (
        require_image(policy, settings) if images else (named.takes(named.layers("hidden")[0]),)
    )
    graph = Graph({"obs": inputs}, tuple(build.steps), outputs)
    head = f", head {'-'.join(map(str, heads[:-1]))}" if len(heads) > 1 else ""
    sizes = "-".join(map(str, named.sizes("conv") or named.sizes("hidden")))
    shape = "x".join(map(str, inputs))
    summary = f"RLModule {shape}, encoder {sizes}{head}, {heads[-1]} outputs"
    kind = VISION.kind if images else DENSE.kind
    return named.reading(named.network(kind, summary, graph, own_actor_critic(graph, named.arrays)))


def _add_encoder(build: Builder, named: Named, prefix: str) -> str:
    if not named.layers("conv"):
        layers = named.layers(f"{prefix}hidden")
        activation = named.model("fcnet_activation", "tanh")
        return add_layers(build, named.arrays, layers, "obs", activation)
    image = require_image(named.policy, named.settings)
    filters = filters_for(named.settings.model, image)
    names = named.layers(f"{prefix}conv")
    if len(names) != len(filters):
        raise refusals.other_config("conv_filters", len(names), len(filters), named.where)
    activation = named.model("conv_activation", "relu")
    takes, size = "obs", (image[0], image[1])
    for name, filter_ in zip(names, filters, strict=True):
        valid = filter_.padding == "valid"
        padding = NO_PADDING if valid else same_padding(size, filter_, torch=True)
        takes = add_convolution(build, named, name, filter_, takes, padding, activation)
        size = size_after(size, filter_, padding)
    return build.add("flatten", f"{prefix}features", takes)


def _add_head(build: Builder, named: Named, stack: str, takes: str) -> str:
    named.require(f"{stack}.0.kernel")
    *hidden, last = named.layers(stack)
    old = named.settings.model.get("post_fcnet_activation", "relu")
    activation = named.model("head_fcnet_activation", old)
    return build.add("dense", last, add_layers(build, named.arrays, hidden, takes, activation))
