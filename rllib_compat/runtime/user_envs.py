"""The environments that user code gets from trainers and workers, with the API that it expects.

Environments of gym's names are created by gymnasium, whose `reset` and `step` return more values.
Unchanged old code expects gym's, unless it imports gymnasium itself. Environments in other
processes (`remote_worker_envs`) have methods with `.remote`, as the actors of old Rays.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import environments

#: An environment variable that is set if user code imports gymnasium; Ray's workers inherit it.
TODAYS_GYM = "RLLIB_COMPAT_TODAYS_GYM"


class OldGymApi:
    """Whether user code in this process was written for gym.

    Attributes:
        wrapper: Wraps a gymnasium environment in gym's API; None if user code expects gymnasium's.
    """

    wrapper: ClassVar[Callable[[Any], Any] | None] = None


def with_user_api(env: object) -> Any:
    """Returns an environment with the API that user code was written for."""
    from rllib_compat.runtime.gym_api import has_gymnasium_api

    if OldGymApi.wrapper is None or os.environ.get(TODAYS_GYM):
        return env
    made_by_name = getattr(getattr(env, "unwrapped", env), "spec", None) is not None
    return OldGymApi.wrapper(env) if made_by_name and has_gymnasium_api(env) else env


def user_env(env: Any) -> Any:
    """Returns the user's own object inside gymnasium's and this package's wrappers."""
    unwrapped = getattr(env, "unwrapped", env)
    return unwrapped.env if getattr(unwrapped, "wraps_legacy_env", False) else unwrapped


def list_environments(env: Any) -> list[Any]:
    """Lists the environments of an env runner; those in other processes as `RemoteEnv`s."""
    if hasattr(env, "parent_pipes"):
        return [RemoteEnv(env, index) for index in range(env.num_envs)]
    return environments.sub_environments(env)


class RemoteEnv:
    """One environment of gymnasium's `AsyncVectorEnv`: `env.method.remote(…)` calls a method."""

    # Attributes of this package's adapters, which are in the other process.
    spec = last_raw_obs = unclipped = None

    def __init__(self, vector: object, index: int) -> None:
        self._vector, self._index = vector, index

    @property
    def unwrapped(self) -> RemoteEnv:
        """This object."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("env", "wraps_legacy_env", "is_old_api"):
            raise AttributeError(name)
        return RemoteEnvMethod(self._vector, self._index, name)


@frozen
class RemoteEnvMethod:
    """A method of a `RemoteEnv`.

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
            A reference to the result, for `ray.get`.

        Raises:
            LegacyEnvError: The method has raised an error, and the environment's process has ended.
        """
        import ray

        pipe = self.vector.parent_pipes[self.index]
        pipe.send(("_call", (self.name, args, kwargs)))
        result, success = pipe.recv()
        if not success:
            _, kind, value, trace = self.vector.error_queue.get()
            raise LegacyEnvError(
                f"{self.name}() raised {kind.__name__}: {value}\n{trace}",
                where=f"environment {self.index}, in its own process",
                fix="correct the method; with remote_worker_envs=False the error is raised here",
            )
        return ray.put(result)
