"""`TaskSettableEnv` and `MetaEnv`: environments with tasks, which RLlib had until Ray 2.40."""

from __future__ import annotations

from typing import Any

import gymnasium

__all__ = ["MetaEnv", "TaskSettableEnv", "TaskType"]

TaskType = Any


class TaskSettableEnv(gymnasium.Env[Any, Any]):
    """An environment whose task can be changed, by a curriculum for example."""

    def sample_tasks(self, n_tasks: int) -> list[Any]:
        """Samples that many tasks."""
        raise NotImplementedError

    def set_task(self, task: Any) -> None:
        """Sets the task of the episodes to come."""
        raise NotImplementedError

    def get_task(self) -> Any:
        """The task that is set."""
        raise NotImplementedError


MetaEnv = TaskSettableEnv
