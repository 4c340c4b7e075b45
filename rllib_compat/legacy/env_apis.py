"""Base classes of environments: `TaskSettableEnv` until Ray 2.40, and an old `MultiAgentEnv`."""

from __future__ import annotations

from typing import Any

import gymnasium
from ray.rllib.env.multi_agent_env import MultiAgentEnv as TodaysMultiAgentEnv

__all__ = ["MetaEnv", "MultiAgentEnv", "TaskSettableEnv", "TaskType"]

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


class _IsTodays(type(TodaysMultiAgentEnv)):  # type: ignore[misc]  # Ray has no types
    """Lets every `MultiAgentEnv` of Ray's be one to old code, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is MultiAgentEnv:
            return issubclass(subclass, TodaysMultiAgentEnv)
        return super().__subclasscheck__(subclass)  # type: ignore[no-any-return]


class MultiAgentEnv(TodaysMultiAgentEnv, metaclass=_IsTodays):  # type: ignore[misc]
    """Ray's, with numbers of agents that an environment may set itself, as many did before 2.40."""

    @property
    def num_agents(self) -> Any:
        """What the environment has set, or how many agents there are."""
        return self.__dict__.get("num_agents", len(self.agents))

    @num_agents.setter
    def num_agents(self, number: Any) -> None:
        self.__dict__["num_agents"] = number

    @property
    def max_num_agents(self) -> Any:
        """What the environment has set, or how many agents there may be."""
        return self.__dict__.get("max_num_agents", len(self.possible_agents))

    @max_num_agents.setter
    def max_num_agents(self, number: Any) -> None:
        self.__dict__["max_num_agents"] = number
