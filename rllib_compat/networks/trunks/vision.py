"""The convolutions of RLlib's vision network, as the base of any head.

What they are (`ray/rllib/models/**/visionnet*.py`, 0.5 – 2.x): convolutions with "same" padding,
the last one without, each with `conv_activation`. Where a head of its own follows (an LSTM, DQN's
dueling heads, Ray 1.x on), the last image is flattened: rows, columns, channels on TensorFlow,
channels first on torch. Canonical arrays, images as `[rows, columns, channels]`::

    conv.{i}      the convolutions with "same" padding, and the last one where it is counted along
    last          the last one, where it has a name of its own (`fc1`, Ray 0.5 – 0.7)
    conv_out      keras: the last one, if it makes the outputs (`no_final_linear`); else a head
    post.{i}      dense layers behind (`post_fcnet_hiddens`)

`model.conv_filters` lists `[channels, kernel, stride]`; without it, RLlib took a list by the size
of the image.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from packaging.version import Version

from rllib_compat.networks import refusals
from rllib_compat.networks.drawing import HIDDEN, NewModel, draw_stack, on_torch, since
from rllib_compat.networks.graph import Builder
from rllib_compat.networks.mapping import Move, Table, keras, torch_layer
from rllib_compat.networks.named import Named
from rllib_compat.networks.observations import require_image
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.dense import Trunk, add_layers
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError, ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Space

Pair: TypeAlias = tuple[int, int]
#: ((top, bottom), (left, right)).
Padding: TypeAlias = tuple[Pair, Pair]

#: The defaults of every Ray by (rows, columns). A size that came in a later Ray was an error
#: before, and none was ever changed (`models/visionnet.py` 0.5 – 0.6, `models/tf/visionnet_v1.py`
#: 0.7 – 0.8, `models/utils.py` 1.0 – 2.x).
DEFAULTS: Mapping[tuple[int, ...], Sequence[Any]] = {
    (480, 640): [[16, [24, 32], [14, 18]], [32, [6, 6], 4], [256, [9, 9], 1]],
    (240, 320): [[16, [12, 16], [7, 9]], [32, [6, 6], 4], [256, [9, 9], 1]],
    (96, 96): [[16, [8, 8], 4], [32, [4, 4], 2], [256, [11, 11], 2]],
    (84, 84): [[16, [8, 8], 4], [32, [4, 4], 2], [256, [11, 11], 1]],
    (64, 64): [[32, [4, 4], 2], [64, [4, 4], 2], [128, [4, 4], 2], [256, [4, 4], 2]],
    (42, 42): [[16, [4, 4], 2], [32, [4, 4], 2], [256, [11, 11], 1]],
    (10, 10): [[16, [5, 5], 2], [32, [5, 5], 2]],
}


@frozen
class Filter:
    """One convolution: how many channels it makes, its kernel and its stride (rows, columns).

    Attributes:
        padding: `same` or `valid` where the list says so, as that of an RLModule can.
    """

    channels: int
    kernel: Pair
    stride: Pair
    padding: str | None = None


def filters_for(model: Mapping[str, Any], image: tuple[int, ...]) -> list[Filter]:
    """The convolutions for images `(rows, columns, channels)`.

    Raises:
        CheckpointError: The config gives none, and RLlib had no default for such images; or they
            are not written as `[channels, kernel, stride]`.
    """
    given = model.get("conv_filters") or DEFAULTS.get(image[:2]) or DEFAULTS.get(image[1:])
    if not given:
        raise CheckpointError(
            f"There are no default convolutions for images of {image}.",
            where="model.conv_filters",
            fix="Set `conv_filters` in the config's `model` to [[channels, kernel, stride], ...], "
            "or pass the right observation space.",
        )
    try:
        return [
            Filter(int(n), _pair(kernel), _pair(stride), *padding)
            for n, kernel, stride, *padding in given
        ]
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{given!r} is not a list of [channels, kernel, stride].",
            where="model.conv_filters",
            fix="Set `conv_filters` in the config's `model` to [[channels, kernel, stride], ...].",
        ) from error


def _pair(value: Any) -> Pair:
    if isinstance(value, (list, tuple)):
        rows, columns = value
        return int(rows), int(columns)
    return int(value), int(value)


def same_padding(image: Pair, filter_: Filter, *, torch: bool) -> Padding:
    """((top, bottom), (left, right)) that TensorFlow's "same" adds to an image (rows, columns).

    Where the stride is larger than the kernel, nothing may have to be added: TensorFlow leaves it
    at that, RLlib's torch networks cut off the difference (`models/torch/misc.py`, all Rays).
    """
    return (
        _both_sides(image[0], filter_.kernel[0], filter_.stride[0], torch=torch),
        _both_sides(image[1], filter_.kernel[1], filter_.stride[1], torch=torch),
    )


def _both_sides(size: int, kernel: int, stride: int, *, torch: bool) -> Pair:
    total = (-(-size // stride) - 1) * stride + kernel - size
    if not torch:
        total = max(total, 0)
    return total // 2, total - total // 2


def size_after(image: Pair, filter_: Filter, padding: Padding) -> Pair:
    """(rows, columns) of what a convolution makes of an image."""
    rows, columns = (
        (size + sum(added) - kernel) // stride + 1
        for size, added, kernel, stride in zip(
            image, padding, filter_.kernel, filter_.stride, strict=True
        )
    )
    return rows, columns


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

    The value function's own have the prefix `value_`; images are by default the policy's.

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
    # New networks for TensorFlow have torch's names, too.
    if named.torch and on_torch(named.settings) and ray and Version(ray) < _TORCH_ACTIVATION:
        return "relu"
    return named.activation("conv_activation")


def _names(named: Named, prefix: str, count: int) -> list[str]:
    counted = [name for i in range(count) if (name := f"{prefix}conv.{i}") in named]
    own = [name for name in (f"{prefix}last", f"{prefix}conv_out") if name in named]
    return [*counted, *own][:count]


def _add(build: Builder, named: Named, prefix: str = "", takes: str = "obs") -> str:
    image, _ = add_convolutions(build, named, prefix, takes=takes)
    features = build.add("flatten", f"{prefix}features", image, channels_first=named.torch)
    behind = named.activation("post_fcnet_activation")
    # torch counts them among the convolutions.
    layers = [n for n in named.layers(f"{prefix}conv") if named.arrays[f"{n}.kernel"].ndim == 2]
    layers += named.layers(f"{prefix}post")
    return add_layers(build, named.arrays, layers, features, behind)


def _draw(new: NewModel, seen: Space) -> int:
    arrays, settings, prefix, outputs = new.arrays, new.settings, new.prefix, new.outputs
    image = require_image(PolicyState("new", {}, observation_space=seen), settings)
    filters = filters_for(settings.model, image)
    post = list(settings.model.get("post_fcnet_hiddens") or ())
    activated = bool(settings.model.get("no_final_linear")) and outputs is not None
    own = filters
    if activated and outputs is not None:
        if post:
            post[-1] = outputs
        else:
            own = [*filters[:-1], Filter(outputs, filters[-1].kernel, filters[-1].stride)]
    channels, size = draw_convolutions(new, f"{prefix}_convs", image, own)
    if outputs is None:
        features = channels * math.prod(size)
        if on_torch(settings):
            return features
        return draw_stack(arrays, f"{prefix}_post", features, post)  # below a wrapper, too
    if size != (1, 1):
        raise _not_one_pixel(settings, image, size)
    if post and activated:
        last = gives = draw_stack(arrays, f"{prefix}_convs", channels, post, len(filters))
    elif post:
        if on_torch(settings):  # it counts the layer that flattens, too
            last = draw_stack(arrays, f"{prefix}_convs", channels, post, len(filters) + 1)
        else:
            last = draw_stack(arrays, f"{prefix}_post", channels, post)
        gives = arrays.dense(f"{prefix}_logits._model.0", last, outputs, HIDDEN)
    elif activated:
        last = gives = channels
    else:
        last = channels
        if since(settings, "0.8.6"):
            gives = arrays.convolution(f"{prefix}_logits._model.1", channels, outputs, (1, 1))
        else:
            gives = arrays.dense(f"{prefix}_logits._model.0", channels, outputs)
    if new.value and settings.shares_layers:
        arrays.dense(f"{prefix}_value_branch._model.0", last, 1, new.norm_of_value("0.8.6"))
    elif new.value:
        branch = f"{prefix}_value_branch_separate"
        channels, _ = draw_convolutions(new, branch, image, filters)
        arrays.convolution(f"{branch}.{len(filters)}._model.0", channels, 1, (1, 1))
    return gives


def draw_convolutions(
    new: NewModel, name: str, image: tuple[int, ...], filters: list[Filter]
) -> tuple[int, Pair]:
    """Draws convolutions; gives their channels, and rows and columns of their last image."""
    size, channels = (image[0], image[1]), image[2]
    for number, filter_ in enumerate(filters):
        last = number == len(filters) - 1
        padding = NO_PADDING if last else same_padding(size, filter_, torch=True)
        layer = f"{name}.{number}._model.{0 if last else 1}"  # behind the layer that pads
        channels = new.arrays.convolution(layer, channels, filter_.channels, filter_.kernel)
        size = size_after(size, filter_, padding)
        if min(size) < 1:
            raise ConfigError(
                f"Convolution {number} has a kernel of {filter_.kernel}, which is larger than its "
                f"input for images of {image[:2]}.",
                where="model.conv_filters",
                fix="Set smaller kernels or strides.",
            )
    return channels, size


def _not_one_pixel(settings: ModelSettings, image: tuple[int, ...], size: Pair) -> ConfigError:
    given = settings.model.get("conv_filters")
    which = "the default" if not given else f"{given}"
    return ConfigError(
        f"The convolutions {which} reduce images of {image} to {size[0]} x {size[1]} pixels, and "
        "the old Rays require one pixel.",
        where="model.conv_filters",
        fix="Make the last kernel as large as its input, which is not padded. Or use the installed "
        "Ray's networks, which have no such limit: legacy_ray='today'.",
    )


VISION = Trunk(
    kind="vision",
    tables=TABLES,
    inputs=lambda named: require_image(named.policy, named.settings),
    add=_add,
    draw=_draw,
)
