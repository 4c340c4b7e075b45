"""Operators that run several flows side by side."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rllib_compat import ray_versions


def Concurrently(  # noqa: N802
    ops: Sequence[Any],
    *,
    mode: str = "round_robin",
    output_indexes: Sequence[int] | None = None,
    round_robin_weights: Sequence[Any] | None = None,
) -> Any:
    """Pulls items from several flows.

    Args:
        ops: The flows.
        mode: `round_robin` takes one after the other, `async` those that have something.
        output_indexes: The items of which flows go on; None for all.
        round_robin_weights: How many items to take from each at once; `*`: as many as there are.
    """
    if output_indexes is not None:
        ops = [op.for_each(_tagged(index)) for index, op in enumerate(ops)]
    first, *others = ops
    joined = first.union(
        *others,
        deterministic=mode == "round_robin",
        round_robin_weights=list(round_robin_weights) if round_robin_weights else None,
    )
    if output_indexes is None:
        return joined
    return joined.filter(lambda item: item[0] in output_indexes).for_each(lambda item: item[1])


def _tagged(index: int) -> Callable[[Any], Any]:
    return lambda item: (index, item)


class Enqueue:
    """Puts items into a queue, and waits while it is full.

    Args:
        output_queue: The queue.
    """

    def __init__(self, output_queue: queue.Queue[Any]) -> None:
        self.queue = output_queue

    def __call__(self, x: Any) -> Any:
        """The same item."""
        try:
            self.queue.put_nowait(x)
        except queue.Full:
            return ray_versions.not_ready()
        return x


def Dequeue(input_queue: queue.Queue[Any], check: Callable[[], bool] = lambda: True) -> Any:  # noqa: N802
    """Items from a queue.

    Args:
        input_queue: The queue.
        check: Whether who fills it is still alive.
    """

    def items() -> Iterator[Any]:
        while check():
            try:
                yield input_queue.get_nowait()
            except queue.Empty:
                yield ray_versions.not_ready()

    return ray_versions.plan_iterator(items)
