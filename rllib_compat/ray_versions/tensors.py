"""Tensors that follow others in the same process: an env runner's weights, and target networks.

Ray makes a `state_dict` of the one and loads it into the other. With a small network that takes as
long as a forward pass, each time, though it is always the same tensors: here they are looked for
once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from rllib_compat.neutral.frozen import frozen
from rllib_compat.ray_versions.types import EnvRunner, Learner, RLModule

#: Types of arrays that are those of tensors.
_SAME = frozenset(map(np.dtype, ("float32", "int64", "int32", "uint8", "bool")))


def as_tensor(value: Any, device: Any = None) -> Any:
    """Arrays as tensors, as Ray's function makes them, which maps a nest of one part for it."""
    import torch
    from ray.rllib.utils.torch_utils import convert_to_torch_tensor

    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        value = value.astype(np.float32)
    if (
        isinstance(value, np.ndarray)
        and value.dtype in _SAME
        and value.flags.writeable
        and (device is None or torch.device(device).type == "cpu")
    ):
        return torch.from_numpy(value)
    return convert_to_torch_tensor(value, device=device)


@frozen
class Follower:
    """Tensors that follow others.

    Attributes:
        tensors: The tensors.
        followed: What each of them follows.
    """

    tensors: list[Any]
    followed: list[Any]

    def copy(self) -> None:
        """Makes them what they follow."""
        import torch

        with torch.no_grad():
            torch._foreach_copy_(self.tensors, self.followed)

    def go_towards(self, tau: float) -> None:
        """Lets them go a part of the way, as Ray's `update_target_network` does."""
        import torch

        with torch.no_grad():
            torch._foreach_lerp_(self.tensors, self.followed, tau)


#: What follows → what it looked for, and what it found.
_KNOWN: WeakKeyDictionary[Any, tuple[list[Any], Follower | None]] = WeakKeyDictionary()


def weights_of_runner(
    runner: EnvRunner, learner: Learner, only: Collection[str] | None = None
) -> Follower | None:
    """The weights of an env runner's modules (None: all), which follow those of a learner.

    Returns:
        The weights; None: a module has a state of its own kind, which only `get_state` and
            `set_state` know.
    """
    from ray.rllib.core import DEFAULT_MODULE_ID

    acting, learned = runner.module, learner.module
    if not hasattr(acting, "keys"):
        acting = {DEFAULT_MODULE_ID: acting}
    both = [name for name in acting.keys() if name in learned]  # noqa: SIM118 - it may be no dict
    names = both if only is None else [name for name in both if name in only]
    modules = [module for name in names for module in (acting[name], learned[name].unwrapped())]
    known = _KNOWN.get(runner)
    if known is None or [*map(id, known[0])] != [*map(id, modules)]:
        found = None
        if all(map(_is_plain, [runner.module, learned, *modules])):
            sent = [learned[name].unwrapped().get_state(inference_only=True) for name in names]
            pairs = zip(modules[::2], modules[1::2], sent, strict=True)
            found = _follower([(_state(one, of), _state(other, of)) for one, other, of in pairs])
        known = _KNOWN[runner] = (modules, found)
    return known[1]


def target_of(target: Any, net: Any) -> Follower | None:
    """The tensors of a target network, which follow those of a network.

    None: they are no numbers of which a part could be taken.
    """
    known = _KNOWN.get(target)
    if known is None or known[0][0] is not net:
        found = _follower([(_state(target), _state(net))])
        if found and not all(tensor.is_floating_point() for tensor in found.tensors):
            found = None
        known = _KNOWN[target] = ([net], found)
    return known[1]


def _is_plain(module: RLModule) -> bool:
    """Whether the state of a module is its tensors, or its modules' states."""
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
    from ray.rllib.core.rl_module.torch import TorchRLModule

    base = MultiRLModule if isinstance(module, MultiRLModule) else TorchRLModule
    return all(
        getattr(type(module), name, None) is getattr(base, name) and name not in vars(module)
        for name in ("get_state", "set_state")
    )


def _state(module: RLModule, names: Any = None) -> dict[str, Any]:
    """The tensors of a module's state, by name."""
    found = module.state_dict(keep_vars=True)
    return {name: found[name] for name in found if names is None or name in names}


def _follower(states: list[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Follower | None:
    """The tensors of states and of those that they follow; None: there is something else."""
    import torch

    if any(one.keys() != other.keys() for one, other in states):
        return None
    pairs = [(one[name], other[name]) for one, other in states for name in one]
    if not pairs or not all(isinstance(part, torch.Tensor) for pair in pairs for part in pair):
        return None
    return Follower(*map(list, zip(*pairs, strict=True)))
