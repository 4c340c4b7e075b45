"""In an env runner's process: modules whose tensors are views on Ray's object store."""

from __future__ import annotations

import ctypes
import warnings
from collections import OrderedDict
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

#: What reads a module's tensors on an env runner; a module that was let go of gets them back first.
READING = ("forward_inference", "forward_exploration", "state_dict")
#: What writes to them; the module gets tensors of its own first.
WRITING = ("forward_train", "load_state_dict")


def take(refs: Mapping[str, Any], capacity: int | None, env_runner: Any) -> None:
    """Lets modules of an env runner have the weights that references lead to.

    Args:
        refs: The references by module; of modules that the runner does not have, nothing is done.
        capacity: How many of these modules hold their weights at a time; None for all.
        env_runner: The runner.
    """
    held = _held(env_runner, capacity)
    for module_id, ref in refs.items():
        if module_id in env_runner.module:
            held.take(env_runner.module[module_id], ref)
    _trim()


def give_back(modules: Collection[str], env_runner: Any) -> None:
    """Gives modules of an env runner writable tensors of their own, with the same values."""
    for module_id in modules:
        shared = getattr(env_runner.module.get(module_id), "shared_weights", None)
        if shared is not None:
            shared.release()


def _held(env_runner: Any, capacity: int | None) -> Held:
    if not hasattr(env_runner, "shared_policies"):
        env_runner.shared_policies = Held(capacity)
    return env_runner.shared_policies  # type: ignore[no-any-return]


class Held:
    """The modules of one env runner that hold shared weights now, those used last at the end.

    Args:
        capacity: How many they may be; None for any number.
    """

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._modules: OrderedDict[int, SharedWeights] = OrderedDict()

    def take(self, module: Any, ref: Any) -> None:
        """Lets a module have the weights of a reference, shared if it can be done."""
        import ray

        shared = getattr(module, "shared_weights", None)
        if shared is not None and shared.ref == ref:
            return
        arrays = ray.get(ref)
        if shared is None:
            if not (can_share(module) and fits(module, arrays)):
                module.set_state(arrays)  # private copies, as with Ray
                return
            shared = SharedWeights(module, self)
        shared.ref = ref
        shared.attach(arrays)

    def used(self, shared: SharedWeights) -> None:
        """Notes that a module is used, and lets go of those beyond the limit."""
        self._modules[id(shared)] = shared
        self._modules.move_to_end(id(shared))
        while self._capacity is not None and len(self._modules) > max(self._capacity, 1):
            _, oldest = self._modules.popitem(last=False)
            oldest.detach()

    def forget(self, shared: SharedWeights) -> None:
        """A module has tensors of its own again."""
        self._modules.pop(id(shared), None)


class SharedWeights:
    """Lets one module read weights in Ray's object store, without copying them.

    Its tensors are replaced where they are, so that whoever holds the module or its layers goes on.
    What writes by the module's own methods gets private copies first: nothing reaches the store.

    Args:
        module: A module that `can_share`.
        held: The modules of the same runner.

    Attributes:
        ref: The reference to the weights.
    """

    def __init__(self, module: Any, held: Held) -> None:
        self.ref: Any = None
        self._module = module
        self._held = held
        self._attached = False
        self._names: set[str] = set()
        module.shared_weights = self
        for name in READING:
            setattr(module, name, partial(self._read, name))
        for name in WRITING:
            setattr(module, name, partial(self._write, name))
        module.set_state = self._set_state

    def attach(self, arrays: Mapping[str, Any] | None = None) -> None:
        """Makes the module's tensors views on arrays, or on the weights of the reference."""
        if arrays is None:
            import ray

            arrays = ray.get(self.ref)
        tensors = tensors_of(self._module)
        self._names = tensors.keys() & arrays.keys()  # others are the module's own
        for name in self._names:
            tensors[name].data = _view(arrays[name])
        self._attached = True
        self._held.used(self)

    def detach(self) -> None:
        """Lets go of the weights: Ray may move them to disk.

        Meanwhile the tensors have their shapes, no memory and no values (NaN).
        """
        if self.ref is None:  # nobody else has them
            return
        tensors = tensors_of(self._module)
        for name in self._names:
            values = tensors[name].data
            empty = values.new_full((), float("nan") if values.is_floating_point() else 0)
            tensors[name].data = empty.expand(values.shape)
        self._attached = False

    def release(self) -> None:
        """Gives the module writable tensors of its own, with the same values."""
        if not self._attached:
            self.attach()
        tensors = tensors_of(self._module)
        for name in self._names:
            tensors[name].data = tensors[name].data.clone()
        for name in (*READING, *WRITING, "set_state", "shared_weights"):
            delattr(self._module, name)
        self._held.forget(self)

    def _read(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if self._attached:
            self._held.used(self)
        else:
            self.attach()
        return getattr(type(self._module), method)(self._module, *args, **kwargs)

    def _write(self, method: str, *args: Any, **kwargs: Any) -> Any:
        self.release()
        return getattr(self._module, method)(*args, **kwargs)

    def _set_state(self, state: Mapping[str, Any]) -> None:
        """Takes what a broadcast of Ray's brings: read-only arrays are views on the store, too."""
        if not fits(self._module, state) or any(a.flags.writeable for a in state.values()):
            self._write("set_state", state)
            return
        self.ref = None
        self.attach(state)


def can_share(module: Any) -> bool:
    """Whether a module's tensors are all its state, and set and read by torch's own methods."""
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from torch.nn import Module

    own = type(module)
    return (
        isinstance(module, TorchRLModule)
        and own.set_state is TorchRLModule.set_state
        and own.get_state is TorchRLModule.get_state
        and own.load_state_dict is Module.load_state_dict
        and not vars(module).keys() & {*READING, *WRITING, "set_state"}
    )


def fits(module: Any, arrays: Mapping[str, Any]) -> bool:
    """Whether arrays are what a module's tensors hold, and those are in the CPU's memory."""
    import numpy as np

    tensors = tensors_of(module)
    return all(
        name not in tensors  # Ray's `set_state` ignores it
        or (
            isinstance(array, np.ndarray)
            and tensors[name].device.type == "cpu"
            and tensors[name].shape == array.shape
            and str(tensors[name].dtype) == f"torch.{array.dtype}"
        )
        for name, array in arrays.items()
    )


def tensors_of(module: Any) -> dict[str, Any]:
    """Parameters and buffers of a torch module by name; one with two names is there twice."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _view(array: Any) -> Any:
    """A tensor on the memory of an array, which it keeps alive."""
    import torch

    with warnings.catch_warnings():
        # Nothing writes to these tensors; see `SharedWeights`.
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return torch.from_numpy(array)


def _trim() -> None:
    """Gives memory that private copies have left back to the system; the C library may keep it."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return  # not the GNU C library
