"""Files of a checkpoint, read without trusting their names or each other.

Only regular files below the checkpoint's own folder are opened. A path that is stored inside a
file is never followed: the file is looked for beside the one that names it. The one exception are
`params.pkl` and `params.json`, which Tune's loggers write into the trial's folder, above the
checkpoint's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rllib_compat.formats import pickles
from rllib_compat.formats.files import parse_json, read_bytes
from rllib_compat.formats.layouts import foreign_files
from rllib_compat.formats.msgpack import codec
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.digests import Digests
from rllib_compat.neutral.errors import CompatError, CorruptCheckpointError, MissingFileError
from rllib_compat.neutral.policy_id import PolicyIds
from rllib_compat.neutral.report import Finding, Verdict


class LayoutMismatch(Exception):  # noqa: N818 - not an error: another layout may fit
    """A path is not of this layout; the text says what was looked for and not found."""


@dataclass
class Folder:
    """A checkpoint's folder, and what was read of it.

    Attributes:
        root: The folder.
        budget: What the job may cost.
        findings: What was noticed while reading.
        stand_ins: How often each class that is not on the table of known names was met.
        digests: The sha256 of every file that was read.
        missing: The files without which the checkpoint can't be converted.
    """

    root: Path
    budget: Budget = field(default_factory=Budget)
    findings: list[Finding] = field(default_factory=list)
    stand_ins: dict[str, int] = field(default_factory=dict)
    digests: Digests = field(default_factory=Digests)
    missing: list[MissingFileError] = field(default_factory=list)

    def path(self, name: str) -> Path:
        """The path of a file below the folder; raises where it leads elsewhere."""
        path = self.root / name
        if path.is_symlink() or not path.resolve().is_relative_to(self.root.resolve()):
            raise CorruptCheckpointError(
                "A link or path points outside of the checkpoint.",
                where=str(path),
                fix="Copy the checkpoint with the linked files (`cp -rL`).",
            )
        return path

    def has(self, name: str) -> bool:
        """Whether there is a regular file of this name."""
        return (self.root / name).is_file()

    def lacks(self, name: str) -> bool:
        """Whether a file is not there, or something else is in its place; it is noted then."""
        try:
            self._require(self.path(name))
        except MissingFileError as error:
            self.missing.append(error)
            return True
        return False

    def _require(self, path: Path) -> None:
        where = path.relative_to(self.root).as_posix()
        if not path.is_file():
            raise MissingFileError(
                "The file does not exist.",
                where=where,
                fix="Copy the checkpoint again, with all its files.",
            )
        if foreign := foreign_files.identify(path):
            raise MissingFileError(foreign.found, where=where, fix=foreign.fix)

    def folders(self, name: str) -> Iterator[Path]:
        """The folders below `name`, sorted."""
        path = self.root / name
        if path.is_dir():
            for inner in sorted(p for p in path.iterdir() if p.is_dir()):
                yield self.path(inner.relative_to(self.root).as_posix())

    def files(self, name: str) -> list[str]:
        """The names of the regular files in the folder `name`, sorted."""
        path = self.root / name
        return sorted(p.name for p in path.iterdir() if p.is_file()) if path.is_dir() else []

    def policy_ids(self, found: Iterable[Any], where: str) -> PolicyIds:
        """The ids of the policies that files call `found`; those that had to change are noted."""
        found = list(found)
        self.budget.spend("policies", len(found), where)
        ids = PolicyIds(found)
        self.findings += ids.findings()
        return ids

    def content(self, name: str) -> memoryview:
        """Reads a file of the folder, and notes its digest.

        Raises:
            MissingFileError: It is not there, or something else is in its place.
        """
        path = self.path(name)
        self._require(path)
        data = read_bytes(path, self.budget, name)
        self.digests.note(path.relative_to(self.root).as_posix(), data)
        return data

    def pickle(self, name: str) -> Any:
        """Reads a pickle of the folder with the bounded machine."""
        data = self.content(name)
        return self._value(pickles.load(data, budget=self.budget, where=name, is_input=False))

    def torch(self, name: str) -> Any:
        """Reads a file that `torch.save` wrote."""
        data = self.content(name)
        read = pickles.load_torch(data, budget=self.budget, where=name, is_input=False)
        return self._value(read)

    def nested(self, data: object, where: str) -> Any:
        """Reads a pickle that was stored as bytes inside another one, at most two deep."""
        value = data
        for _ in range(2):
            if isinstance(value, (bytes, bytearray, memoryview)):
                self.budget.spend("nested", 1, where)
                self.budget.spend("bytes", len(value), where)
                inner = value if isinstance(value, memoryview) else bytes(value)
                read = pickles.load(inner, budget=self.budget, where=where, is_input=False)
                value = self._value(read)
        return value

    def _value(self, read: pickles.Unpickled) -> Any:
        self.count_stand_ins(read.unknown)
        return read.value

    def count_stand_ins(self, met: Mapping[str, int]) -> None:
        """Adds how often names were met that became stand-ins."""
        for name, count in met.items():
            self.stand_ins[name] = self.stand_ins.get(name, 0) + count

    def include(self, name: str, inner: Folder) -> None:
        """Takes what was noticed in a folder below, which is called `name`."""
        for error in inner.missing:
            where = f"{name}/{error.where}"
            self.missing.append(MissingFileError(error.found, where=where, fix=error.fix))
        self.digests.include(name, inner.digests)
        self.findings += inner.findings
        self.count_stand_ins(inner.stand_ins)

    def msgpack(self, name: str) -> Any:
        """Reads a msgpack file of the folder."""
        return codec.unpack(self.content(name), budget=self.budget, where=name, as_input=False)

    def json(self, name: str) -> Any:
        """Reads a JSON file of the folder."""
        return parse_json(self.content(name), self.budget, name)

    def state_file(
        self, stem: str, endings: Iterable[str] = (".msgpack", ".pkl", ".pt")
    ) -> str | None:
        """The file of a component's state; as Ray does, msgpack is taken before pickle."""
        return next((stem + ending for ending in endings if self.has(stem + ending)), None)

    def read(self, name: str) -> Any:
        """Reads a file in the form of its ending; without a known one, as a pickle."""
        return _READERS.get(Path(name).suffix, Folder.pickle)(self, name)

    def try_side_file(self, name: str) -> Any:
        """Reads a file that the weights do not need; a damaged one is reported and skipped.

        Returns:
            The content; None where the file is missing or damaged.
        """
        if not self.has(name):
            return None
        try:
            return self.read(name)
        except MissingFileError as error:
            self._leave_out(name, f"left out: {error.found}", error.fix or "")
        except (CompatError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else error.found
            found = f"damaged and left out: {why}"
            self._leave_out(name, found, "the weights do not depend on it")
        return None

    def _leave_out(self, name: str, message: str, hint: str) -> None:
        self.findings.append(Finding.warning("side-file", Verdict.DROPPED, name, message, hint))

    def finish(self, checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
        """The checkpoint that was read of this folder, with what was noticed.

        Raises:
            MissingFileError: Files were missing; the error has the checkpoint as its `rest`.
        """
        checkpoint = replace(checkpoint, stand_ins=self.stand_ins or checkpoint.stand_ins)
        checkpoint = checkpoint.with_findings(self.findings)
        if not self.missing:
            return checkpoint
        first, *others = self.missing
        more = f" ({len(others)} more files likewise.)" if others else ""
        error = MissingFileError(first.found + more, where=first.where, fix=first.fix)
        error.rest = checkpoint
        raise error


_READERS = {
    ".json": Folder.json,
    ".msgpack": Folder.msgpack,
    ".msgpck": Folder.msgpack,
    ".pt": Folder.torch,
}


def as_mapping(value: object) -> Mapping[Any, Any]:
    """The same value if it is a mapping, else an empty one: files hold whatever they like."""
    return value if isinstance(value, Mapping) else {}


def with_text_keys(mapping: object) -> dict[str, Any]:
    """A dict with the text of its keys; keys of the same text (`1` and `"1"`) get different names.

    Of what is no mapping it is empty.
    """
    named: dict[str, Any] = {}
    for key, value in as_mapping(mapping).items():
        name = _text_of(key)
        if name in named:
            name = f"{name} ({type(key).__name__} {len(named)})"
        named[name] = value
    return named


def _text_of(key: object) -> str:
    if isinstance(key, str):
        return key
    # Python refuses to print integers of thousands of digits, and tuples may hold whatever.
    small = isinstance(key, (bool, float)) or (isinstance(key, int) and key.bit_length() < 128)
    return str(key) if small else type(key).__name__
