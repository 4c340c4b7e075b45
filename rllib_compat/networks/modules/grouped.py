"""What a group of agents observes: the Tuple of their spaces, as a Dict of three arrays.

`MultiAgentEnv.with_agent_groups` makes the Tuple. Each agent's part is a space of its own, or a
Dict with `obs`, and perhaps with `action_mask` and `state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from rllib_compat.neutral.errors import ConfigError

OBS, MASK, STATE = "obs", "action_mask", "state"


def grouped_space(space: Any) -> gymnasium.spaces.Dict:
    """The space of what `grouped` makes of a group's observations.

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


def grouped(space: Any, observation: Any) -> dict[str, Any]:
    """One observation of a group as arrays of `grouped_space(space)`.

    Discrete parts become one-hot, as in RLlib's preprocessors. The state is that of the first
    agent.
    """
    first = space.spaces[0]
    if not isinstance(first, gymnasium.spaces.Dict):
        return {OBS: np.stack([_flat(first, part) for part in observation])}
    made = {OBS: np.stack([_flat(first[OBS], part[OBS]) for part in observation])}
    if MASK in first.spaces:
        made[MASK] = np.stack([np.asarray(part[MASK], np.float32).ravel() for part in observation])
    if STATE in first.spaces:
        made[STATE] = _flat(first[STATE], observation[0][STATE])
    return made


def _flat(space: Any, value: Any) -> Any:
    return np.asarray(gymnasium.spaces.flatten(space, value), np.float32)


def _box(*shape: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)


def _is_grouped(space: Mapping[str, Any]) -> bool:
    seen = space.get(OBS)
    return isinstance(seen, gymnasium.spaces.Box) and len(seen.shape) == 2
