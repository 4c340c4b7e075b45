"""The convolutions of RLlib's vision network, as the base of any head.

What they are (`ray/rllib/models/**/visionnet*.py`, 0.5 – 2.x): convolutions with "same" padding,
the last one without, each with `conv_activation`. Where a head of its own follows (an LSTM, DQN's
dueling heads, Ray 1.x on), the last image is flattened: rows, columns, channels on TensorFlow,
channels first on torch. Canonical arrays, images as `[rows, columns, channels]`::

    conv.{i}      the convolutions with "same" padding, and the last one where it is counted along
    last          the last one, where it has a name of its own (`fc1`, Ray 0.5 – 0.7)
    conv_out      keras: the last one, if it makes the outputs (`no_final_linear`); else a head
    post.{i}      dense layers behind (`post_fcnet_hiddens`)
"""

from __future__ import annotations

from collections.abc import Mapping

from packaging.version import Version

from rllib_compat.networks import refusals
from rllib_compat.networks.graph import Builder
from rllib_compat.networks.mapping import Move, Table, keras, torch_layer
from rllib_compat.networks.named import Named
from rllib_compat.networks.trunks.conv_filters import (
    Filter,
    Padding,
    filters_for,
    same_padding,
    size_after,
)
from rllib_compat.networks.trunks.dense import add_layers
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.trunk import Trunk

NO_PADDING: Padding = ((0, 0), (0, 0))

#: The first Ray whose torch networks heeded `conv_activation`.
_TORCH_ACTIVATION = Version("0.8.5")


def _slim(theirs: str, ours: str) -> Table:
    return Move(f"{theirs}/weights", f"{ours}.kernel"), Move(f"{theirs}/biases", f"{ours}.bias")


def _torch_stack(theirs: str, ours: str) -> Table:
    """`_model.0` is the padding, where there is one; RLlib's own swish has a trained slope."""
    return (
        *torch_layer(f"{theirs}.{{i}}._model.0", f"{ours}.{{i}}"),
        *torch_layer(f"{theirs}.{{i}}._model.1", f"{ours}.{{i}}"),
        Move(f"{theirs}.{{i}}._model.1._beta", f"{ours}.{{i}}.swish.slope"),
        Move(f"{theirs}.{{i}}._model.2._beta", f"{ours}.{{i}}.swish.slope"),
    )


TABLES: Mapping[str, Table] = {
    "slim": (
        # tf.contrib.slim in 0.5 and 0.6, tf.layers in 0.7
        *_slim("conv{i+1}", "conv.{i}"),
        *_slim("fc1", "last"),
        *keras("conv{i+1}", "conv.{i}"),
        *keras("fc1", "last"),
        *keras("fc_out", "conv_out"),
    ),
    "keras": (
        *keras("conv{i+1}", "conv.{i}"),
        *keras("conv_out", "conv_out"),
        *keras("post_fcnet_{i}", "post.{i}"),
        *keras("conv_value_{i+1}", "value_conv.{i}"),
    ),
    "torch": (
        *_torch_stack("_convs", "conv"),
        *torch_layer("_post.{i}._model.0", "post.{i}"),  # ours, of new networks for TensorFlow
        *_torch_stack("_value_branch_separate", "value_conv"),
    ),
}


def add_convolutions(
    build: Builder,
    named: Named,
    prefix: str = "",
    *,
    image: tuple[int, ...] | None = None,
    takes: str = "obs",
) -> tuple[str, tuple[int, int]]:
    """Adds the convolutions of a vision network to a graph.

    Args:
        build: Collects the steps.
        named: The arrays.
        prefix: Of the arrays' names: `value_` for the value function's own convolutions.
        image: The shape of the images; None: that of the policy's observations.
        takes: The value that holds them.

    Returns:
        The name of the last image, and its rows and columns.

    Raises:
        CheckpointError: The arrays are not those of the config's convolutions.
    """
    image = image or require_image(named.policy, named.settings)
    filters = filters_for(named.settings.model, image)
    names = _names(named, prefix, len(filters))
    size = (image[0], image[1])
    for number, (name, filter_) in enumerate(zip(names, filters, strict=False), start=1):
        last = number == len(filters)
        padding = NO_PADDING if last else same_padding(size, filter_, torch=named.torch)
        takes = add_convolution(build, named, name, filter_, takes, padding, _activation(named))
        size = size_after(size, filter_, padding)
    if len(names) < len(filters):
        raise refusals.other_config("conv_filters", len(names), len(filters), named.where)
    return takes, size


def add_convolution(
    build: Builder,
    named: Named,
    name: str,
    filter_: Filter,
    takes: str,
    padding: Padding,
    activation: str | None,
) -> str:
    """Adds one convolution, whose kernel has to be the filter's.

    Raises:
        CheckpointError: It is another.
    """
    have = named.arrays[f"{name}.kernel"].shape[:2]
    if have != filter_.kernel:
        raise refusals.contradiction(
            f"The convolution {name} has a kernel of {have}, the config says {filter_.kernel}: the "
            "config is not this checkpoint's.",
            "model.conv_filters",
        )
    sloped = f"{name}.swish.slope" in named.arrays
    takes = build.add(
        "conv",
        name,
        takes,
        activation=None if sloped else activation,
        stride=list(filter_.stride),
        padding=[list(sides) for sides in padding],
    )
    return build.add("swish", f"{name}.swish", takes) if sloped else takes


def _activation(named: Named) -> str | None:
    """What is behind each convolution; torch's were all relu until `conv_activation` counted."""
    ray = named.settings.ray
    if named.torch and ray and Version(ray) < _TORCH_ACTIVATION:
        return "relu"
    return named.model("conv_activation", "relu")


def _names(named: Named, prefix: str, count: int) -> list[str]:
    """The names of the convolutions in order."""
    counted = [name for i in range(count) if (name := f"{prefix}conv.{i}") in named]
    own = [name for name in (f"{prefix}last", f"{prefix}conv_out") if name in named]
    return [*counted, *own][:count]


def _add(build: Builder, named: Named, prefix: str = "", takes: str = "obs") -> str:
    image, _ = add_convolutions(build, named, prefix, takes=takes)
    features = build.add("flatten", f"{prefix}features", image, channels_first=named.torch)
    behind = named.model("post_fcnet_activation", "relu")
    # torch counts them among the convolutions.
    layers = [n for n in named.layers(f"{prefix}conv") if named.arrays[f"{n}.kernel"].ndim == 2]
    layers += named.layers(f"{prefix}post")
    return add_layers(build, named.arrays, layers, features, behind)


VISION = Trunk(
    kind="vision",
    tables=TABLES,
    inputs=lambda named: require_image(named.policy, named.settings),
    add=_add,
)
