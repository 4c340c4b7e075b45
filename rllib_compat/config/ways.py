"""What an iteration was in the Ray that a config was written for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rllib_compat.algorithms.ways import Ways, is_simple, ways_of
from rllib_compat.config.defaults import TODAY, newest_release_with
from rllib_compat.config.rules.impala_appo import NEWEST_WITHOUT_VTRACE


def ways_for(config: Mapping[str, Any], legacy_ray: str | None) -> Ways | None:
    """The ways of a config's Ray.

    Args:
        config: The legacy config.
        legacy_ray: Its Ray. None: the newest one that had all of its keys.

    Returns:
        The ways; None where an iteration is what it is today.
    """
    release = legacy_ray or newest_release_with(config)
    if legacy_ray is None and config.get("vtrace") is False:  # nobody has it by default
        release = min(release or TODAY, NEWEST_WITHOUT_VTRACE, key=Version)
    if release is None or Version(release) >= Version(TODAY):
        return None
    simple = is_simple(release, _framework(config), config.get("simple_optimizer"))
    return ways_of(
        release,
        simple=simple,
        drops_last=config.get("vtrace_drop_last_ts", True) is not False,
        traces=config.get("vtrace", True) is not False,
    )


def _framework(config: Mapping[str, Any]) -> str:
    told = config.get("framework", config.get("framework_str"))
    if isinstance(told, str):
        return told
    if config.get("eager"):
        return "tfe"
    return "torch" if config.get("use_pytorch") else "tf"
