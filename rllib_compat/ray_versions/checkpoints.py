"""Checkpointable trees: the version of the format, and how an algorithm is saved."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from packaging.version import Version

from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.ray_versions.releases import at_least, installed
from rllib_compat.ray_versions.types import Algorithm, Learner


def writes_checkpoint_version() -> str:
    """The version of the Checkpointable format that the installed Ray writes.

    Ray 2.40 writes 2.0, Ray 2.41 and later 2.1 (`ray/rllib/utils/checkpoints.py`).
    """
    return "2.1" if installed() >= Version("2.41") else "2.0"


def state_files(stem: str) -> list[str]:
    """What the installed Ray may call the file of a state, to be read as a pickle.

    Torch's modules of Ray 2.40 call it `module_state.pt`, though it is a pickle, too.
    """
    as_torch = stem == "module_state" and installed() < Version("2.41")
    return [f"{stem}.pkl", *([f"{stem}.pt"] if as_torch else [])]


def state_to_restore(state: object) -> Any:
    """A component's state, with arrays in it, as the installed Ray restores it.

    The learner of Ray 2.40 passes the moments of its optimizers to torch as they are, which takes
    tensors; later learners make them of arrays.
    """
    if at_least("2.41") or not (isinstance(state, dict) and "optimizer" in state):
        return state
    import torch
    import tree

    def as_tensor(value: object) -> Any:
        return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value

    return {**state, "optimizer": tree.map_structure(as_tensor, state["optimizer"])}


def is_asked_for(algorithm: Any, name: str, components: Any, not_components: Any) -> bool:
    """Whether a component is among those whose state `get_state` is asked for."""
    return bool(algorithm._check_component(name, components, not_components))


@contextmanager
def path_for_ray(folder: str | Path) -> Iterator[str]:
    """A path of a folder by which Ray finds it: pyarrow takes none that is no UTF-8."""
    path = str(Path(folder).absolute())
    with ExitStack() as stack:
        if not path.isprintable():  # bytes that are no text are characters that can't be printed
            temporary = stack.enter_context(tempfile.TemporaryDirectory())
            link = Path(temporary) / "checkpoint"
            link.symlink_to(path, target_is_directory=True)
            path = str(link)
        yield path


def save(algorithm: Algorithm, target: Path, *, state_format: str) -> None:
    """Saves an algorithm's Checkpointable tree; `use_msgpack` came with Ray 2.41.

    Raises:
        RayNotSupportedError: msgpack was asked of an older Ray.
    """
    keep_optimizers_through_restores(algorithm)
    if state_format == "pkl":
        with path_for_ray(target) as path:
            algorithm.save_to_path(path)
        return
    if installed() < Version("2.41"):
        raise RayNotSupportedError(
            f"Ray {installed()} writes its state as pickle only.",
            fix="Use --state-format pkl, or Ray 2.41 and later.",
        )
    with unpatched_msgpack(), path_for_ray(target) as path:
        algorithm.save_to_path(path, use_msgpack=True)


def keep_optimizers_through_restores(algorithm: Algorithm) -> None:
    """Lets what an algorithm saves of its optimizers reach those that are restored from it.

    Ray 2.41 – 2.55 turn all of an optimizer's stored state into tensors, the numbers of its
    parameters, too; torch then finds no parameter by its number, and the moments of Adam start
    again, silently. Arrays of text stay as they are, and torch takes any name for a number.
    """
    concerned = at_least("2.41") and not at_least("2.56")
    if algorithm.learner_group is not None and concerned:
        algorithm.learner_group.foreach_learner(_name_parameters)


def _name_parameters(learner: Learner, **_: object) -> None:
    for optimizer in learner._named_optimizers.values():
        if _with_names not in optimizer._optimizer_state_dict_post_hooks.values():
            optimizer.register_state_dict_post_hook(_with_names)


def _with_names(_: object, state: dict[str, Any]) -> dict[str, Any]:
    groups = [
        {**group, "params": np.array([str(number) for number in group["params"]])}
        for group in state["param_groups"]
    ]
    named = {str(number): slots for number, slots in state["state"].items()}
    return {**state, "param_groups": groups, "state": named}


@contextmanager
def unpatched_msgpack() -> Iterator[None]:
    """Takes back what Ray does to msgpack in the block.

    `try_import_msgpack` patches msgpack for the whole process, and with it the serializer that
    Ray sends arrays to its actors with: they arrive as raw dicts from then on.
    """
    import msgpack

    names = ["Packer", "Unpacker", "pack", "packb", "unpack", "unpackb"]
    names += ["load", "loads", "dump", "dumps"]
    originals = {name: getattr(msgpack, name) for name in names}
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(msgpack, name, original)
