"""Priorities of rows, and draws by them, in trees of numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from rllib_compat.algorithms.ring import Array

#: What Ray's prioritized buffers raise smaller priorities to: one of 0 would never be drawn.
LEAST = 1e-12


class Tree:
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

    def set(self, places: Array, numbers: Any) -> None:
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
        self._sums = Tree(places, np.add, 0.0)
        self._least = Tree(places, np.minimum, np.inf)
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
