"""New base models and actor-critics: what `ModelCatalog` made of `model`, for torch.

Sources: `models/catalog.py`, `models/torch/{fcnet,visionnet,complex_input_net,recurrent_net}.py`
(Ray 0.8.5 – 2.x). Value branches that nothing read are not made.
"""

from __future__ import annotations

import math
from dataclasses import replace

from packaging.version import Version

from rllib_compat.networks.fresh.arrays import Arrays
from rllib_compat.networks.settings import ModelSettings, distribution_inputs
from rllib_compat.networks.trunks.components import original_space, parts_of
from rllib_compat.networks.trunks.conv_filters import (
    Filter,
    Pair,
    filters_for,
    same_padding,
    size_after,
)
from rllib_compat.networks.trunks.images import require_image
from rllib_compat.networks.trunks.vision import NO_PADDING
from rllib_compat.networks.wrappers.previous_steps import choices_of
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.spaces import Box, Space

#: The hidden layers where the config does not tell any.
_HIDDENS = (256, 256)

#: The length of each unit's weights: in hidden layers, and in those that give what is asked for.
_HIDDEN, _OUT = 1.0, 0.01


def actor_critic(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> None:
    """Draws a policy and its value function.

    Raises:
        ConfigError: No distribution of actions is known, or layers don't fit images or actions.
    """
    outputs = distribution_inputs(actions)
    if outputs is None:
        raise ConfigError(
            f"No policy gives actions of the space {actions}.",
            where="action_space",
            fix="Use Discrete, MultiDiscrete, Box, or a Tuple or Dict of them.",
        )
    if on_torch(settings) and not since(settings, "0.8.6"):
        settings = replace(settings, shares_layers=True)  # whatever the config says
    if settings.model.get("use_lstm"):
        cells = lstm(arrays, settings, seen, actions)
        arrays.dense("_logits_branch._model.0", cells, outputs)
        if not _has_own_value(settings, seen):
            arrays.dense("_value_branch._model.0", cells, 1)
            return
        hiddens = _HIDDENS if settings.hiddens is None else settings.hiddens
        takes = hiddens[-1] if since(settings, "0.7") else seen.flat_size()
        last = _stack(arrays, "_own_value", takes, hiddens)
        arrays.dense("_own_value_out._model.0", last, 1, _OUT)
        return
    model(arrays, settings, seen, outputs, value=True)


def _has_own_value(settings: ModelSettings, seen: Space) -> bool:
    """Whether the value function beside an LSTM is a network without memory: until Ray 0.8.4.

    Where images are seen, one on the LSTM is made in its place.
    """
    if settings.shares_layers or since(settings, "0.8.5") or settings.hiddens == ():
        return False
    return not (isinstance(seen, Box) and len(seen.shape) == 3)


def lstm(arrays: Arrays, settings: ModelSettings, seen: Space, actions: Space) -> int:
    """Draws an LSTM and the base model below it; returns how many cells it has."""
    told = settings.model
    both = bool(told.get("lstm_use_prev_action_reward"))
    takes = model(arrays, settings, seen, None)
    if both or told.get("lstm_use_prev_action"):
        one_hot = since(settings, "1.2")
        takes += sum((choices or 1) if one_hot else 1 for choices in choices_of(actions))
    if both or told.get("lstm_use_prev_reward"):
        takes += 1
    cells = int(told.get("lstm_cell_size", 256))
    arrays.lstm("lstm", takes, cells)
    return cells


def model(
    arrays: Arrays,
    settings: ModelSettings,
    seen: Space,
    outputs: int | None,
    prefix: str = "",
    *,
    value: bool = False,
) -> int:
    """Draws the model that the catalog chose for observations.

    Args:
        arrays: Takes the arrays.
        settings: What the config says of it.
        seen: The observations.
        outputs: How many numbers it has to give; None: its features, as a wrapper takes them.
        prefix: Of all names.
        value: Whether it has a value function.

    Returns:
        How many numbers it gives.
    """
    space = original_space(seen) or seen
    if isinstance(space, Box) and len(space.shape) == 3:
        return _vision(arrays, settings, seen, outputs, prefix, value=value)
    parts = [part.space for part in parts_of(space)]
    images = any(isinstance(part, Box) and len(part.shape) == 3 for part in parts)
    if images and since(settings, "1.2"):
        return _several_parts(arrays, settings, parts, outputs, prefix, value=value)
    return _dense(arrays, settings, space.flat_size(), outputs, prefix, value=value)


def since(settings: ModelSettings, first: str) -> bool:
    """Whether a config is for that Ray or a later one; where none is told, it is."""
    return settings.ray is None or Version(settings.ray) >= Version(first)


def on_torch(settings: ModelSettings) -> bool:
    """Whether a config is for torch: some things depended on the framework."""
    config = settings.config
    return config.get("framework") == "torch" or config.get("use_pytorch") is True


def _ignores_free_log_std(settings: ModelSettings) -> bool:
    """Whether dense networks did; a checkpoint of Ray 0.7 tells no more than that."""
    early = settings.ray == "0.7" or since(settings, "0.7.5")
    return settings.ray is not None and early and not since(settings, "0.8.6")


def _of_value(settings: ModelSettings, small_since: str) -> float:
    """The length of a value function's last weights, which were small later on torch."""
    return _OUT if not on_torch(settings) or since(settings, small_since) else _HIDDEN


def _dense(
    arrays: Arrays,
    settings: ModelSettings,
    takes: int,
    outputs: int | None,
    prefix: str = "",
    *,
    value: bool = False,
) -> int:
    hiddens = _HIDDENS if settings.hiddens is None else settings.hiddens
    free = settings.free_log_std and not _ignores_free_log_std(settings)
    if free and outputs and outputs % 2:
        raise ConfigError(
            f"free_log_std halves what a policy gives, and these actions take {outputs} numbers.",
            where="model.free_log_std",
            fix="Leave it out: standard deviations are of Box actions.",
        )
    means = outputs // 2 if outputs and free else outputs
    activated = bool(settings.model.get("no_final_linear")) and means is not None
    own = [*hiddens[:-1], means] if activated and means else list(hiddens)
    last = _stack(arrays, f"{prefix}_hidden_layers", takes, own)
    gives = last
    if means is not None and not activated:
        gives = arrays.dense(f"{prefix}_logits._model.0", last, means, _OUT)
        if free:
            arrays.constant(f"{prefix}_append_free_log_std.log_std", means)
    if value:
        if not settings.shares_layers:
            last = _stack(arrays, f"{prefix}_value_branch_separate", takes, hiddens)
        arrays.dense(f"{prefix}_value_branch._model.0", last, 1, _of_value(settings, "1.3"))
    return gives


def _stack(
    arrays: Arrays, name: str, takes: int, sizes: tuple[int, ...] | list[int], first: int = 0
) -> int:
    for number, size in enumerate(sizes, start=first):
        takes = arrays.dense(f"{name}.{number}._model.0", takes, size, _HIDDEN)
    return takes


def _vision(
    arrays: Arrays,
    settings: ModelSettings,
    seen: Space,
    outputs: int | None,
    prefix: str = "",
    *,
    value: bool = False,
) -> int:
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
    channels, size = _convolutions(arrays, f"{prefix}_convs", image, own)
    if outputs is None:
        return channels * math.prod(size)
    if size != (1, 1):
        raise _not_one_pixel(settings, image, size)
    if post and activated:
        last = gives = _stack(arrays, f"{prefix}_convs", channels, post, len(filters))
    elif post:  # torch counts the layer that flattens, too
        last = _stack(arrays, f"{prefix}_convs", channels, post, len(filters) + 1)
        gives = arrays.dense(f"{prefix}_logits._model.0", last, outputs, _HIDDEN)
    elif activated:
        last = gives = channels
    else:
        last = channels
        if since(settings, "0.8.6"):
            gives = arrays.convolution(f"{prefix}_logits._model.1", channels, outputs, (1, 1))
        else:
            gives = arrays.dense(f"{prefix}_logits._model.0", channels, outputs)
    if value and settings.shares_layers:
        arrays.dense(f"{prefix}_value_branch._model.0", last, 1, _of_value(settings, "0.8.6"))
    elif value:
        branch = f"{prefix}_value_branch_separate"
        channels, _ = _convolutions(arrays, branch, image, filters)
        arrays.convolution(f"{branch}.{len(filters)}._model.0", channels, 1, (1, 1))
    return gives


def _convolutions(
    arrays: Arrays, name: str, image: tuple[int, ...], filters: list[Filter]
) -> tuple[int, Pair]:
    """Draws convolutions; gives their channels, and rows and columns of their last image."""
    size, channels = (image[0], image[1]), image[2]
    for number, filter_ in enumerate(filters):
        last = number == len(filters) - 1
        padding = NO_PADDING if last else same_padding(size, filter_, torch=True)
        layer = f"{name}.{number}._model.{0 if last else 1}"  # behind the layer that pads
        channels = arrays.convolution(layer, channels, filter_.channels, filter_.kernel)
        size = size_after(size, filter_, padding)
        if min(size) < 1:
            raise ConfigError(
                f"The convolution {number} has a kernel of {filter_.kernel}, which is larger than "
                f"the image that it gets of an image of {image[:2]}.",
                where="model.conv_filters",
                fix="Give smaller kernels or strides.",
            )
    return channels, size


def _not_one_pixel(settings: ModelSettings, image: tuple[int, ...], size: Pair) -> ConfigError:
    given = settings.model.get("conv_filters")
    which = "the default" if not given else f"{given}"
    return ConfigError(
        f"The convolutions {which} make {size[0]} x {size[1]} pixels of images of {image}, where "
        "policies need one; every Ray up to 2.x refused them.",
        where="model.conv_filters",
        fix="Let the kernel of the last one be as large as what it gets: that is not padded, the "
        "others are. legacy_ray='today' makes today's networks, which take all of them.",
    )


def _several_parts(
    arrays: Arrays,
    settings: ModelSettings,
    parts: list[Space],
    outputs: int | None,
    prefix: str = "",
    *,
    value: bool = False,
) -> int:
    hiddens = _HIDDENS if settings.model.get("fcnet_hiddens") is None else None
    own = tuple(settings.model["fcnet_hiddens"]) if hiddens is None else hiddens
    features = 0
    for number, part in enumerate(parts):
        if isinstance(part, Box) and len(part.shape) == 3:
            filters = filters_for(settings.model, part.shape)
            name = f"{prefix}cnn_{number}._convs"
            channels, size = _convolutions(arrays, name, part.shape, filters)
            features += channels * math.prod(size)
        elif since(settings, "1.10"):
            kind = "flatten" if isinstance(part, Box) else "one_hot"
            name = f"{prefix}{kind}_{number}._hidden_layers"
            features += _stack(arrays, name, part.flat_size(), own)
        else:
            features += part.flat_size()
    post = settings.model.get("post_fcnet_hiddens") or ()
    last = _stack(arrays, f"{prefix}post_fc_stack._hidden_layers", features, list(post))
    if outputs is None:
        return last
    arrays.dense(f"{prefix}logits_layer._model.0", last, outputs, _OUT)
    if value:
        arrays.dense(f"{prefix}value_layer._model.0", last, 1, _OUT)
    return outputs
