"""`gym.envs`: gymnasium's environments as classes of the old API, to derive from."""

from __future__ import annotations

import importlib
import sys
from functools import cache
from types import ModuleType
from typing import Any

import gymnasium

from rllib_compat.gym import registration
from rllib_compat.gym.old_classes import old_class
from rllib_compat.gym.registration import make, register, registry, spec

__all__ = ["make", "register", "registration", "registry", "spec"]


class _Classes(ModuleType):
    """A module of environments' classes.

    Args:
        name: Its name.
        today: That of gymnasium's module.
    """

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
            value = old_class(name, value, self.__name__)  # type: ignore[arg-type]
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


_CONTROL = ("acrobot", "cartpole", "continuous_mountain_car", "mountain_car", "pendulum")
classic_control = _module("classic_control")
for _name in _CONTROL:
    _module(f"classic_control.{_name}")
box2d = _module("box2d")
mujoco = _module("mujoco")
toy_text = _module("toy_text")
__path__: list[str] = []
