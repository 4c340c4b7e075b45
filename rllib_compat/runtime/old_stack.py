"""Callback events and execution plans that only the old API stack has.

Ray calls these events with legacy objects, by their legacy names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rllib_compat.neutral.errors import CompatError
from rllib_compat.ray_versions import old_stack
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.user_envs import user_env

if TYPE_CHECKING:
    from rllib_compat.ray_versions.types import Algorithm


class OldStackEvents:
    """A mixin with the events of `CallbackAdapter` that only the old API stack has."""

    def _fire(self, event: str, values: dict[str, Any], legacy: dict[str, Any]) -> None:
        raise NotImplementedError

    def on_sub_environment_created(self, **kwargs: object) -> None:
        """Calls the callbacks with an environment, without this package's wrappers."""
        env = kwargs["sub_environment"]
        mine = {"sub_environment": user_env(env) if hasattr(env, "unwrapped") else env}
        self._fire("on_environment_created", kwargs, mine)

    def on_create_policy(self, **kwargs: object) -> None:
        """Calls the callbacks with a new policy."""
        self._fire("on_create_policy", kwargs, {})

    def on_postprocess_trajectory(self, **kwargs: Any) -> None:
        """Calls the callbacks with a trajectory; Ray 2.1 added the policy's id to the originals."""
        originals = {agent: given[-2:] for agent, given in kwargs["original_batches"].items()}
        self._fire("on_postprocess_trajectory", kwargs, {"original_batches": originals})

    def on_sample_batch(self, **kwargs: object) -> None:
        """Calls the callbacks with a sample; until Ray 2.0, a single policy's was not by policy."""
        old_stack.add_legacy_batch_names()
        samples = kwargs["samples"]
        by_policy = getattr(samples, "policy_batches", {})
        if set(by_policy) == {ONLY_POLICY}:
            samples = by_policy[ONLY_POLICY]
        self._fire("on_sample_end", kwargs, {"samples": samples})

    def on_learn_on_batch(self, **kwargs: object) -> None:
        """Calls the callbacks with a policy's train batch."""
        self._fire("on_learn_on_batch", kwargs, {})


class RunningPlan:
    """An execution plan that takes the training steps of an algorithm of the old API stack.

    Args:
        plan: The function from (workers, config) to an iterator of results.
        workers: `trainer.workers`.
        config: The legacy config.
        algorithm: The algorithm, whose counters the plan uses.

    Attributes:
        result: The newest result of the plan.
    """

    def __init__(
        self,
        plan: Callable[..., Any],
        workers: object,
        config: Mapping[str, Any],
        algorithm: Algorithm,
    ) -> None:
        self.result: dict[str, Any] = {}
        old_stack.add_legacy_batch_names()
        self._algorithm = algorithm
        self._items = plan(workers, config)

    def __call__(self) -> Any:
        """Takes one step: the next item of the plan.

        Returns:
            The policies' statistics.

        Raises:
            CompatError: The plan has no more items.
        """
        try:
            item = old_stack.next_of_plan(self._algorithm, self._items)
        except StopIteration as error:
            raise CompatError(
                "The execution plan has ended: its iterator has no more results.",
                where="trainer.train()",
                fix="call train() only as often as the plan yields a result",
            ) from error
        self.result = dict(item) if isinstance(item, Mapping) else {}
        return dict(self.result.get("info", {}).get("learner", {}))

    def complete(self, result: dict[str, Any]) -> None:
        """Merges the plan's newest result into an algorithm's result."""
        for key, value in self.result.items():
            if key == "info":
                others = {name: v for name, v in value.items() if name != "learner"}
                result.setdefault(key, {}).update(others)
            elif isinstance(value, Mapping) and isinstance(result.get(key), dict):
                result[key].update(value)
            else:
                result[key] = value
