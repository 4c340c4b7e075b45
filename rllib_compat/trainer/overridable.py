"""What trainer classes bring of their own: policies, execution plans, and steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

from rllib_compat.neutral.errors import GoneError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import old_policies, old_stack
from rllib_compat.runtime.old_stack import RunningPlan
from rllib_compat.trainer.defaults import defaults_of, merge

#: What trainers of no algorithm started from, of the common config.
PLAIN: Mapping[str, Any] = {"rollout_fragment_length": 200, "train_batch_size": 200}

#: What says what an iteration is; the newer name first.
_STEPS = ("training_step", "training_iteration")


@frozen
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


class Overridable:
    """What subclasses of a Trainer override to say how they train (Ray 1.9 – 2.x)."""

    algorithm: Any
    algorithm_name: ClassVar[str | None]
    _default_config: ClassVar[Mapping[str, Any]]
    execution_plan: ClassVar[Callable[..., Any] | None]
    policy_class: ClassVar[type | None]
    choose_policy_class: ClassVar[Any]

    @classmethod
    def get_default_config(cls) -> dict[str, Any]:
        """The config that the legacy class started from."""
        return merge(defaults_of(cls.algorithm_name or "PPO"), cls._default_config)

    def get_default_policy_class(self, config: Any) -> type | None:
        """The class of policies that name none; None for the algorithm's own."""
        chosen = self.choose_policy_class(config) if self.choose_policy_class else None
        return chosen or self.policy_class

    def validate_config(self, config: dict[str, Any]) -> None:
        """Checks a config with all defaults, and may change it."""

    def training_step(self) -> dict[str, Any]:
        """What an iteration does: the algorithm's own steps."""
        return dict(old_stack.own_step(self.algorithm))

    def training_iteration(self) -> dict[str, Any]:
        """The same, by its name of Ray 1.10 – 1.13."""
        return self.training_step()

    @property
    def _counters(self) -> Any:
        return old_stack.counters_of(self.algorithm)

    @property
    def _timers(self) -> Any:
        return old_stack.timers_of(self.algorithm)


def is_overridden(cls: type[Any], name: str) -> bool:
    """Whether a trainer class has a method of its own in the place of one of `Overridable`.

    By its name, as Ray puts a wrapper around each method of an actor's class.
    """
    return bool(getattr(cls, name).__qualname__ != f"{Overridable.__name__}.{name}")


def has_overrides(cls: type[Any]) -> bool:
    """Whether a trainer class says itself what learns, or what an iteration is."""
    return has_steps(cls) or is_overridden(cls, "get_default_policy_class")


def step_of(trainer: Any) -> Callable[[], Any] | None:
    """What the trainer's class takes as a step, if it is not the algorithm's."""
    if (plan := plan_of(type(trainer))) is not None:
        return RunningPlan(plan, trainer.workers, trainer.config, trainer.algorithm)
    for name in _STEPS:
        if is_overridden(type(trainer), name):
            step: Callable[[], Any] = getattr(trainer, name)
            return step
    return None


def has_steps(cls: type[Any]) -> bool:
    """Whether a trainer class says itself what an iteration is."""
    return plan_of(cls) is not None or any(is_overridden(cls, name) for name in _STEPS)


def apply(config: Any, cls: type[Any], policy: type | None, *, plain: bool) -> None:
    """Gives an algorithm's config a trainer class's own policy and steps.

    Args:
        config: The `AlgorithmConfig`, of the old API stack if there is any of them.
        cls: The trainer class.
        policy: Its policies' class, or None for the algorithm's own.
        plain: Whether it is of no algorithm, and learns once from each batch.
    """
    if policy is not None:
        config.algo_class = old_policies.with_policy(config.algo_class, policy, plain=plain)
    if has_steps(cls):
        config.algo_class = old_stack.with_steps(config.algo_class)
        if plan_of(cls) is not None:  # which says itself when an iteration is over
            config.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=0)
        # They have the buffer, too; DQN's policies look whether workers are to set priorities.
        if not hasattr(config, "replay_buffer_config"):
            config.replay_buffer_config = {}


def start_steps(trainer: Any) -> None:
    """Lets the trainer's algorithm take the steps of its class, if it has any."""
    step = step_of(trainer)
    if step is not None:
        trainer.algorithm.legacy_step = step
