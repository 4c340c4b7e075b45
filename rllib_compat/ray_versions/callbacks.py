"""The base of callbacks, and where runners and algorithms hold them."""

from __future__ import annotations

from typing import Any


def callback_class() -> Any:
    """The base of callbacks: `RLlibCallback`, which was `DefaultCallbacks` until Ray 2.40."""
    try:
        from ray.rllib.callbacks.callbacks import RLlibCallback
    except ImportError:
        from ray.rllib.algorithms.callbacks import DefaultCallbacks as RLlibCallback
    return RLlibCallback


def callbacks_of(runner_or_algorithm: Any) -> list[Any]:
    """The callback objects of an env runner or algorithm; one object until Ray 2.40."""
    held = getattr(runner_or_algorithm, "_callbacks", None) or runner_or_algorithm.callbacks
    return held if isinstance(held, list) else [held]
