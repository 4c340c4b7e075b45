"""What is replayed: columns of transitions, or items such as sequences; a buffer for each policy.

A `ReplayBuffer` is a storage and priorities. What lies in actors is in `distributed_replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import tree
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env.multi_agent_episode import MultiAgentEpisode
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_compat.algorithms.transitions import Array, NStepTransitions, Rows, map_rows
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import SingleAgentEpisode

#: How many rows there is room for at first.
_FIRST = 1024


class Storage:
    """Keeps the last rows that were added: the newest in the places of the oldest.

    Args:
        capacity: How many rows it keeps.

    Attributes:
        added: How many rows it has been given.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.added = capacity, 0

    def __len__(self) -> int:
        """How many rows it holds."""
        return min(self.added, self.capacity)

    def add(self, rows: Any) -> Array:
        """Keeps rows; of more than its capacity, the last. Returns the places where they are."""
        raise NotImplementedError

    def at(self, places: Array) -> Any:
        """The rows at some places."""
        raise NotImplementedError

    def are_there(self, places: Array, added: int) -> Array:
        """Whether the rows that were at places when so many had been added are there still."""
        return (places - added) % self.capacity >= self.added - added

    def _next_places(self, count: int) -> Array:
        """The places of the last of so many rows that are added now."""
        left_out = max(0, count - self.capacity)
        places = np.arange(self.added + left_out, self.added + count) % self.capacity
        self.added += count
        return places


class ListStorage(Storage):
    """Keeps items of different sizes, such as sequences."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._items: dict[int, Any] = {}

    def add(self, rows: list[Any]) -> Array:
        """Keeps items."""
        places = self._next_places(len(rows))
        self._items.update(zip(places.tolist(), rows[len(rows) - len(places) :], strict=True))
        return places

    def at(self, places: Array) -> list[Any]:
        """The items at some places."""
        return [self._items[place] for place in places]


class RingStorage(Storage):
    """Keeps columns, of the same structure and the same shapes each time.

    It takes memory for what it holds, rounded up to a power of two, and at most for its capacity.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._rows: Rows = None
        self._room = 0

    def add(self, rows: Rows) -> Array:
        """Keeps rows."""
        count = count_of(rows)
        self._make_room(min(self.added + count, self.capacity), rows)
        places = self._next_places(count)

        def keep(mine: Array, new: Array) -> None:
            mine[places] = new[count - len(places) :]

        map_rows(keep, self._rows, rows)
        return places

    def at(self, places: Array) -> Rows:
        """Copies of the rows at some places."""
        return map_rows(lambda mine: mine[places], self._rows)

    def get_state(self) -> dict[str, Any]:
        """What it holds, for a checkpoint."""
        return {"added": self.added, "rows": self.at(np.arange(len(self))) if len(self) else None}

    def set_state(self, state: dict[str, Any]) -> None:
        """Holds what another one of the same capacity held."""
        self._rows, self._room, self.added = None, 0, 0
        if state["rows"] is not None:
            self.add(state["rows"])
            self.added = state["added"]

    def _make_room(self, needed: int, like: Rows) -> None:
        if needed <= self._room:
            return
        room, held = min(self.capacity, max(_FIRST, 1 << (needed - 1).bit_length())), len(self)
        empty = map_rows(lambda new: np.empty((room, *new.shape[1:]), new.dtype), like)
        if held:

            def carry(there: Array, mine: Array) -> None:
                there[:held] = mine[:held]

            map_rows(carry, empty, self._rows)
        self._rows, self._room = empty, room


def count_of(rows: Rows) -> int:
    """How many rows there are."""
    parts = rows.values() if isinstance(rows, dict) else [rows]
    first = next((part for part in parts if isinstance(part, np.ndarray)), None)
    return len(tree.flatten(rows)[0] if first is None else first)


#: What Ray's prioritized buffers raise smaller priorities to: one of 0 would never be drawn.
LEAST = 1e-12


class SegmentTree:
    """Numbers at places, joined by twos up to one of all, as with `np.add` or `np.minimum`.

    `nothing` is what a place has that was never set: joined with a number, it leaves that as it is.
    """

    def __init__(self, places: int, join: np.ufunc, nothing: float) -> None:
        self._leaves = 1 << max(0, places - 1).bit_length()
        self._join = join
        self._nodes = np.full(2 * self._leaves, nothing)

    @property
    def all(self) -> float:
        """All numbers, joined."""
        return float(self._nodes[1])

    def at(self, places: Array) -> Array:
        """The numbers at some places."""
        found: Array = self._nodes[self._leaves + places]
        return found

    def set(self, places: Array, numbers: object) -> None:
        """Sets numbers; where a place comes twice, its last one counts."""
        nodes = self._leaves + places
        self._nodes[nodes] = numbers
        while (nodes := nodes >> 1).any():
            self._nodes[nodes] = self._join(self._nodes[2 * nodes], self._nodes[2 * nodes + 1])

    def find(self, marks: Array) -> Array:
        """Where marks lie if the numbers, added up, are laid end to end; never where one is 0."""
        nodes, marks = np.ones(len(marks), np.int64), marks.copy()
        while nodes[0] < self._leaves:
            nodes *= 2
            left, right = self._nodes[nodes], self._nodes[nodes + 1]
            # Rounding may have made a mark as large as the whole, behind which there is nothing.
            goes_right = (marks >= left) & (right > 0)
            marks -= np.where(goes_right, left, 0.0)
            nodes += goes_right
        return nodes - self._leaves


class Priorities:
    """How likely each place is drawn: by its priority to the power of `alpha`.

    `first` is the priority of what is added; None: the greatest that any ever had.
    """

    def __init__(self, places: int, alpha: float, first: float | None = None) -> None:
        self._alpha, self._first = alpha, first
        self._places = places
        self._sums = SegmentTree(places, np.add, 0.0)
        self._least = SegmentTree(places, np.minimum, np.inf)
        self._greatest = 1.0

    def add(self, places: Array) -> None:
        """Gives places the priority of what is new."""
        first = self._greatest if self._first is None else self._first
        self._set(places, np.full(len(places), first**self._alpha))

    def update(self, places: Array, priorities: Array) -> None:
        """Gives places other priorities."""
        priorities = np.maximum(priorities, LEAST)
        self._greatest = max(self._greatest, float(priorities.max()))
        self._set(places, priorities**self._alpha)

    def draw(self, count: int) -> Array:
        """Draws so many places, each by itself."""
        return self._sums.find(np.random.random(count) * self._sums.all)

    def weights(self, places: Array, beta: float) -> Array:
        """Makes up, as far as `beta` says, for likely draws: 1 for the least likely one of all."""
        return (self._sums.at(places) / self._least.all) ** -beta

    def get_state(self) -> dict[str, Any]:
        """What it holds, for a checkpoint."""
        return {"greatest": self._greatest, "powers": self._sums.at(np.arange(self._places))}

    def set_state(self, state: dict[str, Any]) -> None:
        """Holds what another one with as many places held."""
        self._greatest = state["greatest"]
        powers = state["powers"]
        self._sums.set(np.arange(self._places), powers)
        self._least.set(np.arange(self._places), np.where(powers > 0, powers, np.inf))

    def _set(self, places: Array, powers: Array) -> None:
        self._sums.set(places, powers)
        self._least.set(places, powers)


#: The importance of each transition.
WEIGHTS = "weights"


@frozen
class DrawnRows:
    """Which transitions were drawn.

    Attributes:
        places: Where they were.
        added: How many the buffer had been given until then.
    """

    places: Array
    added: int


class ReplayBuffer:
    """Keeps rows, and draws some: by their priorities, or each as likely as any other.

    With an `alpha` of 0 there are no priorities. The offset is added to each error: without
    priority, nothing would be drawn again. `first` is the priority of what is new; None: the
    greatest of all.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        alpha: float = 0.0,
        offset: float = 0.0,
        first: float | None = None,
    ) -> None:
        self.storage, self._offset, self._sampled = storage, offset, 0
        self._priorities = Priorities(storage.capacity, alpha, first) if alpha else None

    def __len__(self) -> int:
        """How many rows it holds."""
        return len(self.storage)

    def keep(self, rows: object, errors: Array | None = None) -> None:
        """Keeps rows, with the priorities of their errors, or with that of what is new."""
        places = self.storage.add(rows)
        if self._priorities is None or not len(places):
            return
        if errors is None:
            self._priorities.add(places)
        else:
            self._priorities.update(places, self._priority_of(errors[-len(places) :]))

    def draw(self, count: int, beta: float = 0.0) -> tuple[Any, Array, DrawnRows]:
        """Draws so many rows, whose weights make up for their priorities as far as `beta` says.

        Returns:
            The rows, the weight of each (1 for the least likely), and which they are.
        """
        self._sampled += count
        if self._priorities is None:
            places: Array = np.random.randint(len(self), size=count)
            weights: Array = np.ones(count, np.float32)
        else:
            places = self._priorities.draw(count)
            weights = self._priorities.weights(places, beta).astype(np.float32)
        return self.storage.at(places), weights, DrawnRows(places, self.storage.added)

    def prioritize(self, errors: Array, drawn: DrawnRows) -> None:
        """Gives rows the priorities of errors; those that were replaced since are passed over."""
        if self._priorities is None:
            return
        there = self.storage.are_there(drawn.places, drawn.added)
        if there.any():
            self._priorities.update(drawn.places[there], self._priority_of(errors[there]))

    def stats(self, debug: bool = False) -> dict[str, Any]:  # noqa: ARG002
        """What it holds and has done, by the names of old replay buffers."""
        added, capacity = self.storage.added, self.storage.capacity
        row = self.storage.at(np.zeros(1, int)) if len(self) else ()
        return {
            "added_count": added,
            "added_count_wrapped": added % capacity,
            "eviction_started": added >= capacity,
            "sampled_count": self._sampled,
            "est_size_bytes": len(self) * sum(np.asarray(a).nbytes for a in tree.flatten(row)),
            "num_entries": len(self),
        }

    def _priority_of(self, errors: Array) -> Array:
        return np.abs(errors) + self._offset


class TransitionReplayBuffer(ReplayBuffer):
    """Keeps the last transitions of a module.

    What targets look ahead is summed up once, when a step is added. What is drawn is what learners
    take: no object is made for a step.

    Where an episode is over, targets look less far ahead. A step whose target looks behind its
    chunk waits for the next one if it `waits`.
    """

    def __init__(
        self,
        capacity: int,
        *,
        n_step: int = 1,
        gamma: float = 0.99,
        waits: bool = True,
        **more: Any,
    ) -> None:
        self._ring = RingStorage(capacity)
        super().__init__(self._ring, **more)
        self._new_chunks = partial(NStepTransitions, n_step, gamma, capacity, waits=waits)
        self._chunks = self._new_chunks()

    def add(self, episodes: Iterable[Any]) -> None:
        """Keeps what episodes of one agent, or chunks of them, complete."""
        for episode in episodes:
            made = self._chunks.transitions(episode) if len(episode) else None
            if made is not None:
                self.keep(made)

    def sample(self, count: int, beta: float = 0.0) -> tuple[dict[str, Any], DrawnRows]:
        """Draws so many transitions: a train batch of columns, and which they are; see `draw`."""
        rows, weights, drawn = self.draw(count, beta)
        return {**rows, WEIGHTS: weights}, drawn

    def get_state(self) -> dict[str, Any]:
        """What it holds, for a checkpoint: without steps that wait for the rest of their episode.

        Env runners begin new episodes after a restore.
        """
        priorities = self._priorities
        return {
            "capacity": self.storage.capacity,
            "ring": self._ring.get_state(),
            "priorities": None if priorities is None else priorities.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one with the same arguments held.

        Raises:
            ConfigError: The other one has another capacity.
        """
        if state["capacity"] != self.storage.capacity:
            raise ConfigError(
                f"The checkpoint's replay buffer has a capacity of {state['capacity']} steps, "
                f"and this one of {self.storage.capacity}.",
                where="replay_buffer_config.capacity",
                fix=f"set capacity={state['capacity']}, or store_buffer_in_checkpoints=False",
            )
        self._ring.set_state(state["ring"])
        self._chunks = self._new_chunks()
        if self._priorities is None:
            return
        if state["priorities"] is None:  # it drew evenly
            self._priorities.add(np.arange(len(self)))
        else:
            self._priorities.set_state(state["priorities"])


#: Which policies learn: their ids, or a function of an id and a batch; None: all.
ToTrain = Collection[str] | Callable[..., bool] | None

Buffer = TypeVar("Buffer", bound=ReplayBuffer)


class PolicyReplayBuffers(Generic[Buffer]):
    """A buffer for each policy, whichever of its agents made what is in it.

    Each is drawn from by itself (`replay_mode="independent"`, the default of the old Rays, and all
    that today's buffers know).

    Attributes:
        replay_buffers: The buffers by policy.
    """

    def __init__(self, make: Callable[[str], Buffer]) -> None:
        self._make = make
        self.replay_buffers: dict[str, Buffer] = {}
        self._drawn: dict[str, DrawnRows] = {}

    def __len__(self) -> int:
        """How many rows all of them hold."""
        return sum(map(len, self.replay_buffers.values()))

    def stats(self, debug: bool = False) -> dict[str, Any]:
        """The statistics of each policy's buffer; those of old Rays had times, too."""
        found = self.replay_buffers.items()
        return {f"policy_{policy_id}": kept.stats(debug) for policy_id, kept in found}

    def of(self, policy_id: str) -> Buffer:
        """The buffer of a policy."""
        if policy_id not in self.replay_buffers:
            self.replay_buffers[policy_id] = self._make(policy_id)
        return self.replay_buffers[policy_id]

    def draw(
        self, count: int, beta: float, to_train: ToTrain = None
    ) -> dict[str, tuple[Any, Array]]:
        """Draws so many rows for each policy that learns, and remembers which.

        Returns:
            Policy → rows and their weights; without those that have done nothing yet.
        """
        made = {}
        for policy_id, kept in self.replay_buffers.items():
            if len(kept) and learns(policy_id, to_train):
                rows, weights, self._drawn[policy_id] = kept.draw(count, beta)
                made[policy_id] = rows, weights
        return made

    def prioritize(self, errors: Mapping[str, Array]) -> None:
        """Gives what was drawn last other priorities: what the learner was wrong by."""
        for policy_id, wrong_by in errors.items():
            self.replay_buffers[policy_id].prioritize(wrong_by, self._drawn[policy_id])


class MultiAgentReplayBuffer(PolicyReplayBuffers[TransitionReplayBuffer], Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Keeps the last transitions of each policy: of one agent, too.

    Args:
        default: What `TransitionReplayBuffer` takes, for a policy that comes later.
        of_policies: The same for each policy that is there.
    """

    def __init__(
        self,
        default: Mapping[str, Any],
        of_policies: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        self._default, self._of_policies = dict(default), dict(of_policies)
        super().__init__(
            lambda policy: TransitionReplayBuffer(**self._of_policies.get(policy, self._default))
        )

    def add(self, episodes: Iterable[Any], to_train: ToTrain = None) -> None:
        """Keeps what episodes, or chunks of them, complete; not of policies that never learn."""
        for policy_id, part in parts_of(episodes):
            if learns(policy_id, to_train):
                self.of(policy_id).add([part])

    def sample(
        self, count: int, beta: float, to_train: ToTrain = None
    ) -> dict[str, dict[str, Any]]:
        """Draws a train batch of columns for each policy that learns; see `draw`."""
        drawn = self.draw(count, beta, to_train).items()
        return {policy_id: {**rows, WEIGHTS: weights} for policy_id, (rows, weights) in drawn}

    def get_state(self, *_: object, **__: object) -> dict[str, Any]:
        """What all of them hold, for a checkpoint."""
        return {policy_id: kept.get_state() for policy_id, kept in self.replay_buffers.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one held.

        Raises:
            ConfigError: The other one had another capacity.
        """
        if isinstance(state.get("capacity"), int):  # of one agent, as version 0.2 stored it
            state = {DEFAULT_MODULE_ID: state}
        self.replay_buffers.clear()
        for policy_id, kept in state.items():
            self.of(policy_id).set_state(kept)

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that made it."""
        return (self._default, self._of_policies), {}


def parts_of(episodes: Iterable[Any]) -> Iterator[tuple[str, SingleAgentEpisode]]:
    """The agents' parts of episodes that are not empty, each with its module."""
    for episode in episodes:
        several = isinstance(episode, MultiAgentEpisode)
        for part in episode.agent_episodes.values() if several else [episode]:
            if len(part):
                yield part.module_id or DEFAULT_MODULE_ID, part


def learns(policy_id: str, to_train: ToTrain) -> bool:
    """Whether a policy is one of those that learn."""
    if to_train is None:
        return True
    return bool(to_train(policy_id, None)) if callable(to_train) else policy_id in to_train
