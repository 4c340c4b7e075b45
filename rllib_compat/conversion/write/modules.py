"""Writes only the RLModules of a checkpoint, if the installed Ray cannot continue training.

They have the same places as in a complete tree (`checkpointable.py`), and compute the same actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rllib_compat import registry
from rllib_compat.conversion.plan import Plan
from rllib_compat.conversion.write.checkpointable import module_specs
from rllib_compat.formats.layouts.v2 import MODULES
from rllib_compat.networks import AnyNetwork, Network
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.observation_filter import STEP as FILTER
from rllib_compat.networks.rl_modules import ModuleNetwork, set_weights
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.ray_versions import checkpoints, configs, startup

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec


def write(plan: Plan, target: Path) -> list[Finding]:
    """Writes only the modules.

    Returns:
        Findings about the parts that the files lack.
    """
    with startup.quiet_logs():
        module = _filled(plan.checkpoint, plan.networks)
        with checkpoints.path_for_ray(target) as path:
            module.save_to_path(f"{path}/{MODULES}")
    return dropped_parts(plan)


def dropped_parts(plan: Plan) -> list[Finding]:
    """Returns findings about the parts that modules lack."""
    checkpoint, networks = plan.checkpoint, plan.networks
    left = {
        "config": bool(checkpoint.config),
        "counters": checkpoint.counters.iteration is not None,
        "policies.*.optimizer": any(p.optimizer for p in checkpoint.policies.values()),
        "policies.*.observation_filter": any(
            p.observation_filter and p.observation_filter.stats and not _holds_filter(networks[i])
            for i, p in checkpoint.policies.items()
        ),
        "policies.*.exploration": any(p.exploration for p in checkpoint.policies.values()),
    }
    return [
        Finding.warning(
            "inference-only",
            Verdict.DROPPED,
            path,
            f"{plan.reason}; only its modules were written, for inference",
            "`--to msgpack` keeps all data",
        )
        for path, is_there in left.items()
        if is_there
    ]


def _filled(checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]) -> MultiRLModule:
    """Returns all modules in one, with their weights, without an algorithm."""
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec

    made = module_specs(checkpoint, networks)
    for spec in made.values():
        _complete(spec, checkpoint.algorithm)
    module = MultiRLModuleSpec(rl_module_specs=made).build()
    for policy_id, network in networks.items():
        if any(name.startswith(TARGET_PREFIX) for name in network.arrays):
            module[policy_id].make_target_networks()
    set_weights(module, networks)
    return module


def _holds_filter(network: AnyNetwork) -> bool:
    return isinstance(network, Network) and any(s.name == FILTER for s in network.graph.steps)


def _complete(spec: RLModuleSpec, algorithm: str | None) -> None:
    """Sets the default module class of a spec; that of a removed algorithm is its successor's."""
    if spec.module_class is not None:
        return
    config: Any = configs.todays_config(registry.of(algorithm).becomes or "PPO")
    default = config.get_default_rl_module_spec()
    spec.module_class = default.module_class
    # The weights are set, so initializers are not needed; they would require this package.
    spec.catalog_class = getattr(default.catalog_class, "of_ray", default.catalog_class)
    if isinstance(spec.model_config, dict):
        spec.model_config = config.model_config | spec.model_config


def build(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> dict[str, ModuleNetwork]:
    """Builds the modules of networks with their weights, in memory."""
    with startup.quiet_logs():
        module = _filled(checkpoint, networks)
    return {policy_id: ModuleNetwork(module[policy_id]) for policy_id in networks}
