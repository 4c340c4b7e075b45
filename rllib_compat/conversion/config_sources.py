"""A legacy config, kept apart by who says what, and how it differs from defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding

_NO_VALUE = object()


@frozen
class ConfigSources:
    """A legacy config on its way into the translation, kept apart by who says it.

    Attributes:
        from_file: What came with the checkpoint: values that fit their declarations pass, never
            code.
        from_caller: What the caller gave, and what this package puts in place of the file's.
        findings: What was done to it.
    """

    from_file: Mapping[str, Any]
    from_caller: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def without(self, *keys: str) -> ConfigSources:
        """The same without keys of the file."""
        kept = {key: value for key, value in self.from_file.items() if key not in keys}
        return replace(self, from_file=kept)

    def changing(self, **values: Any) -> ConfigSources:
        """The same with other values of the file's keys."""
        return replace(self, from_file={**self.from_file, **values})

    def giving(self, **values: Any) -> ConfigSources:
        """The same with more of the caller's keys."""
        return replace(self, from_caller={**self.from_caller, **values})

    def with_findings(self, *findings: Finding) -> ConfigSources:
        """The same with more findings."""
        return replace(self, findings=(*self.findings, *findings))


def diff(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What of a config has another value than in its defaults, also in dicts inside."""
    different = {}
    for key, value in config.items():
        default = defaults.get(key, _NO_VALUE)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            if inner := diff(value, default):
                different[key] = inner
        elif not same_value(value, default):
            different[key] = value
    return different


def same_value(a: Any, b: Any) -> bool:
    """Whether two values are equal, and of the same type."""
    if a is b:
        return True
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return type(a) is type(b) and np.array_equal(a, b)
    return type(a) is type(b) and bool(a == b)
