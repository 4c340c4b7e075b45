"""Prepares recorded episodes for recurrent modules, and for actions with several parts.

Ray samples complete episodes from a recording with repetition, and joins all steps with one id to
one sequence: then the mask of BC has the wrong size, and MARWIL's LSTM continues from one copy into
the next. And Ray splits an action recorded as one vector only if there is no time dimension.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import tree
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core.columns import Columns
from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer
from ray.rllib.offline.offline_prelearner import OfflinePreLearner
from ray.rllib.utils.numpy import convert_to_numpy

from rllib_compat.neutral.public import public

if TYPE_CHECKING:
    from gymnasium import Space

    from rllib_compat.ray_versions.types import RLModule


@public("rllib_compat.adapters")
class PreLearner(OfflinePreLearner):  # type: ignore[misc]  # Ray has no types
    """Ray's prelearner, with `DrawnEpisodes` before its connectors."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._learner_connector.prepend(DrawnEpisodes())


class DrawnEpisodes(ConnectorV2):  # type: ignore[misc]
    """Gives each sampled episode its own id, splits its actions, and adds recurrent states."""

    def __call__(
        self, *, rl_module: Any, batch: Mapping[str, Any], episodes: list[Any], **_: object
    ) -> Any:
        """Replaces the episodes in the list; those in the buffer are not changed."""
        module = rl_module[next(iter(rl_module.keys()))]  # recordings train one policy
        space = module.action_space
        for place, drawn in enumerate(episodes):
            episodes[place] = own = copy.copy(drawn)
            own.id_ = f"{drawn.id_}_{place}"
            recorded = drawn.actions.data
            if tree.is_nested(_parts(space)) and not _is_split(recorded):
                split = split_actions(np.asarray(recorded), space)
                if isinstance(recorded, list):
                    split = _step_by_step(split, len(recorded))
                own.actions = InfiniteLookbackBuffer(split, lookback=drawn.actions.lookback)
            if module.is_stateful() and Columns.STATE_OUT not in drawn.extra_model_outputs:
                own.extra_model_outputs = copy.copy(drawn.extra_model_outputs)
                own.extra_model_outputs[Columns.STATE_OUT] = _first_states(module, drawn)
        return batch


def _first_states(module: RLModule, episode: Any) -> InfiniteLookbackBuffer:
    """Returns a module's initial state for each step of an episode and the one before.

    Recordings have no states. Later Rays add this one; Ray 2.40 raises an error.
    """
    first = tree.map_structure(np.asarray, convert_to_numpy(module.get_initial_state()))
    steps = len(episode) + 1
    if isinstance(episode.rewards.data, list):  # some releases draw episodes before they are arrays
        return InfiniteLookbackBuffer([first] * steps, lookback=1)
    repeated = tree.map_structure(lambda part: np.repeat(part[None], steps, axis=0), first)
    return InfiniteLookbackBuffer(repeated, lookback=1)


def _is_split(recorded: object) -> bool:
    first = recorded[0] if isinstance(recorded, list) and recorded else recorded
    return not isinstance(first, np.ndarray)


def _step_by_step(columns: Mapping[str, Any], steps: int) -> list[Any]:
    return [tree.map_structure(lambda column, at=at: column[at], columns) for at in range(steps)]


def split_actions(actions: Any, space: gym.Space[Any]) -> Any:
    """Splits actions that were recorded as one vector each into the structure of their space.

    Args:
        actions: `[steps, numbers]`, parts of a Dict in the order of their keys.
        space: The space.
    """
    parts = _parts(space)
    found, at = [], 0
    for part in tree.flatten(parts):
        shape = () if isinstance(part, gym.spaces.Discrete) else part.shape
        size = int(np.prod(shape))
        column = actions[:, at : at + size].reshape(len(actions), *shape)
        found.append(column.astype(part.dtype))
        at += size
    return tree.unflatten_as(parts, found)


def _parts(space: Space[Any]) -> Any:
    if isinstance(space, gym.spaces.Dict):
        return {key: _parts(part) for key, part in space.items()}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(map(_parts, space))
    return space
