"""Defaults that changed between a legacy Ray and today's.

A default is compared where it ends up: the legacy value goes through the same rules as a value of
the user, and the setting that comes out is compared with today's default of that setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from rllib_compat.config import engine
from rllib_compat.config import keys as table
from rllib_compat.config.context import Context
from rllib_compat.config.rule import Settings
from rllib_compat.config.today import todays_default
from rllib_compat.neutral.report import Finding, Severity, Verdict

# From this Ray on, configs are today's own.
TODAY = "2.40.0"

# These say nothing about how is learned, or follow from the rest.
IGNORED = (
    "framework.",
    "env.",
    "environment.env",
    "debugging.",
    "python_environment.",
    "offline_data.",
    "callbacks.",
    "multi_agent.",
    "evaluation.evaluation_config",
    "fault_tolerance.",
    "reporting.metrics_episode_collection_timeout_s",
    "env_runners.num_cpus",
    "env_runners.exploration_config",
    "training.model",
    "learners.",
    "resources.",
)


@dataclass(frozen=True)
class Default:
    """A setting that the user left to a default which has changed."""

    key: str
    setting: str
    then: Any
    now: Any

    def finding(self) -> Finding:
        """The row of one default that was made explicit."""
        return Finding(
            "defaults.changed",
            Severity.INFO,
            Verdict.DEFAULT,
            f"$.{self.key}",
            f"{self.setting}={self.then!r}, today {self.now!r}",
        )


def grouped(defaults: list[Default], release: str) -> Finding:
    """One row for all defaults that have changed since a release."""
    listed = "; ".join(f"{d.key}: {d.then!r} then, {d.now!r} now" for d in defaults)
    return Finding(
        "defaults.changed",
        Severity.INFO,
        Verdict.NOTE,
        "$",
        f"keys that are not set, with another default up to Ray {release}: {listed}",
        "pass legacy_ray= to keep the old ones",
    )


def legacy_defaults(algorithm: str, legacy_ray: str) -> Mapping[str, Any]:
    """The config that an algorithm of a legacy Ray started from."""
    return _legacy_defaults(algorithm, table.nearest_release(legacy_ray))


@cache
def _legacy_defaults(algorithm: str, release: str) -> Mapping[str, Any]:
    return table.default_config(algorithm, release)


def newest_release_with(config: Mapping[str, Any]) -> str | None:
    """The newest legacy Ray that had all keys of a config; None if today's Ray has them, too."""
    order = table.versions()
    spans = [span for span in map(table.lifetime, map(str, config)) if span is not None]
    if not spans:
        return None
    last = min(order.index(last) for _, last in spans)
    if last >= order.index(TODAY):
        return None
    return order[last]


def differing(
    config: Mapping[str, Any], settings: Settings, context: Context, release: str
) -> list[Default]:
    """The legacy defaults that the user did not override and that are not today's."""
    legacy = legacy_defaults(context.legacy_algorithm, release)
    silent = _without(legacy, config)
    quiet = replace(context, config={**legacy, **config}, findings=[], defaults={})
    found = []
    for entry in engine.apply(silent, quiet):
        for setting, then in entry.settings.items():
            if setting in settings or setting.startswith(IGNORED):
                continue
            known, now = todays_default(context.algorithm, setting)
            if known and now != then and not (now is None and not then):
                found.append(Default(entry.leaf.path.removeprefix("$."), setting, then, now))
    unique = {default.setting: default for default in found}
    return [unique[name] for name in sorted(unique)]


def _without(defaults: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of keys that the config does not have, section by section."""
    silent = {}
    for key, value in defaults.items():
        if key in ("model", "optimization") and isinstance(config.get(key), Mapping):
            silent[key] = {k: v for k, v in value.items() if k not in config[key]}
        elif key not in config:
            silent[key] = value
    return silent
