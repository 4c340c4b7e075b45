"""What the arrays of the linear bandits were called, and the order of those without names.

Canonical are `arms.precision`, `arms.covariance`, `arms.f` and `arms.theta`, a row for each
regression: one for each arm, or a single one where items are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from rllib_compat.networks.graph import Array
from rllib_compat.networks.mapping import Move
from rllib_compat.networks.named import where_of
from rllib_compat.networks.refusals import contradiction, missing, unknown_arrays
from rllib_compat.neutral.checkpoint import PolicyState

ARMS = "arms"
PARTS = ("precision", "covariance", "f", "theta")
#: The names of today's module, which has the arrays as they are here.
TABLE = tuple(Move(part, f"{ARMS}.{part}") for part in PARTS)

#: `arms` of `DiscreteLinearModel`, `arm` of `ParametricLinearModel`.
_TORCH = re.compile(rf"(?:arms\.(?P<arm>\d+)|arm)\.(?P<part>{'|'.join(PARTS)})")
#: The order in which `tf.Module` lists its variables: by the attributes' names. That of the mean is
#: met first in the attribute `dist`.
_TENSORFLOW = ("covariance", "theta", "f", "precision")


def posterior(policy: PolicyState) -> dict[str, Array]:
    """The arrays of a policy by canonical name.

    Raises:
        NotYetError: They are of another network.
        CheckpointError: Some are missing, or of different shapes.
    """
    if isinstance(policy.weights, dict):
        own = policy.weights.keys() == set(PARTS)
        stacks = _of_module(policy.weights) if own else _of_names(policy, policy.weights)
    else:
        stacks = _of_list(policy, policy.weights)
    shapes = {part: {array.shape for array in stacks[part]} for part in PARTS}
    for part, found in shapes.items():
        if len(found) > 1:
            told = " and ".join(map(str, sorted(found)))
            raise contradiction(f"The arms have a {part} of the shapes {told}.", where_of(policy))
    return {f"{ARMS}.{part}": np.stack(stacks[part]) for part in PARTS}


def _of_module(arrays: Mapping[str, Array]) -> dict[str, list[Array]]:
    return {part: list(np.atleast_1d(arrays[part])) for part in PARTS}


def _of_names(policy: PolicyState, arrays: Mapping[str, Array]) -> dict[str, list[Array]]:
    matches = {name: match for name in arrays if (match := _TORCH.fullmatch(name))}
    found = {(m["part"], int(m["arm"] or 0)): arrays[name] for name, m in matches.items()}
    if left := [name for name in arrays if name not in matches]:
        raise unknown_arrays(left, arrays, "linear bandit", where_of(policy))
    arms = range(1 + max(arm for _, arm in found))
    if len(found) != len(arms) * len(PARTS):
        lacking = [f"{part} of arm {arm}" for part, arm in _first_lacking(found)]
        raise missing(lacking, where_of(policy))
    return {part: [found[part, arm] for arm in arms] for part in PARTS}


def _first_lacking(found: Mapping[tuple[str, int], Array]) -> list[tuple[str, int]]:
    """What the first arm lacks that is not whole; numbers of arms in a file may be anything."""
    for arm in range(len(found) + 1):
        if lacking := [(part, arm) for part in PARTS if (part, arm) not in found]:
            return lacking
    return []


def _of_list(policy: PolicyState, arrays: Sequence[Array] | Array) -> dict[str, list[Array]]:
    if isinstance(arrays, np.ndarray) or not arrays or len(arrays) % len(PARTS):
        raise contradiction(
            f"{len(arrays)} arrays without names are not {len(PARTS)} of each arm.",
            where_of(policy),
        )
    step = len(PARTS)
    return {part: list(arrays[index::step]) for index, part in enumerate(_TENSORFLOW)}
