"""Env runners that are asked for something, on whichever machine they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rllib_compat import ray_versions
from rllib_compat.runtime.artifacts.manifest import name_of_runner
from rllib_compat.runtime.workers import user_env

#: What goes through Ray's object store at once, in bytes.
PIECE = 4 << 20


class LostError(Exception):
    """A runner is dead, late, or fails."""


class Runner:
    """One env runner that is asked: through Ray, or the local one at once."""

    def __init__(self, index: int, runner: Any, *, evaluation: bool) -> None:
        self.index, self.evaluation, self._runner = index, evaluation, runner

    def __str__(self) -> str:
        return name_of_runner(self.index, evaluation=self.evaluation)

    def ask(self, function: Callable[..., Any]) -> Callable[[float], Any]:
        """Lets the runner call a function with itself.

        Returns:
            What waits for the answer, so many seconds. It raises `LostError` where none comes.
        """
        import ray

        if not isinstance(self._runner, ray.actor.ActorHandle):
            return lambda _: function(self._runner)
        answer = self._runner.apply.remote(function)

        def wait(seconds: float) -> Any:
            try:
                return ray.get(answer, timeout=seconds)
            except Exception as error:  # whatever Ray raises for it
                said = str(error).strip().splitlines()
                raise LostError(f"{type(error).__name__}: {said[-1] if said else ''}") from error

        return wait


def runners_of(algorithm: Any) -> list[Runner]:
    """The runners of an algorithm that have environments, those of evaluation last."""
    groups = (algorithm.env_runner_group, algorithm.eval_env_runner_group)
    return [
        Runner(index, actor, evaluation=bool(number))
        for number, group in enumerate(groups)
        if group is not None
        for index, actor in ray_versions.numbered_env_runners(group)
    ]


def envs_of(env_runner: Any) -> list[Any]:
    """The user's environments of a runner; an external one is served by another."""
    found = ray_versions.environments_of(env_runner)
    own = [user_env(env) if hasattr(env, "unwrapped") else env for env in found]
    return [getattr(env, "external_env", env) for env in own]
