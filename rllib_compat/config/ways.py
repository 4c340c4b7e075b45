"""What an iteration was in the Ray that a config was written for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from rllib_compat import registry
from rllib_compat.algorithms.ways import Ways, is_simple, ways_of
from rllib_compat.config import keys
from rllib_compat.config.defaults import TODAY, newest_release_with
from rllib_compat.config.rules.impala_appo import NEWEST_WITHOUT_VTRACE

#: The algorithms whose torch policies made their optimizer with `lr`, before a schedule was asked.
_LR_FIRST = (*registry.family("PPO"), "A2C", "A3C")


def ways_for(config: Mapping[str, Any], legacy_ray: str | None, algorithm: str) -> Ways | None:
    """The ways of a config's Ray.

    Args:
        config: The legacy config.
        legacy_ray: Its Ray. None: the newest one that had all of its keys.
        algorithm: The legacy algorithm.

    Returns:
        The ways; None where an iteration is what it is today.
    """
    release = legacy_ray or newest_release_with(config)
    if legacy_ray is None and config.get("vtrace") is False:  # nobody has it by default
        release = min(release or TODAY, NEWEST_WITHOUT_VTRACE, key=Version)
    if release is None or Version(release) >= Version(TODAY):
        return None
    framework = _framework(config)
    return ways_of(
        release,
        simple=is_simple(release, framework, config.get("simple_optimizer")),
        drops_last=config.get("vtrace_drop_last_ts", True) is not False,
        traces=config.get("vtrace", True) is not False,
        first_lr=_first_lr(config, release, algorithm) if framework == "torch" else None,
    )


def _first_lr(config: Mapping[str, Any], release: str, algorithm: str) -> float | None:
    if algorithm not in _LR_FIRST or not config.get("lr_schedule"):
        return None
    lr = {**keys.default_config(algorithm, release), **config}.get("lr")
    return float(lr) if isinstance(lr, (int, float)) else None


def _framework(config: Mapping[str, Any]) -> str:
    told = config.get("framework", config.get("framework_str"))
    if isinstance(told, str):
        return told
    if config.get("eager"):
        return "tfe"
    return "torch" if config.get("use_pytorch") else "tf"
