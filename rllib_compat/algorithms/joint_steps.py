"""Steps in which several agents act at once, as arrays: made of episodes, kept for replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rllib_compat.neutral.errors import LegacyEnvError

Array = np.ndarray[Any, np.dtype[Any]]

#: Module → column → a row for each step. A row of one module and the same row of another were one
#: step of the environment.
JointSteps = Mapping[str, Mapping[str, Array]]

#: How many steps a target looks ahead.
AHEAD = "n_step"


def joint_steps(episodes: Iterable[Any], n_step: int, gamma: float) -> Iterator[JointSteps]:
    """Makes arrays of episodes, or of chunks of them.

    Args:
        episodes: What an env runner has sampled.
        n_step: How many steps a target looks ahead; fewer, where an episode or a chunk ends.
        gamma: The discount of the rewards of those steps.

    Raises:
        LegacyEnvError: Not all agents acted in each step, or two follow one policy.
    """
    for episode in episodes:
        several = isinstance(episode, MultiAgentEpisode)
        parts = list(episode.agent_episodes.values()) if several else [episode]
        ids = [part.module_id or DEFAULT_MODULE_ID for part in parts]
        if len({len(part) for part in parts}) > 1:
            raise _error("has an agent that acts while another does not", ids)
        if len(set(ids)) < len(ids):
            raise _error("has two agents that follow one policy", ids)
        if parts and len(parts[0]):
            yield {i: _columns(p, n_step, gamma) for i, p in zip(ids, parts, strict=True)}


def _error(what: str, ids: Iterable[str]) -> LegacyEnvError:
    return LegacyEnvError(
        f"An episode {what} (the policies {', '.join(map(repr, ids))}); the critics of MADDPG see "
        "all agents in each step.",
        where="$.env",
        fix="Let each agent observe and act in each step, by a policy of its own.",
    )


def _columns(episode: Any, n_step: int, gamma: float) -> dict[str, Array]:
    seen = np.asarray(episode.get_observations(), np.float32)
    rewards = np.asarray(episode.get_rewards(), np.float32)
    ended = np.array([bool(info.get("done")) for info in episode.get_infos()[1:]])
    ended[-1] |= episode.is_terminated
    total, last = ahead(rewards, ended, n_step, gamma)
    return {
        Columns.OBS: seen[:-1],
        Columns.ACTIONS: np.asarray(episode.get_actions(), np.float32),
        Columns.REWARDS: total,
        Columns.NEXT_OBS: seen[last + 1],
        Columns.TERMINATEDS: ended[last],
        AHEAD: (last - np.arange(len(last)) + 1).astype(np.float32),
    }


def ahead(rewards: Array, ended: Array, n_step: int, gamma: float) -> tuple[Array, Array]:
    """Looks several steps ahead from each step.

    Args:
        rewards: Of each step.
        ended: Whether the agent was done after each step; nothing is taken from behind that.
        n_step: How many steps, the first one included.
        gamma: The discount.

    Returns:
        The discounted sums of rewards, and the last step that each has in it.
    """
    total, last = rewards.copy(), np.arange(len(rewards))
    for steps in range(1, n_step):
        (goes_on,) = np.nonzero((last == np.arange(len(last)) + steps - 1) & ~ended[last])
        goes_on = goes_on[goes_on + steps < len(rewards)]
        total[goes_on] += gamma**steps * rewards[goes_on + steps]
        last[goes_on] += 1
    return total, last


@dataclass
class JointBuffer:
    """Keeps steps, the newest in the place of the oldest, and draws them evenly.

    Attributes:
        capacity: How many steps of the environment it keeps.
    """

    capacity: int
    _kept: dict[str, dict[str, Array]] = field(default_factory=dict)
    _added: int = 0

    def __len__(self) -> int:
        """How many steps it holds."""
        return min(self._added, self.capacity)

    def add(self, steps: JointSteps) -> None:
        """Keeps steps.

        Raises:
            LegacyEnvError: They are not of the agents that the others were of.
        """
        if not self._kept:
            self._kept = {
                module_id: {
                    name: np.empty((self.capacity, *column.shape[1:]), column.dtype)
                    for name, column in columns.items()
                }
                for module_id, columns in steps.items()
            }
        if steps.keys() != self._kept.keys():
            raise _error(f"has not the agents of {', '.join(map(repr, self._kept))}", steps)
        count = len(next(iter(steps.values()))[Columns.REWARDS])
        places = np.arange(self._added, self._added + count) % self.capacity
        for module_id, columns in steps.items():
            for name, column in columns.items():
                self._kept[module_id][name][places] = column
        self._added += count

    def sample(self, count: int) -> JointSteps:
        """Draws so many steps, each as likely as any other."""
        drawn = np.random.randint(len(self), size=count)
        return {
            module_id: {name: column[drawn] for name, column in columns.items()}
            for module_id, columns in self._kept.items()
        }
