"""Checks that recorded steps match a policy's spaces, before torch raises errors about shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    from gymnasium import Space
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode


def require_fit(columns: Mapping[str, Any], seen: Space[Any], acts: Space[Any], where: str) -> None:
    """Checks that a recorded batch matches the spaces of a policy.

    Raises:
        ConfigError: Observations or actions have another size, an observation has no number, or an
            action is out of range.
    """
    observations = _require_numbers("observation", columns["obs"], seen, where)
    if observations is not None and not np.isfinite(observations).all():
        raise ConfigError(
            "The recording has observations that are NaN or infinite.",
            where=where,
            fix="remove these episodes from the recording",
        )
    actions = _require_numbers("action", columns["actions"], acts, where)
    if actions is None:
        return
    numbers = actions.reshape(len(actions), -1).T
    for values, (first, last) in zip(numbers, _ranges(acts), strict=True):
        is_whole = math.isinf(first) or not (values % 1).any()
        if not (is_whole and ((values >= first) & (values <= last)).all()):
            raise ConfigError(
                f"The recording has actions from {values.min():g} to {values.max():g}, and the "
                f"policy from {first:g} to {last:g}: its space is {acts}.",
                where=where,
                fix="set the environment, or the action_space, of the recording",
            )


class Extremes:
    """The least and the largest values of recorded episodes, by their shapes."""

    def __init__(self) -> None:
        self._found: dict[Any, dict[str, np.ndarray[Any, Any]]] = {}

    def add(self, episode: SingleAgentEpisode) -> None:
        """Adds the observations and actions of an episode, where they are numbers."""
        columns = {"obs": episode.get_observations(), "actions": episode.get_actions()}
        if not all(_are_numbers(column) and len(column) for column in columns.values()):
            return
        found = self._found.setdefault(tuple(c.shape[1:] for c in columns.values()), {})
        for name, column in columns.items():
            rows = np.concatenate([found[name], column]) if name in found else column
            low, high = rows.min(axis=0), rows.max(axis=0)
            # The third row has a fraction if any of them has one.
            more = [low + (rows % 1).max(axis=0)] if name == "actions" else []
            found[name] = np.stack([low, high, *more])

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """A few steps a shape, which `require_fit` refuses if it refuses any of the episodes."""
        return iter(self._found.values())


def _ranges(space: Any) -> list[tuple[float, float]]:
    """The first and the last value of each number of an action: those of choices are limited."""
    match type(space).__name__:
        case "Discrete":
            return [(space.start, space.start + space.n - 1)]
        case "MultiDiscrete":
            first = np.broadcast_to(space.start, space.nvec.shape).ravel()
            return list(zip(first, first + space.nvec.ravel() - 1, strict=True))
        case "Tuple":
            return [limits for part in space for limits in _ranges(part)]
        case "Dict":
            return [limits for part in space.values() for limits in _ranges(part)]
    return [(-math.inf, math.inf)] * int(np.prod(space.shape))


def _are_numbers(values: object) -> bool:
    return isinstance(values, np.ndarray) and np.issubdtype(values.dtype, np.number)


def _require_numbers(
    what: str, column: object, space: Space[Any], where: str
) -> np.ndarray[Any, Any] | None:
    """Returns a column as an array of numbers, or None if it is not one."""
    try:
        values = np.asarray(column)
    except ValueError:  # parts of different lengths
        return None
    if values.dtype.kind in "US":
        raise ConfigError(
            f"The recording has {what}s that are text.",
            where=where,
            fix="write them as numbers: what the environment's space has",
        )
    expected = _count(space)
    if not _are_numbers(values) or not values.size or expected is None:
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
