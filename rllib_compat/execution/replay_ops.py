"""Operators that store and replay batches."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rllib_compat.execution.common import steps_so_far
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.ray_versions import old_stack


class StoreToReplayBuffer:
    """An operator that adds batches to a local replay buffer, or each to one of several actors."""

    def __init__(self, *, local_buffer: Any = None, actors: Sequence[Any] | None = None) -> None:
        _one_of(local_buffer, actors)
        self.local_actor = local_buffer
        self.replay_actors = actors
        self._stores = [actor.add_batch.remote for actor in actors or ()]
        self._stores = self._stores or [local_buffer.add_batch]

    def __call__(self, batch: Mapping[str, Any]) -> Any:
        """Adds a batch, and returns it."""
        store = random.choice(self._stores)  # noqa: S311 - no secret
        store(batch)
        return batch


def Replay(  # noqa: N802
    *, local_buffer: object = None, actors: Sequence[Any] | None = None, num_async: int = 4
) -> Any:
    """Returns the flow of the batches of a local buffer, or of replay actors."""
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
            "Either local_buffer or actors is needed, and not both.",
            where="Replay, StoreToReplayBuffer",
            fix="pass one of local_buffer and actors",
        )


class WaitUntilTimestepsElapsed:
    """A predicate for `filter` that is true after more than a number of sampled steps."""

    def __init__(self, target_num_timesteps: int) -> None:
        self.target_num_timesteps = target_num_timesteps

    def __call__(self, item: object) -> bool:
        """Whether more steps were sampled."""
        del item
        return steps_so_far() > self.target_num_timesteps


class SimpleReplayBuffer:
    """A replay buffer of the newest complete batches; `replay_proportion` is ignored.

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
        """Adds a batch, and removes the oldest if there are too many."""
        self.replay_batches.append(sample_batch)

    def replay(self) -> Any:
        """Returns a random batch.

        Raises:
            IndexError: The buffer is empty.
        """
        return random.choice(self.replay_batches)  # noqa: S311 - no secret


class MixInReplay:
    """An operator for `combine` that adds earlier batches to each new one: so many in the mean.

    Raises:
        ConfigError: `num_slots` is 0, and `replay_proportion` is not.
    """

    def __init__(self, num_slots: int, replay_proportion: float) -> None:
        if num_slots == 0 and replay_proportion > 0:
            raise ConfigError(
                "num_slots is 0, so there are no batches to replay.",
                where="MixInReplay(num_slots=)",
                fix="set num_slots to at least 1, or replay_proportion to 0",
            )
        self.replay_buffer = SimpleReplayBuffer(num_slots)
        self.replay_proportion = replay_proportion

    def __call__(self, sample_batch: object) -> list[Any]:
        """Returns the batch, and random ones of the buffer, which has the new batch, too."""
        kept = self.replay_buffer
        kept.add_batch(sample_batch)
        # 1.25: always one batch, and a second one with probability 0.25.
        always, chance = divmod(self.replay_proportion, 1)
        count = int(always) + (random.random() < chance)  # noqa: S311 - no secret
        return [sample_batch, *(kept.replay() for _ in range(count))]
