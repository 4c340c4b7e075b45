"""`Algorithm` of Ray 2.0 – 2.9: today's, but that a checkpoint becomes what its methods were."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms import algorithm

from rllib_compat.trainer import loaded
from rllib_compat.trainer.trainer import Trainer

__all__ = ["Algorithm"]


class Algorithm(algorithm.Algorithm):  # type: ignore[misc]  # Ray has no types
    """Ray's class, to derive from; trainers count as its instances."""

    @classmethod
    def from_checkpoint(cls, path: Any, *args: Any, **kwargs: Any) -> Any:
        """A trainer out of a checkpoint; for a subclass, what Ray makes of it."""
        if cls is not Algorithm:
            return super().from_checkpoint(path, *args, **kwargs)
        return loaded.from_checkpoint(Trainer, path, *args, **kwargs)


Algorithm.register(Trainer)
