"""In an env runner's process: modules whose tensors are views on Ray's object store."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Collection, Mapping, MutableMapping
from functools import partial
from typing import Any

from rllib_compat.league.layers import Children, Layers, children_of, hollow, shape_of, tensors_of
from rllib_compat.league.packed import Packed, arrays_of, tensors_on

#: What reads a module's tensors on an env runner; a module that was let go of gets them back first.
READING = ("forward_inference", "forward_exploration", "state_dict", "get_initial_state")
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
            spec = env_runner.module.rl_module_specs.get(module_id)
            held.take(env_runner.module[module_id], ref, spec)
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
        self._layers: dict[bytes, Layers] = {}

    def take(self, module: Any, ref: Any, spec: Any = None) -> None:
        """Lets a module have the weights of a reference, shared if it can be done.

        Args:
            module: The module.
            ref: The reference.
            spec: What the runner would build it from, if that is known.
        """
        import ray

        shared = getattr(module, "shared_weights", None)
        if shared is not None and shared.ref == ref:
            return
        stored = ray.get(ref)
        if shared is None:
            arrays = arrays_of(stored)
            if not (can_share(module) and fits(tensors := tensors_of(module), arrays)):
                module.set_state(arrays)  # private copies, as with Ray
                return
            layers = self._layers_for(module) if tensors.keys() <= arrays.keys() else None
            if layers is not None and spec is not None:
                layers.settle(module, spec)
            shared = SharedWeights(module, self, layers)
        shared.ref = ref
        shared.attach(stored)

    def used(self, shared: SharedWeights) -> None:
        """Notes that a module is used, and lets go of those beyond the limit."""
        self._modules[id(shared)] = shared
        if self._capacity is None:
            return
        self._modules.move_to_end(id(shared))
        while len(self._modules) > max(self._capacity, 1):
            _, oldest = self._modules.popitem(last=False)
            oldest.detach()

    def forget(self, shared: SharedWeights) -> None:
        """A module has tensors of its own again."""
        self._modules.pop(id(shared), None)

    def _layers_for(self, module: Any) -> Layers | None:
        """The layers that modules of this one's shape share, or None if it keeps its own."""
        shape = shape_of(module)
        if shape is None:
            return None
        if shape not in self._layers:
            self._layers[shape] = Layers(module)
        return self._layers[shape]


class SharedWeights:
    """Lets one module read weights in Ray's object store, without copying them.

    Modules of one shape have their layers together (`layers`). A module with layers of its own has
    its tensors replaced where they are, so that whoever holds a layer goes on. What writes by the
    module's own methods gets private copies first: nothing reaches the store.

    Args:
        module: A module that `can_share`.
        held: The modules of the same runner.
        layers: Layers of its shape, or None if it keeps its own.

    Attributes:
        ref: The reference to the weights.
    """

    def __init__(self, module: Any, held: Held, layers: Layers | None = None) -> None:
        self.ref: Any = None
        self._module = module
        self._held = held
        self._weights: dict[str, Any] | None = None
        # Each step, a runner asks a dozen times for this, and it is always the same.
        stateful, no_state = bool(module.is_stateful()), module.get_initial_state() == {}
        self._layers = layers
        if layers is not None:
            vars(module)["_modules"] = Children(self, layers.children)
        module.shared_weights = self
        for names, method in ((READING, self._read), (WRITING, self._write)):
            for name in names:
                setattr(module, name, partial(method, name))
        module.set_state = self._set_state
        module.is_stateful = partial(bool, stateful)
        if no_state:
            module.get_initial_state = dict

    @property
    def attached(self) -> bool:
        """Whether the module has its weights now."""
        return self._weights is not None

    def attach(self, stored: Packed | Mapping[str, Any] | None = None) -> None:
        """Makes the module's tensors views on arrays, or on the weights of the reference."""
        if stored is None:
            import ray

            stored = ray.get(self.ref)
        own, views = self._tensors(), tensors_on(stored)
        # Tensors that arrays lack are the module's own.
        self._weights = {name: views[name] for name in own if name in views}
        if self._layers is None:
            for name, view in self._weights.items():
                own[name].data = view
        self._held.used(self)

    def _tensors(self) -> dict[str, Any]:
        return tensors_of(self._module) if self._layers is None else self._layers.tensors

    def detach(self) -> None:
        """Lets go of the weights: Ray may move them to disk.

        Meanwhile tensors of the module's own have their shapes, no memory and no values (NaN).
        """
        if self.ref is None or self._weights is None:  # nobody else has them, or they are gone
            return
        weights, self._weights = self._weights, None
        if self._layers is not None:
            self._layers.let_go(weights)
            return
        own = self._tensors()
        for name in weights:
            own[name].data = hollow(own[name].data)

    def release(self) -> MutableMapping[str, Any]:
        """Gives the module writable tensors of its own, with the same values.

        Returns:
            Its layers.
        """
        children = children_of(self._module)
        if not hasattr(
            self._module, "shared_weights"
        ):  # done, and somebody goes on with the old ones
            return children
        weights = self._present()
        if self._layers is not None:
            children = vars(self._module)["_modules"] = self.copied()
            self._layers.let_go(weights)
        else:
            own = self._tensors()
            for name in weights:
                own[name].data = own[name].data.clone()
        for name in (*READING, *WRITING, "set_state", "is_stateful", "shared_weights"):
            delattr(self._module, name)
        self._held.forget(self)
        return children

    def __getstate__(self) -> dict[str, Any]:
        """A copy of the module has layers and tensors of its own."""
        private = self._layers is not None or self._weights is not None
        return {
            "ref": None if private else self.ref,
            "_module": self._module,
            "_held": Held(None),
            "_layers": None,
            "_weights": {} if private else None,
        }

    def copied(self) -> dict[str, Any]:
        """Layers of the module's own, for a copy of it."""
        assert self._layers is not None
        return self._layers.copied(self._present())

    def _present(self) -> dict[str, Any]:
        if self._weights is None:
            self.attach()
        assert self._weights is not None
        return self._weights

    def _read(self, method: str, *args: Any, **kwargs: Any) -> Any:
        module, layers = self._module, self._layers
        compute = getattr(type(module), method)
        weights = self._present()
        self._held.used(self)
        if layers is None:
            return compute(module, *args, **kwargs)
        inside, shown = vars(module), layers.children
        with layers.lock:
            layers.hold(weights)
            before, inside["_modules"] = inside["_modules"], shown
            reader, shown.reader = shown.reader, self
            try:
                return compute(module, *args, **kwargs)
            finally:
                shown.reader = reader
                if inside["_modules"] is shown:  # else it has layers of its own by now
                    inside["_modules"] = before

    def _write(self, method: str, *args: Any, **kwargs: Any) -> Any:
        self.release()
        return getattr(self._module, method)(*args, **kwargs)

    def _set_state(self, state: Mapping[str, Any]) -> None:
        """Takes what a broadcast of Ray's brings: read-only arrays are views on the store, too."""
        tensors = self._tensors()
        fitting = fits(tensors, state) and tensors.keys() <= state.keys()
        if not fitting or any(a.flags.writeable for a in state.values()):
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
        and not vars(module).keys() & {*READING, *WRITING, "set_state", "is_stateful"}
    )


def fits(tensors: Mapping[str, Any], arrays: Mapping[str, Any]) -> bool:
    """Whether arrays are what a module's tensors hold, and those are in the CPU's memory."""
    import numpy as np

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


def _trim() -> None:
    """Gives memory that private copies have left back to the system; the C library may keep it."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return  # not the GNU C library
