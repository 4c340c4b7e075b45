"""A GPU that is not there: learners compute on the CPU, and torch refuses what a GPU would refuse.

In `with pretended_gpu():` every learner takes `cuda:0` for its device. What is moved there, made
there or computed there is noted; an operation on some of it and on something of the CPU raises the
error that CUDA raises, and so does making an array of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")

_MOVES = (Tensor.to, Tensor.cpu, Tensor.cuda)
#: What takes tensors of two devices.
_COPIES = (
    Tensor.copy_,
    torch._foreach_copy_,
    torch._has_compatible_shallow_copy_type,
    Tensor.data.__set__,
    Tensor.__setitem__,
)
#: What takes indices of the CPU for tensors of a GPU.
_INDEXES = (Tensor.__getitem__, Tensor.__setitem__)
_JOINS = (torch.stack, torch.cat)
_ARRAYS = (Tensor.numpy, Tensor.__array__)


class PretendedGpu(TorchFunctionMode):
    """Notes which tensors are on the GPU, by the memory that they share.

    Attributes:
        was_used: Whether there were any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.was_used = False
        self._storages = WeakIdKeyDictionary()

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor is on the GPU."""
        return tensor.untyped_storage() in self._storages

    def take(self, made: Any) -> Any:
        """Notes that all tensors in something are on the GPU."""
        for tensor in _tensors(made):
            self._storages[tensor.untyped_storage()] = self.was_used = True
        return made

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls a function of torch as a GPU would."""
        given = dict(kwargs or {})
        copies = func == Tensor.__deepcopy__  # its other argument is everything copied before
        tensors = [args[0]] if copies else _tensors([args, given])
        there = [tensor for tensor in tensors if self.has(tensor)]
        if func == Tensor.device.__get__:
            return GPU if there else CPU
        if func == Tensor.is_cuda.__get__:
            return bool(there)
        if func in _ARRAYS and there:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
        if func in _MOVES:
            return self._move(func, *args, **given)
        device = given.get("device")
        if device is not None:
            device = given["device"] = torch.device(device)
            given["device"] = CPU
        elif there and func not in _COPIES:
            self._check(func, args, tensors)
        out = func(*args, **given)
        if func is torch.tensor and not (args and isinstance(args[0], Tensor)):
            there = []
        on_gpu = device.type == "cuda" if device is not None else bool(there)
        return self.take(out) if on_gpu and func not in _COPIES else out

    def _check(self, func: Any, args: Any, tensors: list[Tensor]) -> None:
        checked = [args[0]] if func in _INDEXES and self.has(args[0]) else tensors
        joins = func in _JOINS  # others take a number of the CPU for one of theirs
        here = [each for each in checked if (each.ndim or joins) and not self.has(each)]
        if here:
            name = getattr(func, "__name__", func)
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"cuda:0 and cpu! ({name}, {[tuple(tensor.shape) for tensor in here]})"
            )

    def _move(self, func: Any, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        asked = [self._device_of(each) for each in (*args, kwargs.pop("device", None))]
        device = next((each for each in asked if each is not None), None)
        types = [each for each in (*args, kwargs.get("dtype")) if isinstance(each, torch.dtype)]
        if func is not Tensor.to:
            device = CPU if func is Tensor.cpu else GPU
        was_there = self.has(tensor)
        out = tensor.to(*types) if types else tensor
        goes = was_there if device is None else device.type == "cuda"
        if goes is not was_there and out is tensor:
            out = tensor.clone()
        return self.take(out) if goes else out

    def _device_of(self, given: Any) -> torch.device | None:
        """The device that an argument of `to` names."""
        if isinstance(given, Tensor):
            return GPU if self.has(given) else CPU
        return torch.device(given) if isinstance(given, (str, torch.device)) else None


def _tensors(given: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(given) if isinstance(leaf, Tensor)]


@contextmanager
def pretended_gpu() -> Iterator[PretendedGpu]:
    """Lets all learners of the block learn on a GPU that is not there, in any thread."""
    from ray.rllib.core.learner.torch import torch_learner

    mode, device_of = PretendedGpu(), torch_learner.get_device
    run = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def run_with_gpu(thread: threading.Thread) -> None:
        with mode:
            run(thread)

    torch_learner.get_device = lambda *_: GPU
    threading.Thread._bootstrap_inner = run_with_gpu  # type: ignore[attr-defined]
    try:
        with mode:
            yield mode
    finally:
        torch_learner.get_device = device_of
        threading.Thread._bootstrap_inner = run  # type: ignore[attr-defined]
