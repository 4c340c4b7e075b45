"""The rollout worker and `BaseEnv` of Ray 0.6 – 2.x, as views on today's env runner."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rllib_compat import ray_versions
from rllib_compat.adapters.connectors import REPLACING
from rllib_compat.adapters.episodes import ONLY_POLICY
from rllib_compat.adapters.policies import LegacyPolicy
from rllib_compat.errors import GoneError

GONE = {
    "sampler": "the env runner samples itself: worker.sample()",
    "async_env": "environments of a runner are one gymnasium.vector.VectorEnv: worker.base_env",
    "policies_to_train": "which policies learn is known to the learners: config.policies_to_train",
    "output_writer": "set config.offline_data(output=…)",
    "learn_on_batch": "learning happens in the learners: algorithm.learner_group",
    "compute_gradients": "learning happens in the learners: algorithm.learner_group",
    "apply_gradients": "learning happens in the learners: algorithm.learner_group",
}


class LegacyBaseEnv:
    """All environments of one runner.

    Args:
        env: gymnasium's vector environment, or Ray's multi-agent one.
    """

    def __init__(self, env: Any) -> None:
        self._env = env

    @property
    def envs(self) -> list[Any]:
        """The user's own environments."""
        return self.get_unwrapped()

    @property
    def num_envs(self) -> int:
        """How many there are."""
        return len(self.get_sub_environments())

    def get_sub_environments(self, as_dict: bool = False) -> Any:
        """The user's own environments, without any wrapper of this package."""
        envs = [user_env(env) for env in ray_versions.sub_environments(self._env)]
        return dict(enumerate(envs)) if as_dict else envs

    def get_unwrapped(self) -> list[Any]:
        """The older name of `get_sub_environments`."""
        return list(self.get_sub_environments())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._env, name)


class LegacyPolicies(Mapping[str, LegacyPolicy]):
    """The policies of a runner by id; each is made when it is asked for.

    Args:
        env_runner: The runner; its module may be replaced at any time.
    """

    def __init__(self, env_runner: Any) -> None:
        self._env_runner = env_runner

    def __getitem__(self, policy_id: str) -> LegacyPolicy:
        return LegacyPolicy(policy_id, self._modules()[policy_id], self._env_runner.config)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __len__(self) -> int:
        return len(self._modules())

    def _modules(self) -> dict[str, Any]:
        module = self._env_runner.module
        return dict(module.items()) if hasattr(module, "items") else {ONLY_POLICY: module}


class LegacyWorker:
    """The rollout worker around an env runner. What it does not know itself, the runner answers.

    Args:
        env_runner: A `SingleAgentEnvRunner` or `MultiAgentEnvRunner`.
    """

    def __init__(self, env_runner: Any) -> None:
        self._env_runner = env_runner

    @property
    def policy_map(self) -> LegacyPolicies:
        """The policies by id."""
        return LegacyPolicies(self._env_runner)

    @property
    def callbacks(self) -> Any:
        """The user's callbacks object in this process."""
        for adapter in ray_versions.callbacks_of(self._env_runner):
            if hasattr(adapter, "legacy"):
                return adapter.legacy[0] if adapter.legacy else None
        return None

    @property
    def base_env(self) -> LegacyBaseEnv:
        """All environments of this worker."""
        env = self._env_runner.env
        return LegacyBaseEnv(getattr(env, "unwrapped", env))

    @property
    def env(self) -> Any:
        """The first of the user's own environments, or None."""
        return next(iter(self.base_env.get_sub_environments()), None)

    @property
    def policy_config(self) -> dict[str, Any]:
        """The config of the runner as a dict."""
        return dict(self._env_runner.config.to_dict())

    def get_policy(self, policy_id: str = ONLY_POLICY) -> LegacyPolicy | None:
        """The policy of that id, or None."""
        return self.policy_map.get(policy_id)

    def for_policy(
        self, func: Callable[..., Any], policy_id: str = ONLY_POLICY, **kwargs: Any
    ) -> Any:
        """Calls `func(policy)`."""
        return func(self.policy_map[policy_id], **kwargs)

    def foreach_policy(self, func: Callable[..., Any], **kwargs: Any) -> list[Any]:
        """Calls `func(policy, policy_id)` for all policies."""
        return [func(policy, policy_id, **kwargs) for policy_id, policy in self.policy_map.items()]

    def foreach_trainable_policy(self, func: Callable[..., Any], **kwargs: Any) -> list[Any]:
        """Calls `func(policy, policy_id)` for the policies that are trained."""
        to_train = self._env_runner.config.policies_to_train
        return [
            func(policy, policy_id, **kwargs)
            for policy_id, policy in self.policy_map.items()
            if to_train is None
            or (to_train(policy_id) if callable(to_train) else policy_id in to_train)
        ]

    foreach_policy_to_train = foreach_trainable_policy

    def foreach_env(self, func: Callable[[Any], Any]) -> list[Any]:
        """Calls `func(env)` for all of the user's environments."""
        return [func(env) for env in self.base_env.get_sub_environments()]

    def get_weights(self, policies: Any = None) -> dict[str, Any]:
        """The weights by policy."""
        return {
            policy_id: policy.get_weights()
            for policy_id, policy in self.policy_map.items()
            if policies is None or policy_id in policies
        }

    def set_weights(self, weights: Mapping[str, Any], global_vars: Any = None) -> None:  # noqa: ARG002
        """Sets weights by policy in this worker alone, until the learners send theirs."""
        for policy_id, values in weights.items():
            self.policy_map[policy_id].set_weights(values)

    def earlier_chunks(self, episode_id: Any) -> list[Any]:
        """The chunks of an ongoing episode that earlier samples have returned."""
        # No public name in any supported Ray; `get` keeps the default dict from growing.
        return list(self._env_runner._ongoing_episodes_for_metrics.get(episode_id, ()))

    def keeps_observations(self) -> bool:
        """Whether no connector replaces the observations of the environment."""
        connectors = self._env_runner._env_to_module.connectors
        return not any(type(connector).__name__ in REPLACING for connector in connectors)

    def action_space(self, policy_id: str) -> Any:
        """The action space of a policy."""
        return self.policy_map[policy_id].action_space

    def sub_environments(self) -> list[Any]:
        """The environments as this package wrapped them."""
        env = self._env_runner.env
        unwrapped = getattr(env, "unwrapped", env)
        return [e.unwrapped for e in ray_versions.sub_environments(unwrapped)]

    def __getattr__(self, name: str) -> Any:
        if name in GONE:
            raise GoneError(
                f"A worker has no `{name}` any more.", where=f"worker.{name}", fix=GONE[name]
            )
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._env_runner, name)


def as_legacy(env_runner: Any) -> Any:
    """The legacy view of an env runner; the old API stack's is a rollout worker itself."""
    return LegacyWorker(env_runner) if hasattr(env_runner, "module") else env_runner


def user_env(env: Any) -> Any:
    """The user's own object behind gymnasium's and this package's wrappers."""
    unwrapped = env.unwrapped
    return unwrapped.env if getattr(unwrapped, "wraps_legacy_env", False) else unwrapped
