"""Steps in which several agents act at once, as arrays: made of episodes, kept for replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rllib_compat.algorithms.ring import Array, Ring
from rllib_compat.algorithms.transitions import Steps, transitions
from rllib_compat.neutral.errors import LegacyEnvError

#: Module → column → a row for each step. A row of one module and the same row of another were one
#: step of the environment.
JointSteps = Mapping[str, Mapping[str, Array]]


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
    steps = Steps.of(episode)
    ended = np.array([bool(info.get("done")) for info in episode.get_infos()[1:]])
    ended[-1] |= episode.is_terminated
    made = transitions(steps, ended, n_step, gamma)
    floats = (Columns.OBS, Columns.ACTIONS, Columns.NEXT_OBS)
    return {**made, **{name: np.asarray(made[name], np.float32) for name in floats}}


class JointBuffer:
    """Keeps steps, the newest in the place of the oldest, and draws them evenly.

    Args:
        capacity: How many steps of the environment it keeps.
    """

    def __init__(self, capacity: int) -> None:
        self._ring = Ring(capacity)
        self._agents: tuple[str, ...] = ()

    def __len__(self) -> int:
        """How many steps it holds."""
        return len(self._ring)

    def add(self, steps: JointSteps) -> None:
        """Keeps steps.

        Raises:
            LegacyEnvError: They are not of the agents that the others were of.
        """
        self._agents = self._agents or tuple(steps)
        if set(steps) != set(self._agents):
            raise _error(f"has not the agents of {', '.join(map(repr, self._agents))}", steps)
        self._ring.add(steps)

    def sample(self, count: int) -> JointSteps:
        """Draws so many steps, each as likely as any other."""
        drawn: JointSteps = self._ring.at(np.random.randint(len(self), size=count))
        return drawn
