"""The sampler object of a worker: `worker.sampler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Sampler:
    """The sampler of a worker (`evaluation/sampler.py` of Ray 0.5 – 2.x).

    `get_metrics` returns the records of episodes that have ended since the last call.
    """

    def __init__(self, sample: Callable[[], Any], get_metrics: Callable[[], list[Any]]) -> None:
        self.get_data = self.next = sample
        self.get_metrics = get_metrics

    def get_extra_batches(self) -> list[Any]:
        """Returns an empty list: the next batch has the steps that callbacks have added."""
        return []
