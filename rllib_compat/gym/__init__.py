"""The old gym API over the installed gymnasium: `from rllib_compat import gym`.

For code of its time that makes environments itself and steps them, or derives its own:
`gym.make(…)` gives one with `reset() → obs`, a `step` of four values, `seed()` and
`render(mode)`, and so have `gym.Env`, the wrappers, and the classes below `gym.envs`. Spaces are
gymnasium's own.
"""

from __future__ import annotations

import importlib
from typing import Any

import gymnasium

from rllib_compat.gym import spaces
from rllib_compat.gym.core import (
    ActionWrapper,
    Env,
    GoalEnv,
    ObservationWrapper,
    OldApi,
    RewardWrapper,
    Wrapper,
)
from rllib_compat.gym.registration import make, register, spec
from rllib_compat.gym.spaces import Space

__all__ = [
    "ActionWrapper",
    "Env",
    "GoalEnv",
    "ObservationWrapper",
    "OldApi",
    "RewardWrapper",
    "Space",
    "Wrapper",
    "__version__",
    "make",
    "register",
    "spaces",
    "spec",
]

#: The last gym whose environments return four values and no other.
__version__ = "0.21.0"


def __getattr__(name: str) -> Any:
    if name in ("envs", "error", "logger", "vector", "wrappers"):
        return importlib.import_module(f"{__name__}.{name}")
    if hasattr(gymnasium, name):
        return getattr(gymnasium, name)
    try:
        return importlib.import_module(f"gymnasium.{name}")
    except ImportError as error:
        raise AttributeError(f"neither gymnasium nor {__name__} has {name!r}") from error
