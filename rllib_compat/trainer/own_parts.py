"""What trainer classes bring of their own: policies, and execution plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from rllib_compat import ray_versions
from rllib_compat.neutral.errors import GoneError
from rllib_compat.runtime.running_plan import RunningPlan


@dataclass(frozen=True)
class StockPlan:
    """The execution plan of one of RLlib's algorithms, which means today's steps of it.

    Attributes:
        algorithm: The algorithm's name.
    """

    algorithm: str

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Raises: there is nothing to call.

        Raises:
            GoneError: Always.
        """
        raise GoneError(
            f"The execution plan of {self.algorithm} can be given to trainers, and not called.",
            where="execution_plan()",
            fix="write the plan out, with the operators of ray.rllib.execution",
        )


def plan_of(cls: type[Any]) -> Any:
    """The execution plan that a trainer class has written itself, or None."""
    plan = cls.execution_plan
    return None if isinstance(plan, StockPlan) else plan


def apply(config: Any, cls: type[Any], policy: type | None) -> None:
    """Gives an algorithm's config a trainer class's own policy and steps.

    Args:
        config: The `AlgorithmConfig`, of the old API stack if there is any of them.
        cls: The trainer class.
        policy: Its policies' class, or None for the algorithm's own.
    """
    if policy is not None:
        plain = cls.learns_once
        config.algo_class = ray_versions.with_policy(config.algo_class, policy, plain=plain)
    if plan_of(cls) is not None:
        config.algo_class = ray_versions.with_plan(config.algo_class)
        # The plan itself says when an iteration is over.
        config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
        # It has the buffer, too; DQN's policies look whether workers are to set priorities.
        if not hasattr(config, "replay_buffer_config"):
            config.replay_buffer_config = {}


def start_plan(trainer: Any) -> None:
    """Lets the trainer's algorithm go by the execution plan of its class, if it has one."""
    plan = plan_of(type(trainer))
    if plan is not None:
        trainer.algorithm.next_of_plan = RunningPlan(
            plan, trainer.workers, trainer.config, trainer.algorithm
        )
