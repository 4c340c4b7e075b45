"""`ray.tune.registry` for old trainables."""

from __future__ import annotations

from typing import Any

import ray.tune.registry

from rllib_compat.neutral.errors import ConfigError
from rllib_compat.trainer.classes import class_of_algorithm
from rllib_compat.tune import register_trainable

__all__ = ["get_trainable_cls", "register_trainable"]


def get_trainable_cls(name: str) -> Any:
    """Returns the class of a registered trainable, or of an algorithm of any Ray."""
    try:
        return class_of_algorithm(name)
    except ConfigError:
        return ray.tune.registry.get_trainable_cls(name)
