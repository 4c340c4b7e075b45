"""The RLModules of a converted checkpoint: described, filled, written alone, and loaded again.

Where today's Ray has the algorithm, the modules are part of its tree (`writers.checkpointable`).
Where it has not, they are all that is written, in the same place of the tree: they compute the
same actions, and nothing trains on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import spaces
from rllib_compat.checkpoints.state import LegacyCheckpoint
from rllib_compat.networks import Network, Outputs
from rllib_compat.networks.fcnet import BUFFERS
from rllib_compat.networks.filtered import STEP as FILTER
from rllib_compat.networks.mapping import Array, require_same_names
from rllib_compat.report import Finding, Severity, Verdict

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

MODULES = Path("learner_group/learner/rl_module")


def specs(checkpoint: LegacyCheckpoint, networks: Mapping[str, Network]) -> dict[str, RLModuleSpec]:
    """Describes the module of each policy, exactly as its network was."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    made = {}
    for policy_id, network in networks.items():
        policy = checkpoint.policies[policy_id]
        assert policy.observation_space is not None
        assert policy.action_space is not None
        seen = policy.observation_space
        if not isinstance(seen, spaces.Box) or seen.shape != network.inputs:
            seen = spaces.box(-np.inf, np.inf, network.inputs)
        target = network.target
        model_config: Any = dict(target.model_config)
        if target.module is None:
            model_config = DefaultModelConfig(**model_config)
        made[policy_id] = RLModuleSpec(
            module_class=None if target.module is None else _class(target.module),
            observation_space=spaces.to_gymnasium(seen),
            action_space=spaces.to_gymnasium(policy.action_space),
            model_config=model_config,
        )
    return made


def _class(name: str) -> Any:
    """A class of this package by `module:Class`; checkpoints never name one."""
    module, _, cls = name.partition(":")
    return getattr(import_module(module), cls)


def set_weights(module: MultiRLModule, networks: Mapping[str, Network]) -> None:
    """Fills modules with the old weights.

    Raises:
        CheckpointError: A module has other arrays than its network.
    """
    for policy_id, network in networks.items():
        state = module[policy_id].get_state()
        new = network.module_state()
        trained = [name for name in state if name not in BUFFERS]
        require_same_names(new, trained, where=f"module {policy_id}")
        module[policy_id].set_state({**state, **new})


def write(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, Network], target: Path
) -> list[Finding]:
    """Writes the modules alone, for an algorithm that today's Ray has not.

    Returns:
        What has no place in modules alone.
    """
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec

    made = specs(checkpoint, networks)
    for spec in made.values():
        # An actor-critic algorithm that is gone: PPO's default module computes the same.
        spec.module_class = spec.module_class or _default_actor_critic()
    module = MultiRLModuleSpec(rl_module_specs=made).build()
    set_weights(module, networks)
    module.save_to_path(str((target / MODULES).absolute()))
    left = {
        "config": bool(checkpoint.config),
        "counters": checkpoint.counters.iteration is not None,
        "policies.*.optimizer": any(p.optimizer for p in checkpoint.policies.values()),
        "policies.*.observation_filter": any(
            p.observation_filter
            and p.observation_filter.stats
            and FILTER not in _steps(networks[i])
            for i, p in checkpoint.policies.items()
        ),
        "policies.*.exploration": any(p.exploration for p in checkpoint.policies.values()),
    }
    return [
        Finding(
            "inference-only",
            Severity.WARNING,
            Verdict.DROPPED,
            path,
            f"today's Ray has no {checkpoint.algorithm}; its modules were written alone, for "
            "inference",
            "all of it is in the msgpack form (`--to msgpack`)",
        )
        for path, is_there in left.items()
        if is_there
    ]


def _steps(network: Network) -> set[str]:
    return {step.name for step in network.graph.steps}


def _default_actor_critic() -> Any:
    from ray.rllib.algorithms.ppo import PPOConfig

    return PPOConfig().get_default_rl_module_spec().module_class


def load(target: Path, policy_id: str) -> Loaded:
    """Loads one module of a tree as a user would, for comparison with the old network."""
    from ray.rllib.core.rl_module.rl_module import RLModule

    return Loaded(RLModule.from_checkpoint((target / MODULES / policy_id).absolute()))


@dataclass(frozen=True)
class Loaded:
    """A loaded RLModule as a function of a network's inputs.

    Attributes:
        module: The module.
    """

    module: Any

    def __call__(self, inputs: Mapping[str, Array]) -> Outputs:
        """Computes everything that the module can be asked for."""
        import torch
        from ray.rllib.core.rl_module.apis import ValueFunctionAPI

        states = self.module.get_initial_state()
        tensors = {k: torch.from_numpy(np.asarray(v, np.float32)) for k, v in inputs.items()}
        batch = {k: v for k, v in tensors.items() if k not in states}
        if states:
            batch["state_in"] = {k: tensors[k] for k in states}
        with torch.no_grad():
            out = dict(self.module.forward_inference(batch))
            if isinstance(self.module, ValueFunctionAPI):
                out["vf_preds"] = self.module.compute_values(batch)
            if hasattr(self.module, "critics"):
                out |= self.module.critics(batch)
        out |= out.pop("state_out", {})
        return {k: np.asarray(v) for k, v in out.items()}
