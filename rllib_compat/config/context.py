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
        config: The legacy config that is translated; with the defaults of its Ray, where that is
            known. Inside an `evaluation_config`, with what that changes.
        algorithm: The target algorithm.
        legacy_algorithm: What it was called.
        stack: The API stack that was chosen, "new" or "old".
        path: Where the value stands.
        rule: The id of the rule that is applied.
        legacy_ray: The version of its Ray, where that is known.
        findings: What rules have said about parts of their values.
        translate: Translates a dict of root keys that stands inside the config.
    """

    config: Mapping[str, Any]
    algorithm: str
    legacy_algorithm: str
    stack: str = "new"
    path: str = "$"
    rule: str = ""
    legacy_ray: str | None = None
    findings: list[Finding] = field(default_factory=list)
    translate: Callable[[Mapping[str, Any], str, Context], dict[str, Any]] | None = None

    def get(self, path: str, default: Any = None) -> Any:
        """The value at a dotted path of the config, else `default`."""
        value: Any = self.config
        for key in path.split("."):
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = value[key]
        return value

    @property
    def has_policies(self) -> bool:
        """Whether the config names other policies than the default one: several agents."""
        policies = self.get("multiagent.policies") or self.get("policies") or ()
        return bool(set(policies) - {"default_policy"})

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
