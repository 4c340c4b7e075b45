"""What a worker took its samples from, as an object of its own: `worker.sampler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Sampler:
    """Gives what a worker samples (`evaluation/sampler.py` of Ray 0.5 – 2.x).

    Args:
        sample: Gives the next batch.
        get_metrics: Tells the episodes that have ended since the last call.
    """

    def __init__(self, sample: Callable[[], Any], get_metrics: Callable[[], list[Any]]) -> None:
        self.get_data = self.next = sample
        self.get_metrics = get_metrics

    def get_extra_batches(self) -> list[Any]:
        """Batches that callbacks have added: none; the next batch has them."""
        return []
