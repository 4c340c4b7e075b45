"""`PPOTrainer`, `PPOAgent` and all the others from the table of names; and `build_trainer`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partialmethod
from typing import Any

from rllib_compat import registry
from rllib_compat.config import era, find_algorithm
from rllib_compat.config.era import AUTO
from rllib_compat.config.evidence import Evidence
from rllib_compat.neutral.errors import ConfigError, RefusedKeysError
from rllib_compat.trainer.subclasses import PLAIN, algorithm_of, algorithm_of_plan, derive
from rllib_compat.trainer.trainer import Trainer


@cache
def trainer_class(name: str) -> type[Trainer]:
    """The class of a legacy name like `PPOTrainer`, `ImpalaAgent` or `SAC`.

    Raises:
        ConfigError: RLlib had no trainer with this name.
    """
    if name in ("Trainer", "Agent"):
        return Trainer
    algorithm = registry.class_names().get(name)
    if algorithm is None:
        known = registry.class_names()
        near = difflib.get_close_matches(name, known) or ["PPOTrainer"]
        raise ConfigError(
            f"RLlib had no trainer called {name!r}.", fix=f"Use one of {', '.join(near)}, …"
        )
    members: dict[str, object] = {
        "__doc__": f"The Trainer of {algorithm}.",
        "__module__": "rllib_compat",  # where pickle finds it again
        "algorithm_name": algorithm,
        "_name": algorithm,  # its name in old classes, as that of the next ones
    }
    if not registry.of(algorithm).becomes:
        members["__init__"] = partialmethod(_removed, algorithm)
    return type(name, (Trainer,), members)


def _removed(_: Trainer, algorithm: str, *__: object, **___: object) -> None:
    raise_if_removed(algorithm)


def raise_if_removed(algorithm: str | None) -> None:
    """Raises an error if nothing replaces an algorithm.

    Raises:
        RefusedKeysError: Ray has removed it, and no remaining one learns the same way.
    """
    row = registry.ALGORITHMS.get(algorithm or "")
    if row is not None and not row.becomes:
        raise RefusedKeysError(f"{algorithm} was removed from RLlib.", fix=row.why)


def class_of_algorithm(algorithm: str) -> type[Trainer]:
    """The class of an algorithm by the name it has in the registry ("PPO", "contrib/MADDPG").

    Raises:
        ConfigError: No algorithm of RLlib had this name.
    """
    return trainer_class(f"{registry.find(algorithm).stems[0]}Trainer")


def get_trainer_class(alg: str, return_config: bool = False) -> Any:
    """The class of an algorithm, as RLlib's registry gave it.

    Returns:
        The class; or the class and the config.

    Raises:
        ConfigError: No algorithm of RLlib had this name.
    """
    found = class_of_algorithm(alg)
    return (found, found.get_default_config()) if return_config else found


def keep_era(
    trainer: type[Trainer],
    legacy_ray: str | None = None,
    evidence: Iterable[Evidence] | None = None,
) -> type[Trainer]:
    """The same class for trials, whose processes don't know the script and its imports.

    Args:
        trainer: The class.
        legacy_ray: The Ray whose defaults it keeps; None: the class's, or that of this process.
        evidence: What indicates it beside the config; None: the evidence of this process.
    """
    known = tuple(era.noted() if evidence is None else evidence)
    asked = legacy_ray or (trainer.legacy_ray if trainer.legacy_ray != AUTO else era.chosen())
    if asked == trainer.legacy_ray and not known:
        return trainer
    members = {"legacy_ray": asked, "evidence": known, "__module__": trainer.__module__}
    return type(trainer.__name__, (trainer,), {**members, "__doc__": trainer.__doc__})


def build_trainer(
    name: str,
    *,
    default_config: Mapping[str, object] | None = None,
    default_policy: type | None = None,
    mixins: list[type] | None = None,
    execution_plan: Callable[..., object] | None = None,
    **more: Callable[..., object] | None,
) -> type[Trainer]:
    """Makes a trainer class as `ray.rllib.agents.trainer_template.build_trainer` did.

    Args:
        name: The class's name.
        default_config: The first values of its config.
        default_policy: The policies' class. One of RLlib implies the algorithm; with your own one
            and no name that does, a trainer samples and learns once from each batch.
        mixins: Classes to derive from as well.
        execution_plan: The trainer's steps: a function of (workers, config). One of RLlib implies
            the algorithm.
        **more: `subclasses.HOOKS`.

    Raises:
        GoneError: An argument belongs to the old architecture.
        ConfigError: Neither name, policy nor config imply the algorithm.
    """
    algorithm = registry.class_names().get(name) or algorithm_of(default_policy)
    plain = False
    algorithm = algorithm or algorithm_of_plan(execution_plan)
    if algorithm is None:
        algorithm, how = find_algorithm(default_config or {})
        own = default_policy is not None or execution_plan is not None
        plain = own and how == "assumed"
        if how == "assumed" and not plain:
            raise ConfigError(
                f"The algorithm of {name!r} is not known.",
                where="build_trainer()",
                fix="derive from one: PPOTrainer.with_updates(name=…, default_config=…)",
            )
    members: dict[str, object] = {"algorithm_name": algorithm, "_name": name}
    if plain:
        members["learns_once"] = True
        # The defaults of trainers without an algorithm.
        default_config = {**PLAIN, **(default_config or {})}
    return derive(
        type(name, (Trainer,), members),
        name=name,
        default_config=default_config,
        default_policy=default_policy,
        mixins=mixins,
        execution_plan=execution_plan,
        **more,
    )
