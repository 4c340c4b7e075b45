"""What a Ray did before it had the key for it.

The table of keys knows defaults. Where a key came later, and its default of today is not what
earlier Rays always did, the value that says the same stands here; `defaults.complete` adds it like
a default of that Ray.
"""

from __future__ import annotations

from typing import Any

from rllib_compat import registry
from rllib_compat.neutral.frozen import frozen


@frozen
class Unsaid:
    """One behaviour that no key of a Ray could change.

    Attributes:
        key: Today's key.
        value: What it would have been.
        until: The last release in the table of keys that had no key for it.
        why: The reason, in one sentence without a full stop at the end.
        but: The algorithms that did something else.
        only: The algorithms that did it; empty: all.
    """

    key: str
    value: Any
    until: str
    why: str
    but: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


UNSAID = (
    Unsaid(
        "sample_timeout_s",
        None,
        "2.10.0",
        "samples were waited for however long they took; since Ray 2.20, those that take more than "
        "60 seconds are thrown away",
    ),
    Unsaid(
        "evaluation_sample_timeout_s",
        # Ray computes with this one, so that it can't be None: a day.
        86_400.0,
        "1.13.0",
        "evaluation was waited for however long it took",
    ),
    Unsaid(
        "restart_failed_env_runners",
        False,
        "1.12.1",
        "a worker that failed was never restarted",
    ),
    Unsaid(
        "normalize_actions",
        False,
        "0.8.0",
        "actions went to the environment as the policy gave them; only SAC's came out squashed",
        but=registry.family("SAC"),
    ),
    Unsaid(
        "target_network_update_freq",
        1,
        "2.3.1",
        "the target network was updated whenever the buffered batches had been used up",
        only=registry.family("APPO"),
    ),
)


def unsaid(algorithm: str, index: int, order: list[str]) -> dict[str, Any]:
    """The rows of an algorithm at a release.

    Args:
        algorithm: The legacy algorithm.
        index: The place of the release in `order`.
        order: The releases of the table of keys, oldest first.
    """
    return {
        row.key: row.value
        for row in UNSAID
        if index <= order.index(row.until)
        and algorithm not in row.but
        and (not row.only or algorithm in row.only)
    }
