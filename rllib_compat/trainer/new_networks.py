"""Which networks a trainer begins with: those of its config's Ray, unless they can't be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config import Translation
from rllib_compat.networks import fresh
from rllib_compat.registry.keys import TODAY


def are_old(translation: Translation, legacy: Mapping[str, Any], ray: str | None) -> bool:
    """Whether new networks are those of an old Ray.

    Args:
        translation: The translated config.
        legacy: The legacy config.
        ray: The Ray that it was written for; None: not told; `TODAY`: today's networks.
    """
    new = ray != TODAY and translation.api_stack == "new"
    return new and fresh.makes(translation.legacy_algorithm, legacy)
