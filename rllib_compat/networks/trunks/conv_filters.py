"""Which convolutions a vision network has, and how the image is padded for each.

`model.conv_filters` lists `[channels, kernel, stride]`; without it, RLlib took a list by the size
of the image. All but the last convolution keep TensorFlow's "same" padding, the last has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rllib_compat.neutral.errors import CheckpointError
from rllib_compat.neutral.frozen import frozen

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
            fix="Give the right config with --config, or the right --observation-space.",
        )
    try:
        return [
            Filter(int(n), _pair(kernel), _pair(stride), *padding)
            for n, kernel, stride, *padding in given
        ]
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{given!r} is not a list of [channels, kernel, stride].", where="model.conv_filters"
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
