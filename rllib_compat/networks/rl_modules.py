"""RLModules as networks: filled with a network's arrays, loaded from a tree, computed on inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rllib_compat.formats.layouts.v2 import MODULES
from rllib_compat.networks import AnyNetwork, Outputs
from rllib_compat.networks.mapping import Array, require_same_names
from rllib_compat.networks.named import BUFFERS
from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions import checkpoints, modules, startup

if TYPE_CHECKING:
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule

    from rllib_compat.ray_versions.types import RLModule


def set_weights(module: MultiRLModule, networks: Mapping[str, AnyNetwork]) -> None:
    """Fills modules with the old weights.

    Raises:
        CheckpointError: A module has other arrays than its network.
    """
    for policy_id, network in networks.items():
        state = module[policy_id].get_state()
        new = {name: np.array(array, order="C") for name, array in network.module_state().items()}
        trained = [name for name in state if name not in BUFFERS]
        require_same_names(new, trained, where=f"module {policy_id}")
        module[policy_id].set_state({**state, **new})


def load(target: Path, policy_ids: Iterable[str]) -> dict[str, ModuleNetwork]:
    """Loads modules of a tree as a user would, for comparison with the old networks.

    This process has written the tree itself: Ray unpickles it.
    """
    with startup.quiet_logs():
        return {policy_id: ModuleNetwork(_from_tree(target, policy_id)) for policy_id in policy_ids}


def _from_tree(target: Path, policy_id: str) -> Any:
    from ray.rllib.core.rl_module.rl_module import RLModule

    with checkpoints.path_for_ray(target / MODULES / policy_id) as place:
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
def _threads_for(module: RLModule, inputs: Mapping[str, Any]) -> Iterator[None]:
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
