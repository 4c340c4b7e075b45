"""Which env runners a config gets, and the workers of the old API stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ray.rllib.evaluation.rollout_worker import RolloutWorker

from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import configs, old_stack, sampling
from rllib_compat.ray_versions.multi_agent_runner import CompatMultiAgentEnvRunner
from rllib_compat.ray_versions.single_agent_runner import CompatEnvRunner
from rllib_compat.runtime import old_stack_names
from rllib_compat.runtime.policy_mapping import ONLY_POLICY
from rllib_compat.runtime.user_envs import user_env

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


@public("rllib_compat.adapters")
class CompatRolloutWorker(old_stack.LegacyPolicyWorker, RolloutWorker):  # type: ignore[misc]
    """The worker of the old API stack, which gives users their own environments, and its errors.

    Ray asks its own workers, too, for spaces that an environment of the user's need not have.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        old_stack_names.answer_to_old_names()
        old_stack.keep_sizes_of_lstms_integers()
        super().__init__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return old_stack_names.answer(self, "worker", old_stack_names.WORKER, name)

    @property
    def multiagent(self) -> bool:
        """Whether there are other policies than the default one."""
        return set(self.policy_map) != {ONLY_POLICY}

    def stop(self) -> None:
        """Releases what the worker holds: a policy server stops listening."""
        if hasattr(self.input_reader, "close"):
            self.input_reader.close()
        super().stop()

    def apply(self, func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Calls `func` with this worker; an error is the caller's, or Ray's if it is tolerated."""
        if sampling.tolerates_failures(self.config):
            return super().apply(func, *args, **kwargs)
        return func(self, *args, **kwargs)

    def foreach_env(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(env)` for each."""
        if _is_rays(func):
            return list(super().foreach_env(func))
        return list(super().foreach_env(lambda env: func(user_env(env))))

    def foreach_env_with_context(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(env, env_context)` for each."""
        called = super().foreach_env_with_context(
            lambda env, context: func(env if _is_rays(func) else user_env(env), context)
        )
        return list(called)


def _is_rays(function: object) -> bool:
    return str(getattr(function, "__module__", "")).startswith("ray.")


#: What `use_compat_env_runners` gives; a config that has one of them has none of its own.
_GIVEN = (CompatEnvRunner, CompatMultiAgentEnvRunner, CompatRolloutWorker)


def has_own_env_runners(config: AlgorithmConfig) -> bool:
    """Whether somebody has given a config env runners of another class."""
    return config.env_runner_cls not in (None, *_GIVEN)


def use_compat_env_runners(config: AlgorithmConfig) -> None:
    """Gives a config env runners that sample faster, and answer with their errors.

    It keeps its own, if it has some.
    """
    if has_own_env_runners(config):
        return
    if config.output and config.enable_env_runner_and_connector_v2:
        cls: type | None = None  # Ray has an env runner that records
    elif not config.enable_env_runner_and_connector_v2:
        cls = CompatRolloutWorker
    elif configs.is_multi_agent(config):
        cls = CompatMultiAgentEnvRunner
    else:
        cls = CompatEnvRunner
    if cls is not config.env_runner_cls:  # it may be frozen
        config.env_runners(env_runner_cls=cls)
