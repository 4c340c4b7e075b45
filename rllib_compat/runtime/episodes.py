"""The episode object of Ray 0.5 – 2.x, as a view on today's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.neutral.errors import GoneError
from rllib_compat.registry.legacy_api import GONE, missing, names_with
from rllib_compat.runtime.batches import batch_builder_of
from rllib_compat.runtime.episode_records import EpisodeRecord
from rllib_compat.runtime.extra_batches import BatchBuilder, extra_episodes
from rllib_compat.runtime.policy_mapping import ONLY_AGENT, ONLY_POLICY, episode_number
from rllib_compat.runtime.recurrent_states import flatten_state

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch, SingleAgentEpisode
    from rllib_compat.runtime.workers import LegacyWorker


class LegacyEpisode:
    """One episode from its first reset to its end.

    Today's env runners cut an episode at the end of each sample into chunks that share an id.
    This object stays the same one; `follow` gives it the current chunk.

    Args:
        worker: The legacy view of the env runner.
        env_id: The index of the environment in the runner.

    Attributes:
        user_data: Anything the callbacks want to remember.
        custom_metrics: Numbers that reach the result as `<name>_mean`, `_min` and `_max`.
        hist_data: Lists that reach the result's `hist_stats`.
        media: Anything; reaches the result's `episode_media`.
    """

    def __init__(self, worker: LegacyWorker, env_id: int) -> None:
        self.worker = worker
        self.env_id = env_id
        self.user_data: dict[Any, Any] = {}
        self.custom_metrics: dict[str, Any] = {}
        self.hist_data: dict[str, list[Any]] = {}
        self.media: dict[str, Any] = {}
        self._chunk: Any = None
        # What was before the last `soft_reset`: so many times, steps, and rewards.
        self._before: tuple[int, int, dict[Any, float]] = (0, 0, {})
        # Chunks whose rewards a callback may have changed since, with what the agents got.
        self._kept_rewards: list[tuple[Any, dict[Any, float]]] = []

    def follow(self, chunk: SingleAgentEpisode) -> LegacyEpisode:
        """Goes on with `chunk`, a `SingleAgentEpisode` or `MultiAgentEpisode`."""
        self._chunk = chunk
        return self

    @property
    def episode_id(self) -> int:
        """The number of this episode, as mapping functions see it, too."""
        return episode_number(self.chunk_id) + self._before[0]

    @property
    def chunk_id(self) -> Any:
        """The id that all chunks of this episode have."""
        return self._chunk.id_

    @property
    def length(self) -> int:
        """The environment steps so far."""
        return self._steps() - self._before[1]

    def _steps(self) -> int:
        return int(self._chunk.env_t if self._multi_agent else self._chunk.t)

    def soft_reset(self) -> None:
        """Counts steps and rewards from here on, as another episode, and goes on in this one."""
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
        """The rewards so far by (agent, policy), as the environment gave them."""
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
        """What the agents got before it was clipped; nothing where that is not known."""
        envs = self.worker.sub_environments()
        env = envs[self.env_id] if self.env_id < len(envs) else None
        return getattr(env, "unclipped", None) or {}

    def keep_rewards(self, chunk: object) -> None:
        """Keeps the rewards of a chunk as the environment gave them, whatever is learned from."""
        self._kept_rewards.append((chunk, self._returns(chunk)))

    def _returns(self, chunk: object) -> dict[Any, float]:
        settled = next((returns for known, returns in self._kept_rewards if known is chunk), None)
        if settled is not None:
            return settled
        return {agent: float(part.get_return()) for agent, part in _by_agent(chunk).items()}

    @property
    def batch_builder(self) -> Any:
        """What was sampled of the episode since the last batch, by policy; a copy."""
        return batch_builder_of(self._chunk, self.policy_for)

    def new_batch_builder(self) -> BatchBuilder:
        """What collects steps of one's own, by agent, for `add_extra_batch`."""
        return BatchBuilder(self.policy_map)

    def add_extra_batch(self, batch: AnyBatch) -> None:
        """Lets the trainer learn from steps of one's own, beside those of the next sample.

        Args:
            batch: Observations, actions, rewards, `dones`, and what the policy computes of each
                step; of a trainer with one policy.

        Raises:
            GoneError: There are several policies.
            CompatError: The batch lacks what the policy computes.
        """
        self.worker.extra_episodes += extra_episodes(batch, self._chunk)

    def get_agents(self) -> list[Any]:
        """The agents that have taken part so far."""
        return list(_by_agent(self._chunk))

    def last_change_of(self, agent_id: object) -> Any:
        """What is another value each time that the environment says something of an agent.

        Returns:
            None, where it has said nothing of the agent in its last step. Ray repeats the last
            observation and info of an agent that waited when the episode ended.
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
        """The place of an agent among those of its environment."""
        return self.get_agents().index(agent_id)

    @property
    def policy_map(self) -> Mapping[str, Any]:
        """The policies by id."""
        found: Mapping[str, Any] = self.worker.policy_map
        return found

    @property
    def policy_mapping_fn(self) -> Any:
        """Which policy an agent has, as (agent id, episode) says."""
        return self.worker.policy_mapping_fn

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        return self.worker.callbacks

    @property
    def started(self) -> bool:
        """Whether the environment was reset: an episode begins with that."""
        return True

    @property
    def is_faulty(self) -> bool:
        """Whether the environment failed: then Ray drops the episode, and nobody is told."""
        return False

    @property
    def total_env_steps(self) -> int:
        """The environment steps so far."""
        return self.length

    @property
    def total_agent_steps(self) -> int:
        """The steps of all agents so far."""
        return sum(int(part.t) for part in _by_agent(self._chunk).values())

    @property
    def active_env_steps(self) -> int:
        """The environment steps since the last sample."""
        return len(self._chunk)

    @property
    def active_agent_steps(self) -> int:
        """The steps of all agents since the last sample."""
        return sum(len(part) for part in _by_agent(self._chunk).values())

    def has_init_obs(self, agent_id: object = None) -> bool:
        """Whether an agent, or any, has observed something."""
        return bool(_by_agent(self._chunk)) if agent_id is None else self._of(agent_id) is not None

    def policy_for(self, agent_id: object = ONLY_AGENT, refresh: bool = False) -> str:  # noqa: ARG002
        """The policy that acts for the agent, in the whole episode."""
        return str(self._chunk.module_for(agent_id)) if self._multi_agent else ONLY_POLICY

    def last_observation_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """The agent's last observation as the policy sees it (filtered), or None."""
        episode = self._of(agent_id)
        return None if episode is None else episode.get_observations(-1)

    def last_raw_obs_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """The agent's last observation as the environment gave it, or None.

        Raises:
            GoneError: A filter or preprocessor has replaced it, and nothing keeps the original.
        """
        raw = getattr(self.worker.sub_environments()[self.env_id], "last_raw_obs", None)
        if raw is not None:
            return raw.get(agent_id) if self._multi_agent else raw
        if not self.worker.keeps_observations():
            raise GoneError(
                "Today's filters replace the observation in the episode.",
                where="episode.last_raw_obs_for()",
                fix="keep it in the environment, or use last_observation_for()",
            )
        return self.last_observation_for(agent_id)

    def last_info_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """The agent's last info, or None."""
        episode = self._of(agent_id)
        return None if episode is None else episode.get_infos(-1)

    def last_action_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """The agent's last action, zeros before the first."""
        return self._action(agent_id, -1)

    def prev_action_for(self, agent_id: object = ONLY_AGENT) -> Any:
        """The agent's action before its last one, else zeros."""
        return self._action(agent_id, -2)

    def last_reward_for(self, agent_id: object = ONLY_AGENT) -> float:
        """The agent's last reward, 0 before the first."""
        return self._reward(agent_id, -1)

    def prev_reward_for(self, agent_id: object = ONLY_AGENT) -> float:
        """The agent's reward before its last one, else 0."""
        return self._reward(agent_id, -2)

    def rnn_state_for(self, agent_id: object = ONLY_AGENT) -> list[Any]:
        """The agent's last recurrent state, as the flat list that it was."""
        state = self.last_extra_action_outs_for(agent_id).get("state_out", [])
        return flatten_state(state, batched=False)

    def last_extra_action_outs_for(self, agent_id: object = ONLY_AGENT) -> dict[str, Any]:
        """What the policy computed along with the last action."""
        episode = self._of(agent_id)
        outputs = {} if episode is None else episode.extra_model_outputs
        told = {k: episode.get_extra_model_outputs(k, -1) for k, v in outputs.items() if len(v)}
        if "action_logp" in told:
            told["action_prob"] = np.exp(told["action_logp"])
        if told:
            told |= self._value(agent_id, episode)
        return told

    def _value(self, agent_id: object, episode: Any) -> dict[str, Any]:
        """What the critic, which env runners don't ask, says of what the last action was for."""
        import tree

        policy = self.policy_map[self.policy_for(agent_id)]
        if policy.is_recurrent():
            return {}
        seen = tree.map_structure(lambda part: np.asarray(part)[None], episode.get_observations(-2))
        found = policy.compute_actions(seen, explore=False)[2]
        return {name: found[name][0] for name in ("vf_preds",) if name in found}

    def last_pi_info_for(self, agent_id: object = ONLY_AGENT) -> dict[str, Any]:
        """The older name of `last_extra_action_outs_for`."""
        return self.last_extra_action_outs_for(agent_id)

    def last_done_for(self, agent_id: object = ONLY_AGENT) -> bool:
        """Whether the agent is done."""
        episode = self._of(agent_id)
        return bool(episode is not None and episode.is_done)

    def last_terminated_for(self, agent_id: object = ONLY_AGENT) -> bool:
        """Whether the agent has come to its end."""
        episode = self._of(agent_id)
        return bool(episode is not None and episode.is_terminated)

    def last_truncated_for(self, agent_id: object = ONLY_AGENT) -> bool:
        """Whether the agent's episode was cut."""
        episode = self._of(agent_id)
        return bool(episode is not None and episode.is_truncated)

    def record(self) -> EpisodeRecord:
        """What the driver has to know at the end."""
        return EpisodeRecord(
            self.length,
            self.total_reward,
            dict(self.agent_rewards),
            self.custom_metrics,
            self.hist_data,
            self.media,
        )

    def __dir__(self) -> list[str]:
        return names_with(self, "episode", self._chunk)

    def __getattr__(self, name: str) -> Any:
        if name in GONE["episode"] or name.startswith("_"):
            raise missing(self, "episode", name)
        # Callbacks that already know today's episodes find their methods here.
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
    """The single-agent episodes of a chunk."""
    if hasattr(chunk, "agent_episodes"):
        return dict(chunk.agent_episodes)
    return {ONLY_AGENT: chunk}


def terminate_truncated(chunk: SingleAgentEpisode) -> None:
    """Lets an episode that was cut, or a chunk that is the last of one, be over, in place.

    The old `step` had one flag, `done`, for an end and for a cut. Algorithms expect something after
    a cut, and nothing after an end.

    Args:
        chunk: A `SingleAgentEpisode`, or a `MultiAgentEpisode` with those of its agents.
    """
    for part in (chunk, *getattr(chunk, "agent_episodes", {}).values()):
        if part.is_truncated:
            part.is_terminated, part.is_truncated = True, False
