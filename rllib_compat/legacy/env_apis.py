"""Base classes of environments: `TaskSettableEnv` until Ray 2.40, and an old `MultiAgentEnv`."""

from __future__ import annotations

from abc import ABCMeta
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


class MultiAgentEnv(TodaysMultiAgentEnv, metaclass=ABCMeta):  # type: ignore[misc]
    """Ray's, with numbers of agents that an environment may set itself, as many did before 2.40.

    Every `MultiAgentEnv` of Ray's counts as one.
    """

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return issubclass(subclass, TodaysMultiAgentEnv) if cls is MultiAgentEnv else NotImplemented

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
