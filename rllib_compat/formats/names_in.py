"""Every class and function that the files of a checkpoint name, file by file.

This looks at all files below a path, not only at those that a layout reads: whoever wants to know
what is in a stranger's checkpoint before anything else opens it has to see all of it.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_compat.formats.layouts import params
from rllib_compat.formats.msgpack import codec
from rllib_compat.formats.pickles import looks_like_pickle
from rllib_compat.formats.pickles.listing import Name, Standing, list_names, pickles_in
from rllib_compat.formats.pickles.names import NAMES
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import (
    BudgetExceededError,
    CorruptCheckpointError,
    UnknownLayoutError,
)
from rllib_compat.neutral.frozen import frozen

__all__ = ["FileNames", "Name", "Standing", "names_in"]

#: Files that are read as pickles whatever they begin with.
_PICKLES = re.compile(r".*\.(pkl|pickle|pt|pth|extra_data|tune_metadata)|checkpoint[-_]\d+")
_MSGPACK = (".msgpck", ".msgpack")
_DEEPEST = 20
_MOST_FILES = 20_000
_OBJECTS = "an array of objects, which is a pickle inside of msgpack, and is never read"


@frozen
class FileNames:
    """What one file names.

    Attributes:
        file: The file, relative to the path that was given where it lies below it.
        names: What it names, in the order of the file.
    """

    file: str
    names: tuple[Name, ...]


def names_in(path: str | Path, budget: Budget | None = None) -> list[FileNames]:
    """Lists what the files of a checkpoint name.

    Args:
        path: A checkpoint file, its folder, or the trial's folder above it.
        budget: What the job may cost.

    Returns:
        The files that hold pickles or msgpack, sorted. Links are told and not followed.

    Raises:
        UnknownLayoutError: There is nothing of that name.
        BudgetExceededError: It costs more than the budget allows.
    """
    path, budget = Path(path), budget or Budget()
    if not os.path.lexists(path):
        raise UnknownLayoutError(
            "There is no such file or folder.", where=str(path), fix="Check the path."
        )
    root = path if path.is_dir() else path.parent
    listed = (_listed(file, budget) for file in _files(path))
    return [FileNames(_relative(file, root), names) for file, names in listed if names is not None]


def _relative(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _files(path: Path) -> Iterator[Path]:
    """The files of a checkpoint, and the params of the trial around it."""
    if path.is_dir():
        found = sorted(_below(path))
    else:
        beside = (f"{path.name}.tune_metadata", ".tune_metadata")
        found = [path, *(path.with_name(name) for name in beside)]
    folder = params.find(path if path.is_dir() else path.parent)
    around = [] if folder is None else [folder / "params.pkl"]
    yield from dict.fromkeys(file for file in (*found, *around) if os.path.lexists(file))


def _below(folder: Path) -> Iterator[Path]:
    count = 0
    for name, folders, files in os.walk(folder):
        here = Path(name)
        links = [inner for inner in folders if (here / inner).is_symlink()]
        for inner in sorted((*files, *links)):
            count += 1
            if count > _MOST_FILES:
                raise BudgetExceededError(
                    f"There are more than {_MOST_FILES:,} files below this folder.",
                    where=str(folder),
                    fix="Give the folder of one checkpoint.",
                )
            yield here / inner
        if len(here.relative_to(folder).parts) >= _DEEPEST:
            folders.clear()


def _listed(file: Path, budget: Budget) -> tuple[Path, tuple[Name, ...] | None]:
    """What a file names; None where it is of a kind that names nothing."""
    if file.is_symlink():
        return file, (_refused("a link, which is not followed"),)
    if not file.is_file():
        return file, (_refused("neither a file nor a folder; it is not opened"),)
    try:
        is_msgpack = file.suffix in _MSGPACK
        if not (is_msgpack or _PICKLES.fullmatch(file.name) or looks_like_pickle(file)):
            return file, None
        data = _mapped(file)
        budget.take_input(len(data), str(file))
        names = _in_msgpack(data, budget) if is_msgpack else list_names(data, NAMES, budget)
        return file, tuple(names)
    except OSError as error:
        return file, (_refused(f"it can't be read: {error.strerror}"),)


def _refused(why: str) -> Name:
    return Name("", Standing.REFUSED, 0, why=why)


def _mapped(file: Path) -> memoryview:
    with file.open("rb") as opened:
        if not os.fstat(opened.fileno()).st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))


def _in_msgpack(data: memoryview, budget: Budget) -> Iterator[Name]:
    """What the pickles name that lie in a msgpack file as bytes."""
    packed, searched = bytes(data), 0
    try:
        value = codec.unpack(packed, budget=budget, as_input=False, with_arrays=False)
    except BudgetExceededError:
        raise
    except CorruptCheckpointError as error:
        yield _refused(error.found)
        return
    objects = {id(part) for part in _data_of_objects(value)}
    for inner in pickles_in([value]):
        at = packed.find(inner, searched)
        searched = at + inner.nbytes
        refused = _OBJECTS if id(inner.obj) in objects else ""
        for found in list_names(inner, NAMES, budget, refused=refused):
            offset = None if found.offset is None else at + found.offset
            yield replace(found, offset=offset, inside=(f"the bytes at {at}", *found.inside))


def _data_of_objects(value: Any) -> Iterator[Any]:
    """The data of all arrays of objects in msgpack that was read without its arrays."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if part.get(b"kind") == b"O":
                yield part.get(b"data")
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
