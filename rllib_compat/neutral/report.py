"""What became of every part of the input: findings, and the report that collects them.

A translation or a conversion returns one `Report`. Each key of a config and each part of a
checkpoint has at least one `Finding` in it, so that nothing is ever dropped silently.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from rllib_compat.neutral.advice import for_python
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.text import printable


class Severity(str, Enum):
    """How much a finding matters to the reader."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Verdict(str, Enum):
    """What became of one key of a config, or of one part of a checkpoint."""

    # of a config's key
    KEPT = "kept"
    RENAMED = "renamed"
    MOVED = "moved"
    CONVERTED = "converted"
    WRAPPED = "wrapped"
    DEFAULT = "default of the old Ray"
    DROPPED = "dropped"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    # of a checkpoint's part
    EXACT = "exact"
    DERIVED = "derived"
    RESET = "reset"
    ABSENT = "not in the source"
    # of anything worth a row
    NOTE = "note"


@frozen
class Finding:
    """One row of a report; its texts are one line each, whatever a file put into them.

    Attributes:
        rule: The rule's id, the same in the report, in the guide's heading and in `--only/--skip`.
        severity: How much it matters.
        verdict: What became of the thing.
        path: Where it was: `$.model.fcnet_hiddens`, `policies.p0.weights`, `.tune_metadata`.
        message: What happened, in one sentence.
        hint: What to do about it, if anything, with options of the command line; text and logs
            have arguments of Python in their place.
    """

    rule: str
    severity: Severity
    verdict: Verdict
    path: str
    message: str
    hint: str = ""

    def __post_init__(self) -> None:
        for name in ("path", "message", "hint"):
            text = getattr(self, name)
            if isinstance(text, str) and not text.isprintable():
                object.__setattr__(self, name, printable(text))

    @classmethod
    def info(cls, rule: str, verdict: Verdict, path: str, message: str, hint: str = "") -> Finding:
        """A row that needs no attention."""
        return cls(rule, Severity.INFO, verdict, path, message, hint)

    @classmethod
    def warning(
        cls, rule: str, verdict: Verdict, path: str, message: str, hint: str = ""
    ) -> Finding:
        """A row that needs attention."""
        return cls(rule, Severity.WARNING, verdict, path, message, hint)


#: A policy's id in a path: `policies.p0.weights`, `$.multiagent.policies.p0[3].lr`.
_POLICY = re.compile(r"(?<=policies\.)[^.\[*]+")

#: The number of an item of a list, in a path: `optimizer[3]`.
_ITEM = re.compile(r"\[\d+\]")

#: How many policies a row names.
_NAMED = 5


def grouped(findings: Iterable[Finding]) -> list[Finding]:
    """One row for what happened to several policies alike; it names the first of them.

    The rows stand where the first of each group stood. What is said twice is said once.
    """
    groups: dict[Finding, dict[str, None]] = {}
    for finding in findings:
        match = _POLICY.search(finding.path)
        ids = groups.setdefault(replace(finding, path=_POLICY.sub("*", finding.path)), {})
        if match:
            ids[match[0]] = None
    return _group_places(_name_policies(row, list(ids)) for row, ids in groups.items())


def _group_places(rows: Iterable[Finding]) -> list[Finding]:
    """One row for all parts to which the same happened."""
    places: dict[Finding, list[str]] = {}
    for row in rows:
        places.setdefault(replace(row, path=""), []).append(row.path)
    return [replace(row, path=_join_places(row, paths)) for row, paths in places.items()]


def _join_places(row: Finding, paths: list[str]) -> str:
    """All of them, as far as they are not items of one list; the first that need attention."""
    if len(paths) == 1 or row.severity is not Severity.INFO:
        return _join(paths)
    return ", ".join(dict.fromkeys(_ITEM.sub("[*]", path) for path in paths))


def _join(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _name_policies(row: Finding, ids: list[str]) -> Finding:
    if not ids:
        return row
    if len(ids) == 1:
        return replace(row, path=row.path.replace("policies.*", f"policies.{ids[0]}", 1))
    return replace(row, message=f"{row.message} ({_join(ids)})")


@dataclass
class Report:
    """Findings in the order in which they were made, and the facts that head them.

    Attributes:
        title: What was translated or converted.
        facts: Name and value pairs for the head of the report, all plain data.
        findings: The rows.
    """

    title: str
    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(
        self,
        rule: str,
        verdict: Verdict,
        path: str,
        message: str,
        *,
        severity: Severity = Severity.INFO,
        hint: str = "",
    ) -> Finding:
        """Appends a finding and returns it."""
        finding = Finding(rule, severity, verdict, path, message, hint)
        self.findings.append(finding)
        return finding

    def extend(self, findings: Iterable[Finding]) -> None:
        """Appends findings that were made elsewhere."""
        self.findings.extend(findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def at_least(self, severity: Severity) -> list[Finding]:
        """The findings that are as severe as `severity`, or more."""
        order = list(Severity)
        return [f for f in self.findings if order.index(f.severity) >= order.index(severity)]

    @property
    def clean(self) -> bool:
        """Whether nothing in it asks for the reader's attention."""
        return not self.at_least(Severity.WARNING)

    @property
    def exit_code(self) -> int:
        """0: all good; 1: done, with findings; an error that stops the work is 2."""
        return 0 if self.clean else 1

    def warn(self, logger: logging.Logger) -> None:
        """Logs what needs attention, where no report is printed."""
        for finding in self.at_least(Severity.WARNING):
            logger.warning("%s: %s %s", finding.path, finding.message, for_python(finding.hint))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {
            "title": self.title,
            "facts": self.facts,
            "findings": [
                {**vars(f), "severity": f.severity.value, "verdict": f.verdict.value}
                for f in self.findings
            ],
        }

    def to_json(self) -> str:
        """The report as JSON text; values that JSON has no form for become their `str`."""
        return json.dumps(self.to_dict(), indent=2, default=str)

    def to_text(self) -> str:
        """The report as plain text, a line a finding."""
        lines = [printable(self.title)]
        lines += [printable(f"  {name}: {value}") for name, value in self.facts.items()]
        for f in self.findings:
            mark = {Severity.INFO: " ", Severity.WARNING: "!", Severity.ERROR: "✗"}[f.severity]
            hint = f" → {for_python(f.hint)}" if f.hint else ""
            lines.append(f"{mark} {f.path}: {f.verdict.value}: {f.message}{hint}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()
