"""What a rule's function may ask about the config that is being translated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rllib_compat.neutral.report import Finding, Severity, Verdict


@dataclass
class Context:
    """The config around one value.

    Attributes:
        config: The legacy config (or the part of it, an `evaluation_config`) that is translated.
        algorithm: The target algorithm.
        legacy_algorithm: What it was called.
        stack: The API stack that was chosen, "new" or "old".
        path: Where the value stands.
        rule: The id of the rule that is applied.
        defaults: The legacy Ray's defaults, where its version is known.
        legacy_ray: That version.
        findings: What rules have said about parts of their values.
        translate: Translates a dict of root keys that stands inside the config.
    """

    config: Mapping[str, Any]
    algorithm: str
    legacy_algorithm: str
    stack: str = "new"
    path: str = "$"
    rule: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    legacy_ray: str | None = None
    findings: list[Finding] = field(default_factory=list)
    translate: Callable[[Mapping[str, Any], str, Context], dict[str, Any]] | None = None

    def get(self, path: str, default: Any = None) -> Any:
        """The value at a dotted path of the config, else the legacy default, else `default`."""
        for source in (self.config, self.defaults):
            value: Any = source
            for key in path.split("."):
                if not isinstance(value, Mapping) or key not in value:
                    break
                value = value[key]
            else:
                return value
        return default

    def note(
        self,
        verdict: Verdict,
        path: str,
        message: str,
        *,
        severity: Severity = Severity.INFO,
        hint: str = "",
    ) -> None:
        """Says something about a part of the value."""
        self.findings.append(Finding(self.rule, severity, verdict, self.path + path, message, hint))
