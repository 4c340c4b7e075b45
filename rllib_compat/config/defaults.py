"""What Rays do where a config says nothing: the legacy ones, and the installed one.

The facts are those of the table of keys (`keys/`) and of this package's algorithms; no Ray is
imported for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from rllib_compat import registry
from rllib_compat.algorithms.defaults import DEFAULTS, MODEL_DEFAULTS
from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import releases
from rllib_compat.registry import keys as table
from rllib_compat.runtime.atari import DEFAULTS as ATARI_DEFAULTS

#: From this Ray on, configs are today's own.
TODAY = "2.40.0"
#: Values of settings that mean what today's default does, by another word.
_AS_TODAYS = {"learners.num_cpus_per_learner": 1}
#: Settings whose attribute in the table has another name.
_ATTRIBUTES = {"framework": "framework_str"}


@frozen
class ImpliedDefault:
    """What a Ray always did, before it had a key for it.

    The table of keys has the defaults of keys. If a key was added later, with a default that
    differs from what earlier Rays did, the equivalent value is here, and is a default of theirs.

    Attributes:
        key: Today's key.
        value: What it would have been.
        until: The last release in the table of keys that had no key for it.
        why: The reason, in one sentence without a full stop at the end.
        but: The algorithms that did something else.
        only: The algorithms that did it; empty: all.
    """

    key: str
    value: Any
    until: str
    why: str
    but: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


IMPLIED_DEFAULTS = (
    ImpliedDefault(
        "sample_timeout_s",
        None,
        "2.10.0",
        "samples were waited for however long they took; since Ray 2.20, those that take more than "
        "60 seconds are thrown away",
    ),
    ImpliedDefault(
        "evaluation_sample_timeout_s",
        # Ray computes with this one, so that it can't be None: a day.
        86_400.0,
        "1.13.0",
        "evaluation was waited for however long it took",
    ),
    ImpliedDefault(
        "restart_failed_env_runners", False, "1.12.1", "a worker that failed was never restarted"
    ),
    ImpliedDefault(
        "normalize_actions",
        False,
        "0.8.0",
        "actions went to the environment as the policy gave them; only SAC's came out squashed",
        but=registry.family("SAC"),
    ),
    ImpliedDefault(
        "moving_average_sqd_adv_norm_update_rate",
        1e-7,
        "1.4.1",
        "the mean of squared advantages moved ten times as fast as since Ray 1.5",
        only=("MARWIL",),
    ),
    ImpliedDefault(
        "moving_average_sqd_adv_norm_update_rate",
        1e-6,
        "1.3.0",
        "the mean of squared advantages moved a hundred times as fast as since Ray 1.5",
        only=("MARWIL",),
    ),
    ImpliedDefault(
        "target_network_update_freq",
        1,
        "2.3.1",
        "the target network was updated whenever the buffered batches had been used up",
        only=registry.family("APPO"),
    ),
)


def legacy_defaults(algorithm: str, legacy_ray: str) -> Mapping[str, Any]:
    """The config that an algorithm of a legacy Ray started from, with what no key said yet."""
    return _legacy_defaults(algorithm, table.nearest_release(legacy_ray))


@cache
def _legacy_defaults(algorithm: str, release: str) -> Mapping[str, Any]:
    order = table.versions().index
    implied = {
        row.key: row.value
        for row in IMPLIED_DEFAULTS
        if order(release) <= order(row.until)
        and algorithm not in row.but
        and (not row.only or algorithm in row.only)
    }
    return {**implied, **table.default_config(algorithm, release)}


@cache
def todays_default(algorithm: str, setting: str) -> tuple[bool, Any]:
    """The installed Ray's default of a setting (`method.argument`), and whether it is known."""
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
    """The table's release for the installed Ray; without a Ray, the newest."""
    try:
        return table.nearest_release(str(releases.installed()))
    except RayNotSupportedError:
        return table.versions()[-1]


def is_todays(algorithm: str, setting: str, value: object) -> bool:
    """Whether a setting is what the installed Ray does by itself."""
    known, now = todays_default(algorithm, setting)
    if known and (same(now, value) or same(_AS_TODAYS.get(setting, now), value)):
        return True
    return value in (None, False, [], {}) and now is None


def same(a: object, b: object) -> bool:
    """Whether two values of configs are equal, whatever they are."""
    try:
        return a is b or bool(a == b)
    except (TypeError, ValueError):  # arrays and such
        return False
