"""Holds a config against the declarations of its keys before anything else looks at it.

Rules, whole-config steps and Ray see only what `validate_config` returns:

* of a config from a file (`Origin.FILE`), the values that fit the declarations of their keys.
  Everything else stays behind, with a row in the report that says what to give instead;
* of a config that somebody wrote (`Origin.USER`), everything, code included. A value of a wrong
  kind is an error with its path.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from rllib_compat.config.rules import find
from rllib_compat.config.values.kinds import Unread
from rllib_compat.config.values.validator import (
    REJECTED,
    UNREAD_VALUE,
    Origin,
    Problem,
    Reason,
    Validator,
    child_path,
    shorten,
)
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.registry import keys as table

#: Keys that old Rays read as nothing where they are empty (None, 0, "", [], {}), whatever else they
#: hold: recorded in `tests/legacy/odd_values`.
NOTHING_IF_EMPTY = frozenset(
    {
        *("before_learn_on_batch", "callbacks", "custom_eval_function", "entropy_coeff_schedule"),
        *("env_config", "env_task_fn", "evaluation_config", "evaluation_duration_unit"),
        *("evaluation_num_episodes", "evaluation_num_workers", "extra_python_environs_for_driver"),
        *("extra_python_environs_for_worker", "grad_norm_clipping", "horizon", "input_config"),
        *("log_level", "num_workers", "output_compress_columns", "output_config"),
        *("preprocessor_pref", "sample_collector", "schedule_max_timesteps"),
    }
)
#: Configs inside configs (an `evaluation_config`, a policy's own) are at most this deep.
DEEPEST_CONFIG = 6


@frozen
class ValidConfig:
    """What of a config may be used.

    Attributes:
        config: The config to translate; of a file, all of it fits.
        findings: A row for each value that stayed behind or is wrong.
        trusted: The names that passed because the caller trusts them, with their places.
    """

    config: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    trusted: list[tuple[str, str]] = field(default_factory=list)


def validate_config(
    config: Mapping[Any, Any],
    algorithms: tuple[str, ...],
    origin: Origin,
    trust: Iterable[str] = (),
    path: str = "$",
) -> ValidConfig:
    """Takes from a config, which is not changed, what may be used.

    Classes and functions named in `trust`, as `module:Class`, may pass from a file.

    Raises:
        ConfigError: A name in `trust` is none.
    """
    walk = _Validation(algorithms, origin, _check_names(trust))
    kept = walk.validate_keys(config, path, "", raw=False)
    if unlisted := walk.validator.unlisted:
        message = f"{unlisted:,} more values are left in the file"
        walk.findings.append(_finding("validation.more", path, message))
    return ValidConfig(kept, walk.findings, walk.validator.trusted)


def _check_names(trust: Iterable[str]) -> frozenset[str]:
    names = frozenset([trust] if isinstance(trust, str) else trust)
    for name in names:
        module, colon, attribute = name.partition(":")
        parts = (*module.split("."), *attribute.split("."))
        if not colon or not all(part.isidentifier() for part in parts):
            raise ConfigError(
                f"{name!r} is not the name of a class or function.", fix="write it as module:Class"
            )
    return names


class _Validation:
    """One walk over a config and the configs inside it."""

    def __init__(self, algorithms: tuple[str, ...], origin: Origin, trust: frozenset[str]) -> None:
        self.algorithms = algorithms
        self.validator = Validator(origin, trust, nested=self.validate_nested)
        self.findings: list[Finding] = []
        self.depth = 0
        self.rule = "validation"

    def validate_nested(
        self, config: Mapping[Any, Any], path: str, section: str, raw: bool
    ) -> dict[str, Any]:
        """A config inside the config."""
        if self._is_too_deep(path):
            return {}
        outer, self.depth = self.rule, self.depth + 1
        self._collect_problems()
        kept = self.validate_keys(config, path, f"{section}." if section else "", raw=raw)
        self.rule, self.depth = outer, self.depth - 1
        return kept

    def validate_keys(
        self, config: Mapping[Any, Any], path: str, prefix: str, *, raw: bool
    ) -> dict[str, Any]:
        """The keys of a config, or of one of its sections."""
        kept: dict[str, Any] = {}
        for key, value in config.items():
            where = child_path(path, key)
            if not isinstance(key, str):
                if self.validator.origin is Origin.USER:
                    kept[key] = value  # the engine says that no Ray had it
                else:
                    message = "a key of a config has to be text"
                    self.findings.append(_finding("validation.key", where, message, "take it out"))
                continue
            one = self._validate_key(f"{prefix}{key}", value, where, raw)
            if one is not REJECTED:
                kept[key] = one
        return kept

    def _validate_key(self, name: str, value: object, path: str, raw: bool) -> Any:
        rule = find(name, self.algorithms)
        if rule is None:
            return self._validate_unknown(name, value, path, raw)
        if rule.section and isinstance(value, Mapping) and value:
            return self._validate_section(name, value, path, raw)
        self.rule = rule.id
        if name in NOTHING_IF_EMPTY and _is_empty(value):
            if name.endswith("num_workers"):
                return 0
            message = "it is empty, which every Ray read as nothing"
            self.findings.append(_finding(rule.id, path, message, "", Severity.INFO))
            return REJECTED
        if table.is_placeholder(name, value):
            message = "Ray's mark for a renamed key"
            self.findings.append(_finding(rule.id, path, message, "", Severity.INFO))
            return REJECTED
        self.validator.was_default = partial(self._was_default, name)
        kept = rule.value.validate(value, path, self.validator)
        self._collect_problems()
        unread = kept is UNREAD_VALUE or isinstance(rule.value, Unread)
        return REJECTED if raw and unread else kept

    def _validate_section(self, name: str, value: Mapping[Any, Any], path: str, raw: bool) -> Any:
        if self._is_too_deep(path):
            return REJECTED
        self.depth += 1
        kept = self.validate_keys(value, path, f"{name}.", raw=raw)
        self.depth -= 1
        # A section of which nothing is left is not there; an empty one would be another value.
        return kept or REJECTED

    def _validate_unknown(self, name: str, value: object, path: str, raw: bool) -> Any:
        """A key without a rule sets nothing; the engine says what it is."""
        if self.validator.origin is Origin.USER:
            return value
        if not raw:
            self.validator.was_default = partial(self._was_default, name)
            return self.validator.leave_unread(value)
        message = f"{shorten(name)} is not a key of any Ray"
        self.findings.append(_finding("validation.key", path, message, "take it out"))
        return REJECTED

    def _is_too_deep(self, path: str) -> bool:
        if self.depth < DEEPEST_CONFIG:
            return False
        message = f"configs inside configs are at most {DEEPEST_CONFIG} deep"
        self.findings.append(_finding(self.rule, path, message))
        return True

    def _was_default(self, name: str, value: object) -> bool:
        try:
            return table.was_default(name, value, self.algorithms[0])
        except (ValueError, RecursionError):  # arrays; values without end
            return False

    def _collect_problems(self) -> None:
        origin, problems = self.validator.origin, self.validator.problems
        self.findings += [_describe(self.rule, problem, origin) for problem in problems]
        problems.clear()


def _is_empty(value: object) -> bool:
    plain = isinstance(value, (int, str, list, tuple, dict, type(None)))
    return plain and not isinstance(value, bool) and not value


def _describe(rule: str, problem: Problem, origin: Origin) -> Finding:
    found, reason = problem.found, problem.reason
    # How somebody who knows the code lets it pass by its name.
    trust = ""
    if problem.trust:  # a stranger's name, printed to be pasted
        trust = f"; if you know and trust this code: --trust {shlex.quote(problem.trust)}"
    if reason is Reason.RLLIB:
        message = f"{found}: RLlib's own; the installed Ray has its own, too"
        return _finding(rule, problem.path, message, "", Severity.INFO)
    if reason is Reason.OURS:
        message = f"{found}: this package's own, which is created again"
        return _finding(rule, problem.path, message, "", Severity.INFO)
    if reason is Reason.RECORD:
        message = f"{found}: code that was kept with the config is not executed"
        return _finding(rule, problem.path, message, f"pass it again{trust}")
    if reason is Reason.USER_ONLY:
        message = f"{found}: {problem.expected} is never taken from a file"
        return _finding(rule, problem.path, message, f"give it yourself{trust}")
    wrong = problem.detail or f"it may be {problem.expected}"
    if origin is Origin.FILE:
        message = f"{found} is left in the file: {wrong}"
        return _finding(rule, problem.path, message, "give it yourself")
    return Finding(
        rule,
        Severity.ERROR,
        Verdict.REFUSED,
        problem.path,
        f"{found} is not a valid value of this key: {wrong}",
        "give it a value of the right kind, or take it out",
    )


def _finding(
    rule: str, path: str, message: str, hint: str = "", severity: Severity = Severity.WARNING
) -> Finding:
    return Finding(rule, severity, Verdict.DROPPED, path, message, hint)
