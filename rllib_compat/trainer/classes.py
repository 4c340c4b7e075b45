"""`PPOTrainer`, `PPOAgent`, `DQNTrainer` and all the others, from the table of algorithms."""

from __future__ import annotations

from functools import cache
from typing import Any

from rllib_compat.config.algorithms import REMOVED, find_algorithm
from rllib_compat.errors import RefusedKeysError
from rllib_compat.trainer.trainer import Trainer


@cache
def trainer_class(name: str) -> type[Trainer]:
    """The class of a legacy name like `PPOTrainer`, `ImpalaAgent` or `SAC`.

    Raises:
        ConfigError: No algorithm of RLlib was ever called so.
    """
    if name in ("Trainer", "Agent"):
        return Trainer
    algorithm, _ = find_algorithm({}, name)
    members: dict[str, Any] = {
        "__doc__": f"The Trainer of {algorithm}.",
        "__module__": "rllib_compat",  # where pickle finds it again
        "_algorithm_name": algorithm,
    }
    removed = REMOVED.get(algorithm)
    if removed is not None and not removed.target:

        def gone(*_: Any, **__: Any) -> None:
            raise RefusedKeysError(f"{algorithm} was removed from RLlib.", fix=removed.why)

        members["__init__"] = gone
    return type(name, (Trainer,), members)
