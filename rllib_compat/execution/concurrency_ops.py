"""Operators that run several flows concurrently."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rllib_compat.neutral.errors import CompatError, ConfigError
from rllib_compat.ray_versions import old_stack

# A mode → whether the plan waits for each flow in turn.
_WAITS = {"round_robin": True, "async": False}
# The timeout in s for queues, so that a plan without items does not use the CPU all the time.
_TIMEOUT = 0.001
# Replaces the items of flows that are not in the output.
_HIDDEN = object()


def Concurrently(  # noqa: N802
    ops: Sequence[Any],
    *,
    mode: str = "round_robin",
    output_indexes: Sequence[int] | None = None,
    round_robin_weights: Sequence[Any] | None = None,
) -> Any:
    """Merges the items of several flows.

    Args:
        ops: The flows, at least two.
        mode: `round_robin` takes them in turn, `async` those that have an item.
        output_indexes: The indexes of the flows whose items are returned; None or empty: all. The
            others run, too.
        round_robin_weights: How many items to take from each flow in turn; `*`: all that it has.

    Raises:
        ConfigError: The arguments are invalid.
    """
    weights = list(round_robin_weights or ())
    indexes = range(len(ops))
    shown = set(output_indexes or indexes)
    problems = {
        f"`ops` has {len(ops)} flow(s) and needs at least 2.": len(ops) < 2,
        f"The mode {mode!r} is unknown.": mode not in _WAITS,
        "The mode 'async' takes no weights.": weights and mode == "async",
        "All weights are '*', and one has to be a number.": set(weights) == {"*"},
        f"`output_indexes` has {sorted(shown)} for {len(ops)} flows.": not shown <= set(indexes),
    }
    for problem in (text for text, found in problems.items() if found):
        raise ConfigError(
            problem,
            where="Concurrently(ops, mode=, output_indexes=, round_robin_weights=)",
            fix=f"pass at least two flows, one of the modes {' and '.join(_WAITS)}, indexes of "
            "these flows, and weights only for round_robin, one of them a number",
        )
    first, *others = (op if i in shown else op.for_each(_hide) for i, op in enumerate(ops))
    joined = first.union(*others, deterministic=_WAITS[mode], round_robin_weights=weights or None)
    return joined.filter(_is_shown)


def _hide(_: object) -> Any:
    return _HIDDEN


def _is_shown(item: object) -> bool:
    return item is not _HIDDEN


class Enqueue:
    """An operator that puts items into a queue; it drops items for a full queue, as in old Rays.

    Raises:
        ConfigError: The queue is not a `queue.Queue`.
    """

    def __init__(self, output_queue: queue.Queue[Any]) -> None:
        self.queue = _checked(output_queue, "Enqueue")

    def __call__(self, x: object) -> Any:
        """Puts an item, and returns it, or the "not ready" marker if the queue is full."""
        not_ready = _try(self.queue.put, x)
        return x if not_ready is None else not_ready


def Dequeue(input_queue: queue.Queue[Any], check: Callable[[], bool] = lambda: True) -> Any:  # noqa: N802
    """Returns the flow of a queue's items; other flows continue while it is empty.

    `check` returns whether the producer is still alive.

    Raises:
        ConfigError: The queue is not a `queue.Queue`.
        CompatError: `check` returned False; the flow raises it.
    """
    return old_stack.plan_iterator(lambda: _taken(_checked(input_queue, "Dequeue"), check))


def _taken(full: queue.Queue[Any], check: Callable[[], bool]) -> Iterator[Any]:
    while check():
        yield _try(full.get)
    raise CompatError(
        "The queue's producer has ended: `check` returned False.",
        where="Dequeue(check=)",
        fix="correct the error of the thread that puts items into the queue",
    )


def _try(operation: Callable[..., Any], *item: object) -> Any:
    """Calls a queue's operation, and returns its result or the "not ready" marker."""
    try:
        return operation(*item, timeout=_TIMEOUT)
    except (queue.Full, queue.Empty):
        return old_stack.not_ready()


def _checked(found: object, operator: str) -> Any:
    if isinstance(found, queue.Queue):
        return found
    raise ConfigError(
        f"{operator} got a {type(found).__name__} instead of a queue.Queue.",
        where=f"{operator}(…)",
        fix="pass a queue.Queue, which the threads of a process share",
    )
