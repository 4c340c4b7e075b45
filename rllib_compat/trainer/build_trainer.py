"""`build_trainer` of Ray 0.7 – 1.x: trainer classes from parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config import find_algorithm
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.trainer.overridable import PLAIN, StockPlan
from rllib_compat.trainer.templates import algorithm_of, updated
from rllib_compat.trainer.trainer import Trainer


def build_trainer(
    name: str,
    *,
    default_config: Mapping[str, Any] | None = None,
    default_policy: Any = None,
    mixins: list[type] | None = None,
    execution_plan: Any = None,
    **more: Any,
) -> type[Trainer]:
    """Makes a trainer class as `ray.rllib.agents.trainer_template.build_trainer` did.

    Args:
        name: The class's name.
        default_config: What its config starts from.
        default_policy: The policies' class. One of RLlib's own tells the algorithm; with one of
            your own and no name that does, a trainer samples and learns once from each batch.
        mixins: Classes to derive from as well.
        execution_plan: What the trainer does, from (workers, config). One of RLlib's own tells the
            algorithm.
        **more: `templates.HOOKS`.

    Raises:
        GoneError: Something that belonged to another architecture was given.
        ConfigError: Neither name, policy nor config tell which algorithm it is.
    """
    algorithm = registry.class_names().get(name) or algorithm_of(default_policy)
    plain = False
    if algorithm is None and isinstance(execution_plan, StockPlan):
        algorithm = execution_plan.algorithm
    if algorithm is None:
        algorithm, how = find_algorithm(default_config or {})
        own = default_policy is not None or execution_plan is not None
        plain = own and how == "assumed"
        if how == "assumed" and not plain:
            raise ConfigError(
                f"Nothing tells which algorithm {name!r} is.",
                where="build_trainer()",
                fix="derive from one: PPOTrainer.with_updates(name=…, default_config=…)",
            )
    members: dict[str, Any] = {"algorithm_name": algorithm}
    if plain:
        members["learns_once"] = True
        # What trainers of no algorithm started from.
        default_config = {**PLAIN, **(default_config or {})}
    return updated(
        type(name, (Trainer,), members),
        name=name,
        default_config=default_config,
        default_policy=default_policy,
        mixins=mixins,
        execution_plan=execution_plan,
        **more,
    )
