"""What lets an item of a plan through once in a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Every:
    """Is true for an item if an interval has passed since it was last true; for `filter`.

    The first interval starts where the clock says 0. Without an interval all items pass.

    Args:
        interval: How long it is, in the clock's unit.
        clock: Says what time it is; a count of steps is one, too.
    """

    def __init__(self, interval: float | None, clock: Callable[[], float]) -> None:
        self._interval = interval or 0
        self._clock = clock
        self._last: float = 0

    def __call__(self, item: Any) -> bool:
        """Whether the interval has passed."""
        del item
        now = self._clock()
        passed = self._interval <= 0 or now - self._last >= self._interval
        if passed:
            self._last = now
        return passed
