"""Lists what a pickle names, wherever in it, with the verdict on each name.

The pickle is read by the same machine that reads checkpoints, so that the list holds what a reader
of pickles would have looked up, and not what a search for patterns finds. Byte strings that are
pickles themselves are read, too, whether or not anything would ever open them; damaged pickles are
read up to where they end.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from rllib_compat.formats.pickles.machine import Machine, Names
from rllib_compat.formats.pickles.tensors import LEGACY_MAGIC, ZIP_MAGIC, read_legacy, read_zip
from rllib_compat.formats.pickles.values import parts_of
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.errors import BudgetExceededError, CorruptCheckpointError
from rllib_compat.neutral.frozen import frozen
from rllib_compat.neutral.records import GlobalRef

_DEEPEST = 8


class Standing(str, Enum):
    """What becomes of a name."""

    #: It is on the table of names: plain data is made of it by a constructor of ours.
    KNOWN = "known"
    #: An inert record is made of it.
    INERT = "inert"
    #: The pickle that names it is not read, or not beyond this place.
    REFUSED = "refused"


@frozen
class Name:
    """A class or function that a file names.

    Attributes:
        name: Module and name, dotted; empty where a pickle is refused before it names anything.
        standing: What becomes of it.
        offset: The first place, in bytes from the start of the file; None where the pickle does not
            lie in the file as it is.
        inside: In which pickles of the file it lies, by their offsets; empty for the file's own.
        times: How often this pickle names it.
        why: Why it is refused.
    """

    name: str
    standing: Standing
    offset: int | None
    inside: tuple[str, ...] = ()
    times: int = 1
    why: str = ""


def list_names(
    data: memoryview, names: Names, budget: Budget, *, refused: str = ""
) -> Iterator[Name]:
    """Lists the names in a pickle, or in a file of torch, and in all pickles inside of it.

    Args:
        data: The file.
        names: The table of known names.
        budget: What it may cost.
        refused: Why nothing would read it, if that is so.

    Raises:
        BudgetExceededError: It costs more.
    """
    lister = _Lister(data, names, budget, refused)
    lister.run(data, ())
    return iter(lister.found.values())


def pickles_in(values: Iterable[Any]) -> Iterator[memoryview]:
    """The byte strings inside of values that begin as pickles do, in their order."""
    waiting, seen = [*values][::-1], set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, (bytes, bytearray, memoryview)):
            view = memoryview(value)
            if view.nbytes > 2 and _starts(view):
                yield view
            continue
        parts = parts_of(value)
        if parts is not None and id(value) not in seen:
            seen.add(id(value))
            waiting += [*parts][::-1]


def _starts(view: memoryview) -> bool:
    head, last = bytes(view[:4]), bytes(view[-1:])
    if head[:1] == b"\x80":
        return 2 <= head[1] <= 5
    return head == ZIP_MAGIC or (head[:1] in (b"(", b"]", b"}", b"c", b")") and last == b".")


class _Lister:
    """One file on its way through."""

    def __init__(self, file: memoryview, names: Names, budget: Budget, refused: str) -> None:
        # What byte strings are a part of, by id, and where that lies in the file.
        self.wholes: dict[int, tuple[memoryview, int]] = {id(file.obj): (file, 0)}
        self.names = names
        self.budget = budget
        self.refused = refused
        self.found: dict[tuple[tuple[str, ...], str], Name] = {}
        self.places: dict[bytes, int] = {}  # where byte strings lie in the file, by digest
        self.last: tuple[str, int | None] = "", 0

    def run(self, data: memoryview, inside: tuple[str, ...]) -> None:
        """Lists one pickle, and those inside of it.

        Raises:
            BudgetExceededError: It costs too much.
        """
        machine = _Listening(self, data, inside)
        try:
            left = [self._read(machine, data)]
        except BudgetExceededError:
            raise
        except CorruptCheckpointError as error:
            name, offset = self.last
            why = ", ".join(filter(None, (error.found, error.where)))
            key = inside, f"refused {len(self.found)}"
            self.found[key] = Name(name, Standing.REFUSED, offset, inside, why=why)
            left = machine.rest()
        if len(inside) >= _DEEPEST:
            return
        for inner in pickles_in(left):
            self.budget.spend("nested", 1)
            self.budget.spend("bytes", inner.nbytes)
            self.run(inner, (*inside, self.label(inner)))

    def _read(self, machine: _Listening, data: memoryview) -> Any:
        try:
            if data[:4] == ZIP_MAGIC:
                self._note_member(data)
                return read_zip(io.BytesIO(data), machine.nested, self.budget)
            if data[: len(LEGACY_MAGIC)] == LEGACY_MAGIC:
                return read_legacy(data, machine.nested, self.budget)[0]
            return machine.run()
        # As everywhere that a file is read: whatever fails here, the file is at fault.
        except Exception as error:
            raise machine.blame(error) from error

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
        self.places.setdefault(hashlib.sha256(data).digest(), at)

    def start(self, data: memoryview) -> int | None:
        """Where in the file bytes lie; None if they do not lie there as they are."""
        if not data.nbytes:
            return None
        known = self.wholes.get(id(data.obj))
        if known is None:
            at = self.places.get(hashlib.sha256(data).digest())
            if at is not None:
                self.wholes[id(data.obj)] = data, at
            return at
        whole, at = known
        inner, outer = (np.frombuffer(view, np.uint8).ctypes.data for view in (data, whole))
        return at + int(inner) - int(outer)

    def label(self, data: memoryview) -> str:
        """What a pickle inside of the file is called."""
        at = self.start(data)
        return f"a pickle of {data.nbytes} bytes" if at is None else f"the pickle at {at}"

    def note(self, ref: GlobalRef, offset: int | None, inside: tuple[str, ...]) -> None:
        """Notes a name."""
        self.last = ref.qualified, offset
        key = inside, ref.qualified
        if known := self.found.get(key):
            self.found[key] = replace(known, times=known.times + 1)
            return
        is_known = (ref.module, ref.name) in self.names
        standing = Standing.KNOWN if is_known else Standing.INERT
        standing = Standing.REFUSED if self.refused else standing
        self.found[key] = Name(ref.qualified, standing, offset, inside, why=self.refused)


class _Listening(Machine):
    """A machine that tells each name to a lister."""

    def __init__(
        self,
        lister: _Lister,
        data: memoryview,
        inside: tuple[str, ...],
        persistent: Callable[[Any], Any] | None = None,
        level: int = 0,
    ) -> None:
        super().__init__(data, lister.names, lister.budget, "", persistent=persistent, level=level)
        self.lister = lister
        self.inside = inside
        self.start = lister.start(data)

    def take(self, size: int) -> memoryview:
        """Notes where pickles lie."""
        view = super().take(size)
        if self.start is not None and size > 2 and _starts(view):
            self.lister.note_bytes(view, self.start + self.pos - size)
        return view

    def name(self, module: Any, name: Any, at: int) -> GlobalRef:
        """Tells it, too."""
        ref = super().name(module, name, at)
        self.lister.note(ref, None if self.start is None else self.start + at, self.inside)
        return ref

    def inner(self, data: memoryview, persistent: Callable[[Any], Any] | None) -> Machine:
        """Machines of torch's nested pickles tell it, too."""
        inside = (*self.inside, self.lister.label(data))
        return _Listening(self.lister, data, inside, persistent, self.level + 1)

    def rest(self) -> list[Any]:
        """What a machine has made until it ended early."""
        return [self.stack, *self.marks, *self.memo.values()]
