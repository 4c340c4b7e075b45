"""Old classes and functions of RLlib: environments, batches, marks of deprecated code."""

from __future__ import annotations

import logging
from abc import ABCMeta
from collections.abc import Callable
from typing import Any

import gymnasium
from ray.rllib.env.multi_agent_env import MultiAgentEnv as TodaysMultiAgentEnv
from ray.rllib.evaluation.postprocessing import discount_cumsum
from ray.rllib.policy.sample_batch import SampleBatch as TodaysSampleBatch
from ray.rllib.policy.sample_batch import concat_samples

__all__ = [
    "DEPRECATED_VALUE",
    "Deprecated",
    "MetaEnv",
    "MultiAgentEnv",
    "SampleBatch",
    "TaskSettableEnv",
    "TaskType",
    "deprecation_warning",
    "discount",
    "get_global_worker",
    "override",
]

DEPRECATED_VALUE = -1
logger = logging.getLogger(__name__)


def deprecation_warning(
    old: str,
    new: str | None = None,
    *,
    help: str | None = None,  # noqa: A002
    error: object = None,
) -> None:
    """Warns that a name is deprecated, or raises an error.

    Args:
        old: The deprecated name.
        new: What replaces it.
        help: A text instead of that.
        error: True for a `ValueError`, or the error to raise.
    """
    text = f"`{old}` is deprecated. {help or (f'Use `{new}` instead.' if new else '')}"
    if isinstance(error, type):
        raise error(text)
    if error:
        raise ValueError(text)
    logger.warning("DeprecationWarning: %s", text)


def override(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: ARG001
    """Marks a method that overrides one of `cls`, which may be gone or have another name today."""
    return lambda method: method


def Deprecated(*given: object, **_: object) -> Any:  # noqa: N802
    """Marks a function or class as deprecated, which it returns as it is."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    return given[0] if given and callable(given[0]) else mark


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
    """Ray's class; an environment may set its numbers of agents, as many did before 2.40.

    Every `MultiAgentEnv` of Ray is an instance.
    """

    @classmethod
    def __subclasshook__(cls, subclass: type) -> Any:
        return issubclass(subclass, TodaysMultiAgentEnv) if cls is MultiAgentEnv else NotImplemented

    def __init__(self, *args: object, **kwargs: object) -> None:
        # Until Ray 1.8 it had no constructor: the next class of `__mro__` took the arguments.
        classes = type(self).__mro__
        behind = classes[classes.index(gymnasium.Env) + 1 : -1]
        takes = next((cls for cls in behind if "__init__" in vars(cls)), None)
        if takes is None or not (args or kwargs):
            super().__init__()
        else:
            vars(takes)["__init__"](self, *args, **kwargs)

    @property
    def num_agents(self) -> Any:
        """The number that the environment has set, or how many agents there are."""
        return self.__dict__.get("num_agents", len(self.agents))

    @num_agents.setter
    def num_agents(self, number: object) -> None:
        self.__dict__["num_agents"] = number

    @property
    def max_num_agents(self) -> Any:
        """The number that the environment has set, or how many agents there may be."""
        return self.__dict__.get("max_num_agents", len(self.possible_agents))

    @max_num_agents.setter
    def max_num_agents(self, number: object) -> None:
        self.__dict__["max_num_agents"] = number


class _SameAsRays(type):
    """Batches of Ray's own class are instances, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TodaysSampleBatch)


class SampleBatch(TodaysSampleBatch, metaclass=_SameAsRays):  # type: ignore[misc]  # Ray has no types
    """Ray's batch, which takes the column `dones`, too: it is `terminateds` since Ray 2.1."""

    concat_samples = staticmethod(concat_samples)

    def __init__(self, *columns: Any, **more: Any) -> None:
        """Takes columns as a dict, as pairs or by name."""
        found = dict(*columns, **more)
        if self.DONES in found:
            found[self.TERMINATEDS] = found.pop(self.DONES)
        settings = {name: found.pop(name) for name in more if name.startswith("_")}
        super().__init__(found, **settings)

    def __setitem__(self, name: str, column: object) -> None:
        """Sets a column."""
        super().__setitem__(self.TERMINATEDS if name == self.DONES else name, column)

    def __contains__(self, name: object) -> bool:
        """Whether there is such a column."""
        return dict.__contains__(self, self.TERMINATEDS if name == self.DONES else name)


def discount(rewards: object, gamma: float) -> Any:
    """The discounted sums of rewards, from each step to the last."""
    return discount_cumsum(rewards, gamma)


def get_global_worker() -> None:
    """None, as in every process of old Rays that was no rollout worker."""
