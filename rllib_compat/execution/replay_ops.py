"""Operators that store batches, and replay them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rllib_compat.execution.common import counted
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import old_stack


class StoreToReplayBuffer:
    """Stores batches.

    Args:
        local_buffer: A buffer here.
        actors: Buffers that are actors, in its place; each batch goes to one of them.
    """

    def __init__(self, *, local_buffer: Any = None, actors: Sequence[Any] | None = None) -> None:
        _one_of(local_buffer, actors)
        self.local_actor = local_buffer
        self.replay_actors = actors
        self._stores = [actor.add_batch.remote for actor in actors or ()]
        self._stores = self._stores or [local_buffer.add_batch]

    def __call__(self, batch: Mapping[str, Any]) -> Any:
        """The same batch."""
        store = random.choice(self._stores)  # noqa: S311 - no secret
        store(batch)
        return batch


def Replay(  # noqa: N802
    *, local_buffer: object = None, actors: Sequence[Any] | None = None, num_async: int = 4
) -> Any:
    """Batches that a buffer gives.

    Args:
        local_buffer: A buffer here.
        actors: Buffers that are actors, in its place.
        num_async: How many requests each of them has at once.
    """
    _one_of(local_buffer, actors)
    if actors:
        return old_stack.plan_iterator(lambda: _of_actors(actors, num_async))
    return old_stack.plan_iterator(lambda: _of_buffer(local_buffer))


def _of_buffer(buffer: Any) -> Iterator[Any]:
    while True:
        batch = buffer.replay()
        yield old_stack.not_ready() if batch is None else batch


def _of_actors(actors: Sequence[Any], num_async: int) -> Iterator[Any]:
    import ray

    pending = {actor.replay.remote(): actor for _ in range(num_async) for actor in actors}
    while True:
        (ready,), _ = ray.wait(list(pending), num_returns=1)
        actor = pending.pop(ready)
        pending[actor.replay.remote()] = actor
        batch = ray.get(ready)
        yield old_stack.not_ready() if batch is None else batch


def _one_of(local_buffer: object, actors: object) -> None:
    if (local_buffer is None) == (not actors):
        raise ConfigError(
            "A buffer here and actors can't replay together.",
            where="Replay, StoreToReplayBuffer",
            fix="give one of local_buffer and actors",
        )


class WaitUntilTimestepsElapsed:
    """Is true for all items after so many sampled steps; for `filter`.

    Args:
        target_num_timesteps: How many; more than that have to be sampled.
    """

    def __init__(self, target_num_timesteps: int) -> None:
        self.target_num_timesteps = target_num_timesteps

    def __call__(self, item: object) -> bool:
        """Whether they are."""
        del item
        return counted() > self.target_num_timesteps


class SimpleReplayBuffer:
    """Keeps whole batches, the newest ones.

    Args:
        num_slots: How many.
        replay_proportion: Means nothing; `MixInReplay` has it.

    Attributes:
        replay_batches: The batches, the oldest first.
    """

    def __init__(self, num_slots: int, replay_proportion: float | None = None) -> None:
        del replay_proportion
        self.num_slots = num_slots
        self.replay_batches: deque[Any] = deque(maxlen=num_slots)

    def __len__(self) -> int:
        return len(self.replay_batches)

    def add_batch(self, sample_batch: object) -> None:
        """Adds a batch; the oldest goes if there are too many."""
        self.replay_batches.append(sample_batch)

    def replay(self) -> Any:
        """Any batch, all as likely.

        Raises:
            IndexError: There is none yet.
        """
        return random.choice(self.replay_batches)  # noqa: S311 - no secret


class MixInReplay:
    """Adds batches of before to each new one; for `combine`.

    Args:
        num_slots: How many batches are kept.
        replay_proportion: How many are added in the mean.

    Raises:
        ConfigError: Some are to be added, and none kept.
    """

    def __init__(self, num_slots: int, replay_proportion: float) -> None:
        if num_slots == 0 and replay_proportion > 0:
            raise ConfigError(
                "Nothing can be replayed that is not kept.",
                where="MixInReplay(num_slots=)",
                fix="give more than 0",
            )
        self.replay_buffer = SimpleReplayBuffer(num_slots)
        self.replay_proportion = replay_proportion

    def __call__(self, sample_batch: object) -> list[Any]:
        """The batch, and some that are kept, which it may be among."""
        kept = self.replay_buffer
        kept.add_batch(sample_batch)
        # 1.25 is one always, and a second one each fourth time.
        sure, chance = divmod(self.replay_proportion, 1)
        count = int(sure) + (random.random() < chance)  # noqa: S311 - no secret
        return [sample_batch, *(kept.replay() for _ in range(count))]
