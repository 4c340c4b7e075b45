"""Which algorithm a checkpoint is of, where nobody says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rllib_compat import registry
from rllib_compat.config.algorithms import find_algorithm
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import ConfigError
from rllib_compat.neutral.report import Finding, Severity, Verdict

_TRIAL = re.compile(r"(?P<algorithm>[A-Z][A-Za-z0-9]*)_(?P<env>[A-Za-z0-9]+-v\d+)_")
_CLASS_OF_POLICY = re.compile(r"([A-Z][A-Za-z0-9]*?)(TF|Torch|Jax)?(Eager)?(Policy|PolicyGraph)")


def of(checkpoint: LegacyCheckpoint, given: str | None) -> tuple[str | None, list[Finding]]:
    """Finds the algorithm: given, in the checkpoint, in its config, or in its trial's name.

    Returns:
        Its registered name, or None; and a finding where it was derived.

    Raises:
        ConfigError: No RLlib ever had the algorithm that was given.
    """
    if given or checkpoint.algorithm:
        return registry.find(given or checkpoint.algorithm or "").name, []
    for policy in checkpoint.policies.values():
        match = _CLASS_OF_POLICY.fullmatch((policy.policy_class or "").rsplit(".", 1)[-1])
        if match and (name := _known(match[1])):
            return name, [_derived(f"{name}, from the policy class {policy.policy_class}")]
    if checkpoint.config:
        name, how = find_algorithm(checkpoint.config)
        if how == "by its keys":
            return name, [_derived(f"{name}, the first that has all keys of the config")]
    if named := _algorithm_of_path(checkpoint):
        return named, [_derived(f"{named}, from the name of the trial's folder")]
    return None, []


def env_of_path(checkpoint: LegacyCheckpoint) -> str | None:
    """The environment in the name of a trial's folder, if gymnasium could have it."""
    for folder in _folders(checkpoint):
        match = _TRIAL.match(folder.name)
        if match and _known(match["algorithm"]):
            return match["env"]
    return None


def _derived(message: str) -> Finding:
    return Finding("derived", Severity.INFO, Verdict.DERIVED, "algorithm", message)


def _known(name: str) -> str | None:
    try:
        return registry.find(name).name
    except ConfigError:
        return None


def _algorithm_of_path(checkpoint: LegacyCheckpoint) -> str | None:
    """Tune and the Trainer call a trial's folder `PPO_CartPole-v0_…`."""
    for folder in _folders(checkpoint):
        name, _, rest = folder.name.partition("_")
        if rest and (known := _known(name)):
            return known
    return None


def _folders(checkpoint: LegacyCheckpoint) -> Iterator[Path]:
    path = checkpoint.source.path
    yield from (path, *path.resolve().parents[:4])
