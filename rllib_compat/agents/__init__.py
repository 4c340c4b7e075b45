"""`ray.rllib.agents` of Ray 0.5 – 2.0: the same modules, with the same names in them.

`import ray.rllib.agents.ppo as ppo` becomes `import rllib_compat.agents.ppo as ppo`; then
`ppo.PPOTrainer` and `ppo.DEFAULT_CONFIG` are there. None of these modules is a file: they are made
from the table of names, and import Ray when a trainer is asked for.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

from rllib_compat import registry
from rllib_compat.config import era
from rllib_compat.config.evidence import of_import
from rllib_compat.registry import old_names
from rllib_compat.trainer.stock_policies import policy_class, policy_modules, policy_names


class _AgentsModule(ModuleType):
    """A module whose names are made when they are asked for.

    Args:
        name: Its place below `agents`, "" for `agents` itself.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{__name__}.{name}", f"`ray.rllib.agents.{name}` of Ray 0.5 – 2.0.")
        self.__path__: list[str] = []  # so that it can have submodules
        self.__all__ = sorted(_names(name))

    def __getattr__(self, name: str) -> Any:
        if name in self.__all__:  # pickle asks every module for the names of functions
            era.note(of_import(_OLD))
        value = _get(self.__name__.removeprefix(f"{__name__}."), name)
        setattr(self, name, value)  # old code changes a DEFAULT_CONFIG in place, and asks again
        return value

    def __dir__(self) -> list[str]:
        return list(self.__all__)


def __getattr__(name: str) -> Any:
    return _get("", name)


def _names(place: str) -> set[str]:
    rows = registry.modules().get(place, ())
    classes = {f"{row.stems[0]}{suffix}" for row in rows for suffix in registry.SUFFIXES}
    configs = {"DEFAULT_CONFIG", "execution_plan"} if rows else set()
    there = old_names.names(f"{_OLD}.{place}".strip("."))
    configs |= {name for name in there if name.endswith("_DEFAULT_CONFIG")}
    return classes | configs | policy_names(place) | _other_names(place)


def _other_names(place: str) -> set[str]:
    """Names that are no algorithm's."""
    known = {*old_names.IN_RLLIB, "COMMON_CONFIG"}
    return known & old_names.names(f"{_OLD}.{place}".strip(".")).keys()


def _get(place: str, name: str) -> Any:
    module = f"{place}.{name}".strip(".")
    if f"{__name__}.{module}" in sys.modules:
        return sys.modules[f"{__name__}.{module}"]
    if name not in _names(place):
        raise AttributeError(f"module '{__name__}.{place}' has no attribute {name!r}")
    if name in old_names.IN_RLLIB:
        home, _, attribute = old_names.IN_RLLIB[name].partition(":")
        return getattr(importlib.import_module(home), attribute)
    if name in policy_names(place):
        return policy_class(name)
    if name.endswith("DEFAULT_CONFIG"):
        prefix = name.removesuffix("DEFAULT_CONFIG")
        row = registry.find(prefix.strip("_")) if prefix else registry.modules()[place][0]
        return _default_config(row.name)
    from rllib_compat.trainer import defaults, subclasses

    if name == "execution_plan":
        return subclasses.StockPlan(registry.modules()[place][0].name)
    if name == "COMMON_CONFIG":
        return defaults.common_config()
    from rllib_compat.trainer.classes import trainer_class

    return trainer_class(name)


@cache
def _default_config(algorithm: str) -> dict[str, Any]:
    """One dict, whichever module it is taken from."""
    from rllib_compat.trainer.defaults import defaults_of

    return defaults_of(algorithm)


_OLD = "ray.rllib.agents"
_PLACES = (name.removeprefix(f"{_OLD}.") for name in old_names.modules() if name.startswith(_OLD))
for _place in {*registry.modules(), *policy_modules(), *filter(_other_names, _PLACES)} - {_OLD}:
    sys.modules[f"{__name__}.{_place}"] = _AgentsModule(_place)
