"""`ray.rllib.agents` of Ray 0.5 – 2.0: the same modules, with the same names in them.

`import ray.rllib.agents.ppo as ppo` becomes `import rllib_compat.agents.ppo as ppo`; then
`ppo.PPOTrainer` and `ppo.DEFAULT_CONFIG` are there. None of these modules is a file: they are made
from the table of names, and import Ray when a trainer is asked for.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from rllib_compat import registry
from rllib_compat.trainer.stock_policies import policy_class, policy_modules, policy_names

# Names that are no algorithm's: the module below `agents` → name → where it is here.
_OTHERS: dict[str, dict[str, tuple[str, str]]] = {
    "": {
        "Trainer": ("rllib_compat.trainer.trainer", "Trainer"),
        "Agent": ("rllib_compat.trainer.trainer", "Trainer"),
        "with_common_config": ("rllib_compat.trainer.defaults", "with_common_config"),
        "DefaultCallbacks": ("rllib_compat.runtime.callbacks", "DefaultCallbacks"),
    },
    "callbacks": {"DefaultCallbacks": ("rllib_compat.runtime.callbacks", "DefaultCallbacks")},
    "registry": {
        "get_agent_class": ("rllib_compat.trainer.classes", "class_of_algorithm"),
        "get_trainer_class": ("rllib_compat.trainer.classes", "class_of_algorithm"),
    },
    "trainer": {
        "Trainer": ("rllib_compat.trainer.trainer", "Trainer"),
        "with_base_config": ("rllib_compat.trainer.defaults", "with_base_config"),
        "with_common_config": ("rllib_compat.trainer.defaults", "with_common_config"),
    },
    "trainer_template": {"build_trainer": ("rllib_compat.trainer.build_trainer", "build_trainer")},
}
_OTHERS["agent"] = _OTHERS["trainer"] | _OTHERS["registry"] | _OTHERS[""]


class _Agents(ModuleType):
    """A module whose names are made when they are asked for.

    Args:
        name: Its place below `agents`, "" for `agents` itself.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{__name__}.{name}", f"`ray.rllib.agents.{name}` of Ray 0.5 – 2.0.")
        self.__path__: list[str] = []  # so that it can have submodules
        self.__all__ = sorted(_names(name))

    def __getattr__(self, name: str) -> Any:
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
    common = {"COMMON_CONFIG"} if place in ("trainer", "agent") else set()
    return classes | configs | common | policy_names(place) | set(_OTHERS.get(place, ()))


def _get(place: str, name: str) -> Any:
    module = f"{place}.{name}".strip(".")
    if f"{__name__}.{module}" in sys.modules:
        return sys.modules[f"{__name__}.{module}"]
    if name not in _names(place):
        raise AttributeError(f"module '{__name__}.{place}' has no attribute {name!r}")
    if name in _OTHERS.get(place, ()):
        home, attribute = _OTHERS[place][name]
        return getattr(importlib.import_module(home), attribute)
    if name in policy_names(place):
        return policy_class(name)
    from rllib_compat.trainer import defaults, own_parts

    if name == "execution_plan":
        return own_parts.StockPlan(registry.modules()[place][0].name)
    if name == "COMMON_CONFIG":
        return defaults.common_config()
    if name == "DEFAULT_CONFIG":
        return defaults.defaults_of(registry.modules()[place][0].name)
    from rllib_compat.trainer.classes import trainer_class

    return trainer_class(name)


for _place in (*registry.modules(), *policy_modules(), *filter(None, _OTHERS)):
    sys.modules[f"{__name__}.{_place}"] = _Agents(_place)
