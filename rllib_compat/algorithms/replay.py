"""The replay buffer of algorithms that learn from transitions: columns in, columns out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_compat.algorithms.priorities import Priorities
from rllib_compat.algorithms.ring import Array, Ring
from rllib_compat.algorithms.transitions import Chunks
from rllib_compat.neutral.errors import ConfigError

#: The importance of each transition.
WEIGHTS = "weights"


class TransitionReplay(Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Keeps the last transitions of a module, and draws some of them.

    What targets look ahead is summed up once, when a step is added. What is drawn is what learners
    take: no object is made for a step.

    Args:
        capacity: How many transitions it keeps.
        alpha: How much priorities count; 0: each is as likely as any other.
        n_step: How many steps a target looks ahead; fewer, where an episode is over.
        gamma: The discount of the rewards of those steps.
    """

    def __init__(
        self, capacity: int, *, alpha: float = 0.0, n_step: int = 1, gamma: float = 0.99
    ) -> None:
        self._alpha, self._n_step, self._gamma = alpha, n_step, gamma
        self._ring = Ring(capacity)
        self._priorities = Priorities(capacity, alpha) if alpha else None
        self._chunks = self._new_chunks()
        self._drawn: Array = np.empty(0, np.int64)

    def __len__(self) -> int:
        """How many transitions it holds."""
        return len(self._ring)

    @property
    def capacity(self) -> int:
        """How many it keeps."""
        return self._ring.capacity

    def add(self, episodes: Iterable[Any]) -> None:
        """Keeps what episodes of one agent, or chunks of them, complete."""
        for episode in episodes:
            made = self._chunks.transitions(episode) if len(episode) else None
            if made is not None:
                places = self._ring.add(made)
                if self._priorities is not None:
                    self._priorities.add(places)

    def sample(self, count: int, beta: float = 0.0) -> dict[str, Any]:
        """Draws so many transitions, and remembers which.

        Args:
            count: How many.
            beta: How far their weights make up for their priorities.

        Returns:
            A train batch: columns.
        """
        if self._priorities is None:
            self._drawn = np.random.randint(len(self), size=count)
            weights: Array = np.ones(count, np.float32)
        else:
            self._drawn = self._priorities.draw(count)
            weights = self._priorities.weights(self._drawn, beta).astype(np.float32)
        return {**self._ring.at(self._drawn), WEIGHTS: weights}

    def prioritize(self, errors: Array) -> None:
        """Gives what was drawn last other priorities: what the learner was wrong by."""
        if self._priorities is not None:
            self._priorities.update(self._drawn, np.abs(errors))

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What it holds, for a checkpoint: without steps that wait for the rest of their episode.

        Env runners begin new episodes after a restore.
        """
        priorities = self._priorities
        return {
            "capacity": self.capacity,
            "ring": self._ring.get_state(),
            "priorities": None if priorities is None else priorities.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one with the same arguments held.

        Raises:
            ConfigError: The other one has another capacity.
        """
        if state["capacity"] != self.capacity:
            raise ConfigError(
                f"A replay buffer of {state['capacity']} steps was stored; this one has "
                f"{self.capacity}.",
                where="replay_buffer_config.capacity",
                fix=f"capacity={state['capacity']}, or store_buffer_in_checkpoints=False",
            )
        self._ring.set_state(state["ring"])
        self._chunks = self._new_chunks()
        if self._priorities is None:
            return
        if state["priorities"] is None:  # it drew evenly
            self._priorities.add(np.arange(len(self)))
        else:
            self._priorities.set_state(state["priorities"])

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that made it."""
        more = {"alpha": self._alpha, "n_step": self._n_step, "gamma": self._gamma}
        return (self.capacity,), more

    def _new_chunks(self) -> Chunks:
        return Chunks(self._n_step, self._gamma, patience=self.capacity)
