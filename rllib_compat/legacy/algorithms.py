"""Trainers and their default configs, in whatever module of RLlib old code asks for them."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from rllib_compat import registry

#: Attributes of a config → the keys that `to_dict` made of them (Ray 2.0.1, `AlgorithmConfig`).
_KEYS_OF = {"framework_str": "framework", "input_": "input", "lambda_": "lambda"}
_INNER = ("algo_class", "logger_creator")
_AS_BEFORE = ("create_env_on_driver", "custom_eval_function", "multiagent", "num_cpus_for_driver")

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
    if part == "agents" or row is None or name != "DEFAULT_CONFIG":
        return nothing
    if part == "algorithms":
        return _defaults(row.name)
    home = importlib.import_module(f"rllib_compat.agents.{row.modules[-1]}")
    return getattr(home, name)


@cache
def _defaults(algorithm: str) -> dict[str, Any]:
    """The config that stood in a module below `algorithms`; old code changes it in place."""
    from rllib_compat.trainer.defaults import defaults_of

    # Dicts stood there in Ray 2.0 – 2.2, made of configs' attributes, some of other names.
    before, found = (defaults_of(algorithm, release) for release in ("1.13.0", "2.0.1"))
    keys = {_KEYS_OF.get(name, name): value for name, value in found.items() if name not in _INNER}
    return {**{key: before[key] for key in _AS_BEFORE if key in before}, **keys}


def _of_module(module: str) -> registry.Algorithm | None:
    """The algorithm of a module like `ppo.ppo`."""
    stem = module.rpartition(".")[2]
    rows = (row for found in registry.modules().values() for row in found)
    return next((r for r in rows if stem in (r.name.lower(), r.stems[0].lower())), None)
