"""The arrays of a TensorFlow 2 model, which are stored as a list: names from elsewhere, or shapes.

Keras' optimizer, where it is stored, has two moments for each array, with the array's name, in the
order of the list. Otherwise an array goes to the only place of its shape. Dense layers and
convolutions are moved whole: a kernel and the bias behind it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import CHANNELS_FIRST
from rllib_compat.networks.optimizers.adam import eager_variables
from rllib_compat.neutral.checkpoint import PolicyState
from rllib_compat.neutral.errors import CheckpointError

_MEAN = re.compile(r"(.+)/m")

#: A layer: the names of its arrays; and what it is told by: their shapes as torch has them.
_Names = tuple[str, ...]
_Shapes = tuple[tuple[int, ...], ...]


def named(policy: PolicyState) -> dict[str, Array]:
    """A policy's list of arrays by the names that its optimizer has for them, or by number."""
    arrays = [np.asarray(array) for array in policy.weights]
    names = list(_names_of_optimizer(policy, arrays))
    if len(set(names)) != len(arrays):
        names = [str(number) for number in range(len(arrays))]
    return dict(zip(names, arrays, strict=True))


def _names_of_optimizer(policy: PolicyState, arrays: list[Array]) -> Iterable[str]:
    stored: Any = policy.optimizer
    while isinstance(stored, list) and len(stored) == 1 and isinstance(stored[0], list):
        (stored,) = stored
    if not isinstance(stored, list):
        return []
    try:
        variables = eager_variables(stored, policy)
    except CheckpointError:
        return []
    means = {match[1]: v for name, v in variables.items() if (match := _MEAN.fullmatch(name))}
    same = [mean.shape for mean in means.values()] == [array.shape for array in arrays]
    return means if same else []


def places(
    old: Mapping[str, Array], wanted: Mapping[str, tuple[int, ...]], given: Mapping[str, str]
) -> dict[str, str]:
    """The module's name for each array of a list, where its shape leaves only one.

    Args:
        old: The arrays by number, as TensorFlow has them.
        wanted: The shapes of the module's arrays.
        given: The names that the caller gives, by number.

    Raises:
        CheckpointError: Several arrays fit several places.
    """
    layers = _layers([k for k in old if k not in given], old)
    free = {k: np.empty(shape) for k, shape in wanted.items() if k not in given.values()}
    there = _layers_by_name(free)
    found = dict(given)
    for shapes, theirs in layers.items():
        ours = there.get(shapes, [])
        if len(ours) > 1 or (ours and len(theirs) > 1):
            numbers = " and ".join(names[0] for names in theirs)
            raise CheckpointError(
                "The weights have no names, and arrays of one shape can't be told apart: "
                f"{numbers} of the list may be {' or '.join(names[0] for names in ours)}.",
                where="--model",
                fix=f'Say which is which: --weights-map \'{{"{theirs[0][0]}": "{ours[0][0]}"}}\'; '
                "`inspect --arrays` lists them.",
            )
        if ours:
            found.update(zip(theirs[0], ours[0], strict=True))
    return found


def _layers(names: list[str], arrays: Mapping[str, Array]) -> dict[_Shapes, list[_Names]]:
    """Kernels with the bias behind them, and what else there is, by their shapes in torch."""
    made: dict[_Shapes, list[_Names]] = defaultdict(list)
    rest = list(names)
    while rest:
        first = rest.pop(0)
        layer = [first]
        if arrays[first].ndim > 1 and rest and arrays[rest[0]].shape == arrays[first].shape[-1:]:
            layer.append(rest.pop(0))
        made[tuple(CHANNELS_FIRST.back(arrays[k]).shape for k in layer)].append(tuple(layer))
    return made


def _layers_by_name(arrays: Mapping[str, Array]) -> dict[_Shapes, list[_Names]]:
    """The same of a torch module: `enc.weight` and `enc.bias` are a layer."""
    made: dict[_Shapes, list[_Names]] = defaultdict(list)
    for name in arrays:
        layer, _, part = name.rpartition(".")
        if part == "bias" and f"{layer}.weight" in arrays:
            continue
        bias = f"{layer}.bias"
        names = (name, bias) if part == "weight" and bias in arrays else (name,)
        made[tuple(arrays[k].shape for k in names)].append(names)
    return made
