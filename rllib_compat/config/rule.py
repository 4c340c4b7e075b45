"""What a rule is: one legacy key, and what becomes of it.

Rules are data (`rules/table.py`). Where the new value has to be computed, a rule names a function
that turns the old value into an `Outcome`; the fields say everything else. A *setting* is a
dotted path that starts with the `AlgorithmConfig` method, followed by its argument:
`training.lr`, `rl_module.model_config.fcnet_hiddens`. The method `env` is ours: its settings
describe how the environment is wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rllib_compat.config.values.kinds import Kind
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Severity, Verdict
from rllib_compat.registry import keys

Settings: TypeAlias = dict[str, Any]


@frozen
class Outcome:
    """What became of one value, where that depends on the value.

    Attributes:
        settings: What to set on the target; empty where there is nothing to set.
        verdict: The verdict, where it is not the rule's own.
        message: The sentence for the report, where it is not the rule's own.
        severity: How much it matters, where it is not the rule's own.
        hint: What to do about it, where it is not the rule's own.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None
    message: str = ""
    severity: Severity | None = None
    hint: str = ""


def drop(message: str, severity: Severity | None = None, hint: str = "") -> Outcome:
    """A value that sets nothing, and why."""
    return Outcome({}, Verdict.DROPPED, message, severity, hint)


def refuse(message: str, hint: str) -> Outcome:
    """A value that can't mean anything on the installed Ray, and what to do instead."""
    return Outcome({}, Verdict.REFUSED, message, Severity.ERROR, hint)


def is_off(value: object) -> bool:
    """Whether a value switches its key off, so that no API stack has to know the key."""
    return value is None or (
        isinstance(value, (bool, int, float, str, dict, list, tuple)) and not value
    )


@frozen
class Rule:
    """One legacy key of one or of all algorithms, and what becomes of it.

    Attributes:
        family: The page of the guide that has the rule.
        key: The key with its section: `num_workers`, `model.fcnet_hiddens`.
        verdict: What becomes of it.
        value: What the value may be.
        target: The setting on the new API stack; empty if it has none there.
        why: The reason, in one sentence without a full stop at the end.
        old_target: The setting on the old API stack, where it is another one.
        convert: Makes the settings of the old value, where they are not just the value.
        algorithms: The legacy algorithms that it holds for; empty: all.
        hint: What the reader can do.
        needs_old: Says for a value whether only the old API stack can run it.
        section: Whether the value is a dict whose keys have rules of their own.
    """

    family: str
    key: str
    verdict: Verdict
    value: Kind
    target: str = ""
    why: str = ""
    old_target: str | None = None
    convert: Convert | None = None
    algorithms: tuple[str, ...] = ()
    hint: str = ""
    needs_old: Callable[[Any], bool] | None = None
    section: bool = False

    @property
    def id(self) -> str:
        """The name that report, guide and `--only`/`--skip` share."""
        if self.key.startswith(f"{self.family}."):
            return self.key
        return f"{self.family}.{self.key}"

    @property
    def name(self) -> str:
        """The key without its section."""
        return self.key.rpartition(".")[2]

    def target_on(self, stack: str) -> str:
        """The setting on `stack` ("new" or "old"); empty if it has none there."""
        if stack == "old" and self.old_target is not None:
            return self.old_target
        return self.target


@dataclass
class Context:
    """The config around one value: what a rule's function may ask.

    Attributes:
        config: The legacy config that is translated; with the defaults of its Ray, where that is
            known. Inside an `evaluation_config`, with what that changes.
        algorithm: The target algorithm.
        legacy_algorithm: What it was called.
        stack: The API stack that was chosen, "new" or "old".
        path: The path of the value.
        id: The id of the rule or step that is applied, for the report.
        applied: The rule that is applied.
        legacy_ray: The version of its Ray, where that is known.
        keeps: What the ids of rules look like whose keys the networks have, since these are the
            old Ray's.
        findings: What rules have said about parts of their values.
        translate: Translates a dict of root keys inside the config.
    """

    config: Mapping[str, Any]
    algorithm: str
    legacy_algorithm: str
    stack: str = "new"
    path: str = "$"
    id: str = ""
    applied: Rule | None = None
    legacy_ray: str | None = None
    keeps: re.Pattern[str] | None = None
    findings: list[Finding] = field(default_factory=list)
    translate: Callable[[Mapping[str, Any], str, Context], dict[str, Any]] | None = None

    @property
    def rule(self) -> Rule:
        """The rule whose value is converted."""
        assert self.applied is not None
        return self.applied

    @property
    def target(self) -> str:
        """The setting of the rule on the API stack that was chosen; empty if there is none."""
        return self.rule.target_on(self.stack)

    def get(self, path: str, default: object = None) -> Any:
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
        return bool(keys.policies_of(self.config).keys() - {"default_policy"})

    def note(
        self,
        verdict: Verdict,
        path: str,
        message: str,
        severity: Severity = Severity.INFO,
        hint: str = "",
    ) -> None:
        """Says something about a part of the value."""
        self.findings.append(Finding(self.id, severity, verdict, self.path + path, message, hint))


Convert: TypeAlias = Callable[[Any, Context], Outcome]


def nested(settings: Settings, method: str) -> dict[str, Any]:
    """The settings of one method as nested arguments."""
    arguments: dict[str, Any] = {}
    for name, value in settings.items():
        head, *path, last = name.split(".")
        if head != method:
            continue
        place = arguments
        for key in path:
            inside = place.get(key)
            place[key] = dict(inside) if isinstance(inside, Mapping) else {}
            place = place[key]
        place[last] = value
    return arguments
