"""Observation filters: each observation counts once, and each policy has statistics, as before.

Ray's own `MeanStdFilter` has them for each agent. Which agents have which policy is known only to
the mapping function, and only as the agents appear; the filter therefore asks each episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tree
from gymnasium.spaces import Discrete, MultiDiscrete
from ray.rllib.connectors import env_to_module
from ray.rllib.utils.filter import MeanStdFilter as Filter
from ray.rllib.utils.spaces.space_utils import get_base_struct_from_space

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import connectors

#: The key of a filter's state for what it has seen since it was last given one.
SEEN = "seen_since"


@public("rllib_compat.adapters")
class MeanStdFilter(env_to_module.MeanStdFilter):  # type: ignore[misc]  # Ray has no types
    """Ray's filter, with which several env runners add up what each of them has seen, once.

    Ray 2.40 - 2.47 adds up all that each has ever seen whenever they tell it. Later ones take what
    new observations have moved the mean by for their mean, so that means fall towards 0.
    """

    def get_state(self, *args: Any, **kwargs: Any) -> Any:
        """The statistics, and what was seen since they were last given."""
        state = super().get_state(*args, **kwargs)
        for key, told in self._filters.items():
            state[key][SEEN] = connectors.seen_since(told)
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes statistics."""
        super().set_state(state)
        for told in self._filters.values():
            told.reset_buffer()

    def merge_states(self, states: list[Mapping[str, Any]]) -> Any:
        """Adds what several env runners have seen."""
        if self._filters is None:
            self._init_new_filters()
        for state in states:
            for key, told in state.items():
                connectors.add_seen(self._filters[key], told[SEEN])
        return self.get_state()


@public("rllib_compat.adapters")
class PolicyMeanStdFilter(MeanStdFilter):
    """Normalises observations by running statistics of all agents that have a policy."""

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: Any) -> Any:
        """Replaces each agent's last observation by the normalised one."""
        filters = self._by_policy()
        for episode in episodes:
            for agent in self.single_agent_episode_iterator([episode]):
                module_id = episode.module_for(agent.agent_id)
                if module_id not in filters:
                    filters[module_id] = self._new_filter(_shape(agent.observation_space))
                seen = agent.get_observations(indices=-1)
                new = filters[module_id](seen, update=self._update_stats)
                agent.set_observations(at_indices=-1, new_data=new)
                agent.observation_space = self.observation_space[agent.agent_id]
        return batch

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Takes the statistics of each policy."""
        self._require(state)
        super().set_state(state)

    def merge_states(self, states: list[Mapping[str, Any]]) -> Any:
        """Adds what several env runners saw; policies may differ in their observations."""
        for state in states:
            self._require(state)
        return super().merge_states(states)

    def _init_new_filters(self) -> None:
        self._filters: dict[str, Any] | None = {}

    def _by_policy(self) -> dict[str, Any]:
        if self._filters is None:
            self._init_new_filters()
        assert self._filters is not None
        return self._filters

    def _new_filter(self, shape: Any) -> Any:
        return Filter(shape, self.de_mean_to_zero, self.de_std_to_one, self.clip_by_value)

    def _require(self, state: Mapping[str, Any]) -> None:
        """Makes sure that there is a filter for each policy of a state."""
        filters = self._by_policy()
        for module_id, own in state.items():
            if module_id not in filters:
                filters[module_id] = self._new_filter(own["shape"])


def _shape(space: Any) -> Any:
    """The shape of each part of an observation; None for those that are not normalised."""
    return tree.map_structure(_of_part, get_base_struct_from_space(space))


def _of_part(space: Any) -> Any:
    is_number = isinstance(space, Discrete | MultiDiscrete)
    return None if is_number else np.array(space.shape)
