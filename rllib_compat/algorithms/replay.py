"""Replay buffers of transitions: columns in, columns out; one for each policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import tree
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_compat.algorithms.transitions import Array, NStepTransitions, Rows
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen

Item = TypeVar("Item")

#: How many rows there is room for at first.
_FIRST = 1024


class RingStorage:
    """Keeps the last rows that were added.

    It takes memory for what it holds, rounded up to a power of two, and at most for its capacity.

    Args:
        capacity: How many rows it keeps.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._rows: Rows = None
        self._room = 0
        self._added = 0

    def __len__(self) -> int:
        """How many rows it holds."""
        return min(self._added, self.capacity)

    @property
    def added(self) -> int:
        """How many rows it has been given."""
        return self._added

    def add(self, rows: Rows) -> Array:
        """Keeps rows; of more than its capacity, the last.

        Args:
            rows: Of the same structure and the same shapes each time.

        Returns:
            The places where they are now.
        """
        count = count_of(rows)
        left_out = max(0, count - self.capacity)
        self._make_room(min(self._added + count, self.capacity), rows)
        places = np.arange(self._added + left_out, self._added + count) % self.capacity

        def keep(mine: Array, new: Array) -> None:
            mine[places] = new[left_out:]

        tree.map_structure(keep, self._rows, rows)
        self._added += count
        return places

    def are_there(self, places: Array, added: int) -> Array:
        """Whether the rows that were at some places are there still.

        Args:
            places: The places.
            added: How many rows it had been given then.
        """
        return (places - added) % self.capacity >= self._added - added

    def at(self, places: Array) -> Rows:
        """Copies of the rows at some places."""
        return tree.map_structure(lambda mine: mine[places], self._rows)

    def get_state(self) -> dict[str, Any]:
        """What it holds, for a checkpoint."""
        return {"added": self._added, "rows": self.at(np.arange(len(self))) if len(self) else None}

    def set_state(self, state: dict[str, Any]) -> None:
        """Holds what another one of the same capacity held."""
        self._rows, self._room, self._added = None, 0, 0
        if state["rows"] is not None:
            self.add(state["rows"])
            self._added = state["added"]

    def _make_room(self, needed: int, like: Rows) -> None:
        if needed <= self._room:
            return
        room, held = min(self.capacity, max(_FIRST, 1 << (needed - 1).bit_length())), len(self)
        empty = tree.map_structure(lambda new: np.empty((room, *new.shape[1:]), new.dtype), like)
        if held:

            def carry(there: Array, mine: Array) -> None:
                there[:held] = mine[:held]

            tree.map_structure(carry, empty, self._rows)
        self._rows, self._room = empty, room


def count_of(rows: Rows) -> int:
    """How many rows there are."""
    return len(tree.flatten(rows)[0])


#: What Ray's prioritized buffers raise smaller priorities to: one of 0 would never be drawn.
LEAST = 1e-12


class SegmentTree:
    """Numbers at places, joined by twos up to one of all, as with `np.add` or `np.minimum`.

    Args:
        places: How many numbers there are.
        join: What makes one number of two.
        nothing: What a place has that was never set; joined with a number, it leaves it as it is.
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
        """Where marks lie if the numbers, added up, are laid end to end; never where one is 0.

        Args:
            marks: From 0 to what all are together.
        """
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

    Args:
        places: How many there are.
        alpha: How much priorities count.
        first: The priority of what is added; None: the greatest that any ever had.
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
        """Makes up for how likely places are drawn: 1 for the least likely one of all.

        Args:
            places: Which were drawn.
            beta: How far it makes up for it; 0: not at all.
        """
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


class ItemReplayBuffer(Generic[Item]):
    """Keeps items of different sizes, such as sequences: the newest in the place of the oldest.

    They are drawn by their priorities; without any, each is as likely as any other.

    Args:
        capacity: How many it keeps.
        alpha: How much priorities count; 0: there are none.
    """

    def __init__(self, capacity: int, alpha: float = 0.0) -> None:
        self._capacity = capacity
        self._priorities = Priorities(capacity, alpha) if alpha else None
        self._kept: list[Item] = []
        self._next = 0

    def __len__(self) -> int:
        """How many items it holds."""
        return len(self._kept)

    def add(self, item: Item) -> None:
        """Keeps an item, with the greatest priority that any ever had."""
        place, self._next = self._next, (self._next + 1) % self._capacity
        if place == len(self._kept):
            self._kept.append(item)
        else:
            self._kept[place] = item
        if self._priorities is not None:
            self._priorities.add(np.array([place]))

    def sample(self, count: int, beta: float = 0.0) -> tuple[list[Item], Array, Array]:
        """Draws so many items.

        Args:
            count: How many.
            beta: How far their weights make up for their priorities.

        Returns:
            The items, where they are kept, and the weight of each: 1 for the least likely.
        """
        if self._priorities is None:
            places, weights = np.random.randint(len(self), size=count), np.ones(count)
        else:
            places = self._priorities.draw(count)
            weights = self._priorities.weights(places, beta)
        return [self._kept[place] for place in places], places, weights

    def prioritize(self, places: Array, priorities: Array) -> None:
        """Gives items other priorities."""
        if self._priorities is not None:
            self._priorities.update(places, priorities)


@frozen
class DrawnRows:
    """Which transitions were drawn.

    Attributes:
        places: Where they were.
        added: How many the buffer had been given until then.
    """

    places: Array
    added: int


class TransitionReplayBuffer(Checkpointable):  # type: ignore[misc]  # Ray has no types
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
        self._ring = RingStorage(capacity)
        self._priorities = Priorities(capacity, alpha, first) if alpha else None
        self._chunks = self._new_chunks()
        self._drawn = DrawnRows(np.empty(0, np.int64), 0)

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

    def draw(self, count: int, beta: float = 0.0) -> tuple[dict[str, Any], DrawnRows]:
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
        return {**self._ring.at(places), WEIGHTS: weights}, DrawnRows(places, self.added)

    def prioritize(self, errors: Array, drawn: DrawnRows | None = None) -> None:
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

    def get_state(self, *_: object, **__: object) -> dict[str, Any]:
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

    def _new_chunks(self) -> NStepTransitions:
        return NStepTransitions(
            self._n_step, self._gamma, patience=self.capacity, waits=self._waits
        )


#: Which policies learn: their ids, or a function of an id and a batch; None: all.
ToTrain = Collection[str] | Callable[..., bool] | None


class MultiAgentReplayBuffer(Checkpointable):  # type: ignore[misc]  # Ray has no types
    """Keeps the last transitions of each policy, whichever of its agents made them.

    Each is drawn from by itself (`replay_mode="independent"`, the default of the old Rays, and all
    that today's buffers know).

    Args:
        default: What `TransitionReplayBuffer` takes, for a policy that comes later.
        of_policies: The same for each policy that is there.
    """

    def __init__(
        self, default: Mapping[str, Any], of_policies: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._default, self._of_policies = dict(default), dict(of_policies)
        self._kept: dict[str, TransitionReplayBuffer] = {}

    def __len__(self) -> int:
        """How many transitions all of them hold."""
        return sum(map(len, self._kept.values()))

    def of(self, policy_id: str) -> TransitionReplayBuffer:
        """The buffer of a policy."""
        if policy_id not in self._kept:
            settings = self._of_policies.get(policy_id, self._default)
            self._kept[policy_id] = TransitionReplayBuffer(**settings)
        return self._kept[policy_id]

    def add(self, episodes: Iterable[Any], to_train: ToTrain) -> None:
        """Keeps what episodes of several agents, or chunks of them, complete.

        Args:
            episodes: The episodes.
            to_train: Which policies learn. What others did is not kept: nobody would draw it.
        """
        for episode in episodes:
            for part in episode.agent_episodes.values():
                policy_id = part.module_id or DEFAULT_MODULE_ID
                if learns(policy_id, to_train):
                    self.of(policy_id).add([part])

    def sample(self, count: int, beta: float, to_train: ToTrain) -> dict[str, dict[str, Any]]:
        """Draws so many transitions for each policy that learns, and remembers which.

        Args:
            count: How many.
            beta: How far their weights make up for their priorities.
            to_train: Which policies learn.

        Returns:
            Policy → its train batch; without those that have done nothing yet.
        """
        return {
            policy_id: kept.sample(count, beta)
            for policy_id, kept in self._kept.items()
            if len(kept) and learns(policy_id, to_train)
        }

    def prioritize(self, errors: Mapping[str, Array]) -> None:
        """Gives what was drawn last other priorities: what the learner was wrong by."""
        for policy_id, wrong_by in errors.items():
            self._kept[policy_id].prioritize(wrong_by)

    def get_state(self, *_: object, **__: object) -> dict[str, Any]:
        """What all of them hold, for a checkpoint."""
        return {policy_id: kept.get_state() for policy_id, kept in self._kept.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one held.

        Raises:
            ConfigError: The other one had another capacity.
        """
        self._kept.clear()
        for policy_id, kept in state.items():
            self.of(policy_id).set_state(kept)

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that made it."""
        return (self._default, self._of_policies), {}


def learns(policy_id: str, to_train: ToTrain) -> bool:
    """Whether a policy is one of those that learn."""
    if to_train is None:
        return True
    return bool(to_train(policy_id, None)) if callable(to_train) else policy_id in to_train
