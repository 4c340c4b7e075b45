"""Chooses a config's env runner class; and the worker of the old API stack."""

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
    """The worker of the old API stack; it passes users their own environments, and raises errors.

    Ray's own functions get the wrapped environments: they read spaces that the user's may lack.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        old_stack_names.add_old_names()
        old_stack.keep_sizes_of_lstms_integers()
        super().__init__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return old_stack_names.get_old_attribute(self, "worker", old_stack_names.WORKER, name)

    @property
    def multiagent(self) -> bool:
        """Whether there are other policies than the default one."""
        return set(self.policy_map) != {ONLY_POLICY}

    def stop(self) -> None:
        """Stops the worker, and the policy server that it may have."""
        if hasattr(self.input_reader, "close"):
            self.input_reader.close()
        super().stop()

    def apply(self, func: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Calls `func` with this worker; raises its error, unless the config tolerates failures."""
        if sampling.tolerates_failures(self.config):
            return super().apply(func, *args, **kwargs)
        return func(self, *args, **kwargs)

    def foreach_env(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(env)` for each environment."""
        if _is_rays(func):
            return list(super().foreach_env(func))
        return list(super().foreach_env(lambda env: func(user_env(env))))

    def foreach_env_with_context(self, func: Callable[..., Any]) -> list[Any]:
        """Calls `func(env, env_context)` for each environment."""
        called = super().foreach_env_with_context(
            lambda env, context: func(env if _is_rays(func) else user_env(env), context)
        )
        return list(called)


def _is_rays(function: object) -> bool:
    return str(getattr(function, "__module__", "")).startswith("ray.")


#: The classes that `use_compat_env_runners` sets.
_COMPAT = (CompatEnvRunner, CompatMultiAgentEnvRunner, CompatRolloutWorker)


def has_own_env_runners(config: AlgorithmConfig) -> bool:
    """Whether the user has set an env runner class in a config."""
    return config.env_runner_cls not in (None, *_COMPAT)


def use_compat_env_runners(config: AlgorithmConfig) -> None:
    """Sets env runners that sample faster, and raise the errors of their environments.

    An env runner class that the user has set stays.
    """
    if has_own_env_runners(config):
        return
    if config.output and config.enable_env_runner_and_connector_v2:
        cls: type | None = None  # Ray's default, which records
    elif not config.enable_env_runner_and_connector_v2:
        cls = CompatRolloutWorker
    elif configs.is_multi_agent(config):
        cls = CompatMultiAgentEnvRunner
    else:
        cls = CompatEnvRunner
    if cls is not config.env_runner_cls:  # the config may be frozen
        config.env_runners(env_runner_cls=cls)
