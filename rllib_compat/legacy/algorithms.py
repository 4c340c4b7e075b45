"""Trainers and their default configs, in whatever module of RLlib old code asks for them."""

from __future__ import annotations

import importlib
from typing import Any

from rllib_compat import registry

_PARTS = ("agents", "algorithms", "contrib")


def find(place: str, name: str, nothing: Any) -> Any:
    """The trainer class or default config of that name.

    Args:
        place: The module that is asked, below `ray.rllib`.
        name: The name.
        nothing: What to return where it is neither.
    """
    part, _, module = place.removeprefix("ray.rllib.").partition(".")
    if part not in _PARTS:
        return nothing
    if name in registry.class_names():
        from rllib_compat.trainer.classes import trainer_class

        return trainer_class(name)
    if name.endswith("Config"):
        from rllib_compat.trainer import fluent

        if fluent.is_config_name(name):
            return fluent.config_class(name)
    row = _of_module(module)
    if part != "agents" and row is not None and name == "DEFAULT_CONFIG":
        home = importlib.import_module(f"rllib_compat.agents.{row.modules[-1]}")
        return getattr(home, name)
    return nothing


def _of_module(module: str) -> registry.Algorithm | None:
    """The algorithm of a module like `ppo.ppo`."""
    stem = module.rpartition(".")[2]
    rows = (row for found in registry.modules().values() for row in found)
    return next((r for r in rows if stem in (r.name.lower(), r.stems[0].lower())), None)
