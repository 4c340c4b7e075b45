"""`gym.error`: gymnasium's errors, and those that only gym had, to be raised and caught."""

from __future__ import annotations

from typing import Any

import gymnasium.error
from gymnasium.error import Error

_NAMES = (
    "APIConnectionError",
    "APIError",
    "AuthenticationError",
    "DoubleWrapperError",
    "InvalidFrame",
    "InvalidRequestError",
    "RateLimitError",
    "ResetNotAllowed",
    "RetriesExceededError",
    "Unregistered",
    "UnregisteredBenchmark",
    "UnseedableEnv",
    "VideoRecorderError",
    "WrapAfterConfigureError",
)
__all__ = [*_NAMES]

globals().update({name: type(name, (Error,), {"__module__": __name__}) for name in __all__})


def __getattr__(name: str) -> Any:
    return getattr(gymnasium.error, name)
