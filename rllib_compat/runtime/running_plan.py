"""An execution plan in the place of an algorithm's own steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import old_stack


class RunningPlan:
    """Takes the steps of an algorithm of the old API stack, one item of the plan each.

    Args:
        plan: The execution plan: makes an iterator of results from (workers, config).
        workers: `trainer.workers`.
        config: The legacy config.
        algorithm: The algorithm, whose counters the plan counts on.

    Attributes:
        result: The newest result of the plan.
    """

    def __init__(
        self,
        plan: Callable[..., Any],
        workers: Any,
        config: Mapping[str, Any],
        algorithm: Any,
    ) -> None:
        self.result: dict[str, Any] = {}
        old_stack.give_batches_their_old_names()
        self._algorithm = algorithm
        self._items = plan(workers, config)

    def __call__(self) -> Any:
        """Takes a step.

        Returns:
            What the policies tell of what they learned.

        Raises:
            CompatError: The plan has come to its end.
        """
        try:
            item = old_stack.next_of_plan(self._algorithm, self._items)
        except StopIteration as error:
            raise CompatError(
                "The execution plan has come to its end.",
                where="trainer.train()",
                fix="train for no more iterations than the plan has",
            ) from error
        self.result = dict(item) if isinstance(item, Mapping) else {}
        return dict(self.result.get("info", {}).get("learner", {}))

    def complete(self, result: dict[str, Any]) -> None:
        """Puts into an algorithm's result what the plan's has, and what was made of it."""
        for key, value in self.result.items():
            if key == "info":
                told = {name: v for name, v in value.items() if name != "learner"}
                result.setdefault(key, {}).update(told)
            elif isinstance(value, Mapping) and isinstance(result.get(key), dict):
                result[key].update(value)
            else:
                result[key] = value
