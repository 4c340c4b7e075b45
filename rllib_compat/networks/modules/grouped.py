"""What a group of agents observes: the Tuple of their spaces, as a Dict of three arrays.

`MultiAgentEnv.with_agent_groups` makes the Tuple. Each agent's part is a space of its own, or a
Dict with `obs`, and perhaps with `action_mask` and `state`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from rllib_compat.neutral.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

OBS, MASK, STATE = "obs", "action_mask", "state"


def grouped_space(space: object) -> gymnasium.spaces.Dict:
    """The space of what `Grouping` makes of a group's observations.

    Args:
        space: The group's observation space: a Tuple with a part for each agent. A space that was
            made here stays as it is.

    Returns:
        A Dict of Boxes: `obs` `[agents, n]`; `action_mask` `[agents, actions]` and `state` `[m]`
        where the agents' spaces have them.

    Raises:
        ConfigError: The space is no Tuple, or the agents' spaces differ.
    """
    if isinstance(space, gymnasium.spaces.Dict) and _is_grouped(space):
        return space
    if not isinstance(space, gymnasium.spaces.Tuple) or not space.spaces:
        raise ConfigError(
            f"A group of agents observes a Tuple, with a part for each agent, not {space}.",
            where="observation_space",
            fix="Group the agents: env.with_agent_groups(groups, obs_space=…, act_space=…).",
        )
    first, *others = space.spaces
    if any(other != first for other in others):
        raise ConfigError(
            f"All agents of a group observe the same space; here are {space}.",
            where="observation_space",
            fix="Pad the observations to one space, or make several groups.",
        )
    agents = len(space.spaces)
    if not isinstance(first, gymnasium.spaces.Dict):
        return gymnasium.spaces.Dict({OBS: _box(agents, gymnasium.spaces.flatdim(first))})
    if OBS not in first.spaces:
        raise ConfigError(
            f"A Dict that an agent of a group observes has a part called {OBS!r}, unlike {first}.",
            where="observation_space",
            fix=f"Call the part that the agent acts on {OBS!r}.",
        )
    parts: dict[str, gymnasium.Space[Any]] = {
        OBS: _box(agents, gymnasium.spaces.flatdim(first[OBS]))
    }
    if MASK in first.spaces:
        parts[MASK] = _box(agents, gymnasium.spaces.flatdim(first[MASK]))
    if STATE in first.spaces:
        parts[STATE] = _box(gymnasium.spaces.flatdim(first[STATE]))
    return gymnasium.spaces.Dict(parts)


class Grouping:
    """Makes arrays of what a group observes, as `grouped_space` describes them.

    Discrete parts become one-hot, as in RLlib's preprocessors. The state is that of the first
    agent.
    """

    def __init__(self, space: Any) -> None:
        first = space.spaces[0]
        self._has_parts = isinstance(first, gymnasium.spaces.Dict)
        parts = first.spaces if self._has_parts else {OBS: first}
        self._flat = {name: _flattening(part) for name, part in parts.items() if name in _PARTS}
        if MASK in self._flat:  # however it is declared, it is taken as it is
            self._flat[MASK] = partial(_vector, np.float32)

    def __call__(self, observation: Any) -> dict[str, Any]:
        """One observation of the group as arrays."""
        made = {}
        for name, flat in self._flat.items():
            if name == STATE:
                made[name] = flat(observation[0][name])
            else:
                seen = [part[name] if self._has_parts else part for part in observation]
                made[name] = np.array([flat(part) for part in seen])
        return made


_PARTS = (OBS, MASK, STATE)


def _flattening(space: Any) -> Callable[[Any], Any]:
    """What `gymnasium.spaces.flatten` does for a space, as floats; it looks for it each time."""
    kind = type(space)
    if kind is gymnasium.spaces.Box:
        return partial(_vector, space.dtype)
    if kind is gymnasium.spaces.Discrete:
        return partial(_one_hot, -space.start, int(space.n))
    if kind is gymnasium.spaces.MultiDiscrete and space.nvec.ndim == 1:
        places = np.cumsum(space.nvec) - space.nvec - space.start
        return partial(_one_hot, places, int(space.nvec.sum()))
    return partial(_flat, space)


def _vector(dtype: DTypeLike, value: object) -> Any:
    return np.asarray(value, dtype).ravel().astype(np.float32)


def _one_hot(places: Any, size: int, value: Any) -> Any:
    made = np.zeros(size, np.float32)
    made[places + value] = 1.0
    return made


def _flat(space: Any, value: Any) -> Any:
    return np.asarray(gymnasium.spaces.flatten(space, value), np.float32)


def _box(*shape: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)


def _is_grouped(space: Mapping[str, Any]) -> bool:
    seen = space.get(OBS)
    return isinstance(seen, gymnasium.spaces.Box) and len(seen.shape) == 2
