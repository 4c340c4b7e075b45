"""The observation filter as a step of a network, where no connector can hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: What modules of version 0.1, which do not say it, add to each standard deviation.
EPSILON = 1e-8


def normalize(
    own: Mapping[str, Array], values: Sequence[Array], settings: Mapping[str, Any]
) -> Array:
    """`MeanStdFilter`; arrays: mean and std, of an observation's shape.

    Settings, as the filter had them: `demean`, `destd`, `clip` (None: it does not), `epsilon`.
    """
    (x,) = values
    if settings["demean"]:
        x = x - own["mean"]
    if settings["destd"]:
        x = x / (own["std"] + settings.get("epsilon", EPSILON))
    clip = settings["clip"]
    return x if clip is None else np.clip(x, -clip, clip)
