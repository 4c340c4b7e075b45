"""Old classes and functions of RLlib: environments, batches, models, TensorFlow, deprecations."""

from __future__ import annotations

import logging
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import gymnasium
from ray.rllib.env.multi_agent_env import MultiAgentEnv as TodaysMultiAgentEnv
from ray.rllib.evaluation.postprocessing import discount_cumsum
from ray.rllib.models.catalog import ModelCatalog as _Todays
from ray.rllib.policy.sample_batch import SampleBatch as TodaysSampleBatch
from ray.rllib.policy.sample_batch import concat_samples
from ray.rllib.utils.framework import try_import_tf as _todays

from rllib_compat.neutral.errors import CompatError, GoneError

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


def override(cls: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
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


class _Missing:
    """Replaces TensorFlow where it is not installed; false, as `None` was."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise CompatError(
            f"TensorFlow is not installed, and this code uses its `{name}`.",
            where=f"tf.{name}",
            fix="pip install 'rllib-compat[tensorflow]', or use torch (TorchModelV2)",
        )


class _TensorFlow(tuple[Any, ...]):
    """TensorFlow 1's API, TensorFlow, and its version; before Ray 0.8.6, TensorFlow itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self[0] or self[1], name)


def try_import_tf(error: bool = False) -> Any:
    """TensorFlow by its two APIs, and the number of its version.

    Returns:
        Three values, which together have the attributes of TensorFlow 1's API: until Ray 0.8.5 it
        was the only value.

    Raises:
        ImportError: `error` is true, and TensorFlow is not installed.
    """
    found = _todays(error)
    missing = _Missing()
    return _TensorFlow(found if found[2] else (missing, missing, None))


class ModelCatalog(_Todays):  # type: ignore[misc]  # Ray has no types
    """Ray's catalog, whose models read their options by the key of Ray 0.5 – 0.8.6, too."""

    @staticmethod
    def register_custom_model(model_name: str, model_class: object) -> None:
        """Registers a model by a name, which a config gives as `custom_model`."""
        _Todays.register_custom_model(model_name, _with_custom_options(model_class))

    @staticmethod
    def register_custom_preprocessor(preprocessor_name: str, preprocessor_class: type) -> NoReturn:
        """Custom preprocessors were removed in Ray 2.0.

        Raises:
            GoneError: Always.
        """
        raise GoneError(
            f"Custom preprocessors ({preprocessor_class.__name__}) are gone.",
            where=f"ModelCatalog.register_custom_preprocessor({preprocessor_name!r})",
            fix="put its transform() into a gym.ObservationWrapper around the environment",
        )


class _RegistersVariables:
    """A model of TensorFlow that may register variables, as it had to until Ray 0.8.

    Ray finds a model's variables by its attributes, and takes registered ones for missing.
    """

    def register_variables(self, variables: Iterable[Any]) -> None:
        """Adds variables to those that Ray finds."""
        registered = self.__dict__.setdefault("_registered", {})
        registered.update(dict.fromkeys(variable.ref() for variable in variables))

    def variables(self, as_dict: bool = False) -> Any:
        """Returns all variables as a list, or as a dict by name."""
        named: dict[str, Any] = super().variables(as_dict=True)  # type: ignore[misc]
        known = {variable.ref() for variable in named.values()}
        others = [ref.deref() for ref in self.__dict__.get("_registered", {}) if ref not in known]
        named |= {variable.name: variable for variable in others}
        return named if as_dict else list(named.values())


def _with_custom_options(model: object) -> Any:
    if not isinstance(model, type):
        return model

    def init(
        self: object,
        obs_space: object,
        action_space: object,
        num_outputs: int,
        model_config: Mapping[str, Any],
        *args: object,
        **kwargs: object,
    ) -> None:
        options = model_config.get("custom_model_config") or {}
        given = obs_space, action_space, num_outputs, {**model_config, "custom_options": options}
        super(made, self).__init__(*given, *args, **kwargs)

    names = {"__module__": model.__module__, "__qualname__": model.__qualname__}
    bases = (_RegistersVariables, model) if hasattr(model, "register_variables") else (model,)
    made: Any = type(model.__name__, bases, {**names, "__init__": init})
    return made
