"""`gym.error`: gymnasium's errors, and those that only gym had, to be raised and caught."""

from __future__ import annotations

from typing import Any

import gymnasium.error

#: Errors that only gym had → what they derive from.
_BASES = {
    "APIError": "Error",
    "APIConnectionError": "APIError",
    "AuthenticationError": "APIError",
    "DoubleWrapperError": "Error",
    "InvalidFrame": "Error",
    "InvalidRequestError": "APIError",
    "RateLimitError": "APIError",
    "ResetNotAllowed": "Error",
    "RetriesExceededError": "Error",
    "UnregisteredBenchmark": "Unregistered",
    "UnseedableEnv": "Error",
    "VideoRecorderError": "Error",
    "WrapAfterConfigureError": "Error",
}
__all__ = ["Error", "Unregistered", *_BASES]

Error = gymnasium.error.Error

#: What `except gym.error.Unregistered` caught.
Unregistered = gymnasium.error.UnregisteredEnv

for _name, _base in _BASES.items():
    globals()[_name] = type(_name, (globals()[_base],), {"__module__": __name__})


def __getattr__(name: str) -> Any:
    return getattr(gymnasium.error, name)
