"""`COMMON_CONFIG`, `DEFAULT_CONFIG`, whose they are, and functions that merge configs into them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from rllib_compat.config import default_config
from rllib_compat.config.era import AUTO, Era, resolve
from rllib_compat.config.evidence import lifetime_of_algorithm
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.public import import_attribute
from rllib_compat.registry import keys as table

if TYPE_CHECKING:
    from rllib_compat.config.translator import Stack

# The Ray whose defaults apply if nothing names one; later algorithms have those of their first Ray.
USUAL = "0.8.5"

# Another `type` in these has other keys, so that it replaces the whole dict.
REPLACED_WITH_TYPE = ("exploration_config", "replay_buffer_config")


@frozen
class Origin:
    """Where a config comes from, as the caller says.

    Attributes:
        algorithm: The algorithm, or None if the config's keys imply it.
        ray: The Ray that it was written for; `TODAY` for the installed one; None if unknown.
        api_stack: The API stack that is asked for.
    """

    algorithm: str | None
    ray: str | None
    api_stack: Stack = "auto"

    @property
    def legacy_ray(self) -> str | None:
        """The Ray whose defaults are kept, or None."""
        return None if self.ray == table.TODAY else self.ray

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `translate`."""
        old = self.ray != table.TODAY
        return {
            "algorithm": self.algorithm,
            "legacy_ray": Era(self.ray),
            "old_networks": old,
            "api_stack": self.api_stack,
        }


class DefaultConfig(dict[str, Any]):
    """The result of `get_default_config()`: a dict until Ray 1.13, a config with methods since 2.0.

    Its methods are those of a config with the keys that were changed in the dict.
    """

    def __init__(self, algorithm: str, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        vars(self).update(algorithm=algorithm, first=copy.deepcopy(dict(config)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "first" not in vars(self):
            raise AttributeError(name)
        kept = [key for key, was in self.first.items() if self.get(key) == was]
        changed = {key: self[key] for key in self if key not in kept}
        config_class = import_attribute("rllib_compat.trainer.fluent", "config_class")
        return getattr(config_class(f"{self.algorithm}Config")().update_from_dict(changed), name)

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def copy(self, copy_frozen: bool | None = None) -> DefaultConfig:  # noqa: ARG002
        """A copy, which can be changed for itself."""
        return copy.deepcopy(self)


class ReadableConfig(dict[str, Any]):
    """A trainer's config: a dict until Ray 2.1, an object with attributes since then."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[table.DICT_KEYS.get(name, name)]
        except KeyError:
            raise AttributeError(f"The config has no setting {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self[table.DICT_KEYS.get(name, name)] = value

    def copy(self, copy_frozen: bool | None = None) -> ReadableConfig:  # noqa: ARG002
        """A copy, which can be changed for itself."""
        return ReadableConfig(copy.deepcopy(dict(self)))

    def to_dict(self) -> dict[str, Any]:
        """A copy of it as a dict."""
        return dict(self)


def defaults_of(algorithm: str, legacy_ray: str | None = None) -> dict[str, Any]:
    """The `DEFAULT_CONFIG` of an algorithm.

    Args:
        algorithm: Its legacy name, for example "PPO".
        legacy_ray: The Ray release; by default the one that the user's code and the files beside it
            indicate, else 0.8.5, or the first that had the algorithm.
    """
    ray = legacy_ray or resolve(AUTO, {}, algorithm).ray or _usual_release(algorithm)
    if (span := lifetime_of_algorithm(algorithm)) is not None and ray != table.TODAY:
        # Other imports of a process may be of Rays without the algorithm.
        first, last = span
        ray = min(max(ray, first, key=Version), last, key=Version)
    return default_config(algorithm, ray)


def common_config() -> dict[str, Any]:
    """The `COMMON_CONFIG`: what all algorithms started from."""
    return default_config("common", legacy_ray=resolve(AUTO, {}, None).ray or USUAL)


def with_common_config(extra_config: Mapping[str, Any]) -> dict[str, Any]:
    """The `COMMON_CONFIG` with `extra_config` merged into a copy of it."""
    return merge(common_config(), extra_config)


def with_base_config(
    base_config: Mapping[str, Any], extra_config: Mapping[str, Any]
) -> dict[str, Any]:
    """`base_config` with `extra_config` merged into a copy of it."""
    return merge(base_config, extra_config)


def merge(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Merges two configs as `Trainer.merge_trainer_configs` did: dicts in them, too."""
    merged = {key: copy.copy(value) for key, value in base.items()}
    for key, value in more.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            other_type = "type" in value and value["type"] != old.get("type")
            if not (key in REPLACED_WITH_TYPE and other_type):
                value = merge(old, value)
        merged[key] = value
    return merged


def _usual_release(algorithm: str) -> str:
    order = table.versions().index
    # Runs of two have no default, and sections are no keys of the algorithm's own.
    runs = [run for runs in table.section(algorithm).values() for run in runs if _has_default(run)]
    later = [max(run[0], USUAL, key=order) for run in runs if order(run[1]) >= order(USUAL)]
    return min(later, key=order, default=USUAL)


def _has_default(run: list[Any]) -> bool:
    return len(run) == 3 and not (isinstance(run[2], dict) and "$" in run[2])
