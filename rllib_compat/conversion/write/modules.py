"""The RLModules of a converted checkpoint: described, filled, written alone, and loaded again.

Where today's Ray trains on, the modules are part of its tree (`write.checkpointable`). Where it
can't, they are all that is written, in the same place of the tree: they compute the same actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat import registry
from rllib_compat.conversion.identify import RANDOM_MODULE
from rllib_compat.conversion.plan import Plan
from rllib_compat.formats.layouts.v2 import MODULES
from rllib_compat.networks import AnyNetwork, Network, Outputs
from rllib_compat.networks.mapping import Array, require_same_names
from rllib_compat.networks.names.plain import BUFFERS
from rllib_compat.networks.network import TARGET_PREFIX
from rllib_compat.networks.observation_filter import STEP as FILTER
from rllib_compat.neutral import spaces
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.report import Finding, Verdict
from rllib_compat.neutral.spaces import Space
from rllib_compat.ray_versions import configs, modules, startup
from rllib_compat.runtime.adapted_config import Interner

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec


def specs(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> dict[str, RLModuleSpec]:
    """Describes the module of each policy, exactly as its network was.

    A policy without a network acts at random (`identify.is_random`).
    """
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    intern = Interner()
    made = {
        policy_id: RLModuleSpec(
            module_class=_class(RANDOM_MODULE),
            observation_space=intern(spaces.to_gymnasium(_required(policy.observation_space))),
            action_space=intern(spaces.to_gymnasium(_required(policy.action_space))),
        )
        for policy_id, policy in checkpoint.policies.items()
        if policy_id not in networks
    }
    for policy_id, network in networks.items():
        policy = checkpoint.policies[policy_id]
        seen = _required(policy.observation_space)
        if network.space is not None:
            seen = network.space
        elif not isinstance(seen, spaces.Box) or seen.shape != network.inputs:
            seen = spaces.box(-np.inf, np.inf, network.inputs)
        target = network.target
        model_config: Any = dict(target.model_config)
        if target.module is None:
            model_config = _default_model_config(model_config)
            if not isinstance(model_config, dict):
                model_config = intern(model_config)
        made[policy_id] = RLModuleSpec(
            module_class=None if target.module is None else _class(target.module),
            observation_space=intern(spaces.to_gymnasium(seen)),
            action_space=intern(spaces.to_gymnasium(_required(policy.action_space))),
            model_config=model_config,
        )
    return made


def _required(space: Space | None) -> Space:
    assert space is not None  # `identify` has seen to it
    return space


def _default_model_config(settings: Mapping[str, Any]) -> Any:
    """A model config of today's default modules; a dict where an algorithm's own keys are in it."""
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    known = {field.name for field in fields(DefaultModelConfig)}
    made = DefaultModelConfig(**{k: v for k, v in settings.items() if k in known})
    rest = {k: v for k, v in settings.items() if k not in known}
    return asdict(made) | rest if rest else made


def _class(name: str) -> Any:
    """A class of this package by `module:Class`; checkpoints never name one."""
    module, _, cls = name.partition(":")
    return getattr(import_module(module), cls)


def set_weights(module: MultiRLModule, networks: Mapping[str, AnyNetwork]) -> None:
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


def write(plan: Plan, target: Path) -> list[Finding]:
    """Writes the modules alone, where training can't go on.

    Args:
        plan: What is written, and why it is not all.
        target: The folder.

    Returns:
        What has no place in modules alone.
    """
    with startup.quiet_logs():
        module = _filled(plan.checkpoint, plan.networks)
        module.save_to_path(str((target / MODULES).absolute()))
    return dropped_parts(plan)


def dropped_parts(plan: Plan) -> list[Finding]:
    """What has no place in modules alone."""
    checkpoint, networks = plan.checkpoint, plan.networks
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
        Finding.warning(
            "inference-only",
            Verdict.DROPPED,
            path,
            f"{plan.reason}; its modules were written alone, for inference",
            "all of it is in the msgpack form (`--to msgpack`)",
        )
        for path, is_there in left.items()
        if is_there
    ]


def _filled(checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]) -> MultiRLModule:
    """All modules in one, with their weights, as no algorithm has to be built for it."""
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec

    made = specs(checkpoint, networks)
    for spec in made.values():
        _complete(spec, checkpoint.algorithm)
    module = MultiRLModuleSpec(rl_module_specs=made).build()
    for policy_id, network in networks.items():
        if any(name.startswith(TARGET_PREFIX) for name in network.arrays):
            module[policy_id].make_target_networks()
    set_weights(module, networks)
    return module


def _steps(network: AnyNetwork) -> set[str]:
    return {step.name for step in network.graph.steps} if isinstance(network, Network) else set()


def _complete(spec: RLModuleSpec, algorithm: str | None) -> None:
    """Fills in today's default module, for an algorithm that is gone: another's is the same."""
    if spec.module_class is not None:
        return
    config = _successor(algorithm)
    default = config.get_default_rl_module_spec()
    spec.module_class = default.module_class
    # The weights are there: what a new network begins with would only tie the module to us.
    spec.catalog_class = getattr(default.catalog_class, "of_ray", default.catalog_class)
    if isinstance(spec.model_config, dict):
        spec.model_config = config.model_config | spec.model_config


def _successor(algorithm: str | None) -> Any:
    """A config of the algorithm whose default modules are the same: today's, or PPO's."""
    return configs.todays_config(registry.of(algorithm).becomes or "PPO")


def build(
    checkpoint: LegacyCheckpoint, networks: Mapping[str, AnyNetwork]
) -> dict[str, ModuleNetwork]:
    """Builds the modules of networks and fills them, in memory alone."""
    with startup.quiet_logs():
        module = _filled(checkpoint, networks)
    return {policy_id: ModuleNetwork(module[policy_id]) for policy_id in networks}


def load(target: Path, policy_ids: Iterable[str]) -> dict[str, ModuleNetwork]:
    """Loads modules of a tree as a user would, for comparison with the old networks.

    This process has written the tree itself: Ray unpickles it.
    """
    with startup.quiet_logs():
        return {policy_id: ModuleNetwork(_from_tree(target, policy_id)) for policy_id in policy_ids}


def _from_tree(target: Path, policy_id: str) -> Any:
    from ray.rllib.core.rl_module.rl_module import RLModule

    place = (target / MODULES / policy_id).absolute()
    module = RLModule.from_checkpoint(place)
    if hasattr(module, "make_target_networks"):  # only learners make them: to see them, too
        module.make_target_networks()
        module.restore_from_path(place)
    return module


@frozen
class ModuleNetwork:
    """A loaded RLModule as a function of a network's inputs.

    Attributes:
        module: The module.
    """

    module: Any

    def weights(self) -> dict[str, Array]:
        """The module's arrays."""
        return {str(name): np.asarray(array) for name, array in self.module.get_state().items()}

    def __call__(self, inputs: Mapping[str, Array]) -> Outputs:
        """Computes everything that the module can be asked for."""
        import torch
        from ray.rllib.core.rl_module.apis import ValueFunctionAPI

        states = self.module.get_initial_state()
        tensors = {k: torch.from_numpy(np.asarray(v, np.float32)) for k, v in inputs.items()}
        names = [name for name, _ in _flat(states)]
        batch: dict[str, Any] = {k: v for k, v in tensors.items() if k not in names}
        batch["obs"] = _in_parts(self.module.observation_space, batch["obs"])
        if states:
            batch["state_in"] = _like(states, tensors)
        with torch.no_grad(), _threads_for(self.module, tensors):
            out = dict(self.module.forward_inference(batch))
            if isinstance(self.module, ValueFunctionAPI):
                out["vf_preds"] = self.module.compute_values(batch)
            if hasattr(self.module, "critics"):
                out |= self.module.critics(batch)
            elif isinstance(self.module, modules.dqn_module()):
                out["q_values"] = modules.q_values(self.module, batch)
        for name, state in _flat(out.pop("state_out", {})):
            out[name] = state.reshape(tensors[name].shape)
        return {k: np.asarray(v) for k, v in out.items()}


def _in_parts(space: Any, flat: Any) -> Any:
    """Observations as a module of a user takes them, where it takes parts."""
    import gymnasium
    import torch
    import tree

    if not isinstance(space, (gymnasium.spaces.Dict, gymnasium.spaces.Tuple)):
        return flat
    rows = [gymnasium.spaces.unflatten(space, row) for row in flat.numpy()]
    return tree.map_structure(lambda *parts: torch.as_tensor(np.stack(parts)), *rows)


#: Up to so many parameters and inputs, threads wait for each other longer than they compute.
_SMALL = 1_000_000


@contextmanager
def _threads_for(module: Any, inputs: Mapping[str, Any]) -> Iterator[None]:
    """One thread of torch for a small computation; on a busy machine the others cost a half more.

    It was measured on a league of 300 small networks.
    """
    import torch

    arrays = [*inputs.values(), *module.parameters()] if hasattr(module, "parameters") else []
    threads = torch.get_num_threads()
    if not arrays or sum(array.numel() for array in arrays) > _SMALL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _flat(states: Mapping[str, Any], owner: str = "") -> Iterator[tuple[str, Any]]:
    """A module's states by the names that graphs give them: the critic's are `critic_…`."""
    for name, state in states.items():
        if isinstance(state, Mapping):
            yield from _flat(state, "" if name == "actor" else f"{name}_")
        else:
            yield f"{owner}{name}", state


def _like(states: Mapping[str, Any], tensors: Mapping[str, Any], owner: str = "") -> dict[str, Any]:
    """The reverse: a batch of states in the module's order and shapes (it counts LSTM layers)."""
    return {
        name: _like(state, tensors, "" if name == "actor" else f"{name}_")
        if isinstance(state, Mapping)
        else tensors[f"{owner}{name}"].reshape(-1, *state.shape)
        for name, state in states.items()
    }
