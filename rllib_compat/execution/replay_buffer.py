"""`LocalReplayBuffer`: the replay buffer of execution plans, around Ray's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import AnyBatch


class LocalReplayBuffer:
    """A prioritized replay buffer of steps by policy.

    `num_shards` divides `learning_starts` and the capacity, whose name was `buffer_size` until Ray
    1.8. The `replay_mode` `lockstep` is for the steps of all policies together.
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
        """Returns a batch, or None while there are too few steps."""
        if self.num_added < max(1, self.replay_starts):
            return None
        return self._buffer.sample(self.replay_batch_size)

    def update_priorities(self, prio_dict: dict[str, Any]) -> None:
        """Sets priorities by policy: the indices of steps, and their TD errors."""
        self._buffer.update_priorities(prio_dict)

    def stats(self, debug: bool = False) -> dict[str, Any]:
        """Returns the buffer's statistics."""
        return dict(self._buffer.stats(debug))


#: Its name below `execution.buffers`, Ray 1.11 – 1.13.
MultiAgentReplayBuffer = LocalReplayBuffer
