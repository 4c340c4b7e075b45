"""`LocalReplayBuffer`: the buffer of plans, around today's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch


class LocalReplayBuffer:
    """Keeps steps by policy, and gives batches of them by their priorities.

    Args:
        num_shards: How many buffers share the work; this one gets its part of the numbers.
        learning_starts: How many steps it wants before it gives any.
        capacity: How many steps it keeps, by its name since Ray 1.9.
        buffer_size: The same, until Ray 1.8.
        replay_batch_size: How many steps a batch has.
        prioritized_replay_alpha: How much priorities count.
        prioritized_replay_beta: How much weights make up for that.
        prioritized_replay_eps: What is added to priorities.
        replay_mode: `independent`, or `lockstep` for all policies' steps together.
        replay_sequence_length: How many steps stay together.
    """

    def __init__(
        self,
        num_shards: int = 1,
        learning_starts: int = 1000,
        capacity: int = 10000,
        replay_batch_size: int = 1,
        prioritized_replay_alpha: float = 0.6,
        prioritized_replay_beta: float = 0.4,
        prioritized_replay_eps: float = 1e-6,
        replay_mode: str = "independent",
        replay_sequence_length: int = 1,
        *,
        buffer_size: int | None = None,
    ) -> None:
        from ray.rllib.utils.replay_buffers import MultiAgentPrioritizedReplayBuffer

        self.replay_starts = learning_starts // num_shards
        self.replay_batch_size = replay_batch_size
        self.prioritized_replay_eps = prioritized_replay_eps
        self.num_added = 0
        self._buffer = MultiAgentPrioritizedReplayBuffer(
            capacity=(buffer_size or capacity) // num_shards,
            storage_unit="timesteps" if replay_sequence_length <= 1 else "sequences",
            replay_mode=replay_mode,
            replay_sequence_length=replay_sequence_length,
            prioritized_replay_alpha=prioritized_replay_alpha,
            prioritized_replay_beta=prioritized_replay_beta,
            prioritized_replay_eps=prioritized_replay_eps,
        )

    def add_batch(self, batch: AnyBatch) -> None:
        """Adds the steps of a batch."""
        self._buffer.add(batch.copy())
        self.num_added += batch.count

    def replay(self) -> Any:
        """A batch, or None as long as there are too few steps."""
        if self.num_added < max(1, self.replay_starts):
            return None
        return self._buffer.sample(self.replay_batch_size)

    def update_priorities(self, prio_dict: dict[str, Any]) -> None:
        """Sets priorities, by policy: the indices of steps, and their errors."""
        self._buffer.update_priorities(prio_dict)

    def stats(self, debug: bool = False) -> dict[str, Any]:
        """The buffer's statistics."""
        return dict(self._buffer.stats(debug))


#: Its name below `execution.buffers`, Ray 1.11 – 1.13.
MultiAgentReplayBuffer = LocalReplayBuffer
