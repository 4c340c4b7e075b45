"""Which text can be the version of a Ray."""

from __future__ import annotations

import re
from dataclasses import replace

from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.report import Finding, Severity, Verdict

_LONGEST_VERSION = 40
#: `0.8.5`, `2.0.0rc1`, `3.0.0.dev0`: what `packaging` takes, and Ray has.
_VERSION = re.compile(
    r"\d{1,4}(\.\d{1,4}){0,3}((a|b|rc)\d{1,4})?(\.?(dev|post)\d{1,4})?(\+[a-z0-9]{1,20})?\Z"
)


def is_version(text: object) -> bool:
    """Whether a value can be the version of a Ray."""
    sound = isinstance(text, str) and len(text) <= _LONGEST_VERSION and _VERSION.match(text)
    return bool(sound)


def with_sound_version(checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
    """Without the version of Ray that no Ray ever had; rules compare versions."""
    told = checkpoint.source.ray_version
    if told is None or is_version(told):
        return checkpoint
    finding = Finding(
        "ray-version",
        Severity.WARNING,
        Verdict.DROPPED,
        "ray_version",
        f"{told[:_LONGEST_VERSION]!a} is not a version of Ray",
        "what depends on the version is read as if no version were given",
    )
    source = replace(checkpoint.source, ray_version=None)
    return replace(checkpoint, source=source).with_findings([finding])
