"""Lists every class and function that the files of a checkpoint name, and what becomes of each.

All files below a path are looked at, not only those that a layout reads: whoever wants to know
what is in a stranger's checkpoint before anything else opens it has to see all of it. The machine
that reads checkpoints reads them, so the list holds what a reader of pickles would have looked up,
and not what a search for patterns finds. Byte strings that are pickles themselves are read, too,
whether or not anything would ever open them; damaged pickles are read up to where they end.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from rllib_compat.formats.files import disk_errors, read_bytes, walk
from rllib_compat.formats.layouts.configs import find_params
from rllib_compat.formats.msgpack import codec
from rllib_compat.formats.pickles import looks_like_pickle
from rllib_compat.formats.pickles.arrays import LEGACY_MAGIC, ZIP_MAGIC, read_legacy, read_zip
from rllib_compat.formats.pickles.machine import parts_of
from rllib_compat.formats.pickles.names import NAMES
from rllib_compat.formats.pickles.opcodes import Unpickler
from rllib_compat.formats.stores import source_path
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import (
    BudgetExceededError,
    CheckpointError,
    CorruptCheckpointError,
    UnknownLayoutError,
)
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef

#: Files that are read as pickles whatever they begin with.
_PICKLES = re.compile(r".*\.(pkl|pickle|pt|pth|extra_data|tune_metadata)|checkpoint[-_]\d+")
_MSGPACK = (".msgpck", ".msgpack")
_DEEPEST_FOLDER = 20
_DEEPEST_PICKLE = 8
_MOST_FILES = 20_000
_OBJECTS = "an array of objects, which is a pickle inside of msgpack, and is never read"


class Handling(str, Enum):
    """What becomes of a name."""

    #: It is on the table of names: plain data is made of it by a constructor of ours.
    KNOWN = "known"
    #: An inert record is made of it.
    INERT = "inert"
    #: The pickle that names it is not read, or not beyond this place.
    REFUSED = "refused"


@frozen
class Global:
    """A class or function that a file names.

    Attributes:
        name: Module and name, dotted; empty where a pickle is refused before it names anything.
        handling: What becomes of it.
        offset: The first place, in bytes from the start of the file; None where the pickle does not
            lie in the file as it is.
        inside: In which pickles of the file it lies, by their offsets; empty for the file's own.
        times: How often this pickle names it.
        why: Why it is refused.
    """

    name: str
    handling: Handling
    offset: int | None
    inside: tuple[str, ...] = ()
    times: int = 1
    why: str = ""


@frozen
class FileGlobals:
    """What one file names.

    Attributes:
        file: The file, relative to the path that was given where it lies below it.
        names: What it names, in the order of the file.
    """

    file: str
    names: tuple[Global, ...]


def list_globals(path: str | Path, budget: Budget | None = None) -> list[FileGlobals]:
    """Lists what the files of a checkpoint (a file, its folder, or that of its trial) name.

    Returns:
        The files that hold pickles or msgpack, sorted. Links are listed and not followed.

    Raises:
        UnknownLayoutError: There is nothing of that name.
        BudgetExceededError: It costs more than the budget allows.
    """
    path, budget = source_path(path), budget or Budget()
    if not os.path.lexists(path):
        raise UnknownLayoutError(
            "There is no such file or folder.", where=str(path), fix="Check the path."
        )
    root = path if path.is_dir() else path.parent
    found = []
    with disk_errors(path):
        for file in _find_files(path):
            names = _list_file(file, budget)
            if names is not None:
                below = file.is_relative_to(root)
                shown = file.relative_to(root).as_posix() if below else str(file)
                found.append(FileGlobals(shown, tuple(names)))
    return found


def _find_files(path: Path) -> Iterator[Path]:
    """The files of a checkpoint, and the params of the trial around it."""
    if path.is_dir():
        found = sorted(_walk(path))
    else:
        beside = (f"{path.name}.tune_metadata", ".tune_metadata")
        found = [path, *(path.with_name(name) for name in beside)]
    params = find_params(path if path.is_dir() else path.parent)
    around = [] if params is None else [params / "params.pkl"]
    yield from dict.fromkeys(file for file in (*found, *around) if os.path.lexists(file))


def _walk(root: Path) -> Iterator[Path]:
    count = 0
    for place, folders, files in walk(root):
        links = [inner for inner in folders if (place / inner).is_symlink()]
        for inner in sorted((*files, *links)):
            count += 1
            if count > _MOST_FILES:
                raise BudgetExceededError(
                    f"There are more than {_MOST_FILES:,} files below this folder.",
                    where=str(root),
                    fix="Pass the folder of one checkpoint.",
                )
            yield place / inner
        if len(place.relative_to(root).parts) >= _DEEPEST_FOLDER:
            folders.clear()


def _list_file(file: Path, budget: Budget) -> list[Global] | None:
    """What a file names; None where it is of a kind that names nothing."""
    if file.is_symlink():
        return [_refusal("a link, which is not followed")]
    if not file.is_file():
        return [_refusal("neither a file nor a folder; it is not opened")]
    try:
        is_msgpack = file.suffix in _MSGPACK
        if not (is_msgpack or _PICKLES.fullmatch(file.name) or looks_like_pickle(file)):
            return None
        data = read_bytes(file, budget, str(file))
    except OSError as error:
        return [_refusal(f"it can't be read: {error.strerror}")]
    except BudgetExceededError:
        raise
    except CheckpointError as error:
        return [_refusal(error.found)]
    return [*(_list_msgpack if is_msgpack else _list_pickle)(data, budget)]


def _refusal(why: str) -> Global:
    return Global("", Handling.REFUSED, 0, why=why)


def _list_msgpack(data: memoryview, budget: Budget) -> Iterator[Global]:
    """What the pickles name that lie in a msgpack file as bytes."""
    packed, searched = bytes(data), 0
    try:
        value = codec.unpack(packed, budget=budget, as_input=False, with_arrays=False)
    except BudgetExceededError:
        raise
    except CorruptCheckpointError as error:
        yield _refusal(error.found)
        return
    objects = {id(part) for part in _find_object_data(value)}
    for inner in _find_pickles([value]):
        at = packed.find(inner, searched)
        searched = at + inner.nbytes
        refused = _OBJECTS if id(inner.obj) in objects else ""
        for found in _list_pickle(inner, budget, refused):
            offset = None if found.offset is None else at + found.offset
            yield replace(found, offset=offset, inside=(f"the bytes at {at}", *found.inside))


def _find_object_data(value: object) -> Iterator[Any]:
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


def _list_pickle(data: memoryview, budget: Budget, refused: str = "") -> Iterable[Global]:
    """What a pickle, or a file of torch, names, and all pickles inside of it."""
    lister = _Lister(data, budget, refused)
    lister.run(data, ())
    return lister.found.values()


def _find_pickles(values: Iterable[Any]) -> Iterator[memoryview]:
    """The byte strings inside of values that begin as pickles do, in their order."""
    waiting, seen = [*values][::-1], set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, (bytes, bytearray, memoryview)):
            view = memoryview(value)
            if _may_be_pickle(view):
                yield view
            continue
        parts = parts_of(value)
        if parts is not None and id(value) not in seen:
            seen.add(id(value))
            waiting += [*parts][::-1]


def _may_be_pickle(view: memoryview) -> bool:
    return view.nbytes > 2 and (bytes(view[:4]) == ZIP_MAGIC or looks_like_pickle(view))


class _Lister:
    """Lists the names of one file.

    Attributes:
        found: The names, by the pickles that they lie in.
    """

    def __init__(self, file: memoryview, budget: Budget, refused: str) -> None:
        self.budget = budget
        self.found: dict[tuple[tuple[str, ...], str], Global] = {}
        self._refused = refused
        # What byte strings are a part of, by id, and where that lies in the file.
        self._buffers: dict[int, tuple[memoryview, int]] = {id(file.obj): (file, 0)}
        self._places: dict[bytes, int] = {}  # where byte strings lie in the file, by digest
        self._last: tuple[str, int | None] = "", 0

    def run(self, data: memoryview, inside: tuple[str, ...]) -> None:
        """Lists one pickle, and those inside of it.

        Raises:
            BudgetExceededError: It costs too much.
        """
        machine = _ListingMachine(self, data, inside)
        try:
            left = [self._read(machine, data)]
        except BudgetExceededError:
            raise
        except CorruptCheckpointError as error:
            name, offset = self._last
            why = ", ".join(filter(None, (error.found, error.where)))
            key = inside, f"refused {len(self.found)}"
            self.found[key] = Global(name, Handling.REFUSED, offset, inside, why=why)
            left = [machine.stack, *machine.marks, *machine.memo.values()]  # made until then
        if len(inside) >= _DEEPEST_PICKLE:
            return
        for inner in _find_pickles(left):
            self.budget.spend("nested", 1)
            self.budget.spend("bytes", inner.nbytes)
            self.run(inner, (*inside, self.label(inner)))

    def _read(self, machine: _ListingMachine, data: memoryview) -> Any:
        try:
            if data[:4] == ZIP_MAGIC:
                self._note_member(data)
                return read_zip(io.BytesIO(data), machine.nested, self.budget)
            if data[: len(LEGACY_MAGIC)] == LEGACY_MAGIC:
                return read_legacy(data, machine.nested, self.budget)[0]
            return machine.run()
        # As everywhere that a file is read: whatever fails here, the file is at fault.
        except Exception as error:
            raise machine.error(error) from error

    def _note_member(self, data: memoryview) -> None:
        """Notes where the pickle of torch's zip form lies, which is stored as it is."""
        start = self.start(data)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                at = member.header_offset
                if start is not None and member.filename.endswith("/data.pkl"):
                    at += 30 + sum(
                        int.from_bytes(data[at + i : at + i + 2], "little") for i in (26, 28)
                    )
                    self.note_bytes(data[at : at + member.file_size], start + at)

    def note_bytes(self, data: memoryview, at: int) -> None:
        """Notes where bytes that may be a pickle lie in the file."""
        self._places.setdefault(hashlib.sha256(data).digest(), at)

    def start(self, data: memoryview) -> int | None:
        """Where in the file bytes lie; None if they do not lie there as they are."""
        if not data.nbytes:
            return None
        known = self._buffers.get(id(data.obj))
        if known is None:
            at = self._places.get(hashlib.sha256(data).digest())
            if at is not None:
                self._buffers[id(data.obj)] = data, at
            return at
        buffer, at = known
        inner, outer = (np.frombuffer(view, np.uint8).ctypes.data for view in (data, buffer))
        return at + int(inner) - int(outer)

    def label(self, data: memoryview) -> str:
        """What a pickle inside of the file is called."""
        at = self.start(data)
        return f"a pickle of {data.nbytes} bytes" if at is None else f"the pickle at {at}"

    def note(self, ref: GlobalRef, offset: int | None, inside: tuple[str, ...]) -> None:
        """Notes a name."""
        self._last = ref.qualified, offset
        key = inside, ref.qualified
        if known := self.found.get(key):
            self.found[key] = replace(known, times=known.times + 1)
            return
        handling = Handling.KNOWN if (ref.module, ref.name) in NAMES else Handling.INERT
        if self._refused:
            handling = Handling.REFUSED
        self.found[key] = Global(ref.qualified, handling, offset, inside, why=self._refused)


class _ListingMachine(Unpickler):
    """A machine that reports each name to a lister."""

    def __init__(
        self,
        lister: _Lister,
        data: memoryview,
        inside: tuple[str, ...],
        persistent: Callable[[Any], Any] | None = None,
        level: int = 0,
    ) -> None:
        super().__init__(data, NAMES, lister.budget, "", persistent=persistent, level=level)
        self.lister = lister
        self.inside = inside
        self.start = lister.start(data)

    def take(self, size: int) -> memoryview:
        """Notes where pickles lie."""
        view = super().take(size)
        if self.start is not None and _may_be_pickle(view):
            self.lister.note_bytes(view, self.start + self.pos - size)
        return view

    def name(self, module: object, name: object, at: int) -> GlobalRef:
        """Reports it, too."""
        ref = super().name(module, name, at)
        self.lister.note(ref, None if self.start is None else self.start + at, self.inside)
        return ref

    def inner(self, data: memoryview, persistent: Callable[[Any], Any] | None) -> _ListingMachine:
        """Machines of torch's nested pickles report to it, too."""
        inside = (*self.inside, self.lister.label(data))
        return _ListingMachine(self.lister, data, inside, persistent, self.level + 1)
