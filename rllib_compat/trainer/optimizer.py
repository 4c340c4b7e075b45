"""`trainer.optimizer`: what was asked of the `PolicyOptimizer` of Ray 0.5 – 0.8 from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.errors import GoneError

if TYPE_CHECKING:
    from rllib_compat.trainer.trainer import Trainer
    from rllib_compat.trainer.workers import LegacyWorkers

_LEARNERS = "the learners took its place: trainer.algorithm.learner_group"
GONE = {
    "step": f"trainer.train() samples and learns; {_LEARNERS}",
    "replay_buffer": "it is trainer.algorithm.local_replay_buffer",
    "replay_buffers": "it is trainer.algorithm.local_replay_buffer",
    "learner": _LEARNERS,
    "reset": "workers are replaced when they fail, if restart_failed_env_runners is set",
}


class LegacyOptimizer:
    """Workers and counters. What samples and learns itself is gone.

    Args:
        trainer: The trainer.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer

    @property
    def workers(self) -> LegacyWorkers:
        """All workers."""
        return self._trainer.workers

    @property
    def num_steps_sampled(self) -> int:
        """The env steps that were sampled so far."""
        return self._counter("info", "num_steps_sampled")

    @property
    def num_steps_trained(self) -> int:
        """The steps that were trained so far, as the learners count them."""
        return self._counter("info", "num_steps_trained")

    def stats(self) -> dict[str, Any]:
        """Both counters, and what the learners said last."""
        return {
            "num_steps_sampled": self.num_steps_sampled,
            "num_steps_trained": self.num_steps_trained,
            "learner": (self._trainer.last_result.get("info") or {}).get("learner", {}),
        }

    def foreach_worker(self, func: Callable[[Any], Any]) -> list[Any]:
        """Calls `func(worker)` in all workers."""
        return self.workers.foreach_worker(func)

    foreach_evaluator = foreach_worker

    def foreach_worker_with_index(self, func: Callable[[Any, int], Any]) -> list[Any]:
        """Calls `func(worker, index)` in all workers."""
        return self.workers.foreach_worker_with_index(func)

    foreach_evaluator_with_index = foreach_worker_with_index

    def collect_metrics(self, *_: Any, **__: Any) -> dict[str, Any]:
        """As `trainer.collect_metrics()`."""
        return self._trainer.collect_metrics()

    def __getattr__(self, name: str) -> Any:
        if name in GONE:
            raise GoneError(
                f"There is no `optimizer.{name}` any more.",
                where=f"trainer.optimizer.{name}",
                fix=GONE[name],
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _counter(self, *path: str) -> int:
        value: Any = self._trainer.last_result
        for name in path:
            value = value.get(name) or {}
        return int(value or 0)
