"""Checks that recorded steps match a policy's spaces, before torch raises errors about shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium import Space


def require_fit(columns: Mapping[str, Any], seen: Space[Any], acts: Space[Any], where: str) -> None:
    """Checks that a recorded batch matches the spaces of a policy.

    Raises:
        ConfigError: Observations or actions have another size, or an action is out of range.
    """
    _require_numbers("observation", columns["obs"], seen, where)
    actions = _require_numbers("action", columns["actions"], acts, where)
    if actions is None or type(acts).__name__ != "Discrete":
        return
    choices: Any = acts
    first, last = int(choices.start), int(choices.start + choices.n) - 1
    if actions.min() < first or actions.max() > last:
        raise ConfigError(
            f"The recording has actions from {actions.min()} to {actions.max()}, and the policy "
            f"from {first} to {last}.",
            where=where,
            fix="set the environment, or the action_space, of the recording",
        )


def _require_numbers(
    what: str, column: object, space: Space[Any], where: str
) -> np.ndarray[Any, Any] | None:
    """Returns a column as an array of numbers, or None if it is not one."""
    try:
        values = np.asarray(column)
    except ValueError:  # parts of different lengths
        return None
    expected = _count(space)
    if not np.issubdtype(values.dtype, np.number) or not values.size or expected is None:
        return None
    found = int(np.prod(values.shape[1:]))
    if found != expected:
        raise ConfigError(
            f"An {what} of the recording has {found} numbers, one of the policy {expected}: its "
            f"space is {space}.",
            where=where,
            fix="set the environment or the spaces of the recording, and its Ray as legacy_ray: "
            "since Ray 1.2, a MultiDiscrete observation is one-hot",
        )
    return values


def _count(space: Space[Any]) -> int | None:
    """Returns the number of numbers of a space's elements, flattened to one vector."""
    parts = {"Tuple": list, "Dict": lambda space: list(space.values())}
    if (kind := type(space).__name__) in parts:
        counts = [_count(part) for part in parts[kind](space)]
        return None if None in counts else sum(filter(None, counts))
    return None if space.shape is None else int(np.prod(space.shape))
