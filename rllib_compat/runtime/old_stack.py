"""What only the old API stack knows: some events of callbacks, and execution plans.

Ray calls the events with legacy objects already, under the legacy names.
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
    """The events of a `CallbackAdapter` that only the old API stack knows."""

    def _fire(self, event: str, values: dict[str, Any], legacy: dict[str, Any]) -> None:
        raise NotImplementedError

    def on_sub_environment_created(self, **kwargs: object) -> None:
        """Passes one of the worker's environments on, without any wrapper of this package."""
        env = kwargs["sub_environment"]
        mine = {"sub_environment": user_env(env) if hasattr(env, "unwrapped") else env}
        self._fire("on_environment_created", kwargs, mine)

    def on_create_policy(self, **kwargs: object) -> None:
        """Passes a policy on."""
        self._fire("on_create_policy", kwargs, {})

    def on_postprocess_trajectory(self, **kwargs: Any) -> None:
        """Passes an agent's trajectory on; since Ray 2.1, the originals have the policy's id."""
        originals = {agent: given[-2:] for agent, given in kwargs["original_batches"].items()}
        self._fire("on_postprocess_trajectory", kwargs, {"original_batches": originals})

    def on_sample_batch(self, **kwargs: object) -> None:
        """Passes a sample on; that of one policy for all was not kept by policy until Ray 2.0."""
        old_stack.add_legacy_batch_names()
        samples = kwargs["samples"]
        by_policy = getattr(samples, "policy_batches", {})
        if set(by_policy) == {ONLY_POLICY}:
            samples = by_policy[ONLY_POLICY]
        self._fire("on_sample_end", kwargs, {"samples": samples})

    def on_learn_on_batch(self, **kwargs: object) -> None:
        """Passes a policy's train batch on."""
        self._fire("on_learn_on_batch", kwargs, {})


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
        algorithm: Algorithm,
    ) -> None:
        self.result: dict[str, Any] = {}
        old_stack.add_legacy_batch_names()
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
