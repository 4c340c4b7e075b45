"""The border: only values that fit their declaration come into a translation.

`admit` goes once over the whole config before anything else looks at it. Rules, whole-config steps
and Ray see what it hands on, and nothing else:

* of a config from a file (`Origin.FILE`), the values that fit the declarations of their keys.
  Everything else stays behind, with a row in the report that says what to give instead;
* of a config that somebody wrote (`Origin.USER`), everything, code included. A value of a wrong
  kind is an error with its path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from rllib_compat.config import keys as table
from rllib_compat.config.rules import find
from rllib_compat.config.values.door import OUT, UNSEEN, Door, Misfit, Origin, Reason, child, short
from rllib_compat.config.values.kinds import Unread
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict

#: Configs inside configs (an `evaluation_config`, a policy's own) are at most this deep.
DEEPEST_CONFIG = 6


@frozen
class Admitted:
    """What came through the border.

    Attributes:
        config: The config to translate; of a file, all of it fits.
        findings: A row for each value that stayed behind or is wrong.
        trusted: The names that passed because the caller trusts them, with their places.
    """

    config: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    trusted: list[tuple[str, str]] = field(default_factory=list)


def admit(
    config: Mapping[Any, Any],
    algorithms: tuple[str, ...],
    origin: Origin,
    trust: Iterable[str] = (),
    path: str = "$",
) -> Admitted:
    """Lets a config through.

    Args:
        config: A dict of root keys. It is not changed.
        algorithms: The legacy algorithm, then the target.
        origin: Where it is from.
        trust: Exact names of classes and functions, `module:Class`, that may pass from a file.
        path: Where the config stands, for the findings.

    Raises:
        ConfigError: A name in `trust` is none.
    """
    crossing = _Crossing(algorithms, origin, _checked(trust))
    taken = crossing.keys(config, path, "", raw=False)
    if crossing.door.untold:
        crossing.findings.append(
            _row("border.more", path, f"{crossing.door.untold:,} more values are left in the file")
        )
    return Admitted(taken, crossing.findings, crossing.door.trusted)


def _checked(trust: Iterable[str]) -> frozenset[str]:
    names = frozenset([trust] if isinstance(trust, str) else trust)
    for name in names:
        module, colon, attribute = name.partition(":")
        parts = (*module.split("."), *attribute.split("."))
        if not colon or not all(part.isidentifier() for part in parts):
            raise ConfigError(f"{name!r} names nothing.", fix="write it as module:Class")
    return names


class _Crossing:
    """One config on its way through."""

    def __init__(self, algorithms: tuple[str, ...], origin: Origin, trust: frozenset[str]) -> None:
        self.algorithms = algorithms
        self.door = Door(origin, trust, nested=self.nested)
        self.findings: list[Finding] = []
        self.depth = 0
        self.rule = "border"

    def nested(
        self, config: Mapping[Any, Any], path: str, section: str, raw: bool
    ) -> dict[str, Any]:
        """A config inside the config."""
        if self.depth >= DEEPEST_CONFIG:
            self.findings.append(_too_deep(self.rule, path))
            return {}
        outer, self.depth = self.rule, self.depth + 1
        self._tell()
        taken = self.keys(config, path, f"{section}." if section else "", raw=raw)
        self.rule, self.depth = outer, self.depth - 1
        return taken

    def keys(
        self, config: Mapping[Any, Any], path: str, prefix: str, *, raw: bool
    ) -> dict[str, Any]:
        """The keys of a config, or of one of its sections."""
        taken: dict[str, Any] = {}
        for key, value in config.items():
            where = child(path, key)
            if not isinstance(key, str):
                if self.door.origin is Origin.USER:
                    taken[key] = value  # the engine says that no Ray had it
                else:
                    self.findings.append(_no_key(where))
                continue
            one = self._key(f"{prefix}{key}", value, where, raw)
            if one is not OUT:
                taken[key] = one
        return taken

    def _key(self, name: str, value: Any, path: str, raw: bool) -> Any:
        rule = find(name, self.algorithms)
        if rule is None:
            return self._unknown(name, value, path, raw)
        if rule.section and isinstance(value, Mapping) and value:
            return self._section(name, value, path, raw)
        self.rule = rule.id
        if table.is_placeholder(name, value):
            self.findings.append(_placeholder(rule.id, path))
            return OUT
        self.door.was_default = partial(self._was_default, name)
        taken = rule.value.admit(value, path, self.door)
        self._tell()
        return OUT if raw and (taken is UNSEEN or isinstance(rule.value, Unread)) else taken

    def _section(self, name: str, value: Mapping[Any, Any], path: str, raw: bool) -> Any:
        if self.depth >= DEEPEST_CONFIG:
            self.findings.append(_too_deep(self.rule, path))
            return OUT
        self.depth += 1
        taken = self.keys(value, path, f"{name}.", raw=raw)
        self.depth -= 1
        # A section of which nothing is left is not there; an empty one would be another value.
        return taken or OUT

    def _unknown(self, name: str, value: Any, path: str, raw: bool) -> Any:
        """A key without a rule sets nothing; the engine says what it is."""
        if not raw or self.door.origin is Origin.USER:
            if self.door.origin is Origin.USER:
                return value
            self.door.was_default = partial(self._was_default, name)
            return self.door.unread(value)
        self.findings.append(
            _row("border.key", path, f"{short(name)} is not a key of any Ray", "take it out")
        )
        return OUT

    def _was_default(self, name: str, value: Any) -> bool:
        try:
            return any(table.was_default(name, value, legacy) for legacy in self.algorithms[:1])
        except (ValueError, RecursionError):  # arrays; values without end
            return False

    def _tell(self) -> None:
        self.findings += [
            _finding(self.rule, misfit, self.door.origin) for misfit in self.door.misfits
        ]
        self.door.misfits.clear()


def _finding(rule: str, misfit: Misfit, origin: Origin) -> Finding:
    found, reason = misfit.found, misfit.reason
    if reason is Reason.RLLIB:
        message = f"{found}: RLlib's own; the installed Ray has its own, too"
        return _row(rule, misfit.path, message, "", Severity.INFO)
    if reason is Reason.INERT:
        message = f"{found}: code that was kept with the config is not executed"
        return _row(rule, misfit.path, message, "pass it again" + _or_trust(misfit))
    if reason is Reason.YOURS:
        message = f"{found}: {misfit.expected} is never taken from a file"
        return _row(rule, misfit.path, message, "give it yourself" + _or_trust(misfit))
    wrong = misfit.detail or f"it may be {misfit.expected}"
    if origin is Origin.FILE:
        message = f"{found} is left in the file: {wrong}"
        return _row(rule, misfit.path, message, "give it yourself")
    return Finding(
        rule,
        Severity.ERROR,
        Verdict.REFUSED,
        misfit.path,
        f"{found} is not what this key ever took: {wrong}",
        "give it a value of the right kind, or take it out",
    )


def _or_trust(misfit: Misfit) -> str:
    """How somebody who knows the code lets it pass by its name."""
    return f"; if you know and trust this code: --trust {misfit.trust}" if misfit.trust else ""


def _row(
    rule: str, path: str, message: str, hint: str = "", severity: Severity = Severity.WARNING
) -> Finding:
    return Finding(rule, severity, Verdict.DROPPED, path, message, hint)


def _placeholder(rule: str, path: str) -> Finding:
    return _row(rule, path, "Ray's mark for a renamed key", "", Severity.INFO)


def _no_key(path: str) -> Finding:
    return _row("border.key", path, "a key of a config has to be text", "take it out")


def _too_deep(rule: str, path: str) -> Finding:
    return _row(rule, path, f"configs inside configs are at most {DEEPEST_CONFIG} deep", "")
