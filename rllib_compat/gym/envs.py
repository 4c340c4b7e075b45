"""`gym.envs`: gymnasium's environments as classes of the old API, to derive from."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from functools import cache
from types import ModuleType
from typing import Any

import gymnasium

from rllib_compat.gym import registration
from rllib_compat.gym.core import make_old_class
from rllib_compat.gym.registration import make, register, registry, spec

__all__ = ["make", "register", "registration", "registry", "spec"]


class _Classes(ModuleType):
    """A module of environments' classes."""

    def __init__(self, name: str, today: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._today = today

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            today = importlib.import_module(self._today)
        except gymnasium.error.DependencyNotInstalled:
            # Python's pickler asks every module for names, which no library is missing for.
            if name not in _classes_of_environments():
                raise AttributeError(name) from None
            raise
        value = getattr(today, name)
        if isinstance(value, type) and issubclass(value, gymnasium.Env):
            value = make_old_class(name, value, self.__name__)  # type: ignore[arg-type]
            setattr(self, name, value)
        return value


@cache
def _classes_of_environments() -> frozenset[str]:
    points = (spec.entry_point for spec in gymnasium.registry.values())
    return frozenset(point.rpartition(":")[2] for point in points if isinstance(point, str))


def _module(name: str) -> ModuleType:
    return sys.modules.setdefault(
        f"{__name__}.{name}", _Classes(f"{__name__}.{name}", f"gymnasium.envs.{name}")
    )


def _folder(name: str) -> ModuleType:
    """A folder of environments, with a module for each of its files; none of them is imported."""
    spec = importlib.util.find_spec(f"gymnasium.envs.{name}")
    for file in pkgutil.iter_modules((spec and spec.submodule_search_locations) or ()):
        _module(f"{name}.{file.name}")
    return _module(name)


classic_control = _folder("classic_control")
box2d = _folder("box2d")
mujoco = _folder("mujoco")
toy_text = _folder("toy_text")
__path__: list[str] = []
