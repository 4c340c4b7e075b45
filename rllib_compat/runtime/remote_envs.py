"""Environments in processes of their own (`remote_worker_envs`), as the actors that they were."""

from __future__ import annotations

from typing import Any

from rllib_compat.neutral.errors import LegacyEnvError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import environments


def each_environment(env: Any) -> list[Any]:
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

    def __init__(self, vector: Any, index: int) -> None:
        self._vector, self._index = vector, index

    @property
    def unwrapped(self) -> RemoteEnv:
        """Itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("env", "wraps_legacy_env", "is_old_api"):
            raise AttributeError(name)
        return RemoteMethod(self._vector, self._index, name)


@frozen
class RemoteMethod:
    """A method of such an environment.

    Attributes:
        vector: The `AsyncVectorEnv`.
        index: The number of the environment in it.
        name: The name of the method.
    """

    vector: Any
    index: int
    name: str

    def remote(self, *args: Any, **kwargs: Any) -> Any:
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
                fix="mend the method, or set remote_worker_envs to False to see it here",
            )
        return ray.put(result)
