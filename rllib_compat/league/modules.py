"""In an env runner's process: frozen modules that compute with weights in Ray's object store.

Freezing changes a module's class to a subclass of it (`FrozenModule`), so it stays the object that
Ray and the user have. Thawing gives it its class, and writable tensors, back.

Weights are one array of each dtype there (`Packed`): whoever reads an object of Ray's store keeps
some objects for every array in it, which for a small policy are a good part of its weights' size.
"""

from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from functools import cache
from math import prod
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from torch.nn import Module, Parameter

from rllib_compat.ray_versions.types import EnvRunner, RLModule

#: Where arrays begin, in bytes: as in Ray's store, for torch computes faster from there.
_ALIGNED = 64


class Packed(NamedTuple):
    """Weights in Ray's object store.

    Attributes:
        flat: Arrays of one dimension by the name of their dtype.
        places: By the name of each array: its dtype's name, where it begins, and its shape.
    """

    flat: dict[str, Any]
    places: dict[str, tuple[str, int, tuple[int, ...]]]


def pack(arrays: Mapping[str, Any]) -> Packed | Mapping[str, Any]:
    """Puts arrays together, or returns what it was given if something else is among it."""
    import numpy as np

    if not all(
        isinstance(array, np.ndarray) and array.dtype.kind in "biuf" for array in arrays.values()
    ):
        return arrays
    sizes: dict[str, int] = {}
    places = {}
    for name, array in arrays.items():
        dtype = array.dtype.str
        begin = sizes.get(dtype, 0)
        places[name] = (dtype, begin, array.shape)
        end = begin + array.size
        sizes[dtype] = end + -end % (_ALIGNED // array.itemsize)
    flat = {dtype: np.zeros(size, dtype) for dtype, size in sizes.items()}
    for name, (dtype, begin, _) in places.items():
        flat[dtype][begin : begin + arrays[name].size] = arrays[name].ravel()
    return Packed(flat, places)


def arrays_of(stored: Packed | Mapping[str, Any]) -> Mapping[str, Any]:
    """The arrays by name, on the same memory."""
    return _parts(stored, stored.flat) if isinstance(stored, Packed) else stored


def tensors_on(stored: Packed | Mapping[str, Any]) -> dict[str, Any]:
    """Tensors by name on the memory of the arrays, which they keep alive and never change."""
    if isinstance(stored, Packed):
        return _parts(stored, _as_tensors(stored.flat))
    return _as_tensors(stored)


def _parts(packed: Packed, flat: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: flat[dtype][begin : begin + prod(shape)].reshape(shape)
        for name, (dtype, begin, shape) in packed.places.items()
    }


def _as_tensors(arrays: Mapping[str, Any]) -> dict[str, Any]:
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable", UserWarning)
        return {name: torch.from_numpy(array) for name, array in arrays.items()}


#: Packages whose layers compute with their tensors and settings alone, and keep no state.
_STATELESS = ("torch", "ray", "rllib_compat")
#: What a module is built from, and so is its spec; and what Ray derives from that.
_SETTINGS = ("observation_space", "action_space", "model_config")
_DERIVED = ("catalog", "config", "action_dist_cls")


def freeze(refs: Mapping[str, Any], capacity: int | None, env_runner: Any) -> None:
    """Makes modules of an env runner compute with the weights that references lead to.

    Ids that the runner lacks are ignored. `capacity` modules hold their weights at a time; None:
    all.
    """
    if not hasattr(env_runner, "frozen_modules"):
        env_runner.frozen_modules = FrozenModules(capacity)
    for module_id, ref in refs.items():
        if module_id in env_runner.module:
            spec = env_runner.module.rl_module_specs.get(module_id)
            env_runner.frozen_modules.freeze(env_runner.module[module_id], ref, spec)


def thaw(modules: Collection[str], env_runner: EnvRunner) -> None:
    """Gives modules of an env runner writable tensors of their own, with the same values."""
    for module_id in modules:
        if (weights := weights_of(env_runner.module.get(module_id))) is not None:
            weights.thaw()


def weights_of(module: object) -> Weights | None:
    """The weights in the object store that a module computes with; None if it is not frozen."""
    return vars(module).get("frozen_weights") if module is not None else None


class FrozenModules:
    """The frozen modules of one env runner; those used last (None: all) hold their weights."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self._attached: OrderedDict[int, Weights] = OrderedDict()
        self._layers: list[Layers] = []

    def freeze(self, module: RLModule, ref: object, spec: object = None) -> None:
        """Makes a module compute with the weights of a reference.

        A module with a state of its own kind gets private copies, as with Ray alone.
        """
        import ray

        weights = weights_of(module)
        if weights is not None and weights.ref == ref:
            return
        stored = ray.get(ref)
        if weights is None:
            arrays = arrays_of(stored)
            if not (_is_plain(module) and _fit(_tensors(module), arrays)):
                module.set_state(arrays)
                return
            weights = Weights(module, self, self._layers_of(module, spec, arrays.keys()))
        weights.attach(stored, ref)

    def used(self, weights: Weights) -> None:
        """Notes that a module is used, and detaches those beyond the capacity."""
        self._attached[id(weights)] = weights
        if self.capacity is None:
            return
        self._attached.move_to_end(id(weights))
        while len(self._attached) > max(self.capacity, 1):
            _, oldest = self._attached.popitem(last=False)
            oldest.detach()

    def forget(self, weights: Weights) -> None:
        """A module was thawed."""
        self._attached.pop(id(weights), None)

    def _layers_of(self, module: RLModule, spec: object, names: Collection[str]) -> Layers:
        """Layers for a module: those of one that differs in numbers alone, or its own."""
        own = Layers(module, names)
        if not (_is_stateless(module) and _tensors(module).keys() <= set(names)):
            own.release()
            return own
        layers = next((layers for layers in self._layers if layers.equal(own)), own)
        if layers is own:
            self._layers.append(own)
            own.shared = True
            own.release()
        layers.replace_settings(module, spec)
        for name, layer in layers.children.items():
            setattr(module, name, layer)
        return layers


class Layers:
    """Layers that modules of one shape use in turn, each with its weights.

    The layers of a small policy are a dozen objects of torch, which take more memory than three of
    a hundred of its weights.

    Attributes:
        children: The layers by name.
        tensors: Those tensors by name; they hold the weights of the module that computed last.
        lock: Whoever computes has it.
        shared: Whether other modules may have them, too.
    """

    def __init__(self, module: Any, names: Collection[str]) -> None:
        self.children = dict(module.named_children())
        self.tensors = {n: tensor for n, tensor in _tensors(module).items() if n in names}
        self.lock = RLock()
        self._settings = {n: vars(module).get(n) for n in (*_SETTINGS, *_DERIVED)}
        shapes = {name: (t.shape, t.dtype) for name, t in self.tensors.items()}
        self._shape = type(module), type(self._settings["catalog"]), repr(module), shapes
        self.shared = False
        self._held: Mapping[str, Any] | None = None

    def equal(self, other: Layers) -> bool:
        """Whether other layers differ in nothing but their numbers."""
        return self._shape == other._shape and all(
            _equal(self._settings[name], other._settings[name]) for name in _SETTINGS
        )

    def replace_settings(self, module: RLModule, spec: object) -> None:
        """Gives a module and its spec the spaces and settings of the first of their shape.

        Ray sends those of each policy by themselves; they take as much memory as its layers.
        """
        for owner, names in ((module, self._settings), (spec, _SETTINGS)):
            if owner is not None:
                vars(owner).update({n: self._settings[n] for n in names if n in vars(owner)})

    def hold(self, weights: Mapping[str, Any]) -> None:
        """Puts weights into the layers, which are not copied; whoever calls this has the lock.

        (`torch.func.functional_call` does the same, and takes half a millisecond for it.)
        """
        if self._held is not weights:
            for name, view in weights.items():
                self.tensors[name].data = view
            self._held = weights

    def release(self, weights: Mapping[str, Any] | None = None) -> None:
        """Leaves tensors without memory and values (NaN), if they hold these weights."""
        with self.lock:
            if self._held is weights:
                for tensor in self.tensors.values():
                    empty = tensor.new_full((), float("nan") if tensor.is_floating_point() else 0)
                    tensor.data = empty.expand(tensor.shape)
                self._held = None


class Weights:
    """The weights of one frozen module, in Ray's object store.

    Attributes:
        ref: The reference to the weights; None for those that a broadcast of Ray has brought.
        names: What the module calls its layers and its own tensors.
        computing: Whether the module computes now, with its weights in its layers.
    """

    def __init__(self, module: Any, owner: FrozenModules, layers: Layers) -> None:
        self.ref: Any = None
        self.computing = False
        self.names = frozenset({*layers.children, *layers.tensors})
        self._module, self._owner, self._layers = module, owner, layers
        self._views: dict[str, Any] | None = None
        # Ray asks for these a dozen times a step, and the answer is always the same.
        self.is_stateful = bool(module.is_stateful())
        self.has_state = module.get_initial_state() != {}
        module.frozen_weights = self
        own: Any = type(module)
        module.__class__ = _frozen_class(own)

    @property
    def attached(self) -> bool:
        """Whether the weights are held now."""
        return self._views is not None

    def attach(self, stored: Packed | Mapping[str, Any], ref: object) -> None:
        """Holds weights, and the reference that leads to them."""
        views = tensors_on(stored)
        self.detach()
        self.ref = ref
        self._views = {name: views[name] for name in self._layers.tensors}
        self._owner.used(self)

    def detach(self) -> None:
        """Lets go of weights that a reference gives back: Ray may move them to disk."""
        if self.ref is not None and self._views is not None:
            self._layers.release(self._views)
            self._views = None

    def fit(self, state: Mapping[str, Any]) -> bool:
        """Whether a state is read-only arrays for all tensors, as Ray's broadcasts bring them."""
        tensors = self._layers.tensors
        return (
            tensors.keys() <= state.keys()
            and _fit(tensors, state)
            and not any(array.flags.writeable for array in state.values())
        )

    def call(self, method: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Calls a method of the module's class that computes."""
        views = self._present()
        self._owner.used(self)
        with self._layers.lock:
            before, self.computing = self.computing, True
            self._layers.hold(views)
            try:
                return method(self._module, *args, **kwargs)
            finally:
                self.computing = before

    def thaw(self) -> None:
        """Gives the module its class back, and layers with copies of the weights."""
        module, views = self._module, self._present()
        del module.frozen_weights
        module.__class__ = type(module).thawed
        if self._layers.shared:
            self._layers.release(views)
            with self._layers.lock:
                children = copy.deepcopy(self._layers.children)
            for name, layer in children.items():
                setattr(module, name, layer)
        for name, tensor in _tensors(module).items():
            if name in views:
                tensor.data = views[name].clone()
        self._owner.forget(self)

    def _present(self) -> dict[str, Any]:
        if self._views is None:
            import ray

            self.attach(ray.get(self.ref), self.ref)
        assert self._views is not None
        return self._views


def _computing(name: str) -> Callable[..., Any]:
    """A method that needs the weights and leaves the module frozen."""

    def compute(self: Any, *args: object, **kwargs: object) -> Any:
        return self.frozen_weights.call(getattr(self.thawed, name), *args, **kwargs)

    return compute


def _thawing(name: str) -> Callable[..., Any]:
    """A method after which somebody may keep layers, or write to them."""

    def call(self: Any, *args: object, **kwargs: object) -> Any:
        method = getattr(self.thawed, name)
        if not self.frozen_weights.computing:
            self.frozen_weights.thaw()
        return method(self, *args, **kwargs)

    return call


class FrozenModule:
    """What a frozen module's class has before the module's own.

    Attributes:
        thawed: The module's own class.
    """

    frozen_weights: Weights
    thawed: Any

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        """Builds an ordinary module: `RLModuleSpec.from_module` may name this class."""
        return cls.thawed(*args, **kwargs)

    forward_inference = _computing("forward_inference")
    forward_exploration = _computing("forward_exploration")
    state_dict = _computing("state_dict")
    forward_train = _thawing("forward_train")
    load_state_dict = _thawing("load_state_dict")
    named_children = _thawing("named_children")
    named_modules = _thawing("named_modules")
    __reduce_ex__ = _thawing("__reduce_ex__")

    def is_stateful(self) -> bool:
        """Whether it has a recurrent state."""
        return self.frozen_weights.is_stateful

    def get_initial_state(self) -> Any:
        """The recurrent state at the beginning of an episode."""
        weights = self.frozen_weights
        return weights.call(self.thawed.get_initial_state) if weights.has_state else {}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Computes with arrays of the object store as they are; takes copies of others."""
        if self.frozen_weights.fit(state):
            self.frozen_weights.attach(state, None)
        else:
            self.frozen_weights.thaw()
            self.set_state(state)

    def __getattr__(self, name: str) -> Any:
        thawed, weights = type(self).thawed, weights_of(self)
        if weights is not None and name in weights.names and not weights.computing:
            weights.thaw()
        return thawed.__getattr__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        thawed, weights = type(self).thawed, weights_of(self)
        layer = isinstance(value, (Module, Parameter))
        if weights is not None and layer and not weights.computing:
            weights.thaw()
        thawed.__setattr__(self, name, value)


@cache
def _frozen_class(module_class: type) -> type:
    members = {name: getattr(module_class, name) for name in ("__module__", "__qualname__")}
    bases = (FrozenModule, module_class)
    return type(module_class)(module_class.__name__, bases, {**members, "thawed": module_class})


def _tensors(module: Any) -> dict[str, Any]:
    """Parameters and buffers of a torch module by name; one with two names is there twice."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _equal(one: object, other: object) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # whatever arrays in them, or classes of people's own, raise
        return False


def _is_stateless(module: Any) -> bool:
    """Whether all of a module are known layers without hooks, and its tensors are in layers."""
    own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return not own and all(
        type(layer).__module__.partition(".")[0] in _STATELESS
        and not any(found for name, found in vars(layer).items() if name.endswith("_hooks"))
        for layer in module.modules()
    )


def _is_plain(module: Any) -> bool:
    """Whether a module's tensors are all its state, and set and read by torch's own methods."""
    from ray.rllib.core.rl_module.torch import TorchRLModule

    own = type(module)
    return (
        isinstance(module, TorchRLModule)
        and own.set_state is TorchRLModule.set_state
        and own.get_state is TorchRLModule.get_state
        and own.load_state_dict is Module.load_state_dict
        and not vars(module).keys() & vars(FrozenModule).keys()
    )


def _fit(tensors: Mapping[str, Any], arrays: Mapping[str, Any]) -> bool:
    """Whether arrays are what a module's tensors hold, and those are in the CPU's memory."""
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
