"""Previous actions and rewards beside the observation, as old recurrent networks took them.

Ray's own `PrevActionsPrevRewards` makes actions one-hot, and all zeros before the first step.
RLlib's models took flattened actions as they were, which are 0 then: the first of the choices. It
also makes dicts, which learners of Ray 2.40 can't cut into sequences; here is one vector of all.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.utils.spaces.space_utils import flatten_to_single_ndarray

from rllib_compat.networks.ops.in_numpy import one_hot
from rllib_compat.networks.wrappers.previous_steps import Previous, choices_in
from rllib_compat.neutral.public import public
from rllib_compat.runtime.original_space import with_original


@public("rllib_compat.adapters")
class PreviousSteps(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Puts previous actions `[n k]` and rewards `[n]` behind each observation, as one vector.

    It stands in the env-to-module pipeline, behind what changes the observation itself. The vector
    is written into the episode, so that learners see the same.

    Args:
        input_observation_space: The space of what comes in.
        input_action_space: The space of actions.
        actions: How many previous actions, oldest first.
        rewards: How many previous rewards, oldest first.
        one_hot: Whether a choice is as many numbers as there are choices, as new networks see it;
            the old ones make them themselves.
        multi_agent: Whether spaces are by agent.
    """

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        actions: int,
        rewards: int,
        one_hot: bool = False,
        multi_agent: bool = False,
        **kwargs: Any,
    ) -> None:
        # Before the base class, which asks for the space of what goes out.
        self._actions, self._rewards, self._multi_agent = actions, rewards, multi_agent
        self._one_hot = one_hot
        super().__init__(input_observation_space, input_action_space, **kwargs)

    def recompute_output_observation_space(
        self, input_observation_space: Any, input_action_space: Any
    ) -> Any:
        """The space of what goes out; None as long as that of what comes in is not known."""
        if input_observation_space is None or input_action_space is None:
            return None
        if not self._multi_agent:
            return self._space(input_observation_space, input_action_space)
        by_agent = input_observation_space.spaces.items()
        return gymnasium.spaces.Dict(
            {agent: self._space(space, input_action_space[agent]) for agent, space in by_agent}
        )

    def __call__(self, *, batch: Any, episodes: list[Any], **_: Any) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            space = self.input_action_space
            parts = [episode.get_observations(-1)]
            if self._actions:
                space = space[episode.agent_id] if self._multi_agent else space
                parts.append(self._last_actions(episode, space))
            if self._rewards:
                parts.append(episode.get_rewards(slice(-self._rewards, None), fill=0.0))
            made = np.concatenate([np.ravel(part) for part in parts]).astype(np.float32)
            episode.set_observations(at_indices=-1, new_data=made)
            # Without it, the episode would refuse what is not of its space.
            episode.observation_space = (
                self.observation_space[episode.agent_id]
                if self._multi_agent
                else self.observation_space
            )
        return batch

    def _last_actions(self, episode: Any, space: Any) -> Any:
        """The last actions one after the other; zeros for those before the first step."""
        have = min(episode.actions.len_incl_lookback(), self._actions)
        taken = [episode.get_actions(-i) for i in range(have, 0, -1)]
        flat = [flatten_to_single_ndarray(action) for action in taken]
        choices = choices_in(space)
        missing = np.zeros((self._actions - have) * len(choices))
        numbers = np.concatenate([missing, *flat], axis=None)
        parts = choices * self._actions
        return one_hot({}, {"parts": parts}, numbers) if self._one_hot else numbers

    def _space(self, observation: Any, action: Any) -> Any:
        parts = choices_in(action)
        parts = parts if self._one_hot else (0,) * len(parts)
        size = int(np.prod(observation.shape)) + Previous(self._actions, self._rewards, parts).size
        made = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        return with_original(made, observation)
