"""Which networks a trainer begins with: those of its config's Ray, unless they can't be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllib_compat.config import Translation
from rllib_compat.networks import fresh
from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.ray_versions import algorithms, modules
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


def require_actions(algorithm: Any) -> None:
    """Refuses discrete actions where SAC of the installed Ray does not learn them.

    Args:
        algorithm: What was built, of the new API stack.

    Raises:
        RayNotSupportedError: It does not, and a policy has some.
    """
    if algorithm.config.algo_class.__name__ != "SAC" or modules.trains_discrete_sac():
        return
    module = algorithm.env_runner.module
    for one in module.values() if hasattr(module, "values") else [module]:
        if type(one.action_space).__name__ == "Discrete":
            algorithms.stop_algorithm(algorithm)
            raise RayNotSupportedError(
                "SAC of the installed Ray does not learn discrete actions.",
                where="the environment's action space",
                fix="Install a newer Ray, or train DQN.",
            )
