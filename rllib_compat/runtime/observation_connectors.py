"""Env-to-module connectors that replace an episode's last observation.

Each writes the new observation into the episode, so that learners see the same. It also sets the
episode's observation space, since an episode rejects an observation outside its space.
`connectors.py` decides which of them a config gets.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import tree
from ray.rllib.connectors import env_to_module
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.utils.filter import MeanStdFilter as Filter
from ray.rllib.utils.spaces.space_utils import flatten_to_single_ndarray, get_base_struct_from_space

from rllib_compat.networks.modules.grouped import Grouping, grouped_space
from rllib_compat.networks.ops.in_numpy import one_hot
from rllib_compat.networks.previous_steps import Previous, choices_in
from rllib_compat.neutral.checkpoint import cut_to_integers
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import connectors
from rllib_compat.ray_versions import episodes as ray_episodes
from rllib_compat.runtime.preprocessors import LegacyPreprocessor, has_integers

if TYPE_CHECKING:
    import gymnasium
    from gymnasium import Space

    from rllib_compat.ray_versions.types import SingleAgentEpisode


def with_floats(space: gym.Space[Any]) -> gym.Space[Any]:
    """Returns the space with its integer parts as float32."""
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({k: with_floats(part) for k, part in space.spaces.items()})
    if not has_integers(space):
        return space
    assert isinstance(space, gym.spaces.Box)
    return gym.spaces.Box(
        space.low.astype(np.float32), space.high.astype(np.float32), space.shape, np.float32
    )


@public("rllib_compat.adapters")
class FloatSpace(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Casts integer observations, and their space, to float32.

    Ray's modules take only floats, as its old models did. So does its filter, which sets infinite
    bounds on the space.
    """

    needs_no_batch = True

    def recompute_output_observation_space(
        self,
        input_observation_space: gym.Space[Any],
        input_action_space: gym.Space[Any],  # noqa: ARG002 (Ray passes it by name)
    ) -> gym.Space[Any]:
        """Returns the space with its integer parts as float32."""
        return with_floats(input_observation_space)

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: object) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            seen = np.asarray(episode.get_observations(-1))
            if not np.issubdtype(seen.dtype, np.integer):
                continue
            episode.observation_space = with_floats(episode.observation_space)
            episode.set_observations(at_indices=-1, new_data=seen.astype(np.float32))
        return batch


@public("rllib_compat.adapters")
class LegacyObservations(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Applies a legacy preprocessor to the parts of observations that it changes."""

    needs_no_batch = True
    replaces_observations = True

    def __init__(self, preprocessor: LegacyPreprocessor, **ray: object) -> None:
        super().__init__(preprocessor=preprocessor, **ray)
        self._preprocessor = preprocessor

    def recompute_output_observation_space(
        self,
        input_observation_space: gym.Space[Any],
        input_action_space: object,  # noqa: ARG002 (Ray passes it by name)
    ) -> gym.Space[Any]:
        """Returns the space of the preprocessed observations."""
        space: gym.Space[Any] = space_after(self._preprocessor, input_observation_space)
        return space

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: object) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in self.single_agent_episode_iterator(episodes, agents_that_stepped_only=True):
            space = self.input_observation_space
            if episode.agent_id is not None:
                space = space[episode.agent_id]
            made = self.preprocess(space, episode.get_observations(-1))
            episode.observation_space = space_after(self._preprocessor, space)
            episode.set_observations(at_indices=-1, new_data=made)
        return batch

    def preprocess(self, space: object, observation: Any) -> Any:
        """Preprocesses an observation of a space."""
        if isinstance(space, gym.spaces.Dict):
            return {key: self.preprocess(part, observation[key]) for key, part in space.items()}
        if isinstance(space, gym.spaces.Tuple):
            return tuple(map(self.preprocess, space, observation))
        if self._shape(space) is None:
            return observation
        return self._preprocessor(np.asarray(observation))

    def _shape(self, space: object) -> tuple[int, ...] | None:
        return _shape_after(self._preprocessor, space)


def space_after(preprocessor: LegacyPreprocessor, space: object) -> Any:
    """Returns the space of a space's observations after a preprocessor."""
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({k: space_after(preprocessor, v) for k, v in space.items()})
    if isinstance(space, gym.spaces.Tuple):
        return gym.spaces.Tuple([space_after(preprocessor, part) for part in space])
    shape = _shape_after(preprocessor, space)
    # RLlib declared -1 to 1 for all preprocessed observations, which may lie outside.
    return space if shape is None else gym.spaces.Box(-np.inf, np.inf, shape, np.float32)


def changes(preprocessor: LegacyPreprocessor, space: object) -> bool:
    """Whether a preprocessor changes any part of a space."""
    return space is not None and space_after(preprocessor, space) != space


def _shape_after(preprocessor: LegacyPreprocessor, space: Any) -> tuple[int, ...] | None:
    """Returns the shape of a space's arrays after a preprocessor; None: it changes nothing."""
    if isinstance(space, gym.spaces.MultiDiscrete):
        return None if preprocessor.encodes_choices else space.shape
    known = isinstance(space, gym.spaces.Box) and preprocessor.changes(space.shape)
    return preprocessor.shape(space.shape) if known else None


def set_original_space(made: Any, seen: Any) -> Any:
    """Sets the `original_space` of a space that a connector has made, and returns the space.

    As in old Rays, `original_space` is the space before all connectors. Networks for observations
    of several parts need it to split the flat vector, and to build convolutions for images in it.

    Args:
        made: The space that the connector returns, or a Dict of one for each agent; changed in
            place.
        seen: The space that the connector was given, likewise.
    """
    if isinstance(made, gym.spaces.Dict) and isinstance(seen, gym.spaces.Dict):
        for agent, space in made.spaces.items():
            set_original_space(space, seen[agent])
    elif made is not None and made is not seen:
        made.original_space = getattr(seen, "original_space", seen)
    return made


_FlattenObservations: Any = connectors.flatten_observations()


@public("rllib_compat.adapters")
class FlattenObservations(_FlattenObservations):  # type: ignore[misc]  # Ray has no types
    """Flattens observations; see `set_original_space`."""

    needs_no_batch = True

    def recompute_output_observation_space(
        self, input_observation_space: object, input_action_space: object
    ) -> Any:
        """The space of the vectors."""
        made = super().recompute_output_observation_space(
            input_observation_space, input_action_space
        )
        return set_original_space(made, input_observation_space)


@public("rllib_compat.adapters")
class OriginalSpace(ConnectorV2):  # type: ignore[misc]
    """Restores the `original_space` that the connectors before it lost; changes nothing else.

    Args:
        original: The space before all connectors, or a Dict of one for each agent.
    """

    def __init__(self, *spaces: object, original: object, **kwargs: object) -> None:
        self._original = original  # first: the base class computes the output space
        super().__init__(*spaces, original=original, **kwargs)

    def recompute_output_observation_space(
        self,
        input_observation_space: object,
        input_action_space: object,  # noqa: ARG002 (Ray passes it by name)
    ) -> Any:
        """Returns the space with its `original_space`."""
        return set_original_space(copy.deepcopy(input_observation_space), self._original)

    def __call__(self, *, batch: Mapping[str, Any], **_: object) -> Any:
        """Returns the batch unchanged."""
        return batch


@public("rllib_compat.adapters")
class PreviousSteps(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Appends previous actions `[n k]` and rewards `[n]` to each observation, as one vector.

    Ray's own `PrevActionsPrevRewards` encodes actions as one-hot, all zeros before the first step.
    RLlib's recurrent models took flattened actions unchanged, where 0 means the first choice. It
    also returns dicts, which learners of Ray 2.40 cannot split into sequences.

    It comes after the connectors that change the observation itself.

    Args:
        actions: The number of previous actions, oldest first.
        rewards: The number of previous rewards, oldest first.
        one_hot: Whether discrete actions are one-hot, as new networks take them; old networks
        encode them themselves.
        multi_agent: Whether spaces are given by agent.
    """

    needs_no_batch = True
    replaces_observations = True

    def __init__(
        self,
        *spaces: object,
        actions: int,
        rewards: int,
        one_hot: bool = False,
        multi_agent: bool = False,
        **kwargs: object,
    ) -> None:
        # First: the base class computes the output space.
        self._actions, self._rewards, self._multi_agent = actions, rewards, multi_agent
        self._one_hot = one_hot
        super().__init__(*spaces, **kwargs)

    def recompute_output_observation_space(
        self, input_observation_space: Any, input_action_space: Any
    ) -> Any:
        """Returns the output space, or None while the input space is not known."""
        if input_observation_space is None or input_action_space is None:
            return None
        if not self._multi_agent:
            return self._space(input_observation_space, input_action_space)
        by_agent = input_observation_space.spaces.items()
        return gym.spaces.Dict(
            {agent: self._space(space, input_action_space[agent]) for agent, space in by_agent}
        )

    def __call__(self, *, batch: Mapping[str, Any], episodes: list[Any], **_: object) -> Any:
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
            episode.observation_space = (
                self.observation_space[episode.agent_id]
                if self._multi_agent
                else self.observation_space
            )
        return batch

    def _last_actions(self, episode: SingleAgentEpisode, space: Space[Any]) -> Any:
        """Concatenates the last actions, with zeros for those before the first step."""
        have = min(episode.actions.len_incl_lookback(), self._actions)
        taken = [episode.get_actions(-i) for i in range(have, 0, -1)]
        flat = [flatten_to_single_ndarray(action) for action in taken]
        choices = choices_in(space)
        missing = np.zeros((self._actions - have) * len(choices))
        numbers = np.concatenate([missing, *flat], axis=None)
        parts = choices * self._actions
        return one_hot({}, {"parts": parts}, numbers) if self._one_hot else numbers

    def _space(self, observation: Any, action: object) -> Any:
        parts = choices_in(action)
        parts = parts if self._one_hot else (0,) * len(parts)
        size = int(np.prod(observation.shape)) + Previous(self._actions, self._rewards, parts).size
        made = gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)
        return set_original_space(made, observation)


#: The key of a filter's state for the statistics of its own env runner.
SEEN = "seen"
#: The key of a filter's state for the integer type of its output.
INTEGERS = "integers"


def integer_type(space: Any) -> str | None:
    """Returns the integer type in which a filter of an old Ray took a space; None: as floats.

    Tuple, Dict and Discrete spaces were flattened to vectors of floats before the filter.
    """
    whole = isinstance(space, gym.spaces.MultiBinary) or (
        isinstance(space, gym.spaces.Box) and has_integers(space)
    )
    return str(space.dtype) if whole else None


@public("rllib_compat.adapters")
class MeanStdFilter(env_to_module.MeanStdFilter):  # type: ignore[misc]  # Ray has no types
    """Ray's filter, which counts each observation of several env runners once when they are merged.

    Ray 2.40 - 2.47 adds all observations of each env runner at each report. Later Rays take the
    change of the mean for the mean of the new observations, so that means fall towards 0.

    Each state has the statistics of all observations of its env runner, and this object remembers
    which it has counted: IMPALA and APPO drop some states, and receive others late.
    """

    needs_no_batch = True

    def __init__(self, *spaces: object, **settings: object) -> None:
        super().__init__(*spaces, **settings)
        connectors.merge_states_by_class()
        #: Policy → the integer type of the filter's output, if it is one.
        self._integers: dict[str | None, str] = {}
        self._observations: Any = None
        self._counted: dict[str, list[Any]] = {}

    def keep_integers(self, space: gymnasium.Space[Any] | None) -> None:
        """Truncates filtered integer observations to integers, as filters did since Ray 1.10.

        Args:
            space: The space before all connectors, or a Dict of one for each agent.
        """
        self._observations = space
        if not self._multi_agent and (kind := integer_type(space)) is not None:
            self._integers[None] = kind

    @property
    def integers(self) -> str | None:
        """The integer type of a single agent's filtered observations; None: they are floats."""
        return self._integers.get(None)

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **others: object) -> Any:
        """Normalizes each episode's last observation."""
        batch = super().__call__(batch=batch, episodes=episodes, **others)
        if self.integers is not None:
            for episode in episodes:
                cut = cut_to_integers(episode.get_observations(-1), self.integers)
                episode.set_observations(at_indices=-1, new_data=cut)
        return batch

    def get_state(self, *args: object, **kwargs: object) -> Any:
        """Returns the statistics, and those of this env runner's own observations."""
        state = super().get_state(*args, **kwargs)
        for key, own in self._filters.items():
            state[key][SEEN] = connectors.filter_report(own)
            if key in self._integers:
                state[key][INTEGERS] = self._integers[key]
        return state

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets the statistics."""
        super().set_state(state)
        self._integers |= {k: own[INTEGERS] for k, own in state.items() if INTEGERS in own}

    def merge_states(self, states: list[Mapping[str, Any]]) -> Any:
        """Adds the observations of several env runners that were not counted yet."""
        if self._filters is None:
            self._init_new_filters()
        for state in states:
            for key, own in state.items():
                connectors.count_report(self._filters[key], own[SEEN], self._counted)
        return self.get_state()


@public("rllib_compat.adapters")
class PolicyMeanStdFilter(MeanStdFilter):
    """Normalizes observations by running statistics for each policy.

    Ray's own filter has statistics for each agent. Only the mapping function knows an agent's
    policy, and only once the agent has appeared; so the filter gets the policy from the episode.
    """

    def __call__(self, *, batch: dict[str, Any], episodes: list[Any], **_: object) -> Any:
        """Normalizes each agent's last observation."""
        filters = self._by_policy()
        for episode in episodes:
            for agent in self.single_agent_episode_iterator([episode]):
                module_id = episode.module_for(agent.agent_id)
                if module_id not in filters:
                    # After Ray's FlattenObservations, `agent.observation_space` may be that of all
                    # agents.
                    space = self.input_observation_space[agent.agent_id]
                    filters[module_id] = self._new_filter(_shape(space))
                if self._observations is not None:
                    kind = integer_type(self._observations[agent.agent_id])
                    self._integers |= {} if kind is None else {module_id: kind}
                seen = agent.get_observations(indices=-1)
                new = filters[module_id](seen, update=self._update_stats)
                new = cut_to_integers(new, self._integers.get(module_id))
                agent.set_observations(at_indices=-1, new_data=new)
                agent.observation_space = self.observation_space[agent.agent_id]
        return batch

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Sets the statistics of each policy."""
        self._require(state)
        super().set_state(state)

    def merge_states(self, states: list[Mapping[str, Any]]) -> Any:
        """Adds the observations of several env runners, policy by policy."""
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

    def add_filters(self, observation_spaces: Mapping[str, object]) -> None:
        """Creates the filters of policies that have seen nothing yet."""
        filters = self._by_policy()
        for policy, space in observation_spaces.items():
            if policy not in filters:
                filters[policy] = self._new_filter(_shape(space))

    def _new_filter(self, shape: object) -> Any:
        return Filter(shape, self.de_mean_to_zero, self.de_std_to_one, self.clip_by_value)

    def _require(self, state: Mapping[str, Any]) -> None:
        """Creates the filters that a state has and this object lacks."""
        filters = self._by_policy()
        for module_id, own in state.items():
            if module_id not in filters:
                filters[module_id] = self._new_filter(own["shape"])


def _shape(space: object) -> Any:
    """Returns the shape of each part of an observation; None: the part is not normalized."""
    return tree.map_structure(_of_part, get_base_struct_from_space(space))


def _of_part(space: Space[Any]) -> Any:
    is_number = isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
    return None if is_number else np.array(space.shape)


@public("rllib_compat.adapters")
class GroupedObservations(ConnectorV2):  # type: ignore[misc]  # Ray has no types
    """Combines the observations of a group's agents into arrays."""

    def __init__(self, *spaces: object, multi_agent: bool = True, **kwargs: object) -> None:
        # First: the base class computes the output space.
        self._multi_agent = multi_agent
        self._groupings: dict[Any, Grouping] = {}
        super().__init__(*spaces, **kwargs)

    def recompute_output_observation_space(
        self,
        input_observation_space: Any,
        input_action_space: object,  # noqa: ARG002 (Ray passes it by name)
    ) -> Any:
        """Returns the output space, or None while the input space is not known."""
        self._groupings.clear()
        if input_observation_space is None:
            return None
        if not self._multi_agent:
            return grouped_space(input_observation_space)
        by_agent = input_observation_space.spaces.items()
        return gym.spaces.Dict({agent: grouped_space(space) for agent, space in by_agent})

    def __call__(self, *, batch: Mapping[str, Any], episodes: list[Any], **_: object) -> Any:
        """Rewrites the last observation of each episode that has just stepped."""
        for episode in _parts_that_stepped(episodes):
            observation = episode.get_observations(-1)
            if isinstance(observation, Mapping):
                continue  # some Rays (2.48) pass an episode's last observation twice
            before, after = self.input_observation_space, self.observation_space
            if self._multi_agent:
                before, after = before[episode.agent_id], after[episode.agent_id]
            grouping = self._groupings.get(episode.agent_id)
            if grouping is None:
                grouping = self._groupings[episode.agent_id] = Grouping(before)
            if episode.observation_space is not after:
                episode.observation_space = after
            episode.set_observations(at_indices=-1, new_data=grouping(observation))
        return batch


def _parts_that_stepped(episodes: list[Any]) -> Iterator[Any]:
    """Yields the single-agent episodes of the agents that have just stepped."""
    for episode in episodes:
        if not hasattr(episode, "agent_episodes"):
            yield episode
            continue
        for agent_id in ray_episodes.agents_that_stepped(episode):
            yield episode.agent_episodes[agent_id]
