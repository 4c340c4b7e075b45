"""The defaults of the installed Ray, from the table of keys: no Ray is imported for them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rllib_compat import ray_versions
from rllib_compat.algorithms.defaults import DEFAULTS, MODEL_DEFAULTS
from rllib_compat.config import keys as table
from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.runtime.atari import DEFAULTS as ATARI_DEFAULTS

# Settings whose attribute in the table has another name.
_ATTRIBUTES = {"framework": "framework_str"}


@cache
def todays_default(algorithm: str, setting: str) -> tuple[bool, Any]:
    """The installed Ray's default of a setting, and whether the table knows it.

    Args:
        algorithm: The target algorithm.
        setting: `method.argument`, as in `Settings`.
    """
    if setting.startswith("env.atari."):
        return True, ATARI_DEFAULTS[setting.rpartition(".")[2]]
    release = _installed()
    argument = setting.partition(".")[2]
    if setting.startswith("rl_module.model_config."):
        key = setting.rpartition(".")[2]
        if key in MODEL_DEFAULTS.get(algorithm, {}):
            return True, MODEL_DEFAULTS[algorithm][key]
        special = table.default_at(algorithm, f"model.{key}", release)
        return special if special[0] else table.default_at("model_config", key, release)
    name = _ATTRIBUTES.get(argument, argument)
    known, value = _ours(algorithm, argument)
    if known:
        return known, value
    if name == "train_batch_size_per_learner":
        known, value = table.default_at(algorithm, "_train_batch_size_per_learner", release)
        if known and value is not None:
            return known, value
        name = "train_batch_size"
        known, value = _ours(algorithm, name)
        if known:
            return known, value
    for home in (algorithm, "common"):
        known, value = table.default_at(home, name, release)
        if known:
            return known, value
    return False, None


def _ours(algorithm: str, argument: str) -> tuple[bool, Any]:
    """The default of an algorithm of this package, also of a key inside a dict."""
    value: Any = DEFAULTS.get(algorithm, {})
    for key in argument.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return False, None
        value = value[key]
    return True, value


@cache
def _installed() -> str:
    """The table's release that stands for the installed Ray; without one, the newest."""
    try:
        return table.nearest_release(str(ray_versions.installed()))
    except RayNotSupportedError:
        return table.versions()[-1]
