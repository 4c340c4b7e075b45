"""Which networks a trainer begins with: those of its config's Ray, unless they can't be meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rllib_compat.config import Translation
from rllib_compat.networks import fresh
from rllib_compat.neutral.report import Report, Severity, Verdict

#: The `legacy_ray` of who wants today's networks.
TODAY = "today"

#: The rules whose verdict is of today's networks, and what is true of the old ones.
_ONLY_OLD = re.compile(r"model\.no_final_linear|sac\.Q_model\..*")
_KEPT = "the network is the old one, which has it"


def are_old(translation: Translation, legacy: Mapping[str, Any], ray: str | None) -> bool:
    """Whether new networks are those of an old Ray.

    Args:
        translation: The translated config.
        legacy: The legacy config.
        ray: The Ray that it was written for; None: not told; `TODAY`: today's networks.
    """
    new = ray != TODAY and translation.api_stack == "new"
    return new and fresh.makes(translation.legacy_algorithm, legacy)


def tell_kept(report: Report) -> None:
    """Says of keys that today's networks have nothing for that these networks have it."""
    report.findings[:] = [
        replace(row, severity=Severity.INFO, verdict=Verdict.KEPT, message=_KEPT, hint="")
        if _ONLY_OLD.fullmatch(row.rule)
        else row
        for row in report
    ]
