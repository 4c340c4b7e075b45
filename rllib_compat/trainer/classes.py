"""`PPOTrainer`, `PPOAgent`, `DQNTrainer` and all the others, from the table of names."""

from __future__ import annotations

from functools import cache, partialmethod
from typing import Any

from rllib_compat import registry
from rllib_compat.neutral.errors import ConfigError, RefusedKeysError
from rllib_compat.trainer.trainer import Trainer


@cache
def trainer_class(name: str) -> type[Trainer]:
    """The class of a legacy name like `PPOTrainer`, `ImpalaAgent` or `SAC`.

    Raises:
        ConfigError: No trainer of RLlib was ever called so.
    """
    if name in ("Trainer", "Agent"):
        return Trainer
    algorithm = registry.class_names().get(name)
    if algorithm is None:
        raise ConfigError(f"No trainer of RLlib was ever called {name!r}.")
    members: dict[str, Any] = {
        "__doc__": f"The Trainer of {algorithm}.",
        "__module__": "rllib_compat",  # where pickle finds it again
        "algorithm_name": algorithm,
    }
    if not registry.of(algorithm).becomes:
        members["__init__"] = partialmethod(_removed, algorithm)
    return type(name, (Trainer,), members)


def _removed(_: Trainer, algorithm: str, *__: Any, **___: Any) -> None:
    raise_if_removed(algorithm)


def raise_if_removed(algorithm: str | None) -> None:
    """Raises where nothing can stand in for an algorithm.

    Raises:
        RefusedKeysError: Ray has removed it, and none that it has left learns the same way.
    """
    row = registry.ALGORITHMS.get(algorithm or "")
    if row is not None and not row.becomes:
        raise RefusedKeysError(f"{algorithm} was removed from RLlib.", fix=row.why)


def class_of_algorithm(algorithm: str) -> type[Trainer]:
    """The class of an algorithm by the name it has in the registry ("PPO", "contrib/MADDPG").

    Raises:
        ConfigError: No algorithm of RLlib was ever called so.
    """
    return trainer_class(f"{registry.find(algorithm).stems[0]}Trainer")
