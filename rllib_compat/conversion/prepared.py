"""A legacy config on its way into the translation: what is a file's, and what is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from rllib_compat.conversion.given import Given
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding


@frozen
class Prepared:
    """A config, kept apart by who says it.

    Attributes:
        config: What came with the checkpoint: values that fit their declarations pass, never code.
        ours: What the caller gave, and what this package puts in place of the file's.
        findings: What was done to it.
    """

    config: Mapping[str, Any]
    ours: Mapping[str, Any]
    findings: tuple[Finding, ...] = ()

    def without(self, *keys: str) -> Prepared:
        """Without keys of the file."""
        return replace(self, config={k: v for k, v in self.config.items() if k not in keys})

    def put(self, **ours: Any) -> Prepared:
        """With keys of ours."""
        return replace(self, ours={**self.ours, **ours})

    def told(self, *findings: Finding) -> Prepared:
        """With findings."""
        return replace(self, findings=(*self.findings, *findings))


Step: TypeAlias = Callable[[Prepared, LegacyCheckpoint, Given], Prepared]
