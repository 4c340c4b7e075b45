"""Transitions with targets that look several steps ahead, made of episodes and chunks of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import tree
from ray.rllib.core.columns import Columns

from rllib_compat.neutral.frozen import frozen

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import SingleAgentEpisode

Array = np.ndarray[Any, np.dtype[Any]]

#: Arrays in dicts and tuples, each with as many rows as the others.
Rows = Any


def map_rows(function: Callable[..., Any], first: Rows, *others: Rows) -> Rows:
    """What `tree.map_structure` makes, which takes ten times as long for a few plain arrays."""
    if all(isinstance(part, np.ndarray) for part in (first, *others)):
        return function(first, *others)
    if all(type(part) is dict and part.keys() == first.keys() for part in (first, *others)):
        return {k: map_rows(function, part, *(o[k] for o in others)) for k, part in first.items()}
    return tree.map_structure(function, first, *others)


#: How many steps a target looks ahead.
N_STEP = "n_step"


@frozen
class Steps:
    """Steps of one agent, one after the other.

    Attributes:
        seen: What was observed before each of them, and after the last.
        actions: What was done.
        rewards: What came of it.
        end: How many steps of the episode are over after the last.
    """

    seen: Rows
    actions: Rows
    rewards: Array
    end: int

    @classmethod
    def of(cls, episode: SingleAgentEpisode) -> Steps:
        """The steps of an episode of one agent, or of a chunk of it."""
        return cls(
            stack_steps(episode.get_observations()),
            stack_steps(episode.get_actions()),
            np.asarray(episode.get_rewards(), np.float64),
            episode.t_started + len(episode),
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rewards)

    def concat(self, later: Steps) -> Steps:
        """These and the next ones; only the next ones where some are missing in between."""
        if self.end != later.end - len(later):
            return later
        join, mine = np.concatenate, len(self)
        return Steps(
            map_rows(lambda a, b: join([a[:mine], b]), self.seen, later.seen),
            map_rows(lambda a, b: join([a, b]), self.actions, later.actions),
            join([self.rewards, later.rewards]),
            later.end,
        )

    def last(self, count: int) -> Steps:
        """The last ones."""
        start = max(0, len(self) - count)
        seen, actions = (
            map_rows(lambda part: part[start:], part) for part in (self.seen, self.actions)
        )
        return Steps(seen, actions, self.rewards[start:], self.end)


def transitions(steps: Steps, ended: Array, n_step: int, gamma: float) -> dict[str, Rows]:
    """A transition for each step, as columns; where these end, targets look less far ahead."""
    total, last = n_step_returns(steps.rewards, ended, n_step, gamma)
    return {
        Columns.OBS: map_rows(lambda part: part[:-1], steps.seen),
        Columns.ACTIONS: steps.actions,
        Columns.REWARDS: total.astype(np.float32),
        Columns.NEXT_OBS: map_rows(lambda part: part[last + 1], steps.seen),
        Columns.TERMINATEDS: ended[last],
        N_STEP: (last - np.arange(len(last)) + 1).astype(np.float32),
    }


def n_step_returns(rewards: Array, ended: Array, n_step: int, gamma: float) -> tuple[Array, Array]:
    """Looks several steps ahead from each step, but not behind one that `ended`.

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


class NStepTransitions:
    """Makes transitions of chunks of episodes as they come.

    A step whose target looks behind the end of its chunk waits for the next chunk. Where an episode
    is over, targets look as far as it goes.

    Args:
        n_step: How many steps a target looks ahead.
        gamma: The discount of the rewards of those steps.
        patience: What waits is forgotten after so many steps of other chunks.
        waits: Whether anything waits. In the old Rays nothing did: at the end of a fragment, too,
            targets looked as far as it went, and were discounted as if they looked `n_step` ahead.
    """

    def __init__(self, n_step: int, gamma: float, patience: int, *, waits: bool = True) -> None:
        self._n_step, self._gamma, self._patience = n_step, gamma, patience
        self._waits = waits
        #: Episode → the steps that wait, and how many had come when they did; the oldest first.
        self._waiting: dict[Hashable, tuple[Steps, int]] = {}
        self._come = 0

    def __len__(self) -> int:
        """How many steps wait."""
        return sum(len(steps) for steps, _ in self._waiting.values())

    def transitions(self, episode: SingleAgentEpisode) -> dict[str, Rows] | None:
        """The transitions that a chunk of an episode of one agent completes; None: none."""
        steps = Steps.of(episode)
        self._come += len(steps)
        before, _ = self._waiting.pop(episode.id_, (None, 0))
        if before is not None:
            steps = before.concat(steps)
        waits = self._waits and not episode.is_done
        waiting = min(self._n_step - 1, len(steps)) if waits else 0
        if waiting:
            self._waiting[episode.id_] = steps.last(waiting), self._come
        self._forget()
        complete = len(steps) - waiting
        if not complete:
            return None
        ended = np.zeros(len(steps), bool)
        ended[-1] = episode.is_terminated
        made = transitions(steps, ended, self._n_step, self._gamma)
        if not self._waits:
            made[N_STEP] = np.full_like(made[N_STEP], self._n_step)
        if not waiting:
            return made
        return map_rows(lambda part: part[:complete], made)  # type: ignore[no-any-return]

    def _forget(self) -> None:
        while self._waiting:
            oldest = next(iter(self._waiting))
            if self._waiting[oldest][1] + self._patience >= self._come:
                return
            del self._waiting[oldest]


def pad_rows(parts: Iterable[Array], rows: int) -> Array:
    """Arrays of different lengths as one, `[parts, rows, …]`, padded with zeros."""
    parts = list(parts)
    made = np.zeros((len(parts), rows, *parts[0].shape[1:]), parts[0].dtype)
    for row, part in zip(made, parts, strict=True):
        row[: len(part)] = part
    return made


def stack_steps(steps: object) -> Rows:
    """Steps in a list as arrays, in which they may be already."""
    if not isinstance(steps, list):
        return steps
    return map_rows(lambda *parts: np.stack(parts), *steps)
