"""Episodes, and the callbacks that receive them."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from rllib_compat.ray_versions import renames
from rllib_compat.ray_versions.types import MultiAgentEpisode


def to_numpy(episode: object) -> Any:
    """Turns the lists in an episode, or in one of its buffers, into arrays, in place."""
    renames.method(episode, "to_numpy")()
    return episode


#: The attributes of an episode of one agent of which `add_steps` and `cut` know what becomes.
_KNOWN = frozenset(
    (
        *("id_", "agent_id", "module_id", "multi_agent_episode_id", "t", "t_started"),
        *("observations", "actions", "rewards", "infos", "extra_model_outputs"),
        *("is_terminated", "is_truncated", "_observation_space", "_action_space"),
        *("_custom_data", "_start_time", "_last_step_time"),
        *("_last_added_observation", "_last_added_infos"),
    )
)


def _is_known(episode: Any) -> bool:
    """Whether an episode has the known attributes, and no others."""
    return {*getattr(type(episode), "__slots__", ()), *getattr(episode, "__dict__", ())} == _KNOWN


class VectorStep(NamedTuple):
    """What came of a step of several environments, a row for each.

    Attributes:
        observations: What was observed after it.
        actions: What was done.
        rewards: What came of it.
        infos: What the environments say of it.
        outputs: What the module said beside the actions, by name.
        time: When it was over.
    """

    observations: Sequence[Any]
    actions: Sequence[Any]
    rewards: Sequence[Any]
    infos: Sequence[Any]
    outputs: Mapping[str, Sequence[Any]]
    time: float

    def row(self, index: int) -> dict[str, Any]:
        """The step of one environment, as the arguments of an episode's `add_env_step`."""
        return {
            "observation": self.observations[index],
            "action": self.actions[index],
            "reward": self.rewards[index],
            "infos": self.infos[index],
            "extra_model_outputs": {name: rows[index] for name, rows in self.outputs.items()},
        }


def add_steps(episode: Any, index: int, steps: Sequence[VectorStep]) -> None:
    """Adds an environment's rows of steps, none of which ends it, to its episode.

    For each of them, Ray's `add_env_step` takes as long as the step of a small environment.
    """
    from ray.rllib.env.utils.infinite_lookback_buffer import InfiniteLookbackBuffer

    if not _is_known(episode) or episode.is_numpy:
        for step in steps:
            episode.add_env_step(**step.row(index))
        return
    last = steps[-1]
    episode.observations.data += [step.observations[index] for step in steps]
    episode.actions.data += [step.actions[index] for step in steps]
    episode.rewards.data += [step.rewards[index] for step in steps]
    episode.infos.data += [step.infos[index] or {} for step in steps]
    for name in last.outputs:
        column = [step.outputs[name][index] for step in steps]
        if name in episode.extra_model_outputs:
            episode.extra_model_outputs[name].data += column
        else:
            episode.extra_model_outputs[name] = InfiniteLookbackBuffer(column)
    episode.t += len(steps)
    episode._last_added_observation = episode.observations.data[-1]
    episode._last_added_infos = episode.infos.data[-1]
    episode._last_step_time = last.time
    episode._start_time = episode._start_time or steps[0].time


def cut(episode: Any, lookback: int) -> Any:
    """The chunk that continues an episode, which looks back so far.

    Ray's `cut` makes a new episode with new lists, and looks at their spaces: for a fragment of
    five steps that takes longer than a step.
    """
    if not _is_known(episode):
        return episode.cut(len_lookback_buffer=lookback)
    after, kept = object.__new__(type(episode)), min(lookback, len(episode.rewards.data))
    for name in _KNOWN:
        setattr(after, name, getattr(episode, name))
    after.t_started = episode.t
    after._start_time = after._last_step_time = None
    after._last_added_observation = after._last_added_infos = None
    after._custom_data = copy.deepcopy(episode._custom_data)
    for name in ("observations", "infos"):
        setattr(after, name, _last(getattr(episode, name), kept + 1, kept))
    for name in ("actions", "rewards"):
        setattr(after, name, _last(getattr(episode, name), kept, kept))
    outputs = episode.extra_model_outputs.items()
    after.extra_model_outputs = {name: _last(buffer, kept, kept) for name, buffer in outputs}
    return after


def _last(buffer: Any, count: int, lookback: int) -> Any:
    """A buffer with the last items of another one, of which some are looked back to."""
    made = object.__new__(type(buffer))
    vars(made).update(vars(buffer), data=buffer.data[-count:] if count else [], lookback=lookback)
    return made


def return_of(episode: Any) -> float:
    """The sum of an episode's rewards; Ray adds up an array item by item."""
    rewards = episode.get_rewards()
    return float(np.sum(rewards, dtype=float) if isinstance(rewards, np.ndarray) else sum(rewards))


def columns_with_last_values(episodes: Iterable[Any]) -> dict[str, Any] | None:
    """The steps of episodes of one agent, or of chunks of them, as columns for a learner.

    Behind the last step of each comes one more, which `loss_mask` leaves out: it has what was
    observed last, whose value estimates the rest of the return. Ray's connectors make the same of
    an object for each step.

    Returns:
        Column → array; None: several agents, a chunk without steps, or something is no array.
    """
    from ray.rllib.core.columns import Columns
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    parts: dict[str, list[Any]] = defaultdict(list)
    counts, ends = [], []
    for episode in episodes:
        if type(episode) is not SingleAgentEpisode or episode.module_id or not len(episode):
            return None
        parts[Columns.OBS].append(_real(episode.observations))
        rewards = _real(episode.rewards)
        parts[Columns.REWARDS] += rewards, rewards[:1] * 0
        buffers = {Columns.ACTIONS: episode.actions, **episode.extra_model_outputs}
        for name, rows in zip(buffers, map(_real, buffers.values()), strict=True):
            parts[name] += rows, rows[-1:]
        counts.append(len(episode) + 1)
        ends.append((episode.is_terminated, episode.is_truncated or not episode.is_terminated))
    arrays = all(isinstance(part, np.ndarray) for column in parts.values() for part in column)
    if not arrays or {sum(map(len, column)) for column in parts.values()} != {sum(counts)}:
        return None
    made = {name: np.concatenate(column) for name, column in parts.items()}
    flags = np.zeros((3, sum(counts)), bool)
    added = np.cumsum(counts) - 1
    flags[0] = True
    flags[0, added] = False
    flags[1:, added - 1] = np.transpose(ends)
    names = (Columns.LOSS_MASK, Columns.TERMINATEDS, Columns.TRUNCATEDS)
    return made | dict(zip(names, flags, strict=True))


def _real(buffer: Any) -> Any:
    """What a buffer of an episode holds, without what it remembers of the chunk before."""
    return buffer.data[buffer.lookback :] if isinstance(buffer.data, np.ndarray) else [None]


def agents_that_stepped(episode: MultiAgentEpisode) -> AbstractSet[Any]:
    """The agents of an episode that have observed something at its last step.

    `get_agents_that_stepped` answers the same, and copies all their observations for it.
    """
    tag = episode.SKIP_ENV_TS_TAG
    return {
        agent_id
        for agent_id, steps in episode.env_t_to_agent_t.items()
        if steps.data and steps.data[-1] != tag and agent_id in episode.agent_episodes
    }


def agents_to_act(episode: MultiAgentEpisode) -> list[Any]:
    """The agents of an episode that act next: those that have stepped, and are not done."""
    parts = episode.agent_episodes
    return [agent for agent in agents_that_stepped(episode) if not parts[agent].is_done]


def callback_class() -> Any:
    """The base of callbacks."""
    return renames.resolve("RLlibCallback")


def callbacks_of(runner_or_algorithm: Any) -> list[Any]:
    """The callback objects of an env runner or algorithm; one object until Ray 2.40."""
    held = getattr(runner_or_algorithm, "_callbacks", None) or runner_or_algorithm.callbacks
    return held if isinstance(held, list) else [held]
