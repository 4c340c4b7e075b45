"""Adapts RLlib's `VectorEnv`, one object that steps several environments at once.

gymnasium's vector environments differ in their names and at the end of an episode: RLlib reset the
one environment (`reset_at`) before the next step, while the installed Ray's env runner expects that
the next step is the reset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector.utils import batch_space, iterate
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.vector_env import VectorEnv

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.public import public
from rllib_compat.ray_versions import environments, episodes
from rllib_compat.ray_versions.single_agent_runner import CompatEnvRunner
from rllib_compat.runtime import gym_api
from rllib_compat.runtime.env_runners import has_own_env_runners
from rllib_compat.runtime.env_settings import EnvSettings
from rllib_compat.runtime.policy_mapping import ONLY_AGENT

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig


class VectorEnvFound(Exception):  # noqa: N818 - no error: it passes the environment to the runner
    """A creator has returned a `VectorEnv` instead of a single environment."""

    def __init__(self, env: object) -> None:
        super().__init__(env)
        self.env = env


def is_vector_env(env: object) -> bool:
    """Whether `env` is one of RLlib's `VectorEnv`s."""
    return hasattr(env, "vector_step") and hasattr(env, "vector_reset")


class SubEnvironment:
    """One environment of a `VectorEnv`, with the attributes that this package's wrappers have."""

    wraps_legacy_env = True

    def __init__(self, env: object, unclipped: dict[str, float]) -> None:
        self.env = env
        self.unclipped = unclipped

    @property
    def unwrapped(self) -> SubEnvironment:
        """This object: the environment inside is the user's own."""
        return self


class VectorAdapter(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A gymnasium vector environment around an RLlib `VectorEnv` of any Ray.

    A sub-environment whose episode has ended is reset twice: before `vector_step`, which takes an
    action for each and whose result for this one is dropped, and after it.

    Args:
        env: The `VectorEnv`: `vector_reset`, `reset_at`, `vector_step`, `num_envs` and spaces.
        settings: Horizon and the like.

    Attributes:
        env: The `VectorEnv`.
    """

    metadata = environments.resets_at_the_next_step()

    def __init__(self, env: Any, settings: EnvSettings) -> None:
        self.env = env
        gym_api.check(env, "vector_reset", "vector_step", "reset_at", "num_envs")
        self.num_envs = int(env.num_envs)
        check = gym_api.ObservationCheck(settings)
        seen, self._cast = gym_api.adapt_observation_space(env.observation_space, settings, check)
        self.single_observation_space = seen
        self.single_action_space = gym_api.to_gymnasium(env.action_space, "action_space")
        self.observation_space = batch_space(seen, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._settings = settings
        self._lengths = np.zeros(self.num_envs, int)
        self._ended = np.zeros(self.num_envs, bool)
        # The unclipped rewards of each episode, if rewards are clipped for the learner.
        self._unclipped: list[dict[str, float]] = [{} for _ in range(self.num_envs)]

    @property
    def envs(self) -> list[SubEnvironment]:
        """The sub-environments that it returns; else the `VectorEnv` itself for each."""
        names = "get_sub_environments", "get_unwrapped"
        lists: list[Any] = [_call_own_method(self.env, name) for name in names]
        found = next((envs for envs in lists if envs), [self.env] * self.num_envs)
        return [SubEnvironment(*pair) for pair in zip(found, self._unclipped, strict=True)]

    def reset(  # type: ignore[override]  # as after DictInfoToList, which Ray puts around others
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Resets all environments."""
        for got in self._unclipped:
            got.clear()
        self._lengths[:], self._ended[:] = 0, False
        if gym_api.takes(self.env.vector_reset, "seeds"):
            each = range(seed, seed + self.num_envs) if isinstance(seed, int) else None
            seeds = seed if each is None else list(each)
            result = self.env.vector_reset(
                seeds=seeds, options=None if options is None else [options]
            )
        else:
            result = self.env.vector_reset()
        observations, infos = result if _has_infos(result) else (result, None)
        return self._batch(observations), self._infos(infos)

    def step(  # type: ignore[override]  # see `reset`
        self, actions: object
    ) -> tuple[Any, Any, Any, Any, list[dict[str, Any]]]:
        """Steps all environments; resets those whose episode has ended."""
        resetting = np.flatnonzero(self._ended).tolist()
        for index in resetting:
            self._reset_at(index)
        result = self.env.vector_step(list(iterate(self.action_space, actions)))
        if len(result) == 5:
            observations, rewards, terminated, truncated, infos = result
        else:
            observations, rewards, terminated, infos = result
            truncated = [False] * self.num_envs
        observations, infos = list(observations), self._infos(infos)
        terminated, truncated = np.array(terminated, bool), np.array(truncated, bool)
        for i, info in enumerate(infos):
            if terminated[i] and info.get("TimeLimit.truncated", False):
                terminated[i], truncated[i] = False, True
        self._lengths += 1
        if self._settings.no_done_at_end:
            truncated, terminated = truncated | terminated, np.zeros_like(terminated)
        if self._settings.horizon:
            truncated |= (self._lengths >= self._settings.horizon) & ~terminated
        rewards = np.array(rewards, float)
        if limit := self._settings.clip_rewards:
            for got, reward in zip(self._unclipped, rewards, strict=True):
                got[ONLY_AGENT] = got.get(ONLY_AGENT, 0.0) + float(reward)
            rewards = np.array([gym_api.clip(reward, limit) for reward in rewards])
        for index in resetting:
            self._unclipped[index].clear()
            observations[index], infos[index] = self._reset_at(index)
            rewards[index], terminated[index], truncated[index] = 0.0, False, False
            self._lengths[index] = 0
        self._ended = terminated | truncated
        return self._batch(observations), rewards, terminated, truncated, infos

    def close(self, **_: object) -> None:
        """Closes the environment, if it can be closed."""
        getattr(self.env, "close", lambda: None)()

    def _reset_at(self, index: int) -> tuple[Any, dict[str, Any]]:
        result = self.env.reset_at(index)
        return result if _has_infos(result) else (result, {})

    def _batch(self, observations: Sequence[Any]) -> Any:
        from ray.rllib.utils.spaces.space_utils import batch

        return batch([self._cast(observation) for observation in observations])

    def _infos(self, infos: Any) -> list[dict[str, Any]]:
        return [dict(info or {}) for info in infos or [{}] * self.num_envs]


@public("rllib_compat.adapters")
class VectorEnvRunner(CompatEnvRunner):
    """An env runner that takes an RLlib `VectorEnv` as its vector environment."""

    config: Any

    def make_env(self) -> None:
        """Creates the environments, or takes a `VectorEnv` with its own number of them."""
        try:
            super().make_env()
        except VectorEnvFound as made:
            self._use(made.env)

    def _use(self, env: object) -> None:
        self.env = VectorAdapter(env, self.config.env.settings)
        self.num_envs = self.env.num_envs
        if self.num_envs != self.config.num_envs_per_env_runner:
            # The length of fragments depends on it.
            self.config = self.config.copy(copy_frozen=False)
            self.config.env_runners(num_envs_per_env_runner=self.num_envs)
        self._needs_initial_reset = True
        context = EnvContext(self.config.env_config, worker_index=self.worker_index)
        for callbacks in episodes.callbacks_of(self):
            callbacks.on_environment_created(
                env=self.env,
                env_context=context,
                env_runner=self,
                metrics_logger=self.metrics,
            )


def _call_own_method(env: object, method: str) -> Any:
    """Calls a method that the user has overridden; Ray's own returns nothing, or raises."""
    of_ray = getattr(VectorEnv, method, None)
    own = getattr(type(env), method, of_ray)
    return list(getattr(env, method)() or ()) if own is not of_ray else []


def allow_vector_envs(config: AlgorithmConfig) -> None:
    """Sets `VectorEnvRunner`, if a config's environment may be a `VectorEnv`."""
    settings = getattr(config.env, "settings", None)
    legacy = isinstance(settings, EnvSettings) and not settings.multi_agent
    if legacy and not has_own_env_runners(config):
        config.env_runners(env_runner_cls=VectorEnvRunner)


def check_vector_env(env: object, settings: EnvSettings) -> Any:
    """Returns a `VectorEnv`, if `VectorEnvRunner` can take it.

    Raises:
        LegacyEnvError: The config has several agents, or the old API stack.
    """
    if settings.old_stack or settings.multi_agent:
        raise LegacyEnvError(
            f"{type(env).__name__} is a VectorEnv, which only single-agent env runners of the new "
            "API stack take.",
            where="$.env",
            fix="pass the single environment, and set num_envs_per_worker",
        )
    return env


def raise_if_vector_env(env: object) -> Any:
    """Returns an environment, or raises a `VectorEnv` past gymnasium to the env runner.

    Raises:
        VectorEnvFound: The environment is a `VectorEnv`.
    """
    if is_vector_env(env):
        raise VectorEnvFound(env)
    return env


def _has_infos(result: object) -> bool:
    """Whether a reset returned observations and infos: a pair whose second half holds dicts."""
    if not isinstance(result, tuple) or len(result) != 2:
        return False
    infos = result[1] if isinstance(result[1], (list, tuple)) else [result[1]]
    return all(isinstance(info, dict) for info in infos)
