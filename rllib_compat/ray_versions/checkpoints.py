"""Checkpointable trees: the version of the format, and how an algorithm is saved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from rllib_compat.neutral.errors import RayNotSupportedError
from rllib_compat.ray_versions.releases import installed

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm


def writes_checkpoint_version() -> str:
    """The version of the Checkpointable format that the installed Ray writes.

    Ray 2.40 writes 2.0, Ray 2.41 and later 2.1 (`ray/rllib/utils/checkpoints.py`).
    """
    return "2.1" if installed() >= Version("2.41") else "2.0"


def save(algorithm: Algorithm, target: Path, *, state_format: str) -> None:
    """Saves an algorithm's Checkpointable tree; `use_msgpack` came with Ray 2.41.

    Raises:
        RayNotSupportedError: msgpack was asked of an older Ray.
    """
    if state_format == "pkl":
        algorithm.save_to_path(str(target.absolute()))
        return
    if installed() < Version("2.41"):
        raise RayNotSupportedError(
            f"Ray {installed()} writes its state as pickle only.",
            fix="Use --state-format pkl, or Ray 2.41 and later.",
        )
    with unpatched_msgpack():
        algorithm.save_to_path(str(target.absolute()), use_msgpack=True)


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
