"""Modules of old Rays and gym, whose names are looked up in the installed packages."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, MutableMapping
from functools import cache, wraps
from operator import attrgetter
from types import ModuleType
from typing import Any, NoReturn

from rllib_compat import registry
from rllib_compat.neutral.errors import CompatError, ConfigError, GoneError
from rllib_compat.registry import old_names
from rllib_compat.registry.old_names import OLD_PACKAGE
from rllib_compat.runtime.user_envs import TODAYS_GYM
from rllib_compat.trainer import stock_policies

#: Names that have moved: (module, name) → what replaces them.
redirected: dict[tuple[str, str], str] = {}

#: What `lookup` returns for a name that no Ray had.
MISSING = object()


class OldModule(ModuleType):
    """A module of an old Ray, for user code."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []  # so that it can have submodules

    def __getattr__(self, name: str) -> Any:
        module = self._old_name()
        value = lookup(module, name)
        if value is MISSING:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if isinstance(value, (type, ModuleType)) or callable(value):
            setattr(self, name, value)  # data may be replaced there
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # Python's import puts a module into its package, which may have a function of that name.
        if not isinstance(value, OldModule) or name not in old_names.names(self._old_name()):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        module = self._old_name()
        present = {name for today in _installed_modules(module) for name in _public_names(today)}
        return sorted(present | old_names.names(module).keys())

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)

    def _old_name(self) -> str:
        return self.__name__.removeprefix(f"{OLD_PACKAGE}.")


def exists(module: str) -> bool:
    """Whether there was, or is, a module of that name."""
    return (
        module in old_names.modules()
        or module in old_names.MODULES
        or any(name.startswith(f"{module}.") for name in old_names.NAMES)
        or any(True for _ in _installed_modules(module))
    )


def lookup(module: str, name: str) -> Any:
    """The present object of a name in an old module.

    Returns:
        The object; an `OldModule` for a module; for what was removed, a class that raises an error
        when it is used; `MISSING` if no Ray had the name.
    """
    if name.startswith("__"):
        return _special(module, name)
    if (ours := _ours(module, name)) is not MISSING:
        _note(module, name, ours)
        return ours
    submodule = MISSING
    for today in _installed_modules(module):
        value = getattr(today, name, MISSING)
        if value is MISSING and name in old_names.names(module):
            value = getattr(today, f"_{name}", MISSING)  # Ray 2.x made many names private
        if isinstance(value, ModuleType):
            submodule = value
        elif value is not MISSING:
            if today.__name__ != module:
                _note(module, name, value)
            # A name that the old module had imported belongs to another module.
            return _with_old_api(module, name, value) if name in old_names.names(module) else value
    if exists(f"{module}.{name}") and module.partition(".")[0] in old_names.PACKAGES:
        return importlib.import_module(f"{OLD_PACKAGE}.{module}.{name}")
    if submodule is not MISSING:
        return submodule
    if name in old_names.MOVED and module.startswith("ray."):
        value = _imported(old_names.MOVED[name])
        _note(module, name, value)
        return value
    last = old_names.names(module).get(name)
    if last is None:
        return MISSING
    if (value := old_names.constants().get(f"{module}.{name}", MISSING)) is not MISSING:
        return value
    if module.startswith("ray.rllib.") and stock_policies.is_policy_name(name):
        return stock_policies.policy_class(name)
    redirected[module, name] = f"gone after {last}: {old_names.advice(f'{module}.{name}')}"
    return _removed(module, name, last)


def is_removed(value: object) -> bool:
    """Whether `lookup` has returned it for a removed name."""
    return isinstance(value, _Removed)


def _special(module: str, name: str) -> Any:
    # Code that looks at all modules, as `inspect` does, asks for others, and must not import Ray.
    if name == "__all__":
        return [n for n in dir(importlib.import_module(f"{OLD_PACKAGE}.{module}")) if n[0] != "_"]
    if name in ("__version__", "__commit__"):
        return getattr(next(_installed_modules(module), None), name, MISSING)
    return MISSING


def _ours(module: str, name: str) -> Any:
    """This package's object for a name that the installed Ray lacks, or has for something else."""
    if (own := old_names.NAMES.get(f"{module}.{name}")) is not None:
        return _imported(own)
    if module in old_names.MODULES:
        ours = importlib.import_module(old_names.MODULES[module])
        if name in ours.__all__:
            return getattr(ours, name)
    if module.startswith("ray.rllib"):
        # Code that imports gymnasium expects the wrappers with its API.
        todays = name.endswith("PettingZooEnv") and os.environ.get(TODAYS_GYM)
        if name in old_names.IN_RLLIB and not todays:
            return _imported(old_names.IN_RLLIB[name])
        return _of_algorithm(module.removeprefix("ray.rllib."), name)
    return MISSING


#: Attributes of a config → the keys that `to_dict` made of them (Ray 2.0.1, `AlgorithmConfig`).
_KEYS = {"framework_str": "framework", "input_": "input", "lambda_": "lambda"}
_NO_KEYS = ("algo_class", "logger_creator")
_OLDER_KEYS = ["create_env_on_driver", "custom_eval_function", "multiagent", "num_cpus_for_driver"]


def _of_algorithm(module: str, name: str) -> Any:
    """The trainer's or config's class, or the default config, of that name below `ray.rllib`."""
    had = name in old_names.names(f"ray.rllib.{module}")
    package, _, module = module.partition(".")
    if package not in ("agents", "algorithms", "contrib"):
        return MISSING
    if name in registry.class_names():
        from rllib_compat.trainer.classes import trainer_class

        return trainer_class(name)
    if name.endswith("Config"):
        from rllib_compat.trainer import fluent

        if fluent.is_config_name(name):
            return fluent.config_class(name)
    if (
        had and package == "agents" and name == "validate_config"
    ):  # of `build_trainer` (Ray 0.8 – 1.10)
        return _validate_config
    if package == "agents" or not name.endswith("_CONFIG"):
        return MISSING  # `rllib_compat.agents` has those of `agents`
    stem, _, rest = name.rpartition("DEFAULT_CONFIG")
    stem = stem.strip("_") if not rest and stem else module.rpartition(".")[2]
    try:
        row = registry.find(stem.removesuffix("_trainer"))
    except ConfigError:
        return MISSING
    if package == "algorithms":
        return _default_config(row.name)
    return _contributed_config(row.name)


def _validate_config(config: MutableMapping[str, Any]) -> None:
    """Does nothing: a trainer checks its config when it is made."""


@cache
def _contributed_config(algorithm: str) -> dict[str, Any]:
    from rllib_compat.trainer.defaults import defaults_of

    return defaults_of(algorithm)


@cache
def _default_config(algorithm: str) -> dict[str, Any]:
    """The default config of a module below `algorithms`; old code changes it in place."""
    from rllib_compat.trainer.defaults import defaults_of

    # In Ray 2.0 – 2.2 it was a dict of a config's attributes, some of which had other names.
    before, found = (defaults_of(algorithm, release) for release in ("1.13.0", "2.0.1"))
    keys = {_KEYS.get(name, name): value for name, value in found.items() if name not in _NO_KEYS}
    return {**{key: before[key] for key in _OLDER_KEYS if key in before}, **keys}


def _installed_modules(module: str) -> Iterator[ModuleType]:
    """The installed modules that may have the names of an old one, the likeliest first."""
    return filter(None, map(_module, old_names.candidates(module)))


@cache
def _module(name: str) -> ModuleType | None:
    try:
        found = importlib.import_module(name)
        return None if isinstance(found, OldModule) else found  # `lookup` handles it
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            return None
        raise
    except (ValueError, DeprecationWarning):  # Ray raises them for a module that has moved
        return None


def _imported(target: str) -> Any:
    module, _, name = target.partition(":")
    return attrgetter(name)(importlib.import_module(module))


def _public_names(module: ModuleType) -> Iterator[str]:
    return (name for name in getattr(module, "__all__", vars(module)) if not name.startswith("_"))


def _note(module: str, name: str, value: object) -> None:
    home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    redirected[module, name] = f"{home}.{getattr(value, '__name__', name)}".removeprefix(".")


class _Removed(type):
    """The type of removed classes: code may only name, derive from and annotate with them."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        cls.raise_gone()

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cls.raise_gone()

    def _as_dict(cls, *_: object) -> NoReturn:
        # Python would turn an AttributeError into "is not a mapping", without the reason.
        cls.raise_gone(ConfigError)

    __getitem__ = __setitem__ = __contains__ = __iter__ = __len__ = keys = _as_dict

    def __bool__(cls) -> bool:
        return True

    def raise_gone(cls, kind: type[CompatError] = GoneError) -> NoReturn:
        """Names the replacement of the class, or of the one that it derives from.

        Raises:
            CompatError: Always, of this kind.
        """
        name, last = next(c.__dict__["_removed"] for c in cls.__mro__ if "_removed" in c.__dict__)
        place = "gymnasium" if name.startswith("gym.") else "the installed Ray"
        raise kind(
            f"`{name}` is not in {place}; the last that had it was about {last}.",
            where=name,
            fix=old_names.advice(name),
        )


@cache
def _removed(module: str, name: str, last: str) -> type:
    """A class for a removed name; modules may derive from it for cases that never happen."""
    members = {
        "__module__": f"{OLD_PACKAGE}.{module}",
        "__qualname__": name,
        "__doc__": f"`{module}.{name}` of Ray {last} and before; code can name it, but not use it.",
        "_removed": (f"{module}.{name}", last),
    }
    return _Removed(name, (), members)


#: Classes of Ray's examples that wrap a `CartPole-v0`, which ends after 200 steps (Ray wraps
#: `CartPole-v1` now) → the attribute that holds it.
_AROUND_CARTPOLE = {
    "CartPoleSparseRewards": "env",
    "MockVectorEnv": "env",
    "ParametricActionsCartPole": "wrapped",
    "ParametricActionsCartPoleNoEmbeddings": "wrapped",
}


def _with_old_api(module: str, name: str, today: object) -> Any:
    """A class of Ray's example environments or wrappers with the old API; others as they are.

    Code that imports gymnasium itself gets Ray's classes.
    """
    is_one = module.startswith("ray.rllib.examples.env.") or module.endswith(".atari_wrappers")
    if not is_one or not isinstance(today, type) or os.environ.get(TODAYS_GYM):
        return today
    import gymnasium

    from rllib_compat.gym import core

    if hasattr(today, "vector_step"):
        kind: type | None = core.OldVectorEnv
    elif hasattr(today, "with_agent_groups"):
        kind = core.OldMultiAgentEnv
    elif issubclass(today, gymnasium.Env):
        kind = None if name in _AROUND_CARTPOLE else core.OldEnvWithoutLimit
    else:
        return today
    old = core.make_old_class(name, today, f"{OLD_PACKAGE}.{module}", kind)
    return _around_cartpole_v0(old) if name in _AROUND_CARTPOLE else old


@cache
def _around_cartpole_v0(env_class: Any) -> Any:
    import gymnasium

    first = env_class.__init__

    @wraps(first)
    def init(self: Any, *args: object, **kwargs: object) -> None:
        first(self, *args, **kwargs)
        setattr(self, _AROUND_CARTPOLE[env_class.__name__], gymnasium.make("CartPole-v0"))

    env_class.__init__ = init
    return env_class
