"""Rows of arrays, kept for replay: the newest in the place of the oldest."""

from __future__ import annotations

from typing import Any

import numpy as np
import tree

Array = np.ndarray[Any, np.dtype[Any]]

#: Arrays in dicts and tuples, each with as many rows as the others.
Rows = Any

#: How many rows there is room for at first.
_FIRST = 1024


class Ring:
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


def stacked(steps: Any) -> Rows:
    """Steps in a list as arrays, in which they may be already."""
    if not isinstance(steps, list):
        return steps
    return tree.map_structure(lambda *parts: np.stack(parts), *steps)
