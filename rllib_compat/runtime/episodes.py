"""The episode object of Ray 0.5 – 2.x, as a view on the installed Ray's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import GoneError
from rllib_compat.ray_versions.episodes import return_of
from rllib_compat.registry.legacy_api import GONE, missing, names_with
from rllib_compat.runtime.batches import BatchBuilder, batch_builder_of, extra_episodes
from rllib_compat.runtime.policy_inputs import flatten_state
from rllib_compat.runtime.policy_mapping import ONLY_AGENT, ONLY_POLICY, episode_number
from rllib_compat.runtime.results import EpisodeRecord

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch, SingleAgentEpisode
    from rllib_compat.runtime.workers import LegacyWorker


class LegacyEpisode:
    """An episode from its reset to its end.

    At the end of each sample, env runners split an episode into chunks with the same id. There is
    one object for all chunks; `follow` sets the current one.

    Attributes:
        user_data: The callbacks' own data.
        custom_metrics: Numbers, which the result has as `<name>_mean`, `_min` and `_max`.
        hist_data: Lists, which the result has in `hist_stats`.
        media: Any objects, which the result has in `episode_media`.
    """

    def __init__(self, worker: LegacyWorker, env_id: int) -> None:
        self.worker = worker
        self.env_id = env_id
        self.user_data: dict[Any, Any] = {}
        self.custom_metrics: dict[str, Any] = {}
        self.hist_data: dict[str, list[Any]] = {}
        self.media: dict[str, Any] = {}
        self._chunk: Any = None
        # The number of `soft_reset`s, and the steps and rewards before the last one.
        self._before: tuple[int, int, dict[Any, float]] = (0, 0, {})
        # Chunks whose rewards callbacks may have changed, with the agents' original returns.
        self._kept_rewards: list[tuple[Any, dict[Any, float]]] = []

    def follow(self, chunk: SingleAgentEpisode) -> LegacyEpisode:
        """Sets the current chunk, a `SingleAgentEpisode` or `MultiAgentEpisode`."""
        self._chunk = chunk
        return self

    @property
    def episode_id(self) -> int:
        """The episode's id as an integer, the same as in mapping functions."""
        return episode_number(self.chunk_id) + self._before[0]

    @property
    def chunk_id(self) -> Any:
        """The id of all chunks of this episode."""
        return self._chunk.id_

    @property
    def length(self) -> int:
        """The number of environment steps so far."""
        return self._steps() - self._before[1]

    def _steps(self) -> int:
        return int(self._chunk.env_t if self._multi_agent else self._chunk.t)

    def soft_reset(self) -> None:
        """Counts the following steps and rewards as another episode, without a reset."""
        number, _, rewards = self._before
        for key, reward in self.agent_rewards.items():
            rewards = {**rewards, key: rewards.get(key, 0.0) + reward}
        self._before = (number + 1, self._steps(), rewards)

    @property
    def total_reward(self) -> float:
        """The sum of all rewards so far."""
        return float(sum(self.agent_rewards.values()))

    @property
    def agent_rewards(self) -> dict[tuple[Any, str], float]:
        """The sums of the environment's rewards so far, by (agent, policy)."""
        totals: dict[tuple[Any, str], float] = defaultdict(float)
        totals.update({key: -reward for key, reward in self._before[2].items()})
        if unclipped := self._unclipped():
            for agent, reward in unclipped.items():
                totals[agent, self.policy_for(agent)] += reward
            return totals
        for chunk in [*self.worker.earlier_chunks(self.chunk_id), self._chunk]:
            for agent, reward in self._returns(chunk).items():
                key = (agent, self.policy_for(agent))
                totals[key] += reward
        return totals

    def _unclipped(self) -> Mapping[Any, float]:
        """Returns the agents' unclipped rewards; empty if they are not known."""
        envs = self.worker.sub_environments()
        env = envs[self.env_id] if self.env_id < len(envs) else None
        return getattr(env, "unclipped", None) or {}

    def keep_rewards(self, chunk: object) -> None:
        """Remembers the environment's rewards of a chunk, which callbacks may change."""
        self._kept_rewards.append((chunk, self._returns(chunk)))

    def _returns(self, chunk: object) -> dict[Any, float]:
        settled = next((returns for known, returns in self._kept_rewards if known is chunk), None)
        if settled is not None:
            return settled
        return {agent: return_of(part) for agent, part in _by_agent(chunk).items()}

    @property
    def batch_builder(self) -> Any:
        """A copy of the steps since the last batch, by policy."""
        return batch_builder_of(self._chunk, self.policy_for)

    def new_batch_builder(self) -> BatchBuilder:
        """Returns a builder for the user's own steps by agent, for `add_extra_batch`."""
        return BatchBuilder(self.policy_map)

    def add_extra_batch(self, batch: AnyBatch) -> None:
        """Adds the user's own steps to the next sample.

        Args:
            batch: Observations, actions, rewards, `dones`, and the policy's outputs for each step;
                of a trainer with one policy.

        Raises:
            GoneError: The trainer has several policies.
            CompatError: The batch lacks an output of the policy.
        """
        self.worker.extra_episodes += extra_episodes(batch, self._chunk)

    def get_agents(self) -> list[Any]:
        """Returns the agents that have appeared so far."""
        return list(_by_agent(self._chunk))

    def change_marker(self, agent_id: object) -> Any:
        """Returns a value that changes each time the environment returns something for an agent.

        Returns:
            The value, or None if the last step returned nothing for the agent. Ray repeats the last
            observation and info of an agent that was waiting when the episode ended.
        """
        part = self._of(agent_id)
        if part is None:
            return None
        if self._multi_agent:
            times = self._chunk.env_t_to_agent_t[agent_id].data
            if not times or times[-1] == self._chunk.SKIP_ENV_TS_TAG:
                return None
            seen, infos = part.observations, part.infos
            if part.is_done and len(seen) > 1 and seen[-1] is seen[-2] and infos[-1] is infos[-2]:
                return None
        return id(part), part.t, len(part.observations)

    def agent_index(self, agent_id: object) -> int:
        """Returns the index of an agent in its environment."""
        return self.get_agents().index(agent_id)

    @property
    def policy_map(self) -> Mapping[str, Any]:
        """The policies by id."""
        found: Mapping[str, Any] = self.worker.policy_map
        return found

    @property
    def policy_mapping_fn(self) -> Any:
        """The function from (agent id, episode) to a policy id."""
        return self.worker.policy_mapping_fn

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        return self.worker.callbacks

    @property
    def started(self) -> bool:
        """True: the environment was reset."""
        return True

    @property
    def is_faulty(self) -> bool:
        """False: Ray drops the episodes of failed environments."""
        return False

    @property
    def total_env_steps(self) -> int:
        """The number of environment steps so far."""
        return self.length

    @property
    def total_agent_steps(self) -> int:
        """The number of steps of all agents so far."""
        return sum(int(part.t) for part in _by_agent(self._chunk).values())

    @property
    def active_env_steps(self) -> int:
        """The number of environment steps since the last sample."""
        return len(self._chunk)

    @property
    def active_agent_steps(self) -> int:
        """The number of steps of all agents since the last sample."""
        return sum(len(part) for part in _by_agent(self._chunk).values())

    def has_init_obs(self, agent_id: object = None) -> bool:
        """Whether an agent, by default any, has an observation."""
        return bool(_by_agent(self._chunk)) if agent_id is None else self._of(agent_id) is not None

    def policy_for(self, agent_id: object = ONLY_AGENT, refresh: bool = False) -> str:  # noqa: ARG002
        """Returns the agent's policy, which is the same for the complete episode."""
        return str(self._chunk.module_for(agent_id)) if self._multi_agent else ONLY_POLICY

    def last_observation_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """Returns the agent's last observation after filters, or None."""
        episode = self._of(agent_id)
        return None if episode is None else episode.get_observations(-1)

    def last_raw_obs_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """Returns the environment's last observation for the agent, or None.

        Raises:
            GoneError: A filter or preprocessor has replaced it.
        """
        raw = getattr(self.worker.sub_environments()[self.env_id], "last_raw_obs", None)
        if raw is not None:
            return raw.get(agent_id) if self._multi_agent else raw
        if not self.worker.keeps_observations():
            raise GoneError(
                "The original observation is lost: a filter or preprocessor has replaced it.",
                where="episode.last_raw_obs_for()",
                fix="store it in the environment, or call last_observation_for()",
            )
        return self.last_observation_for(agent_id)

    def last_info_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """Returns the agent's last info, or None."""
        episode = self._of(agent_id)
        return None if episode is None else episode.get_infos(-1)

    @property
    def _last_infos(self) -> dict[Any, Any]:
        """All last infos, by a private name that callbacks of Ray 2.1 – 2.9 had to use."""
        return {agent: self.last_info_for(agent) for agent in self.get_agents()}

    @property
    def _agent_to_policy(self) -> dict[Any, str]:
        return {agent: self.policy_for(agent) for agent in self.get_agents()}

    def last_action_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """Returns the agent's last action, or zeros."""
        return self._action(agent_id, -1)

    def prev_action_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """Returns the agent's second last action, or zeros."""
        return self._action(agent_id, -2)

    def last_reward_for(self, agent_id: object = ONLY_AGENT) -> float:
        """Returns the agent's last reward, or 0."""
        return self._reward(agent_id, -1)

    def prev_reward_for(self, agent_id: object = ONLY_AGENT) -> float:
        """Returns the agent's second last reward, or 0."""
        return self._reward(agent_id, -2)

    def rnn_state_for(self, agent_id: object = ONLY_AGENT) -> list[Any]:
        """Returns the agent's last recurrent state as a flat list."""
        state = self.last_extra_action_outs_for(agent_id).get("state_out", [])
        return flatten_state(state, batched=False)

    def last_extra_action_outs_for(self, agent_id: object = ONLY_AGENT) -> dict[str, Any]:
        """Returns the policy's other outputs for the last action."""
        episode = self._of(agent_id)
        outputs = {} if episode is None else episode.extra_model_outputs
        extras = {k: episode.get_extra_model_outputs(k, -1) for k, v in outputs.items() if len(v)}
        if "action_logp" in extras:
            extras["action_prob"] = np.exp(extras["action_logp"])
        if extras:
            extras |= self._value(agent_id, episode)
        return extras

    def _value(self, agent_id: object, episode: Any) -> dict[str, Any]:
        """Computes the critic's value before the last action, which env runners do not."""
        import tree

        policy = self.policy_map[self.policy_for(agent_id)]
        if policy.is_recurrent():
            return {}
        seen = tree.map_structure(lambda part: np.asarray(part)[None], episode.get_observations(-2))
        found = policy.compute_actions(seen, explore=False)[2]
        return {name: found[name][0] for name in ("vf_preds",) if name in found}

    def last_pi_info_for(self, agent_id: object = ONLY_AGENT) -> dict[str, Any]:
        """Returns `last_extra_action_outs_for()`, by its older name."""
        return self.last_extra_action_outs_for(agent_id)

    def last_done_for(self, agent_id: object = ONLY_AGENT) -> bool:
        """Whether the agent is done."""
        episode = self._of(agent_id)
        return bool(episode is not None and episode.is_done)

    def last_terminated_for(self, agent_id: object = ONLY_AGENT) -> bool:
        """Whether the agent is terminated."""
        episode = self._of(agent_id)
        return bool(episode is not None and episode.is_terminated)

    def last_truncated_for(self, agent_id: object = ONLY_AGENT) -> bool:
        """Whether the agent is truncated."""
        episode = self._of(agent_id)
        return bool(episode is not None and episode.is_truncated)

    def record(self) -> EpisodeRecord:
        """Returns the record of the episode for the driver."""
        rewards = self.agent_rewards
        return EpisodeRecord(
            self.length,
            float(sum(rewards.values())),
            dict(rewards),
            self.custom_metrics,
            self.hist_data,
            self.media,
        )

    def __dir__(self) -> list[str]:
        return names_with(self, "episode", self._chunk)

    def __getattr__(self, name: str) -> Any:
        if name in GONE["episode"] or name.startswith("_"):
            raise missing(self, "episode", name)
        # The methods of Ray's own episodes, for new callbacks.
        return getattr(self._chunk, name)

    @property
    def _multi_agent(self) -> bool:
        return hasattr(self._chunk, "agent_episodes")

    def _of(self, agent: object) -> Any:
        return _by_agent(self._chunk).get(agent)

    def _action(self, agent: object, index: int) -> Any:
        episode = self._of(agent)
        if episode is not None and len(episode.actions) >= -index:
            return episode.get_actions(index)
        space = self.worker.action_space(self.policy_for(agent))
        return np.zeros_like(space.sample())

    def _reward(self, agent: object, index: int) -> float:
        episode = self._of(agent)
        if episode is None or len(episode.rewards) < -index:
            return 0.0
        return float(episode.get_rewards(index))


def _by_agent(chunk: object) -> dict[Any, Any]:
    """Returns the single-agent episodes of a chunk by agent."""
    if hasattr(chunk, "agent_episodes"):
        return dict(chunk.agent_episodes)
    return {ONLY_AGENT: chunk}


def terminate_truncated(chunk: SingleAgentEpisode) -> None:
    """Marks a truncated episode, or the last chunk of one, as terminated, in place.

    The old `step` had only `done` for both. Algorithms use the value of the last observation of
    truncated episodes, and 0 for terminated ones.

    Args:
        chunk: A `SingleAgentEpisode`, or a `MultiAgentEpisode` with its agents' episodes.
    """
    for part in (chunk, *getattr(chunk, "agent_episodes", {}).values()):
        if part.is_truncated:
            part.is_terminated, part.is_truncated = True, False
