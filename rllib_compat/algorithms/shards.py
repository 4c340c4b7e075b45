"""A replay buffer that is distributed over actors.

Env runners give transitions to one of the actors, the algorithm asks one for a batch, learns from
it, and gives the errors back to the same one.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import ray
import tree
from ray.exceptions import RayActorError
from ray.rllib.utils.checkpoints import Checkpointable

from rllib_compat.algorithms.replay import Drawn, TransitionReplay
from rllib_compat.algorithms.ring import Array, count_of
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen

logger = logging.getLogger(__name__)


class Shard:
    """A part of the buffer, in an actor.

    Args:
        capacity: How many transitions it keeps.
        least: How many it has to be given before it draws any.
        **more: What `TransitionReplay` takes.
    """

    def __init__(self, capacity: int, least: int, **more: Any) -> None:
        self._replay = TransitionReplay(capacity, **more)
        self._least = max(1, least)
        self._given = 0
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._calls: Counter[str] = Counter()
        self._failed: Exception | None = None

    def add(self, rows: Mapping[str, Any], errors: Array | None) -> None:
        """Keeps transitions. Nobody waits for this: an error is told by the next `draw`."""
        begin = time.perf_counter()
        try:
            self._replay.keep(rows, errors)
            self._given += count_of(rows)
        except Exception as error:  # `draw` raises it
            self._failed = error
        self._count("add_batch", begin)

    def draw(self, count: int, beta: float) -> tuple[dict[str, Any], Drawn] | None:
        """A train batch, and which transitions it has; None where there are too few."""
        if self._failed is not None:
            raise self._failed
        if self._given < self._least:
            return None
        begin = time.perf_counter()
        found = self._replay.draw(count, beta)
        self._count("replay", begin)
        return found

    def prioritize(self, errors: Array, drawn: Drawn) -> None:
        """Gives transitions that it has drawn other priorities."""
        begin = time.perf_counter()
        self._replay.prioritize(errors, drawn)
        self._count("update_priorities", begin)

    def stats(self, debug: bool = False) -> dict[str, float]:
        """What it holds and has done, by the names that old results have.

        Args:
            debug: Whether more is told: how many bytes a batch of one row takes.
        """
        told: dict[str, float] = {
            "num_entries": len(self._replay),
            "added_count": self._replay.added,
            "capacity": self._replay.capacity,
            **{f"num_calls_{name}": calls for name, calls in self._calls.items()},
        }
        for name, calls in self._calls.items():
            told[f"{name}_time_ms"] = round(1000 * self._seconds[name] / calls, 3)
        if debug and len(self._replay):
            row, _ = self._replay.draw(1)
            told["est_size_bytes"] = len(self._replay) * sum(a.nbytes for a in tree.flatten(row))
        return told

    def get_state(self) -> dict[str, Any]:
        """What it holds, for a checkpoint."""
        return {"given": self._given, "replay": self._replay.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what another one held."""
        self._replay.set_state(state["replay"])
        self._given = state["given"]

    def _count(self, what: str, begin: float) -> None:
        self._seconds[what] += time.perf_counter() - begin
        self._calls[what] += 1


@frozen
class Batch:
    """A batch from a shard.

    Attributes:
        shard: The number of the shard.
        actor: The shard itself, which may have been made anew since.
        columns: What learners take.
        drawn: Which of the shard's transitions they are.
    """

    shard: int
    actor: Any
    columns: Mapping[str, Any]
    drawn: Drawn


class Shards(Checkpointable):  # type: ignore[misc]  # Ray has no types
    """All parts of the buffer, whose actors start when they are first needed.

    Args:
        count: How many there are.
        capacity: How many transitions all of them keep.
        least: How many all of them have to be given before they draw any.
        here: Whether they have to be on the node of the algorithm.
        **more: What `TransitionReplay` takes.
    """

    def __init__(
        self, count: int, capacity: int, *, least: int = 0, here: bool = True, **more: Any
    ) -> None:
        self.count, self.capacity = count, capacity
        self._least, self._here, self._more = least, here, more
        self._actors: list[Any] = []
        #: What was asked for → the shard that was asked.
        self._asked: dict[Any, tuple[int, Any]] = {}
        self._restored: list[Any] | None = None

    @property
    def actors(self) -> list[Any]:
        """The actors."""
        if not self._actors:
            self._actors = [self._start() for _ in range(self.count)]
            # Until they run, what env runners send waits, and batches would be asked for in vain.
            ray.get([actor.stats.remote() for actor in self._actors])
            if self._restored is not None:
                ray.get([self._set(*pair) for pair in self._pairs(self._restored)])
                self._restored = None
        return self._actors

    @property
    def asked(self) -> list[Any]:
        """The references to batches that were asked for."""
        return list(self._asked)

    def ask(self, size: int, beta: float) -> None:
        """Asks one of the shards for a batch."""
        number = np.random.randint(self.count)
        actor = self.actors[number]
        self._asked[actor.draw.remote(size, beta)] = number, actor

    def answers(self) -> Iterator[Batch | None]:
        """The batches that are there; None in the place of one from a shard that has too little.

        A shard that has died is made anew, and said: what it held is lost.
        """
        ready, _ = ray.wait(self.asked, num_returns=len(self._asked), timeout=0.0)
        for reference in ready:
            number, actor = self._asked.pop(reference)
            try:
                found = ray.get(reference)
            except RayActorError as error:
                self._replace(number, actor, error)
                found = None
            if found is None:
                yield None
                continue
            columns, drawn = found
            # Copies: arrays in the object store can't be written, of which torch warns.
            yield Batch(number, actor, tree.map_structure(lambda a: a.copy(), columns), drawn)

    def stats(self, debug: bool = False) -> dict[str, float]:
        """What the first shard tells of itself; empty where it has died or not started."""
        if not self._actors:
            return {}
        try:
            told: dict[str, float] = ray.get(self._actors[0].stats.remote(debug))
        except RayActorError as error:
            self._replace(0, self._actors[0], error)
            return {}
        return told

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """What all of them hold, for a checkpoint."""
        if self._actors:
            states = ray.get([actor.get_state.remote() for actor in self._actors])
        else:
            states = self._restored
        return {"count": self.count, "capacity": self.capacity, "shards": states}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Holds what other ones held.

        Raises:
            ConfigError: Those were more or fewer, or of another size.
        """
        stored, mine = ((state["count"], state["capacity"]), (self.count, self.capacity))
        if stored != mine:
            raise ConfigError(
                f"A replay buffer of {stored[0]} shards with {stored[1]} steps was stored; this "
                f"one has {mine[0]} with {mine[1]}.",
                where="num_replay_buffer_shards",
                fix="Take the same numbers, or store_buffer_in_checkpoints=False.",
            )
        self._asked.clear()
        self._restored = state["shards"]
        if self._actors and self._restored is not None:
            ray.get([self._set(*pair) for pair in self._pairs(self._restored)])
            self._restored = None

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments that made it."""
        return (self.count, self.capacity), {
            "least": self._least,
            "here": self._here,
            **self._more,
        }

    def stop(self) -> None:
        """Ends the actors."""
        while self._actors:
            ray.kill(self._actors.pop())
        self._asked.clear()

    def __len__(self) -> int:
        """How many there are."""
        return self.count

    def _start(self) -> Any:
        options: dict[str, Any] = {"num_cpus": 0}
        if self._here:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            node = ray.get_runtime_context().get_node_id()
            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node, soft=False)
        made = ray.remote(Shard).options(**options)
        return made.remote(
            max(1, self.capacity // self.count), self._least // self.count, **self._more
        )

    def _replace(self, number: int, actor: Any, error: Exception) -> None:
        if self._actors[number] is not actor:  # that was done already
            return
        logger.warning(
            "A shard of the replay buffer has died, and is made anew; what it held is lost: %s",
            error,
        )
        self._actors[number] = self._start()

    def _pairs(self, states: list[Any]) -> Iterator[tuple[Any, Any]]:
        return zip(self._actors, states, strict=True)

    @staticmethod
    def _set(actor: Any, state: Any) -> Any:
        return actor.set_state.remote(state)
