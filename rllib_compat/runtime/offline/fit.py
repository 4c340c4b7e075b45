"""Whether recorded steps are such as a policy sees and does; torch would say it of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium import Space


def require_fit(columns: Mapping[str, Any], seen: Space[Any], acts: Space[Any], where: str) -> None:
    """Refuses a recorded batch whose steps are not those of a policy.

    Args:
        columns: The batch, with arrays or lists as columns.
        seen: What the policy's network observes, as preprocessors have made it.
        acts: The policy's action space.
        where: The file.

    Raises:
        ConfigError: Its observations have another number of numbers, or its actions have, or one
            of them is none of the choices that there are.
    """
    _require_numbers("observation", columns["obs"], seen, where)
    actions = _require_numbers("action", columns["actions"], acts, where)
    if actions is None or type(acts).__name__ != "Discrete":
        return
    choices: Any = acts
    first, last = int(choices.start), int(choices.start + choices.n) - 1
    if actions.min() < first or actions.max() > last:
        raise ConfigError(
            f"The recording has an action {actions.min()} and an action {actions.max()}; the "
            f"policy's are {first} to {last}.",
            where=where,
            fix="Give the environment, or the action_space, that was recorded.",
        )


def _require_numbers(
    what: str, column: object, space: Space[Any], where: str
) -> np.ndarray[Any, Any] | None:
    """The column as an array of numbers; None where it is none."""
    try:
        values = np.asarray(column)
    except ValueError:  # parts of several lengths
        return None
    asked = _count(space)
    if not np.issubdtype(values.dtype, np.number) or not values.size or asked is None:
        return None
    found = int(np.prod(values.shape[1:]))
    if found != asked:
        raise ConfigError(
            f"The recording has {found} numbers in an {what}, and the policy {asked}: its space is "
            f"{space}.",
            where=where,
            fix="Give the environment or the spaces that were recorded, and the recording's Ray as "
            "legacy_ray: before 1.2, a MultiDiscrete was observed as it is, and then one-hot.",
        )
    return values


def _count(space: Space[Any]) -> int | None:
    """How many numbers something of a space is, parts of it in one vector."""
    parts = {"Tuple": list, "Dict": lambda space: list(space.values())}
    if (kind := type(space).__name__) in parts:
        counts = [_count(part) for part in parts[kind](space)]
        return None if None in counts else sum(filter(None, counts))
    return None if space.shape is None else int(np.prod(space.shape))
