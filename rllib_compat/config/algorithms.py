"""Which algorithm a legacy config is for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat import registry
from rllib_compat.config import keys as table


def find_algorithm(
    config: Mapping[str, Any], algorithm: str | type | None = None
) -> tuple[str, str]:
    """Finds the (legacy) algorithm of a config.

    Args:
        config: The legacy config.
        algorithm: Its name ("PPO", "PPOTrainer", "contrib/MADDPG") or class, if known.

    Returns:
        The name, and how it was found: "given", "by its keys" or "assumed".

    Raises:
        ConfigError: RLlib never had an algorithm of the given name.
    """
    if algorithm is not None:
        given = algorithm if isinstance(algorithm, str) else algorithm.__name__
        return registry.find(given).name, "given"
    homes = [table.homes(key) for key in config]
    owners = [home for home in homes if home and "common" not in home]
    # The first that has all of the config's special keys.
    for name in registry.ALGORITHMS:
        if owners and all(name in owner for owner in owners):
            return name, "by its keys"
    return "PPO", "assumed"
