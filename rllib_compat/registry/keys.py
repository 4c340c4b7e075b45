"""Every key that any RLlib from Ray 0.5 on had, and what its default was.

The table in `legacy_keys.json` was read out of the sources of one release of each minor
series; `generate.py` reads those of a wheel, and compares. A key's *section* is where it stood:
"common", "model", "multiagent", an algorithm's name. Defaults are runs
`[first release, last release, value]`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from rllib_compat import registry
from rllib_compat.neutral.errors import ConfigError

Runs = list[list[Any]]

#: Stands for a version: that of configs that are not old.
TODAY = "today"

# Sections that are parts of a config; all others are algorithms.
PARTS = (
    "model",
    "model_config",
    "multiagent",
    "callbacks",
    "exploration_config",
    "replay_buffer_config",
    "optimizer",
    "tf_session_args",
    "local_tf_session_args",
)

#: What dicts call the attributes of config objects (`AlgorithmConfig.to_dict`, since Ray 1.13).
DICT_KEYS = {
    "callbacks_class": "callbacks",
    "create_env_on_local_worker": "create_env_on_driver",
    "custom_evaluation_function": "custom_eval_function",
    "framework_str": "framework",
    "input_": "input",
    "lambda_": "lambda",
    "num_cpus_for_local_worker": "num_cpus_for_driver",
    "num_rollout_workers": "num_workers",
}
#: Attributes that no dict had.
_OF_OBJECTS_ALONE = ("__prior_exploration_config", "_is_frozen", "algo_class", "trainer_class")
#: The last Ray whose dicts had the attributes for several agents in a dict of their own.
_LAST_MULTIAGENT = "2.3.1"

#: What a dict of `callbacks` may have functions for.
CALLBACK_EVENTS = (
    "on_episode_start",
    "on_episode_step",
    "on_episode_end",
    "on_sample_end",
    "on_train_result",
    "on_postprocess_traj",
)


@cache
def _table() -> dict[str, Any]:
    path = Path(__file__).with_name("legacy_keys.json")
    table: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return table


def versions() -> list[str]:
    """The Ray releases that the table was read from, oldest first."""
    return list(_table()["versions"])


def section(name: str) -> dict[str, Runs]:
    """The keys of one section with the runs of their defaults; empty if there is no such one."""
    keys: dict[str, Runs] = _table()["keys"].get(name, {})
    return keys


def algorithms() -> list[str]:
    """The names of all algorithms that RLlib ever had."""
    return [name for name in _table()["keys"] if name not in PARTS and name != "common"]


def every_key() -> Iterator[tuple[str, str]]:
    """All pairs of section and key."""
    for name, keys in _table()["keys"].items():
        for key in keys:
            yield name, key


@cache
def homes(key: str) -> tuple[str, ...]:
    """The sections of a config's top level ("common", algorithms) that had `key`."""
    return tuple(name for name in ("common", *algorithms()) if key in section(name))


@cache
def lifetime(key: str) -> tuple[str, str] | None:
    """The first and the last Ray that had a key, given with its section (`model.dim`)."""
    return span_of(_runs_everywhere(key))


@cache
def in_use(key: str) -> tuple[str, str] | None:
    """The same, without later major versions that had nothing but a placeholder for the key.

    Within a major version, code went on with a key that had been renamed, and read a warning.
    """
    runs = list(_runs_everywhere(key))
    read = span_of(run for run in runs if not _is_renamed(run))
    if read is None:
        return span_of(runs)
    major = Version(read[1]).major
    until = [version for version in versions() if Version(version).major <= major][-1]
    order = versions().index
    kept = [r for r in runs if order(r[0]) <= order(until)]
    return span_of([first, min(last, until, key=order)] for first, last, *_ in kept)


def _runs_everywhere(key: str) -> Iterator[list[Any]]:
    head, _, tail = key.partition(".")
    if tail and head in PARTS:
        yield from section(head).get(tail, ())
    for home in homes(key):
        yield from section(home)[key]


def span_of(spans: Iterable[Sequence[Any]]) -> tuple[str, str] | None:
    """The first and the last Ray of all spans together; None for no span."""
    found, order = list(spans), versions().index
    if not found:
        return None
    return min((s[0] for s in found), key=order), max((s[1] for s in found), key=order)


def _is_renamed(run: Sequence[Any]) -> bool:
    return len(run) == 3 and run[2] == _PLACEHOLDER


def _all_runs(key: str, algorithm: str) -> Iterator[Any]:
    """The runs of a key's defaults: the algorithm's own, the common ones, its section's."""
    head, _, tail = key.partition(".")
    for home in (algorithm, "common"):
        yield from section(home).get(key, ())
    if tail and head in PARTS:
        yield from section(head).get(tail, ())


def was_default(key: str, value: object, algorithm: str) -> bool:
    """Whether a value is what some Ray put there by itself."""
    return any(len(run) == 3 and _is(run[2], value) for run in _all_runs(key, algorithm))


def _is(default: object, value: object) -> bool:
    try:
        return bool(default == value)
    except (AttributeError, ValueError):  # a PolicySpec knows its like only; an array has no answer
        return False


_PLACEHOLDER = {"$": "placeholder"}
#: How many wrong keys are remembered with what they look like; policies repeat each other's.
_REMEMBERED = 4096


def is_placeholder(key: str, value: object) -> bool:
    """Whether a value is the -1 that Ray 1.x and 2.x put where a key had been renamed."""
    if type(value) is not int or value != -1:
        return False
    for name in (key, key.rpartition(".")[2]):
        for home in (*homes(name), "model"):
            runs = section(home).get(name, ())
            if any(map(_is_renamed, runs)):
                return True
    return False


def with_placeholders(config: Mapping[str, Any], legacy_ray: str) -> dict[str, Any]:
    """A config whose `model` has what a Ray put there for keys that had been renamed: -1."""
    release = nearest_release(legacy_ray)
    renamed = [k for k in section("model") if default_at("model", k, release)[1] == _PLACEHOLDER]
    return {**config, "model": {**dict.fromkeys(renamed, -1), **(config.get("model") or {})}}


def since(key: str, algorithm: str) -> int:
    """How new a key is: the index of its first release, in the algorithm if it has it."""
    runs = list(_all_runs(key, algorithm))
    if runs:
        return versions().index(runs[0][0])
    span = lifetime(key)
    return versions().index(span[0]) if span else -1


@lru_cache(_REMEMBERED)
def nearest(key: str) -> str | None:
    """The known key that `key` most looks like, in the same section."""
    head, dot, tail = key.rpartition(".")
    known = (
        set(section(head))
        if dot
        else {k for home in ("common", *algorithms()) for k in section(home)}
    )
    import difflib  # only a wrong key needs it

    match = difflib.get_close_matches(tail, [k for k in known if "." not in k], n=1, cutoff=0.7)
    return f"{head}{dot}{match[0]}" if match else None


def nearest_release(ray: str) -> str:
    """The newest release in the table that is not newer than `ray`; of "today", the newest.

    Raises:
        ConfigError: `ray` is no version, or older than RLlib's first config.
    """
    if ray == TODAY:
        return versions()[-1]
    try:
        wanted = Version(ray)
    except InvalidVersion as error:
        raise ConfigError(
            f"{ray!r} is not a Ray version.", fix="Pass a version such as '0.8.5'."
        ) from error
    older = [v for v in versions() if Version(v).release[:2] <= wanted.release[:2]]
    not_newer = [v for v in older if Version(v) <= wanted]
    if not older:
        raise ConfigError(
            f"Ray {ray} is older than any that this package knows.",
            fix=f"Pass '{versions()[0]}' or a newer version.",
        )
    return (not_newer or older)[-1]


def default_at(home: str, key: str, release: str) -> tuple[bool, Any]:
    """A key's default in a section at a release, and whether it had one."""
    order = versions()
    at = order.index(release)
    for first, last, value in section(home).get(key, ()):
        if order.index(first) <= at <= order.index(last):
            return not _holds_an_expression(value), value
    return False, None


@cache
def last_default(home: str, key: str) -> Any:
    """The last default that a key had in a section; None where it had none."""
    runs = section(home).get(key)
    return runs[-1][2] if runs else None


def model_default(key: str) -> Any:
    """The default of a key of `model`, which no Ray has changed."""
    return last_default("model", key)


def _holds_an_expression(value: object) -> bool:
    """Whether a default, or a part of it, was no literal: its value is unknown then."""
    if isinstance(value, dict):
        return "$" in value or any(map(_holds_an_expression, value.values()))
    return isinstance(value, list) and any(map(_holds_an_expression, value))


def default_config(algorithm: str, legacy_ray: str = "0.8.5") -> dict[str, Any]:
    """The config that an algorithm of an old Ray started from (its `DEFAULT_CONFIG`).

    Values that were objects (callback classes, sample collectors) are left out.
    """
    release = nearest_release(legacy_ray)
    config: dict[str, Any] = {}
    for part in ("model", "multiagent", "tf_session_args", "local_tf_session_args"):
        if default_at("common", part, release)[1] is not None:
            config[part] = dict(defaults(part, release))
    for home in ("common", algorithm):
        for key, value in copy.deepcopy(dict(defaults(home, release))).items():
            head, _, tail = key.partition(".")
            if tail and isinstance(config.get(head) or {}, dict):
                config[head] = {**(config.get(head) or {}), tail: value}
            elif not tail:
                # RNNSAC of Ray 2.0 and 2.1 had a comma too many behind one of its sections, CQL of
                # 2.36 and 2.37 behind a learning rate.
                twice = isinstance(value, list) and (key in PARTS or key == "actor_lr")
                config[key] = value[0] if twice else value
    return _as_dict(copy.deepcopy(config), release)


def _as_dict(config: dict[str, Any], release: str) -> dict[str, Any]:
    """A config by the keys of dicts."""
    for key in _OF_OBJECTS_ALONE:
        config.pop(key, None)
    for attribute in DICT_KEYS.keys() & config.keys():
        config[DICT_KEYS[attribute]] = config.pop(attribute)
    several = [key for key in section("multiagent") if key in config]
    if several and versions().index(release) <= versions().index(_LAST_MULTIAGENT):
        config.setdefault("multiagent", {}).update({key: config.pop(key) for key in several})
    return config


@cache
def defaults(home: str, release: str) -> Mapping[str, Any]:
    """The defaults of a section at a release, as far as they are known."""
    found = {key: default_at(home, key, release) for key in section(home)}
    return {key: value for key, (known, value) in found.items() if known}


def policies_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a legacy config says of each policy that it names, by whichever key its Ray had.

    Policies that are only named (a set of ids, Ray 1.4 – 2.x) have None.
    """
    several = config.get("multiagent")
    places = [several] if isinstance(several, Mapping) else []
    # `policy_graphs` until Ray 0.6; in the config itself since 2.0.
    found = (place.get(key) for place in places for key in ("policies", "policy_graphs"))
    named = next(filter(None, found), None) or config.get("policies")
    if isinstance(named, Mapping):
        return named
    return dict.fromkeys(named) if isinstance(named, (set, frozenset, list, tuple)) else {}


def find_algorithm(
    config: Mapping[str, Any], algorithm: str | type | None = None
) -> tuple[str, str]:
    """Finds the (legacy) algorithm of a config.

    Args:
        config: The legacy config.
        algorithm: Its name ("PPO", "PPOTrainer", "contrib/MADDPG") or class, if known.

    Returns:
        The name, and how it was found: "given", "by its keys" or "assumed".

    Raises:
        ConfigError: RLlib never had an algorithm of the given name.
    """
    if algorithm is not None:
        given = algorithm if isinstance(algorithm, str) else algorithm.__name__
        return registry.find(given).name, "given"
    owners = [home for home in map(homes, config) if home and "common" not in home]
    # The first that has all of the config's special keys.
    for name in registry.ALGORITHMS:
        if owners and all(name in owner for owner in owners):
            return name, "by its keys"
    return "PPO", "assumed"
