"""What workers of the old API stack took from users until Ray 1.13, and lost with the connectors.

Ray's connectors (2.0 and later, `connectors/util.py`) know its own observation filters by name, and
policies that say `is_recurrent`. Before, a filter could be a function of the observations' shape,
and a policy kept a state if `get_initial_state` gave one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any


def agent_steps(episode: Any, agent: Any) -> int:
    """How many steps of an agent an episode of the old API stack has, which counts no other way."""
    return len(episode._agent_reward_history[agent])


class TakesOldPolicies:
    """What a `RolloutWorker` needs to make connectors for policies and filters of old."""

    policy_map: Mapping[str, Any]
    filters: dict[str, Any]

    def _update_filter_dict(self, policy_dict: Any) -> None:
        own: dict[str, Any] = {}
        for policy_id in policy_dict:
            policy = self.policy_map[policy_id]
            if policy.agent_connectors is not None:
                continue
            _say_that_it_keeps_a_state(policy)
            if callable(made_by := policy.config.get("observation_filter")):
                own[policy_id] = made_by
                policy.config["observation_filter"] = "NoFilter"
        super()._update_filter_dict(policy_dict)  # type: ignore[misc]
        for policy_id, made_by in own.items():
            policy = self.policy_map[policy_id]
            policy.config["observation_filter"] = made_by
            self.filters[policy_id] = _insert_filter(policy, made_by)


def _say_that_it_keeps_a_state(policy: Any) -> None:
    from ray.rllib.policy.policy import Policy

    says = type(policy).is_recurrent is not Policy.is_recurrent
    if not says and type(policy).get_initial_state is not Policy.get_initial_state:
        policy.is_recurrent = lambda: bool(policy.get_initial_state())


def _insert_filter(policy: Any, made_by: Any) -> Any:
    """Puts a filter of the user's own where Ray's stand: after preprocessing."""
    from ray.rllib.connectors.agent.state_buffer import StateBufferConnector
    from ray.rllib.connectors.connector import ConnectorContext

    made = made_by(policy.observation_space.shape)
    connector = _connector_class()(ConnectorContext.from_policy(policy), made)
    policy.agent_connectors.insert_before(StateBufferConnector.__name__, connector)
    return made


@cache
def _connector_class() -> type:
    from ray.rllib.connectors.agent.synced_filter import SyncedFilterAgentConnector
    from ray.rllib.policy.sample_batch import SampleBatch

    class OwnFilterConnector(SyncedFilterAgentConnector):  # type: ignore[misc]
        """Calls a filter of the user's own."""

        def __init__(self, ctx: Any, made: Any) -> None:
            super().__init__(ctx)
            self.filter = made

        def transform(self, ac_data: Any) -> Any:
            """Filters observations; they count for its statistics in training only."""
            for column in (SampleBatch.OBS, SampleBatch.NEXT_OBS):
                if column in ac_data.data:
                    observation = ac_data.data[column]
                    ac_data.data[column] = self.filter(observation, update=self._is_training)
            return ac_data

        def to_state(self) -> tuple[str, Any]:
            """Its name; the filter's own state is saved among those of the worker."""
            return type(self).__name__, None

    return OwnFilterConnector
