"""Operators that run several flows side by side."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rllib_compat.neutral.errors import CompatError, ConfigError
from rllib_compat.ray_versions import old_stack

# A mode → whether each flow is waited for when it is its turn.
_WAITS = {"round_robin": True, "async": False}
# How many seconds a queue is waited for, so that a plan that has nothing to do does not spin.
_PATIENCE = 0.001
# What an item becomes whose flow is not among those that go on.
_HIDDEN = object()


def Concurrently(  # noqa: N802
    ops: Sequence[Any],
    *,
    mode: str = "round_robin",
    output_indexes: Sequence[int] | None = None,
    round_robin_weights: Sequence[Any] | None = None,
) -> Any:
    """Pulls items from several flows.

    Args:
        ops: The flows, two at least.
        mode: `round_robin` takes one after the other, `async` those that have something.
        output_indexes: The items of which flows go on; the others run, and are not seen. None, or
            none at all, for all.
        round_robin_weights: How many items to take from each at once; `*`: as many as there are.

    Raises:
        ConfigError: The arguments contradict each other.
    """
    weights = list(round_robin_weights or ())
    indexes = range(len(ops))
    shown = set(output_indexes or indexes)
    problems = {
        f"{len(ops)} flow runs beside no other.": len(ops) < 2,
        f"Flows have no mode {mode!r}.": mode not in _WAITS,
        "Flows that take no turns have no weights.": weights and mode == "async",
        "Of flows that all give what they have, none is waited for.": set(weights) == {"*"},
        f"Flows {sorted(shown)} of {len(ops)} can't continue.": not shown <= set(indexes),
    }
    for problem in (text for text, found in problems.items() if found):
        raise ConfigError(
            problem,
            where="Concurrently(ops, mode=, output_indexes=, round_robin_weights=)",
            fix=f"give two flows or more, one of the modes {' and '.join(_WAITS)}, indexes of "
            "these flows, and weights of which one is a number for round_robin alone",
        )
    first, *others = (op if i in shown else op.for_each(_hide) for i, op in enumerate(ops))
    joined = first.union(*others, deterministic=_WAITS[mode], round_robin_weights=weights or None)
    return joined.filter(_is_shown)


def _hide(_: object) -> Any:
    return _HIDDEN


def _is_shown(item: object) -> bool:
    return item is not _HIDDEN


class Enqueue:
    """Puts items into a queue. One that finds the queue full is lost, as in the old Rays.

    Raises:
        ConfigError: It is not one of Python's.
    """

    def __init__(self, output_queue: queue.Queue[Any]) -> None:
        self.queue = _checked(output_queue, "Enqueue")

    def __call__(self, x: object) -> Any:
        """The same item; or that there is none, if the queue stays full for a moment."""
        refused = _soon(self.queue.put, x)
        return x if refused is None else refused


def Dequeue(input_queue: queue.Queue[Any], check: Callable[[], bool] = lambda: True) -> Any:  # noqa: N802
    """Items from a queue. Others may continue while it is empty.

    Args:
        input_queue: The queue.
        check: Whether who fills it is still alive.

    Raises:
        ConfigError: It is not one of Python's queues.
        CompatError: In the flow, as soon as `check` says no.
    """
    return old_stack.plan_iterator(lambda: _taken(_checked(input_queue, "Dequeue"), check))


def _taken(full: queue.Queue[Any], check: Callable[[], bool]) -> Iterator[Any]:
    while check():
        yield _soon(full.get)
    raise CompatError(
        "What fills the queue has ended.",
        where="Dequeue(check=)",
        fix="look for the error of the thread that puts items into it",
    )


def _soon(operation: Callable[..., Any], *item: object) -> Any:
    """What an operation of a queue returns; that it is not ready, if it can't be done soon."""
    try:
        return operation(*item, timeout=_PATIENCE)
    except (queue.Full, queue.Empty):
        return old_stack.not_ready()


def _checked(found: object, operator: str) -> Any:
    if isinstance(found, queue.Queue):
        return found
    raise ConfigError(
        f"{operator} works on a queue.Queue, and not on a {type(found).__name__}.",
        where=f"{operator}(…)",
        fix="make a queue.Queue, which threads of one process share",
    )
