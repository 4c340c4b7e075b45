"""`PPOConfig().rollouts(…).training(…)`: configs by method calls, as Ray 2.0 – 2.9 had them.

A config collects the arguments of its methods, under the keys of the old config dict. `build()`
returns a `Trainer`, `to_dict()` a config for `tune.run`: both are translated as any old config is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from rllib_compat import registry
from rllib_compat.config import era
from rllib_compat.config.evidence import of_call
from rllib_compat.ray_versions import configs
from rllib_compat.registry.keys import DICT_KEYS
from rllib_compat.trainer.classes import class_of_algorithm, trainer_class
from rllib_compat.trainer.defaults import defaults_of, merge

#: The methods that only store their keyword arguments → the name of the first positional one.
METHODS: Mapping[str, str] = {
    "api_stack": "",
    "callbacks": "callbacks",
    "checkpointing": "export_native_model_files",
    "debugging": "logger_creator",
    "env_runners": "num_env_runners",
    "environment": "env",
    "evaluation": "evaluation_interval",
    "experimental": "",
    "exploration": "explore",
    "fault_tolerance": "recreate_failed_workers",
    "framework": "framework",
    "learners": "num_learners",
    "multi_agent": "policies",
    "offline_data": "input",
    "python_environment": "",
    "reporting": "keep_per_episode_custom_metrics",
    "resources": "num_gpus",
    "rl_module": "",
    "rollouts": "num_rollout_workers",
    "training": "gamma",
}

#: The methods that only the installed Ray has: a config that calls one is not for an old Ray.
TODAYS = ("api_stack", "learners", "rl_module")


def _is_todays(method: str, arguments: Mapping[str, object]) -> bool:
    """Whether only the installed Ray has the call; Ray 2.3 – 2.9 had `rl_module(_enable_…)`."""
    switches = bool(arguments) and all(name.startswith("_enable_") for name in arguments)
    return method in TODAYS and not switches


#: An argument → the key of the dict, where they differ.
KEYS: Mapping[str, str] = {**DICT_KEYS, "env_class": "env", "optimizer_config": "optimizer"}

#: The object's own attributes; all others are settings.
_OWN = ("algo_class", "given", "calls", "read", "frozen")
#: Dicts that a later call adds to; others are replaced.
_ADDED_TO = ("model", "env_config", "exploration_config", "evaluation_config", "optimizer")


class GivenConfig(dict[str, Any]):
    """What was set in a config; what was not is read as its default."""

    algorithm_name: str = "common"

    def __missing__(self, name: str) -> Any:
        value = copy.deepcopy(defaults_of(self.algorithm_name)[name])
        return self.setdefault(name, value) if isinstance(value, (dict, list)) else value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in defaults_of(self.algorithm_name)

    def get(self, name: str, default: Any = None) -> Any:
        """A setting, or its default; `default` if there is no such setting."""
        try:
            return self[name]
        except KeyError:
            return default


class LegacyConfig(Mapping[str, Any]):
    """A config that is made by calls.

    Settings can be read and set as attributes and, as in a dict, by key; unset ones have their
    defaults. As a mapping, it has only what was set.

    Attributes:
        algorithm_name: The algorithm.
        algo_class: The class of the trainer; None: there is no algorithm.
        given: What was set, by the keys of the dict.
        calls: The calls that set it.
        read: The dicts and lists that were read, complete: they may have been changed since.
        frozen: Whether nothing may be set any more.
    """

    algorithm_name: str | None = None

    def __init__(self, algo_class: Any = None) -> None:
        if algo_class is None and self.algorithm_name:
            algo_class = class_of_algorithm(self.algorithm_name)
        own = {"algo_class": algo_class, "given": {}, "calls": [], "read": {}, "frozen": False}
        vars(self).update(own)

    def build(self, env: Any = None, logger_creator: Any = None, use_copy: bool = True) -> Any:  # noqa: ARG002
        """The trainer.

        Args:
            env: The environment, which replaces that of the config.
            logger_creator: Makes a logger for the config.
            use_copy: Ignored: the config is always copied.
        """
        if (config := self.todays()) is not None:
            config.environment(env if env is not None else config.env)
            return config.build_algo(logger_creator=logger_creator)
        cls = self.algo_class or trainer_class("Trainer")
        creator = logger_creator or self.given.get("logger_creator")
        return cls(config=self.to_dict(), env=env, logger_creator=creator)

    build_algo = build

    def todays(self) -> Any:
        """Ray's own config, if a call is one of the installed Ray; else None."""
        if not any(_is_todays(method, arguments) for method, _, arguments in self.calls):
            return None
        config = configs.todays_config(self.algorithm_name or "PPO")
        for method, args, arguments in self.calls:
            getattr(config, method)(*args, **arguments)
        return config

    def to_dict(self) -> dict[str, Any]:
        """A copy of what was set, by the keys of the dict; others are read as their defaults."""
        found = GivenConfig((key, _copied(self.given[key])) for key in self)
        found.algorithm_name = self.algorithm_name or "common"
        return found

    def copy(self, copy_frozen: bool | None = None) -> LegacyConfig:  # noqa: ARG002
        """An independent copy."""
        other = type(self)(self.algo_class)
        other.given.update(self.to_dict())
        other.calls.extend(self.calls)
        return other

    def update_from_dict(self, config_dict: Mapping[str, Any]) -> LegacyConfig:
        """Sets the keys of a dict; those of `multiagent` may be on the top level, too."""
        for name, value in config_dict.items():
            self._set(name, value)
        return self

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any]) -> LegacyConfig:
        """A config with the keys of a dict."""
        return cls().update_from_dict(config_dict)

    @staticmethod
    def overrides(**arguments: object) -> dict[str, Any]:
        """Settings of a part: of evaluation, or of one policy."""
        return {KEYS.get(name, name): value for name, value in arguments.items()}

    def freeze(self) -> None:
        """Lets nothing be set any more."""
        vars(self)["frozen"] = True

    def validate(self) -> None:
        """Does nothing: trainers do so."""

    def is_multi_agent(self) -> bool:
        """Whether there are policies beside the default one."""
        return bool(set(self.get("policies") or ()) - {"default_policy"})

    def _set(self, name: str, value: object) -> None:
        name = KEYS.get(name, name)
        if self.frozen:
            raise AttributeError(f"Cannot set {name!r}: the config is frozen; change a copy of it")
        self._collect()
        self.read.pop(name, None)
        if isinstance(value, LegacyConfig):
            value = value.to_dict()
        old = self.given.get(name)
        if name in _ADDED_TO and isinstance(old, dict) and isinstance(value, Mapping):
            value = merge(old, value)
        self.given[name] = value

    def _collect(self) -> None:
        """Takes what was changed in dicts and lists that were read."""
        for name, value in self.read.items():
            default, set_ = self._defaults()[name], self.given.get(name)
            if isinstance(value, dict):
                set_ = set_ or {}
                changed = {
                    key: inner
                    for key, inner in value.items()
                    if key in set_ or key not in default or default[key] != inner
                }
                if changed != set_:
                    self.given[name] = changed
            elif set_ is None and value != default:
                self.given[name] = value

    def __getitem__(self, name: str) -> Any:
        name = KEYS.get(name, name)
        if name in self.given and name not in _ADDED_TO:
            return self.given[name]
        if name in self.read:
            return self.read[name]
        value = self._defaults()[name]
        if isinstance(value, dict) and isinstance(given := self.given.get(name, {}), Mapping):
            return self.read.setdefault(name, {**copy.deepcopy(value), **given})
        if name in self.given:
            return self.given[name]
        if isinstance(value, list):
            return self.read.setdefault(name, copy.deepcopy(value))
        return value

    def __setitem__(self, name: str, value: object) -> None:
        self._set(name, value)
        self.calls.append(("__setitem__", (name, value), {}))

    def __iter__(self) -> Iterator[str]:
        self._collect()
        return (key for key in self.given if key != "logger_creator")  # it is for `build` alone

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _OWN:
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no setting {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self._set(name, value)
        self.calls.append(("__setattr__", (name, value), {}))

    def _defaults(self) -> dict[str, Any]:
        return defaults_of(self.algorithm_name or "common")


def _copied(value: Any) -> Any:
    """A value with copies of the dicts and lists in it."""
    if type(value) is dict:
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if type(value) is list else value


def _method(name: str, first: str) -> Callable[..., LegacyConfig]:
    def call(self: LegacyConfig, *args: object, **arguments: object) -> LegacyConfig:
        era.note(of_call(name))
        self.calls.append((name, args, arguments))
        if args:
            self._set(first, args[0])
        for argument, value in arguments.items():
            self._set(argument, value)
        return self

    call.__name__ = name
    call.__doc__ = "Sets these settings, and returns the config."
    return call


for _name, _first in METHODS.items():
    setattr(LegacyConfig, _name, _method(_name, _first))


def is_config_name(name: str) -> bool:
    """Whether a name is that of a config class: `PPOConfig`, `AlgorithmConfig`."""
    stem = name.removesuffix("Config")
    known = stem in ("Algorithm", "Trainer") or stem in registry.class_names()
    return name.endswith("Config") and known


@cache
def config_class(name: str) -> type[LegacyConfig]:
    """The config class of that name, for which `is_config_name` holds."""
    algorithm = registry.class_names().get(name.removesuffix("Config"))
    members = {
        "__module__": __name__,
        "__doc__": f"The config of {algorithm or 'any algorithm'}, made by calls.",
        "algorithm_name": algorithm,
    }
    return type(name, (LegacyConfig,), members)


def __getattr__(name: str) -> Any:  # where pickle finds the classes again
    if is_config_name(name):
        return config_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
