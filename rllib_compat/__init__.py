"""Legacy RLlib code, configs and checkpoints on the installed Ray.

Public names are imported on access: `import rllib_compat` loads neither Ray nor torch. Trainers of
all algorithms that RLlib ever had are available by their old names: `PPOTrainer`, `PPOAgent`,
`ApexTrainer`, …

These names and the modules in `PUBLIC_MODULES` are public, and stay: users import them, and
converted checkpoints and generated code name them. Everything else may move.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllib_compat.config import Translation as Translation
    from rllib_compat.config import default_config as default_config
    from rllib_compat.config import translate as translate
    from rllib_compat.config.era import written_for as written_for
    from rllib_compat.conversion.convert import Conversion as Conversion
    from rllib_compat.conversion.convert import Verification as Verification
    from rllib_compat.conversion.convert import convert as convert
    from rllib_compat.conversion.convert import verify as verify
    from rllib_compat.conversion.given import Given as Given
    from rllib_compat.conversion.inspect import Inspection as Inspection
    from rllib_compat.conversion.inspect import inspect as inspect
    from rllib_compat.legacy import activate as activate
    from rllib_compat.policy.policy import load_policy as load_policy
    from rllib_compat.runtime.callbacks import DefaultCallbacks as DefaultCallbacks
    from rllib_compat.trainer.load import load as load
    from rllib_compat.trainer.trainer import Trainer as Agent
    from rllib_compat.trainer.trainer import Trainer as Trainer

#: The public modules: `agents`, `execution`, `tune` and `gym` replace Ray's and gym's in old code;
#: checkpoints and generated code name `adapters` and `modules`; `errors` is for `except`.
PUBLIC_MODULES = (
    *("adapters", "agents", "artifacts", "episode_data", "errors", "execution", "gym"),
    *("league", "legacy", "modules", "tune"),
)

__all__ = [
    "Agent",
    "Conversion",
    "DefaultCallbacks",
    "Given",
    "Inspection",
    "Trainer",
    "Translation",
    "Verification",
    "activate",
    "convert",
    "default_config",
    "inspect",
    "load",
    "load_policy",
    "translate",
    "verify",
    "written_for",
]

_HOMES = {
    "Conversion": "rllib_compat.conversion.convert",
    "DefaultCallbacks": "rllib_compat.runtime.callbacks",
    "Given": "rllib_compat.conversion.given",
    "Inspection": "rllib_compat.conversion.inspect",
    "Translation": "rllib_compat.config",
    "Verification": "rllib_compat.conversion.convert",
    "activate": "rllib_compat.legacy",
    "convert": "rllib_compat.conversion.convert",
    "default_config": "rllib_compat.config",
    "inspect": "rllib_compat.conversion.inspect",
    "load": "rllib_compat.trainer.load",
    "load_policy": "rllib_compat.policy.policy",
    "translate": "rllib_compat.config",
    "verify": "rllib_compat.conversion.convert",
    "written_for": "rllib_compat.config.era",
}


def __getattr__(name: str) -> Any:
    try:
        return _find(name)
    except ModuleNotFoundError as error:
        if error.name == "ray":
            from rllib_compat.ray_versions import releases

            releases.installed()  # raises an error with the command to install Ray
        raise


def _find(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in PUBLIC_MODULES:
        return importlib.import_module(f"rllib_compat.{name}")
    from rllib_compat.registry import class_names

    if name in ("Trainer", "Agent") or name in class_names():
        from rllib_compat.trainer.classes import trainer_class

        return trainer_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from rllib_compat.registry import class_names

    return sorted({*__all__, *PUBLIC_MODULES, *class_names()})
