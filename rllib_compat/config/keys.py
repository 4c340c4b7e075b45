"""Every key that any RLlib from Ray 0.5 on had, and what its default was.

The table in `data/legacy_keys.json` was read out of the sources of one release of each minor
series. A key's *section* is where it stood: "common", "model", "multiagent", an algorithm's name.
Defaults are runs `[first release, last release, value]`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from packaging.version import InvalidVersion, Version

from rllib_compat.errors import ConfigError

Runs = list[list[Any]]

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


@cache
def _table() -> dict[str, Any]:
    path = resources.files("rllib_compat.config") / "data" / "legacy_keys.json"
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
    head, _, tail = key.partition(".")
    runs: list[list[Any]] = []
    if tail and head in PARTS:
        runs = list(section(head).get(tail, ()))
    for home in homes(key):
        runs += section(home)[key]
    if not runs:
        return None
    order = versions().index
    return min((r[0] for r in runs), key=order), max((r[1] for r in runs), key=order)


def nearest(key: str) -> str | None:
    """The known key that `key` most looks like, in the same section."""
    head, dot, tail = key.rpartition(".")
    known = (
        set(section(head))
        if dot
        else {k for home in ("common", *algorithms()) for k in section(home)}
    )
    match = difflib.get_close_matches(tail, [k for k in known if "." not in k], n=1, cutoff=0.7)
    return f"{head}{dot}{match[0]}" if match else None


def nearest_release(ray: str) -> str:
    """The newest release in the table that is not newer than `ray`.

    Raises:
        ConfigError: `ray` is no version, or older than RLlib's first config.
    """
    try:
        wanted = Version(ray)
    except InvalidVersion as error:
        raise ConfigError(f"{ray!r} is no Ray version.", fix="Give it like '0.8.5'.") from error
    older = [v for v in versions() if Version(v).release[:2] <= wanted.release[:2]]
    not_newer = [v for v in older if Version(v) <= wanted]
    if not older:
        raise ConfigError(f"Ray {ray} is older than any that this package knows ({versions()[0]}).")
    return (not_newer or older)[-1]


def default_at(home: str, key: str, release: str) -> tuple[bool, Any]:
    """A key's default in a section at a release, and whether it had one."""
    order = versions()
    at = order.index(release)
    for first, last, value in section(home).get(key, ()):
        if order.index(first) <= at <= order.index(last):
            return not (isinstance(value, dict) and "$" in value), value
    return False, None


def default_config(algorithm: str, legacy_ray: str = "0.8.5") -> dict[str, Any]:
    """The config that an algorithm of an old Ray started from (its `DEFAULT_CONFIG`).

    Values that were objects (callback classes, sample collectors) are left out.

    Args:
        algorithm: The legacy name, for example "PPO".
        legacy_ray: The Ray release.
    """
    release = nearest_release(legacy_ray)
    config: dict[str, Any] = {}
    for part in ("model", "multiagent", "tf_session_args", "local_tf_session_args"):
        if default_at("common", part, release)[1] is not None:
            config[part] = _defaults(part, release)
    for home in ("common", algorithm):
        for key, value in _defaults(home, release).items():
            head, _, tail = key.partition(".")
            if tail and isinstance(config.get(head, {}), dict):
                config.setdefault(head, {})[tail] = value
            elif not tail:
                config[key] = value
    return json.loads(json.dumps(config))  # type: ignore[no-any-return]


@cache
def _defaults(home: str, release: str) -> dict[str, Any]:
    found = {key: default_at(home, key, release) for key in section(home)}
    return {key: value for key, (known, value) in found.items() if known}
