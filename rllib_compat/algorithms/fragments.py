"""What a group of agents did, as arrays: fragments of whole episodes, kept for replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ray.rllib.core.columns import Columns
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.frozen import frozen

#: Where `MultiAgentEnv.with_agent_groups` leaves each agent's own reward.
GROUP_REWARDS = "_group_rewards"

#: An episode of a group, or a chunk of one: observations `[T + 1, …]`, `actions` and `rewards`
#: `[T, agents]`, `terminated` whether it ends with a terminal state.
Chunk = Mapping[str, Any]


@frozen
class Fragment:
    """What one env runner has sampled at a time.

    Attributes:
        steps: How many steps of the environment.
        chunks: The module → the chunks of its groups.
    """

    steps: int
    chunks: Mapping[str, list[Chunk]]


def fragment(episodes: Iterable[Any]) -> Fragment:
    """Makes arrays of episodes of grouped agents.

    Raises:
        LegacyEnvError: An episode does not say what each agent got.
    """
    steps, chunks = 0, dict[str, list[Chunk]]()
    for episode in episodes:
        steps += episode.env_steps()
        several = isinstance(episode, MultiAgentEpisode)
        for part in episode.agent_episodes.values() if several else [episode]:
            if len(part):
                chunks.setdefault(part.module_id or "default_policy", []).append(_chunk(part))
    return Fragment(steps, chunks)


def _chunk(episode: Any) -> Chunk:
    seen = episode.get_observations()
    if isinstance(seen, list):
        seen = {name: np.stack([one[name] for one in seen]) for name in seen[0]}
    actions = episode.get_actions()
    by_step = isinstance(actions, list)
    return {
        Columns.OBS: seen,
        Columns.ACTIONS: np.stack(actions) if by_step else np.stack(actions, axis=-1),
        Columns.REWARDS: np.array([_rewards(i) for i in episode.get_infos()[1:]], np.float32),
        "terminated": bool(episode.is_terminated),
    }


def _rewards(info: Mapping[str, Any]) -> Any:
    if GROUP_REWARDS not in info:
        raise LegacyEnvError(
            f"QMIX learns from each agent's own reward; the info of a step has no "
            f"{GROUP_REWARDS!r}.",
            where="$.env",
            fix="Group the agents with env.with_agent_groups(), which puts it there.",
        )
    return info[GROUP_REWARDS]


def sequences(chunks: Iterable[Chunk], longest: int) -> dict[str, Any]:
    """One batch of chunks, padded with zeros.

    Args:
        chunks: The chunks.
        longest: How many steps a sequence has at most; longer chunks are cut, and what comes after
            begins with the initial state.

    Returns:
        `obs` and `new_obs`, by part, `actions` and `rewards` `[B, T, …]`; `terminateds` and
        `loss_mask`, which is True where a step is, `[B, T]`.
    """
    cut = [
        (chunk, begin, min(begin + longest, len(chunk[Columns.REWARDS])))
        for chunk in chunks
        for begin in range(0, len(chunk[Columns.REWARDS]), longest)
    ]
    length = max(end - begin for _, begin, end in cut)
    first = cut[0][0]

    def padded(like: Any, parts: Iterable[Any]) -> Any:
        made = np.zeros((len(cut), length, *like.shape[1:]), like.dtype)
        for row, part in zip(made, parts, strict=True):
            row[: len(part)] = part
        return made

    def seen(ahead: int) -> dict[str, Any]:
        return {
            name: padded(like, (c[Columns.OBS][name][b + ahead : e + ahead] for c, b, e in cut))
            for name, like in first[Columns.OBS].items()
        }

    made: dict[str, Any] = {Columns.OBS: seen(0), Columns.NEXT_OBS: seen(1)}
    for name in (Columns.ACTIONS, Columns.REWARDS):
        made[name] = padded(first[name], (c[name][b:e] for c, b, e in cut))
    made[Columns.LOSS_MASK] = np.zeros((len(cut), length), bool)
    made[Columns.TERMINATEDS] = np.zeros((len(cut), length), bool)
    for row, (chunk, begin, end) in enumerate(cut):
        made[Columns.LOSS_MASK][row, : end - begin] = True
        last = end == len(chunk[Columns.REWARDS])
        made[Columns.TERMINATEDS][row, end - begin - 1] = chunk["terminated"] and last
    return made


@dataclass
class FragmentBuffer:
    """Keeps fragments, the newest in the place of the oldest, and draws them evenly.

    Attributes:
        capacity: How many fragments it keeps.
    """

    capacity: int
    _kept: list[Fragment] = field(default_factory=list)
    _added: int = 0

    def __len__(self) -> int:
        """How many fragments it holds."""
        return len(self._kept)

    def add(self, added: Fragment) -> None:
        """Keeps a fragment."""
        place = self._added % self.capacity
        self._kept[place : place + 1] = [added]  # behind the last, as long as there is room
        self._added += 1

    def sample(self, steps: int) -> Fragment:
        """Draws fragments, each as likely as any other, until there are so many steps.

        Returns:
            All of them as one.
        """
        total, chunks = 0, dict[str, list[Chunk]]()
        while total < steps:
            drawn = self._kept[np.random.randint(len(self._kept))]
            total += drawn.steps
            for module_id, found in drawn.chunks.items():
                chunks.setdefault(module_id, []).extend(found)
        return Fragment(total, chunks)
