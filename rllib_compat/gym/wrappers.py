"""`gym.wrappers`: gymnasium's, around old environments; and `Monitor`, which recorded them."""

from __future__ import annotations

from typing import Any

import gymnasium.wrappers

from rllib_compat.gym.core import make_old_class
from rllib_compat.gym.registration import TimeLimit

__all__ = ["Monitor", "TimeLimit"]

#: Old names → gymnasium's.
_RENAMED = {
    "FrameStack": "FrameStackObservation",
    "GrayScaleObservation": "GrayscaleObservation",
}


def Monitor(env: object, *_: object, **__: object) -> Any:  # noqa: N802
    """The environment itself: episodes are recorded by `gymnasium.wrappers.RecordVideo` today."""
    return env


def __getattr__(name: str) -> Any:
    today = getattr(gymnasium.wrappers, _RENAMED.get(name, name), None)
    if not isinstance(today, type):
        raise AttributeError(f"module 'gym.wrappers' has no attribute {name!r}")
    return make_old_class(name, today, __name__)
