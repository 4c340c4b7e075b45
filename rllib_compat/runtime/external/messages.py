"""What policy clients and servers say to each other, which Ray pickled on both sides.

A request is read by the pickle machine: whatever it names, nothing is imported or called. An answer
names only what Python and numpy have had since Python 3.6 and numpy 1.16, so that clients of any
Ray read it.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rllib_compat.formats.pickles import Budget, load
from rllib_compat.neutral.errors import CorruptCheckpointError
from rllib_compat.neutral.records import StandIn, is_stand_in

# What has been an enumeration since Ray 2.0; before, commands were texts.
_COMMANDS = "Commands", "RLlink"
# Protocol 4 is the newest that Python 3.6 reads.
_PROTOCOL = 4


def read_request(body: bytes) -> dict[str, Any]:
    """A request of a client of Ray 0.5 – 2.x: its command and what belongs to it.

    Returns:
        The request; objects of classes are inert records.

    Raises:
        CorruptCheckpointError: It is damaged, hostile, or no request.
    """
    request = load(body, budget=Budget(), where="request").value
    command = request.get("command") if isinstance(request, dict) else None
    if isinstance(command, StandIn) and command.qualified.rpartition(".")[2] in _COMMANDS:
        command = command.args[0] if command.args else None
    if not isinstance(command, str):
        raise CorruptCheckpointError(
            "It is no request of a PolicyClient: it has no command.",
            where="request",
            fix="Connect with a PolicyClient of Ray 0.5 - 2.x.",
        )
    return {**request, "command": command}


def plain(value: object, where: str) -> Any:
    """A value of a request that goes on to an environment or a policy: arrays and plain data.

    Raises:
        CorruptCheckpointError: There is an object of some class in it.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value if value.flags.writeable else value.copy()
    if isinstance(value, Mapping):
        return {key: plain(inner, where) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(inner, where) for inner in value)
    if is_stand_in(value) or isinstance(value, np.ndarray):
        raise CorruptCheckpointError(
            f"There is an object in it that is no array and no plain data: {value!r}.",
            where=where,
            fix="Send numbers, texts, arrays, and lists, tuples and dicts of them.",
        )
    return value


class _Writer(pickle.Pickler):
    """Writes arrays by names that numpy 1 and numpy 2 share: numpy 2 names modules of its own."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                return np.array, (value.tolist(), "O")
            data = bytearray(np.ascontiguousarray(value).tobytes())
            return np.ndarray, (value.shape, value.dtype.str, data)
        if isinstance(value, np.generic):
            item = value.item()
            kind = type(value) if type(item) in (int, float) else type(item)
            return kind, (item,)
        return NotImplemented


def write_answer(answer: Mapping[str, Any]) -> bytes:
    """An answer as clients of any Ray read it."""
    file = io.BytesIO()
    _Writer(file, _PROTOCOL).dump(dict(answer))
    return file.getvalue()


class OldName:
    """The name of a class or function of an old Ray, which is looked up where it is unpickled."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self, *args: object) -> OldCall:
        """A call of it, which is made where it is unpickled."""
        return OldCall(self, args)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        import importlib

        return getattr, (OldCall(importlib.import_module, (self.module,)), self.name)


class OldCall:
    """A call that is made where it is unpickled."""

    def __init__(self, function: Callable[..., Any], args: tuple[object, ...]) -> None:
        self.function = function
        self.args = args

    def __call__(self, *args: object) -> OldCall:
        """A call of what the call returns."""
        return OldCall(self, args)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.function, self.args
