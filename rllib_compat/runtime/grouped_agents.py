"""Groups of agents: what they observe on the way to a module, and those of the old API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gymnasium
from ray.rllib.connectors.connector_v2 import ConnectorV2

from rllib_compat.networks.modules.grouped import Grouping, grouped_space
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import episodes as ray_episodes


@public("rllib_compat.adapters")
class GroupedObservations(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Makes arrays of what the agents of a group observe, and writes them into the episode.

    Args:
        input_observation_space: The space of what comes in.
        input_action_space: The space of actions.
        multi_agent: Whether spaces are by agent.
    """

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        multi_agent: bool = True,
        **kwargs: Any,
    ) -> None:
        # Before the base class, which asks for the space of what goes out.
        self._multi_agent = multi_agent
        self._groupings: dict[Any, Grouping] = {}
        super().__init__(input_observation_space, input_action_space, **kwargs)

    def recompute_output_observation_space(
        self,
        input_observation_space: Any,
        input_action_space: Any,  # noqa: ARG002 (Ray passes it by name)
    ) -> Any:
        """The space of what goes out; None as long as that of what comes in is not known."""
        self._groupings.clear()
        if input_observation_space is None:
            return None
        if not self._multi_agent:
            return grouped_space(input_observation_space)
        by_agent = input_observation_space.spaces.items()
        return gymnasium.spaces.Dict({agent: grouped_space(space) for agent, space in by_agent})

    def __call__(self, *, batch: Any, episodes: list[Any], **_: Any) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in _parts_that_stepped(episodes):
            observation = episode.get_observations(-1)
            if isinstance(observation, Mapping):
                continue  # Ray 2.48, for one, passes the last one of an episode twice
            before, after = self.input_observation_space, self.observation_space
            if self._multi_agent:
                before, after = before[episode.agent_id], after[episode.agent_id]
            grouping = self._groupings.get(episode.agent_id)
            if grouping is None:
                grouping = self._groupings[episode.agent_id] = Grouping(before)
            if episode.observation_space is not after:  # it would refuse what is not of its space
                episode.observation_space = after
            episode.set_observations(at_indices=-1, new_data=grouping(observation))
        return batch


def _parts_that_stepped(episodes: list[Any]) -> Iterator[Any]:
    """The agents' parts of episodes, of those agents that have just stepped."""
    for episode in episodes:
        if not hasattr(episode, "agent_episodes"):
            yield episode
            continue
        for agent_id in ray_episodes.agents_that_stepped(episode):
            yield episode.agent_episodes[agent_id]
