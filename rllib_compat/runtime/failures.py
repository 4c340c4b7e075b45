"""Errors in workers: the first one reaches the user with its traceback, as it always did.

Ray 2.60 ends a worker in which an environment or a callback raises, and the error stays in the
worker's log; the driver hears that an actor died. A worker that answers with its error instead lets
`train()` raise it. Where the config asks for other workers in the place of failed ones, or to go on
without them, Ray's own way is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.rllib.evaluation.rollout_worker import RolloutWorker

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import (
    configs,
    direct_agents,
    direct_steps,
    ended_episodes,
    env_runners,
    metrics,
    modules,
    old_stack,
    timers,
)
from rllib_compat.runtime.drawing import draw
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.user_envs import user_env

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


class TellsErrors:
    """What an env runner needs to answer with its errors."""

    config: Any

    def apply(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls `func` with this worker; an error is the caller's."""
        if goes_on_without(self.config):
            return super().apply(func, *args, **kwargs)  # type: ignore[misc]
        return func(self, *args, **kwargs)


class GivesUsersEnvs:
    """What a worker of the old API stack needs to hand out the user's own environments.

    Ray asks its own workers, too, for spaces that an environment of the user's need not have.
    """

    def foreach_env(self, func: Any) -> list[Any]:
        """Calls `func(env)` for each."""
        if _is_rays(func):
            return list(super().foreach_env(func))  # type: ignore[misc]
        return list(super().foreach_env(lambda env: func(user_env(env))))  # type: ignore[misc]

    def foreach_env_with_context(self, func: Any) -> list[Any]:
        """Calls `func(env, env_context)` for each."""
        called = super().foreach_env_with_context(  # type: ignore[misc]
            lambda env, context: func(env if _is_rays(func) else user_env(env), context)
        )
        return list(called)


def _is_rays(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("ray.")


class CountsOnce:
    """What an env runner needs to be counted right, however often it samples in an iteration."""

    def sample(self, **kwargs: Any) -> list[Any]:
        """Samples; what explores less and less knows of each step that was."""
        episodes: list[Any] = super().sample(**kwargs)  # type: ignore[misc]
        env_runners.go_on_exploring(self, episodes)
        return episodes

    def get_metrics(self) -> Any:
        """What was counted and timed since the last call."""
        return metrics.count_once(super().get_metrics())  # type: ignore[misc]


class ExploresZeros:
    """What an env runner needs for modules of DQN whose Q-values are zero."""

    module: Any

    def __init__(self, *told: Any, **named: Any) -> None:
        super().__init__(*told, **named)
        made = self.module  # by a method of its own only in Rays after 2.40
        for module in made.values() if hasattr(made, "values") else [made]:
            if module is not None:
                modules.explore_zeros(module)


class SamplesFaster:
    """What an env runner needs to leave out what costs each step time and decides nothing."""

    module: Any

    def make_module(self) -> None:
        """Makes the module, which only ever acts here: Ray would switch its mode twice a step."""
        super().make_module()  # type: ignore[misc]
        timers.pass_over_connector_timers(self)
        made = self.module
        for module in made.values() if hasattr(made, "values") else [made]:
            getattr(module, "eval", lambda: None)()


class DrawsInNumpy:
    """What an env runner needs to draw actions without torch."""

    def draw_actions(self, distribution: Any, inputs: Any) -> tuple[Any, Any] | None:
        """Draws actions in numpy, from distributions that it knows."""
        return draw(distribution, inputs)


class StepsFaster(DrawsInNumpy, direct_steps.StepsDirectly):
    """What an env runner for one agent needs to pass over connectors that decide nothing."""


class AgentsFaster(DrawsInNumpy, direct_agents.AgentsDirectly, ended_episodes.ReadsEndedOnce):
    """What an env runner for many agents needs to pass over connectors that decide nothing."""


class NewStackRunner(ExploresZeros, SamplesFaster, CountsOnce, TellsErrors):
    """What each env runner of the new API stack needs."""


class OldStackWorker(TellsErrors, GivesUsersEnvs, old_stack.TakesOldPolicies):
    """What each worker of the old API stack needs."""

    @property
    def multiagent(self) -> bool:
        """Whether there are other policies than the default one."""
        return set(self.policy_map) != {ONLY_POLICY}


@public("rllib_compat.adapters")
class TellingEnvRunner(NewStackRunner, StepsFaster, SingleAgentEnvRunner):  # type: ignore[misc]
    """Ray's env runner for one agent, whose errors are told."""


@public("rllib_compat.adapters")
class TellingMultiAgentEnvRunner(NewStackRunner, AgentsFaster, MultiAgentEnvRunner):  # type: ignore[misc]
    """Ray's env runner for many agents, whose errors are told."""


@public("rllib_compat.adapters")
class TellingRolloutWorker(OldStackWorker, RolloutWorker):  # type: ignore[misc]
    """The rollout worker of the old API stack, whose errors are told."""


#: What `give_env_runners` gives; a config that has one of them has none of its own.
_GIVEN = (TellingEnvRunner, TellingMultiAgentEnvRunner, TellingRolloutWorker)


def has_own_env_runners(config: AlgorithmConfig) -> bool:
    """Whether somebody has given a config env runners of another class."""
    return config.env_runner_cls not in (None, *_GIVEN)


def give_env_runners(config: AlgorithmConfig) -> None:
    """Gives a config env runners that sample faster, and answer with their errors.

    It keeps its own, if it has some.
    """
    if has_own_env_runners(config):
        return
    if config.output and config.enable_env_runner_and_connector_v2:
        cls: type | None = None  # Ray has an env runner that records
    elif not config.enable_env_runner_and_connector_v2:
        cls = TellingRolloutWorker
    elif configs.is_multi_agent(config):
        cls = TellingMultiAgentEnvRunner
    else:
        cls = TellingEnvRunner
    if cls is not config.env_runner_cls:  # it may be frozen
        config.env_runners(env_runner_cls=cls)


def goes_on_without(config: Any) -> bool:
    """Whether a config asks to go on when workers fail."""
    return bool(
        getattr(config, "restart_failed_env_runners", False)
        or getattr(config, "ignore_env_runner_failures", False)
    )
