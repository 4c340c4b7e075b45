"""A config with the defaults of its Ray, and which of them have changed since.

A default is compared where it ends up: the legacy value goes through the same rules as a value of
the user, and the setting that comes out is compared with today's default of that setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rllib_compat.config import engine
from rllib_compat.config.defaults import is_todays, legacy_defaults, same, todays_default
from rllib_compat.config.rule import Context, Settings
from rllib_compat.config.rules import find
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.registry import keys as table

#: Another `type` in these means another set of keys, so that nothing of the default may stay.
_REPLACED_WITH_TYPE = ("exploration_config", "replay_buffer_config")
#: Settings that replace today's default as a whole.
REPLACE_DEFAULT = (
    "training.replay_buffer_config",
    "training.exploration_noise",
    "env_runners.exploration_config",
)
#: Dicts that merge with their defaults although their keys have no rules of their own.
_MERGED = ("exploration_config", "evaluation_config")


@frozen
class CompletedConfig:
    """A config as its Ray ran it: with that Ray's defaults where it is silent.

    Attributes:
        config: The config.
        added: The paths of the defaults.
        release: The Ray of the defaults; None where none were added.
    """

    config: Mapping[str, Any]
    added: frozenset[str] = frozenset()
    release: str | None = None

    def is_added(self, path: str) -> bool:
        """Whether a path, or what it is a part of, comes from the defaults."""
        if not self.added:
            return False
        parts = path.replace("[", ".[").split(".")
        return any(".".join(parts[:end]) in self.added for end in range(2, len(parts) + 1))

    def chosen(self, algorithm: str) -> engine.Chosen | None:
        """Tells whether somebody chose a value; None where the config's Ray is not known."""
        if self.release is None:
            return None
        defaults = legacy_defaults(algorithm, self.release)

        def chosen(leaf: engine.Leaf) -> bool:
            default: Any = defaults
            for key in leaf.path.removeprefix("$.").split("."):
                if not isinstance(default, Mapping) or key not in default:
                    return not self.is_added(leaf.path)
                default = default[key]
            return not same(default, leaf.value)

        return chosen


def complete(config: Mapping[str, Any], algorithm: str, legacy_ray: str) -> CompletedConfig:
    """Adds the defaults of a legacy Ray, as its `Trainer` did."""
    added: set[str] = set()
    merged = dict(config)
    for key, default in legacy_defaults(algorithm, legacy_ray).items():
        given: Any = config.get(key)
        if key not in config:
            merged[key] = default
            added.add(f"$.{key}")
            inside = default if isinstance(default, Mapping) else ()
            added.update(f"$.{key}.{inner}" for inner in inside)
        elif _merges(key, default, given, algorithm):
            merged[key] = {**default, **given}
            added.update(f"$.{key}.{inner}" for inner in default if inner not in given)
    return CompletedConfig(merged, frozenset(added), table.nearest_release(legacy_ray))


def _merges(key: str, default: object, given: object, algorithm: str) -> bool:
    if not isinstance(default, Mapping) or not isinstance(given, Mapping):
        return False
    if set(given) == {"grid_search"}:
        return False
    if key in _REPLACED_WITH_TYPE and given.get("type", default.get("type")) != default.get("type"):
        return False
    rule = find(key, (algorithm,))
    return key in _MERGED or (rule is not None and rule.section)


def describe_changed(
    entries: Iterable[engine.Entry], completed: CompletedConfig, context: Context
) -> list[Finding]:
    """A row for each default that was made explicit, and for each that today's Ray can't keep."""
    changed: dict[str, Finding] = {}
    lost = []
    for entry in entries:
        if entry.leaf.path not in completed.added:
            continue
        for setting, then in entry.settings.items():
            if not is_todays(context.algorithm, setting, then):
                now = todays_default(context.algorithm, setting)[1]
                message = f"{setting}={then!r}, today {now!r}"
                finding = Finding.info(
                    "defaults.changed", Verdict.DEFAULT, entry.leaf.path, message
                )
                changed[setting] = finding
        if _is_lost(entry.finding):
            said = f"{entry.leaf.value!r:.60}, the default of Ray {completed.release}: "
            lost.append(replace(entry.finding, message=said + entry.finding.message))
    return [*(changed[name] for name in sorted(changed)), *lost]


def _is_lost(finding: Finding) -> bool:
    # All defaults of the framework are TensorFlow, which is no news.
    return finding.severity is not Severity.INFO and not finding.rule.startswith("framework.")


def made_by_defaults(
    entries: Iterable[engine.Entry], completed: CompletedConfig
) -> Mapping[str, Any]:
    """The settings that nothing but defaults of the legacy Ray made."""
    made: dict[str, Any] = {}
    given: set[str] = set()
    for entry in entries:
        if entry.leaf.path in completed.added:
            made |= entry.settings
        else:
            given |= set(entry.settings)
    return {name: value for name, value in made.items() if name not in given}


def leave_out_todays(settings: Settings, adopted: Mapping[str, Any], algorithm: str) -> None:
    """Takes out, in place, what legacy defaults have set to what is today's default, too."""
    unneeded = {
        name
        for name, value in adopted.items()
        if name in settings and same(settings[name], value) and is_todays(algorithm, name, value)
    }
    for whole in REPLACE_DEFAULT:  # which replace today's default as a whole
        parts = {name for name in settings if name.startswith(f"{whole}.")}
        if not parts <= unneeded:
            unneeded -= parts
    for name in unneeded:
        del settings[name]
