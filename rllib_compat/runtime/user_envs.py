"""Environments as the user's code gets them from trainers and workers, and steps them itself.

gym's names are made by gymnasium today, whose `reset` and `step` return more. Code that runs as it
is expects those of gym, unless it imports gymnasium itself. Environments in processes of their own
(`remote_worker_envs`) are the actors that they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import environments

#: Set where the user's code imports gymnasium; Ray's workers inherit it.
TODAYS_GYM = "RLLIB_COMPAT_TODAYS_GYM"


class OldGymApi:
    """Whether user code in this process was written for gym.

    Attributes:
        wrapper: Gives an environment of gymnasium gym's API; None where user code expects today's.
    """

    wrapper: ClassVar[Callable[[Any], Any] | None] = None


def with_user_api(env: object) -> Any:
    """The environment with the API that the user's code was written for."""
    from rllib_compat.runtime.gym_api import has_todays_api

    if OldGymApi.wrapper is None or os.environ.get(TODAYS_GYM):
        return env
    made_by_name = getattr(getattr(env, "unwrapped", env), "spec", None) is not None
    return OldGymApi.wrapper(env) if made_by_name and has_todays_api(env) else env


def user_env(env: Any) -> Any:
    """The user's own object behind gymnasium's and this package's wrappers."""
    unwrapped = getattr(env, "unwrapped", env)
    return unwrapped.env if getattr(unwrapped, "wraps_legacy_env", False) else unwrapped


def list_environments(env: Any) -> list[Any]:
    """The environments in a runner's `env`; what stands for each where they are elsewhere."""
    if hasattr(env, "parent_pipes"):
        return [RemoteEnv(env, index) for index in range(env.num_envs)]
    return environments.sub_environments(env)


class RemoteEnv:
    """One of the environments of gymnasium's `AsyncVectorEnv`: `env.method.remote(…)` calls it.

    Args:
        vector: The `AsyncVectorEnv`.
        index: The number of the environment in it.
    """

    # What this package asks its own adapters; they are in the other process.
    spec = last_raw_obs = unclipped = None

    def __init__(self, vector: object, index: int) -> None:
        self._vector, self._index = vector, index

    @property
    def unwrapped(self) -> RemoteEnv:
        """Itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("env", "wraps_legacy_env", "is_old_api"):
            raise AttributeError(name)
        return RemoteEnvMethod(self._vector, self._index, name)


@frozen
class RemoteEnvMethod:
    """A method of such an environment.

    Attributes:
        vector: The `AsyncVectorEnv`.
        index: The number of the environment in it.
        name: The name of the method.
    """

    vector: Any
    index: int
    name: str

    def remote(self, *args: object, **kwargs: object) -> Any:
        """Calls the method between two steps, and waits for it.

        Returns:
            A reference to what it returned, for `ray.get`.

        Raises:
            LegacyEnvError: It has raised; the process of the environment has ended with that.
        """
        import ray

        pipe = self.vector.parent_pipes[self.index]
        pipe.send(("_call", (self.name, args, kwargs)))
        result, success = pipe.recv()
        if not success:
            _, kind, value, trace = self.vector.error_queue.get()
            raise LegacyEnvError(
                f"{self.name}() raised {kind.__name__}: {value}\n{trace}",
                where=f"environment {self.index}, in a process of its own",
                fix="correct the method, or set remote_worker_envs to False to see it here",
            )
        return ray.put(result)
