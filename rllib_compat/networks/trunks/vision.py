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

from rllib_compat.networks.graph import Array, Builder
from rllib_compat.networks.mapping import Move, Table, keras, torch_layer
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.conv_filters import Filter, filters_for, same_padding, size_after
from rllib_compat.networks.trunks.dense import Trunk
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError

NO_PADDING = ((0, 0), (0, 0))

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
        *_torch_stack("_value_branch_separate", "value_conv"),
    ),
}


def is_torch(policy: PolicyState) -> bool:
    """Whether a policy's convolutions are torch's; arrays without names are TensorFlow's."""
    return isinstance(policy.weights, dict) and any("_convs." in name for name in policy.weights)


def add_convolutions(
    build: Builder,
    arrays: Mapping[str, Array],
    policy: PolicyState,
    settings: ModelSettings,
    prefix: str = "",
    *,
    image: tuple[int, ...] | None = None,
    takes: str = "obs",
) -> tuple[str, tuple[int, int]]:
    """Adds the convolutions of a vision network to a graph.

    Args:
        build: Collects the steps.
        arrays: The canonical arrays.
        policy: Whose network it is.
        settings: What the config says of it.
        prefix: Of the arrays' names: `value_` for the value function's own convolutions.
        image: The shape of the images; None: that of the policy's observations.
        takes: The value that holds them.

    Returns:
        The name of the last image, and its rows and columns.

    Raises:
        CheckpointError: The arrays are not those of the config's convolutions.
    """
    image = image or require_image(policy, settings)
    filters = filters_for(settings.model, image)
    names = _names(arrays, prefix, len(filters))
    size, torch = (image[0], image[1]), is_torch(policy)
    for number, (name, filter_) in enumerate(zip(names, filters, strict=False), start=1):
        _require_kernel(arrays, name, filter_)
        last = number == len(filters)
        padding = NO_PADDING if last else same_padding(size, filter_, torch=torch)
        size = size_after(size, filter_, padding)
        sloped = f"{name}.swish.slope" in arrays
        takes = build.add(
            "conv",
            name,
            takes,
            activation=None if sloped else _activation(policy, settings),
            stride=list(filter_.stride),
            padding=[list(sides) for sides in padding],
        )
        if sloped:
            takes = build.add("swish", f"{name}.swish", takes)
    if len(names) < len(filters):
        raise CheckpointError(
            f"The config has {len(filters)} convolutions, the weights have {len(names)}.",
            where=f"policies.{policy.policy_id}.weights",
            fix="Give the right config with --config, or the right --observation-space.",
        )
    return takes, size


def _activation(policy: PolicyState, settings: ModelSettings) -> str | None:
    """What is behind each convolution; torch's were all relu until `conv_activation` counted."""
    given = settings.model.get("conv_activation", "relu")
    if is_torch(policy) and settings.ray and Version(settings.ray) < _TORCH_ACTIVATION:
        given = "relu"
    return None if given is None else str(given)


def _names(arrays: Mapping[str, Array], prefix: str, count: int) -> list[str]:
    """The names of the convolutions in order."""
    counted = (f"{prefix}conv.{i}" for i in range(count))
    names = [name for name in counted if f"{name}.kernel" in arrays]
    own = (f"{prefix}last", f"{prefix}conv_out")
    names += [name for name in own if f"{name}.kernel" in arrays]
    return names[:count]


def _require_kernel(arrays: Mapping[str, Array], name: str, filter_: Filter) -> None:
    have = arrays[f"{name}.kernel"].shape
    if have[:2] != filter_.kernel:
        raise CheckpointError(
            f"The convolution {name} has a kernel of {have[:2]}, the config says "
            f"{filter_.kernel}: the config is not this checkpoint's.",
            where="model.conv_filters",
            fix="Give the right config with --config, or the right --observation-space.",
        )


def add_dense_behind(
    build: Builder, arrays: Mapping[str, Array], prefix: str, takes: str, activation: str | None
) -> str:
    """Adds the dense layers `post.{i}` that there are."""
    numbers = sorted(
        int(name.split(".")[1])
        for name in arrays
        if name.startswith(f"{prefix}post.") and name.endswith(".kernel")
    )
    for number in numbers:
        takes = build.add("dense", f"{prefix}post.{number}", takes, activation=activation)
    return takes


def _add(
    build: Builder,
    arrays: Mapping[str, Array],
    policy: PolicyState,
    settings: ModelSettings,
    prefix: str,
) -> str:
    image, _ = add_convolutions(build, arrays, policy, settings, prefix)
    features = build.add("flatten", f"{prefix}features", image, channels_first=is_torch(policy))
    activation = settings.model.get("post_fcnet_activation", "relu")
    return add_dense_behind(build, arrays, prefix, features, activation)


VISION = Trunk(
    kind="vision",
    tables=TABLES,
    inputs=lambda _, policy, settings: require_image(policy, settings),
    add=_add,
)
