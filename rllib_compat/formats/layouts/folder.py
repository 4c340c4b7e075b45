"""Files of a checkpoint, read without trusting their names or each other.

Only regular files below the checkpoint's own folder are opened. A path that is stored inside a
file is never followed: the file is looked for beside the one that names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rllib_compat.formats import impostors, pickles
from rllib_compat.formats.msgpack import codec as msgpack_codec
from rllib_compat.formats.texts import read_json
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.digests import Digests
from rllib_compat.neutral.errors import (
    CompatError,
    CorruptCheckpointError,
    MissingFileError,
)
from rllib_compat.neutral.report import Finding, Severity, Verdict


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
                "A link or a path leads out of the checkpoint.",
                where=str(path),
                fix="Copy the checkpoint with its real files (`cp -rL`).",
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

    def whole(self, checkpoint: LegacyCheckpoint) -> LegacyCheckpoint:
        """The checkpoint that was read of this folder.

        Raises:
            MissingFileError: Files were missing; the error has the checkpoint as its `rest`.
        """
        if not self.missing:
            return checkpoint
        first, *others = self.missing
        more = f" ({len(others)} more files likewise.)" if others else ""
        error = MissingFileError(first.found + more, where=first.where, fix=first.fix)
        error.rest = checkpoint
        raise error

    def _require(self, path: Path) -> None:
        where = path.relative_to(self.root).as_posix()
        if not path.is_file():
            raise MissingFileError(
                "The file is not there.",
                where=where,
                fix="Copy the checkpoint again, with all its files.",
            )
        if impostor := impostors.look(path):
            raise MissingFileError(impostor.found, where=where, fix=impostor.fix)

    def folders(self, name: str) -> Iterator[Path]:
        """The folders below `name`, sorted."""
        path = self.root / name
        if path.is_dir():
            for inner in sorted(p for p in path.iterdir() if p.is_dir()):
                yield self.path(inner.relative_to(self.root).as_posix())

    def files(self, name: str) -> list[str]:
        """The names of the regular files below `name`, sorted."""
        path = self.root / name
        return sorted(p.name for p in path.iterdir() if p.is_file()) if path.is_dir() else []

    def _note_digest(self, path: Path) -> None:
        """Notes the digest of a file that is read now, and makes sure that it is one."""
        self._require(path)
        self.digests.note(path.relative_to(self.root).as_posix(), path)

    def pickle(self, name: str) -> Any:
        """Reads a pickle of the folder with the bounded machine."""
        path = self.path(name)
        self._note_digest(path)
        return self._note_stand_ins(pickles.load(path, budget=self.budget, where=name))

    def nested(self, data: Any, where: str) -> Any:
        """Reads a pickle that was stored as bytes inside another one, at most two deep."""
        value = data
        for _ in range(2):
            if isinstance(value, (bytes, bytearray, memoryview)):
                self.budget.spend("nested", 1, where)
                inner = value if isinstance(value, memoryview) else bytes(value)
                read = pickles.load(inner, budget=self.budget, where=where, is_input=False)
                value = self._note_stand_ins(read)
        return value

    def torch(self, name: str) -> Any:
        """Reads a file that `torch.save` wrote."""
        path = self.path(name)
        self._note_digest(path)
        return self._note_stand_ins(pickles.load_torch(path, budget=self.budget, where=name))

    def _note_stand_ins(self, read: pickles.Unpickled) -> Any:
        for name, count in read.unknown.items():
            self.stand_ins[name] = self.stand_ins.get(name, 0) + count
        return read.value

    def msgpack(self, name: str) -> Any:
        """Reads a msgpack file of the folder."""
        path = self.path(name)
        self._note_digest(path)
        return msgpack_codec.unpack(path, budget=self.budget, where=name)

    def json(self, name: str) -> Any:
        """Reads a JSON file of the folder."""
        path = self.path(name)
        read = read_json(path, self.budget, name)
        self._note_digest(path)
        return read

    def try_side_file(self, name: str) -> Any:
        """Reads a file that the weights do not need; a damaged one is reported and skipped.

        Returns:
            The content; None where the file is missing or damaged.
        """
        if not self.has(name):
            return None
        try:
            return _READERS.get(Path(name).suffix, Folder.pickle)(self, name)
        except MissingFileError as error:
            left_out = f"left out: {error.found}"
            finding = Finding(
                "side-file", Severity.WARNING, Verdict.DROPPED, name, left_out, error.fix or ""
            )
            self.findings.append(finding)
            return None
        except (CompatError, OSError) as error:
            self.findings.append(
                Finding(
                    "side-file",
                    Severity.WARNING,
                    Verdict.DROPPED,
                    name,
                    f"damaged and left out: {getattr(error, 'found', error)}",
                    "the weights do not depend on it",
                )
            )
            return None


#: How a side file is read, by its ending; anything else is a pickle.
_READERS = {".json": Folder.json, ".pt": Folder.torch}
