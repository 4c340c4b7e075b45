"""`build_trainer` of Ray 0.7 – 1.x: trainer classes from parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config import find_algorithm
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.trainer.templates import algorithm_of, gone, updated
from rllib_compat.trainer.trainer import Trainer


def build_trainer(
    name: str,
    *,
    default_config: Mapping[str, Any] | None = None,
    default_policy: Any = None,
    mixins: list[type] | None = None,
    **more: Any,
) -> type[Trainer]:
    """Makes a trainer class as `ray.rllib.agents.trainer_template.build_trainer` did.

    Args:
        name: The class's name.
        default_config: What its config starts from.
        default_policy: One of RLlib's own policy classes; it tells the algorithm.
        mixins: Classes to derive from as well.
        **more: `templates.HOOKS`.

    Raises:
        GoneError: Something that belonged to another architecture was given: a policy with a loss
            of its own, an execution plan.
        ConfigError: Neither name, policy nor config tell which algorithm it is.
    """
    algorithm = registry.class_names().get(name) or algorithm_of(default_policy)
    if algorithm is None:
        if default_policy is not None:
            raise gone(["default_policy"], "build_trainer()")
        algorithm, how = find_algorithm(default_config or {})
        if how == "assumed":
            raise ConfigError(
                f"Nothing tells which algorithm {name!r} is.",
                where="build_trainer()",
                fix="derive from one: PPOTrainer.with_updates(name=…, default_config=…)",
            )
    base = type(name, (Trainer,), {"algorithm_name": algorithm})
    return updated(base, name=name, default_config=default_config, mixins=mixins, **more)
