"""The bounded pickle machine: reads any pickle, runs none.

`load` reads a pickle of any protocol, `load_torch` a file of `torch.save`. Both look names up in
one table (`names.py`); what is not there becomes an inert `StandIn` or `GlobalRef`. What comes out
is plain Python, numpy arrays, our records of spaces and filters, and stand-ins.

Arrays and long byte strings (64 KiB and more, as `memoryview`) are views on what was read where
that is possible, and are read-only then: copy what you want to change.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

from rllib_compat.formats.files import open_regular, read_bytes
from rllib_compat.formats.pickles.arrays import LEGACY_MAGIC, ZIP_MAGIC, read_legacy, read_zip
from rllib_compat.formats.pickles.names import NAMES
from rllib_compat.formats.pickles.opcodes import Unpickler
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.frozen import frozen

__all__ = ["Budget", "Unpickled", "load", "load_torch", "looks_like_pickle"]


@frozen
class Unpickled:
    """What a pickle holds.

    Attributes:
        value: Its value.
        globals: How often each dotted name was met, in nested pickles of torch, too.
        unknown: Those of them that became stand-ins.
        size: How many bytes it took; more in the file is not part of it.
    """

    value: Any
    globals: Counter[str]
    unknown: Counter[str]
    size: int


def load(
    data: Path | bytes | memoryview,
    *,
    budget: Budget | None = None,
    where: str = "",
    is_input: bool = True,
) -> Unpickled:
    """Reads a pickle.

    Args:
        data: The file or the bytes.
        budget: What reading may cost; give the same one for all pickles of a checkpoint.
        where: What it is, for errors; the path by default.
        is_input: Whether bytes are noted as input, unless the caller has done so; those that lay
            inside of another pickle are none.

    Raises:
        CorruptCheckpointError: It is damaged, hostile or no pickle.
        CheckpointError: The file can't be opened.
    """
    view, budget, where = _open(data, budget, where, is_input=is_input)
    return _load(view, budget, where)


def load_torch(
    data: Path | bytes | memoryview,
    *,
    budget: Budget | None = None,
    where: str = "",
    is_input: bool = True,
) -> Unpickled:
    """Reads what `torch.save` wrote, in either of its forms, or a plain pickle.

    Newer Rays call a plain pickle of arrays `module_state.pt`. The arguments are those of `load`.

    Raises:
        CorruptCheckpointError: It is damaged, hostile or nothing of torch.
        CheckpointError: The file can't be opened.
    """
    view, budget, where = _open(data, budget, where, is_input=is_input)
    machine = Unpickler(view, NAMES, budget, where)
    try:
        if view[:4] == ZIP_MAGIC:
            value = read_zip(io.BytesIO(view), machine.nested, budget)
            size = len(view)
        elif view[: len(LEGACY_MAGIC)] == LEGACY_MAGIC:
            value, size = read_legacy(view, machine.nested, budget)
        else:
            return _load(view, budget, where)
    # As in `Unpickler.run`: whatever fails here, the file is at fault.
    except Exception as error:
        raise machine.error(error) from error
    return Unpickled(value, machine.globals, machine.unknown, size)


def looks_like_pickle(data: Path | bytes | memoryview) -> bool:
    """Whether it starts, and ends, as a pickle does. It may be damaged all the same."""
    if isinstance(data, Path):
        with open_regular(data) as file:
            head = file.read(2)
            tail = head and file.seek(-1, io.SEEK_END) is not None and file.read(1)
    else:
        head, tail = bytes(data[:2]), bytes(data[-1:])
    if head[:1] == b"\x80":
        return len(head) == 2 and 2 <= head[1] <= 5
    # Protocols 0 and 1 have no mark; a container, a global or a tuple comes first.
    return head[:1] in (b"(", b"]", b"}", b"c", b")") and tail == b"."


def _open(
    data: Path | bytes | memoryview, budget: Budget | None, where: str, *, is_input: bool
) -> tuple[memoryview, Budget, str]:
    budget = budget or Budget()
    if isinstance(data, Path):
        return read_bytes(data, budget, where or str(data)).toreadonly(), budget, where or str(data)
    view = memoryview(data).cast("B").toreadonly()
    if is_input:
        budget.take_input(len(view), where or None)
    return view, budget, where


def _load(view: memoryview, budget: Budget, where: str) -> Unpickled:
    machine = Unpickler(view, NAMES, budget, where)
    value = machine.run()
    return Unpickled(value, machine.globals, machine.unknown, machine.pos)
