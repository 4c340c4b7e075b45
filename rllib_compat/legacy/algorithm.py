"""`Algorithm` of Ray 2.0 – 2.9: Ray's class, whose `from_checkpoint` returns a trainer."""

from __future__ import annotations

import inspect
from typing import Any

from ray.rllib.algorithms import algorithm

from rllib_compat.trainer.trainer import Trainer


class _SameAsRays(type(algorithm.Algorithm)):  # type: ignore[misc]  # Ray has no types
    """Ray's algorithms and our trainers are instances of this class, and not of its subclasses."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **more: object
    ) -> type:
        """Makes a class; one that is written for dict configs is derived from `Trainer`."""
        made: type = super().__new__(cls, name, bases, members, **more)
        if _takes_dicts(made, members):
            ours = tuple(Trainer if base.__name__ == "Algorithm" else base for base in bases)
            return type(name, ours, members, **more)
        return made

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is Algorithm:  # by `__mro__`, as `issubclass` would call this method again
            return algorithm.Algorithm in subclass.__mro__ or Trainer in subclass.__mro__
        return bool(super().__subclasscheck__(subclass))

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))


def _takes_dicts(made: Any, members: dict[str, Any]) -> bool:
    """Whether a class is of Ray 2.0 – 2.2, whose configs were dicts."""
    if inspect.isfunction(members.get("get_default_policy_class")):  # later of the class
        return True
    if made.__bases__[0] is algorithm.Algorithm or "get_default_config" not in members:
        return False
    try:
        return isinstance(made.get_default_config(), dict)
    except Exception:  # it is the user's own code
        return False


class Algorithm(algorithm.Algorithm, metaclass=_SameAsRays):  # type: ignore[misc]
    """Ray's class, to derive from."""

    @classmethod
    def from_checkpoint(cls, path: Any, *args: Any, **kwargs: Any) -> Any:
        """A trainer that continues from a checkpoint; for a subclass, Ray's algorithm."""
        if cls is not Algorithm:
            return super().from_checkpoint(path, *args, **kwargs)
        return Trainer.from_checkpoint(path, *args, **kwargs)
