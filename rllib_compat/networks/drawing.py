"""The arrays of a new policy, by the names and in the shapes that torch's policies had.

How they were drawn: `models/torch/misc.py` of Ray 0.8.5 – 2.x, and the LSTMs of torch and keras.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
from packaging.version import Version

from rllib_compat.networks.graph import Array
from rllib_compat.networks.observations import original_space, parts_of, require_image
from rllib_compat.networks.settings import ModelSettings
from rllib_compat.networks.trunks.vision import (
    NO_PADDING,
    Filter,
    Pair,
    filters_for,
    same_padding,
    size_after,
)
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.spaces import Box, DictSpace, MultiBinary, Space, TupleSpace


class Arrays:
    """Draws arrays, and keeps them by name.

    Args:
        rng: What they are drawn by.

    Attributes:
        drawn: The arrays so far.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.drawn: dict[str, Array] = {}

    def dense(
        self, name: str, takes: int, gives: int, norm: float | None = None, *, bias: bool = True
    ) -> int:
        """Adds a dense layer, whose biases begin with zero.

        Args:
            name: Its name.
            takes: How many numbers go in.
            gives: How many come out.
            norm: The length of each unit's weights; None: drawn after Glorot.
            bias: Whether it has biases.

        Returns:
            How many come out.
        """
        if norm is None:
            weight = self._glorot((gives, takes))
        else:
            weight = self._rng.standard_normal((gives, takes))
            weight *= norm / np.sqrt(np.square(weight).sum(axis=1, keepdims=True))
        self._keep(f"{name}.weight", weight)
        if bias:
            self.constant(f"{name}.bias", gives)
        return gives

    def matrix(self, name: str, shape: tuple[int, int]) -> None:
        """Adds a matrix, drawn after Glorot."""
        self._keep(name, self._glorot(shape))

    def gate(self, name: str, size: int, bias: float) -> None:
        """Adds a gate of an attention net, whose bias begins with one number throughout."""
        for part in ("_w_r", "_w_z", "_w_h", "_u_r", "_u_z", "_u_h"):
            self.matrix(f"{name}.{part}", (size, size))
        self.constant(f"{name}._bias_z", size, bias)

    def linear(self, name: str, takes: int, gives: int) -> int:
        """Adds a dense layer, drawn as torch draws one by itself, but for its biases."""
        bound = 1 / math.sqrt(takes)
        self._keep(f"{name}.weight", self._rng.uniform(-bound, bound, (gives, takes)))
        self.constant(f"{name}.bias", gives)
        return gives

    def convolution(self, name: str, takes: int, gives: int, kernel: tuple[int, int]) -> int:
        """Adds a convolution, drawn after Glorot; its sizes are numbers of channels."""
        self._keep(f"{name}.weight", self._glorot((gives, takes, *kernel)))
        self.constant(f"{name}.bias", gives)
        return gives

    def lstm(self, name: str, takes: int, cells: int) -> None:
        """Adds an LSTM, with the two biases that torch has for it."""
        bound = 1 / math.sqrt(cells)
        for part, shape in (
            ("weight_ih_l0", (4 * cells, takes)),
            ("weight_hh_l0", (4 * cells, cells)),
            ("bias_ih_l0", (4 * cells,)),
            ("bias_hh_l0", (4 * cells,)),
        ):
            self._keep(f"{name}.{part}", self._rng.uniform(-bound, bound, shape))

    def lstm_of_tensorflow(self, name: str, takes: int, cells: int) -> None:
        """Adds an LSTM with the one bias that TensorFlow had for it, which begins by keeping."""
        self.matrix(f"{name}.weight_ih_l0", (4 * cells, takes))
        orthogonal, triangle = np.linalg.qr(self._rng.standard_normal((4 * cells, cells)))
        self._keep(f"{name}.weight_hh_l0", orthogonal * np.sign(np.diag(triangle)))
        forgets = np.repeat([0.0, 1.0, 0.0, 0.0], cells)  # by gate
        self._keep(f"{name}.bias_ih_l0", forgets)

    def noisy(self, name: str, takes: int, gives: int, sigma: float) -> int:
        """Adds a noisy layer, whose noise begins with a deviation of `sigma`."""
        bound = 1 / math.sqrt(takes)
        self._keep(f"{name}.sigma_w", self._rng.uniform(-bound, bound, (takes, gives)))
        self.constant(f"{name}.sigma_b", gives, sigma * bound)
        self._keep(f"{name}.w", self._glorot((takes, gives)))
        self.constant(f"{name}.b", gives)
        return gives

    def norm(self, name: str, size: int) -> None:
        """Adds a layer norm that changes nothing at first."""
        self.constant(f"{name}.weight", size, 1.0)
        self.constant(f"{name}.bias", size)

    def constant(self, name: str, size: int, value: float = 0.0) -> None:
        """Adds a vector that begins with one number throughout."""
        self._keep(name, np.full(size, value))

    def _glorot(self, shape: tuple[int, ...]) -> Any:
        area = math.prod(shape[2:])
        bound = math.sqrt(6 / (area * (shape[0] + shape[1])))
        return self._rng.uniform(-bound, bound, shape)

    def _keep(self, name: str, array: Any) -> None:
        self.drawn[name] = np.asarray(array, np.float32)


#: The hidden layers where the config does not tell any.
HIDDENS = (256, 256)

#: The length of each unit's weights: in hidden layers, and in those that give what is asked for.
HIDDEN, OUT = 1.0, 0.01


def since(settings: ModelSettings, first: str) -> bool:
    """Whether a config is for that Ray or a later one; where none is told, it is."""
    return settings.ray is None or Version(settings.ray) >= Version(first)


def on_torch(settings: ModelSettings) -> bool:
    """Whether a config is for torch, as where neither framework nor Ray are told."""
    config = settings.config
    framework = config.get("framework")
    if framework is None and settings.ray is None:
        return True
    return framework == "torch" or config.get("use_pytorch") is True


def ignores_free_log_std(settings: ModelSettings) -> bool:
    """Whether dense networks did; a checkpoint of Ray 0.7 tells no more than that."""
    early = settings.ray == "0.7" or since(settings, "0.7.5")
    return settings.ray is not None and early and not since(settings, "0.8.6")


@frozen
class Model:
    """Draws a base model.

    Attributes:
        arrays: Takes its arrays.
        settings: What the config says of it.
        outputs: How many numbers it has to give; None: its features, as a wrapper takes them.
        prefix: Of all names.
        value: Whether it has a value function.
    """

    arrays: Arrays
    settings: ModelSettings
    outputs: int | None = None
    prefix: str = ""
    value: bool = False

    def draw(self, seen: Space, *, flattened: bool = True) -> int:
        """Draws the model that the catalog chose for observations.

        Args:
            seen: The observations.
            flattened: Whether a preprocessor made one vector of observations of several parts.

        Returns:
            How many numbers it gives.
        """
        space = original_space(seen) or seen
        if is_image(space):
            return self._vision(seen)
        if since(self.settings, "1.2") and (not flattened or self._is_in_parts(space)):
            return self._several_parts([part.space for part in parts_of(space)])
        return self._dense(space.flat_size())

    def _is_in_parts(self, space: Space) -> bool:
        """Whether the network for several parts was chosen, though a vector was made of them.

        It was for images and tables in a Dict or Tuple, and for what no preprocessor flattened.
        With gym, those inside of inner Dicts and Tuples did not count.
        """
        if not isinstance(space, (DictSpace, TupleSpace)):
            is_box = isinstance(space, Box) and len(space.shape) != 1
            return is_box or isinstance(space, MultiBinary)
        if since(self.settings, "2.3"):
            parts = [part.space for part in parts_of(space)]
        else:
            inner = space.spaces.values() if isinstance(space, DictSpace) else space.spaces
            parts = list(inner)
        return any(isinstance(part, Box) and len(part.shape) > 1 for part in parts)

    def _dense(self, takes: int) -> int:
        arrays, settings, prefix, outputs = self.arrays, self.settings, self.prefix, self.outputs
        hiddens = HIDDENS if settings.hiddens is None else settings.hiddens
        free = settings.free_log_std and not ignores_free_log_std(settings)
        if free and outputs and outputs % 2:
            raise ConfigError(
                f"free_log_std halves what a policy gives, and these actions take {outputs} "
                "numbers.",
                where="model.free_log_std",
                fix="Leave it out: standard deviations are of Box actions.",
            )
        means = outputs // 2 if outputs and free else outputs
        activated = bool(settings.model.get("no_final_linear")) and means is not None
        own = [*hiddens[:-1], means] if activated and means else list(hiddens)
        last = stack(arrays, f"{prefix}_hidden_layers", takes, own)
        gives = last
        if means is not None and not activated:
            gives = arrays.dense(f"{prefix}_logits._model.0", last, means, OUT)
        if means is not None and free:
            arrays.constant(f"{prefix}_append_free_log_std.log_std", means)
        if self.value:
            if not settings.shares_layers:
                last = stack(arrays, f"{prefix}_value_branch_separate", takes, hiddens)
            arrays.dense(f"{prefix}_value_branch._model.0", last, 1, self._of_value("1.3"))
        return gives

    def _of_value(self, small_since: str) -> float:
        """The length of a value function's last weights, which were small later on torch."""
        small = not on_torch(self.settings) or since(self.settings, small_since)
        return OUT if small else HIDDEN

    def _vision(self, seen: Space) -> int:
        arrays, settings, prefix, outputs = self.arrays, self.settings, self.prefix, self.outputs
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
        channels, size = self._convolutions(f"{prefix}_convs", image, own)
        if outputs is None:
            features = channels * math.prod(size)
            if on_torch(settings):
                return features
            return stack(arrays, f"{prefix}_post", features, post)  # below a wrapper, too
        if size != (1, 1):
            raise _not_one_pixel(settings, image, size)
        if post and activated:
            last = gives = stack(arrays, f"{prefix}_convs", channels, post, len(filters))
        elif post:
            if on_torch(settings):  # it counts the layer that flattens, too
                last = stack(arrays, f"{prefix}_convs", channels, post, len(filters) + 1)
            else:
                last = stack(arrays, f"{prefix}_post", channels, post)
            gives = arrays.dense(f"{prefix}_logits._model.0", last, outputs, HIDDEN)
        elif activated:
            last = gives = channels
        else:
            last = channels
            if since(settings, "0.8.6"):
                gives = arrays.convolution(f"{prefix}_logits._model.1", channels, outputs, (1, 1))
            else:
                gives = arrays.dense(f"{prefix}_logits._model.0", channels, outputs)
        if self.value and settings.shares_layers:
            arrays.dense(f"{prefix}_value_branch._model.0", last, 1, self._of_value("0.8.6"))
        elif self.value:
            branch = f"{prefix}_value_branch_separate"
            channels, _ = self._convolutions(branch, image, filters)
            arrays.convolution(f"{branch}.{len(filters)}._model.0", channels, 1, (1, 1))
        return gives

    def _convolutions(
        self, name: str, image: tuple[int, ...], filters: list[Filter]
    ) -> tuple[int, Pair]:
        """Draws convolutions; gives their channels, and rows and columns of their last image."""
        size, channels = (image[0], image[1]), image[2]
        for number, filter_ in enumerate(filters):
            last = number == len(filters) - 1
            padding = NO_PADDING if last else same_padding(size, filter_, torch=True)
            layer = f"{name}.{number}._model.{0 if last else 1}"  # behind the layer that pads
            channels = self.arrays.convolution(layer, channels, filter_.channels, filter_.kernel)
            size = size_after(size, filter_, padding)
            if min(size) < 1:
                raise ConfigError(
                    f"The convolution {number} has a kernel of {filter_.kernel}, which is larger "
                    f"than the image that it gets of an image of {image[:2]}.",
                    where="model.conv_filters",
                    fix="Give smaller kernels or strides.",
                )
        return channels, size

    def _several_parts(self, parts: list[Space]) -> int:
        arrays, settings, prefix = self.arrays, self.settings, self.prefix
        told = settings.model.get("fcnet_hiddens")
        own = HIDDENS if told is None else tuple(told)
        features = 0
        for number, part in enumerate(parts):
            if is_image(part):
                filters = filters_for(settings.model, part.shape)
                name = f"{prefix}cnn_{number}._convs"
                channels, size = self._convolutions(name, part.shape, filters)
                features += channels * math.prod(size)
            elif since(settings, "1.10"):
                kind = "flatten" if isinstance(part, (Box, MultiBinary)) else "one_hot"
                name = f"{prefix}{kind}_{number}._hidden_layers"
                features += stack(arrays, name, part.flat_size(), own)
            else:
                features += part.flat_size()
        post = settings.model.get("post_fcnet_hiddens") or ()
        last = stack(arrays, f"{prefix}post_fc_stack._hidden_layers", features, post)
        if self.outputs is None:
            return last
        arrays.dense(f"{prefix}logits_layer._model.0", last, self.outputs, OUT)
        if self.value:
            arrays.dense(f"{prefix}value_layer._model.0", last, 1, OUT)
        return self.outputs


def stack(arrays: Arrays, name: str, takes: int, sizes: Iterable[int], first: int = 0) -> int:
    """Draws hidden layers, numbered from `first` on; returns how many numbers the last gives."""
    for number, size in enumerate(sizes, start=first):
        takes = arrays.dense(f"{name}.{number}._model.0", takes, size, HIDDEN)
    return takes


def is_image(space: Space) -> TypeGuard[Box]:
    """Whether observations are images."""
    return isinstance(space, Box) and len(space.shape) == 3


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
