"""Layers that many frozen modules of one shape have together.

The layers of a small policy are a dozen objects of torch, which take more memory than three of a
hundred of its weights. Modules that differ in their numbers alone can have the same layers: before
one of them computes, its weights are put into them.
"""

from __future__ import annotations

import copy
import hashlib
import io
import pickle
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from threading import RLock
from typing import Any

#: Whose layers compute with their tensors and settings alone. Others might count, or keep a state.
_KNOWN = ("torch", "ray", "rllib_compat")

#: What a module is made from, and so is its spec.
_TOLD = ("observation_space", "action_space", "model_config")
#: What Ray makes of that, and nothing else.
_MADE = ("catalog", "config", "action_dist_cls")


class Layers:
    """The layers of one shape in one process.

    Args:
        module: The module that they were made for.

    Attributes:
        children: The layers by their names in a module, as torch keeps them.
        lock: Whoever computes with the layers has it; another thread of the same process waits.
        tensors: Their parameters and buffers by name.
    """

    def __init__(self, module: Any) -> None:
        self.children = Shown(children_of(module))
        self.tensors = tensors_of(module)
        self._holding: Mapping[str, Any] | None = None
        self.lock = RLock()
        self._settings = {name: vars(module).get(name) for name in (*_TOLD, *_MADE)}

    def settle(self, module: Any, spec: Any) -> None:
        """Lets a module and its spec have the spaces and settings of the first one, if equal.

        Ray sends those of each policy by themselves; they take as much memory as its layers.
        """
        for owner, names in ((module, (*_TOLD, *_MADE)), (spec, _TOLD)):
            if all(_same(vars(owner).get(name), self._settings[name]) for name in _TOLD):
                vars(owner).update({n: self._settings[n] for n in names if n in vars(owner)})

    def hold(self, weights: Mapping[str, Any]) -> None:
        """Lets the layers compute with these weights, tensors by name, which are not copied.

        Whoever calls this has the lock, and keeps it while they compute.
        """
        if self._holding is not weights:
            for name, tensor in weights.items():
                self.tensors[name].data = tensor
            self._holding = weights

    def let_go(self, weights: Mapping[str, Any]) -> None:
        """Holds these weights no longer, if it does."""
        with self.lock:
            if self._holding is weights:
                self.hold({name: hollow(tensor.data) for name, tensor in self.tensors.items()})

    def copied(self, weights: Mapping[str, Any]) -> dict[str, Any]:
        """The layers once more, with writable copies of weights."""
        with self.lock:
            self.hold(weights)
            return copy.deepcopy(dict(self.children))


def _same(one: Any, other: Any) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # whatever arrays in them, or classes of people's own, raise
        return False


def children_of(module: Any) -> MutableMapping[str, Any]:
    """The layers of a module by name, where torch keeps them."""
    children: MutableMapping[str, Any] = vars(module)["_modules"]
    return children


def hollow(tensor: Any) -> Any:
    """A tensor of the same shape without memory, and without values (NaN)."""
    empty = tensor.new_full((), float("nan") if tensor.is_floating_point() else 0)
    return empty.expand(tensor.shape)


class Shown(dict[str, Any]):
    """What a module has where torch keeps its layers, while it computes with shared ones.

    A module that gets another layer meanwhile gets all layers for itself.

    Attributes:
        reader: The shared weights of the module that computes now: what can `release()` it.
    """

    reader: Any = None

    def __setitem__(self, name: str, layer: Any) -> None:
        self.reader.release()[name] = layer

    def __delitem__(self, name: str) -> None:
        del self.reader.release()[name]


class Children(MutableMapping[str, Any]):
    """What a module has there at any other time.

    Whoever takes a layer may keep it or write to it, so the module gets layers of its own first.

    Args:
        shared: What can give the module layers of its own: `copied()` and `release()`.
        names: The names of the layers.
    """

    def __init__(self, shared: Any, names: Collection[str]) -> None:
        self._shared = shared
        self._names = names

    def __getitem__(self, name: str) -> Any:
        return self._shared.release()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __setitem__(self, name: str, layer: Any) -> None:
        self._shared.release()[name] = layer

    def __delitem__(self, name: str) -> None:
        del self._shared.release()[name]

    def __reduce__(self) -> Any:
        return dict, (list(self._shared.copied().items()),)


def tensors_of(module: Any) -> dict[str, Any]:
    """Parameters and buffers of a torch module by name; one with two names is there twice."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def shape_of(module: Any) -> bytes | None:
    """A digest of all that layers are but their numbers, or None where they should not be shared.

    Those are not shared that are not torch's, Ray's or this package's, that have hooks, or that
    somebody else holds: a list of layers in the module, for instance.
    """
    own = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    if own or _held_elsewhere(module):
        return None
    written = io.BytesIO()
    try:
        _Pickler(written).dump((type(module), children_of(module)))
    except Exception:  # whatever objects that cannot be pickled raise
        return None
    return hashlib.sha256(written.getvalue()).digest()


class _Pickler(pickle.Pickler):
    """Writes layers without the numbers in them.

    A value is written wherever it stands, for which of equal texts are one object is chance. (In a
    circle this does not end, and Python says so.) Which tensors are one is told by their numbers.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.fast = True
        self._tensors: dict[int, int] = {}

    def persistent_id(self, value: Any) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            number = self._tensors.setdefault(id(value), len(self._tensors))
            kind = type(value).__name__, str(value.dtype), value.requires_grad
            return number, kind, tuple(value.shape)
        if isinstance(value, torch.nn.Module):
            hooks = (found for name, found in vars(value).items() if name.endswith("_hooks"))
            if type(value).__module__.partition(".")[0] not in _KNOWN or any(hooks):
                raise pickle.PicklingError(f"{type(value)} is not shared")
        return None


def _held_elsewhere(module: Any) -> bool:
    """Whether anything but the layers above it holds a layer."""
    layers = [layer for layer in module.modules() if layer is not module]
    holders = Counter(
        id(layer) for parent in (module, *layers) for layer in children_of(parent).values()
    )
    counted, (of_list,) = _references(layers), _references([object()])
    return any(
        found > holders[id(layer)] + of_list for layer, found in zip(layers, counted, strict=True)
    )


def _references(values: list[Any]) -> list[int]:
    """How many references each has, the list's and this function's among them."""
    return [sys.getrefcount(value) for value in values]
