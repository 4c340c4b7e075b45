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
from rllib_compat.neutral.frozen import frozen

#: The importance of each transition.
WEIGHTS = "weights"


@frozen
class Drawn:
    """Which transitions were drawn.

    Attributes:
        places: Where they were.
        added: How many the buffer had been given until then.
    """

    places: Array
    added: int


class TransitionReplay(Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Keeps the last transitions of a module, and draws some of them.

    What targets look ahead is summed up once, when a step is added. What is drawn is what learners
    take: no object is made for a step.

    Args:
        capacity: How many transitions it keeps.
        alpha: How much priorities count; 0: each is as likely as any other.
        n_step: How many steps a target looks ahead; fewer, where an episode is over.
        gamma: The discount of the rewards of those steps.
        offset: What is added to each error; without priority, nothing would be drawn again.
        first: The priority of new transitions; None: the greatest that any ever had.
        waits: Whether a step whose target looks behind its chunk waits for the next one.
    """

    def __init__(
        self,
        capacity: int,
        *,
        alpha: float = 0.0,
        n_step: int = 1,
        gamma: float = 0.99,
        offset: float = 0.0,
        first: float | None = None,
        waits: bool = True,
    ) -> None:
        self._alpha, self._n_step, self._gamma, self._offset = alpha, n_step, gamma, offset
        self._first, self._waits = first, waits
        self._ring = Ring(capacity)
        self._priorities = Priorities(capacity, alpha, first) if alpha else None
        self._chunks = self._new_chunks()
        self._drawn = Drawn(np.empty(0, np.int64), 0)

    def __len__(self) -> int:
        """How many transitions it holds."""
        return len(self._ring)

    @property
    def capacity(self) -> int:
        """How many it keeps."""
        return self._ring.capacity

    @property
    def added(self) -> int:
        """How many it has been given."""
        return self._ring.added

    def add(self, episodes: Iterable[Any]) -> None:
        """Keeps what episodes of one agent, or chunks of them, complete."""
        for episode in episodes:
            made = self._chunks.transitions(episode) if len(episode) else None
            if made is not None:
                self.keep(made)

    def keep(self, rows: Mapping[str, Any], errors: Array | None = None) -> None:
        """Keeps transitions.

        Args:
            rows: Their columns.
            errors: What the network is wrong by, from which their priorities are made; None: they
                get that of what is new.
        """
        places = self._ring.add(rows)
        if self._priorities is None or not len(places):
            return
        if errors is None:
            self._priorities.add(places)
        else:
            self._priorities.update(places, self._priority_of(errors[-len(places) :]))

    def sample(self, count: int, beta: float = 0.0) -> dict[str, Any]:
        """Draws so many transitions, and remembers which.

        Args:
            count: How many.
            beta: How far their weights make up for their priorities.

        Returns:
            A train batch: columns.
        """
        batch, self._drawn = self.draw(count, beta)
        return batch

    def draw(self, count: int, beta: float = 0.0) -> tuple[dict[str, Any], Drawn]:
        """Draws so many transitions.

        Args:
            count: How many.
            beta: How far their weights make up for their priorities.

        Returns:
            A train batch, and which they are.
        """
        if self._priorities is None:
            places: Array = np.random.randint(len(self), size=count)
            weights: Array = np.ones(count, np.float32)
        else:
            places = self._priorities.draw(count)
            weights = self._priorities.weights(places, beta).astype(np.float32)
        return {**self._ring.at(places), WEIGHTS: weights}, Drawn(places, self.added)

    def prioritize(self, errors: Array, drawn: Drawn | None = None) -> None:
        """Gives transitions other priorities: what the learner was wrong by.

        Args:
            errors: The errors.
            drawn: Which transitions; None: those that `sample` has drawn last. What has another one
                in its place by now is passed over.
        """
        drawn = drawn or self._drawn
        if self._priorities is None:
            return
        there = self._ring.are_there(drawn.places, drawn.added)
        if there.any():
            self._priorities.update(drawn.places[there], self._priority_of(errors[there]))

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
        names = ("alpha", "n_step", "gamma", "offset", "first", "waits")
        return (self.capacity,), {name: getattr(self, f"_{name}") for name in names}

    def _priority_of(self, errors: Array) -> Array:
        return np.abs(errors) + self._offset

    def _new_chunks(self) -> Chunks:
        return Chunks(self._n_step, self._gamma, patience=self.capacity, waits=self._waits)
