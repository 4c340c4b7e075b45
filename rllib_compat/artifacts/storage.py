"""Simulators' files inside checkpoints: how they are packed, checked and unpacked."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from rllib_compat.artifacts.manifest import (
    FILES,
    FOLDER,
    Manifest,
    StoredFile,
    StoredFolder,
    read_manifest,
)
from rllib_compat.artifacts.runners import open_inside
from rllib_compat.formats.atomic import atomic_directory
from rllib_compat.formats.files import disk_errors, walk
from rllib_compat.formats.layouts.search import whole_of
from rllib_compat.formats.paths import local_path
from rllib_compat.formats.stores import source_path
from rllib_compat.formats.zip_errors import DAMAGED_ZIP
from rllib_compat.neutral.budget import budget_error
from rllib_compat.neutral.errors import CheckpointError, CorruptCheckpointError

_PIECE = 1 << 20
#: What may come out of a checkpoint's files, beside so many times what they take on the disk: logs
#: that are packed well are a fiftieth of what they were.
_UNPACKED, _TIMES = 64 << 20, 200
#: What a folder's archive is called beside it: `env-0.zip`.
_ZIP = ".zip"


class _Checkpoints:
    """A checkpoint, or its address, and those beside it, which may hold files that it names.

    `remote` says whether to ask the stores that it names; text: those below this address alone.
    """

    def __init__(self, checkpoint: str | Path, *, remote: bool | str) -> None:
        self.path = whole_of(source_path(checkpoint))
        self.manifest = read_manifest(self.path)
        self._remote = remote
        self._left = _UNPACKED
        self._met: set[tuple[int, int]] = set()
        self._beside: dict[tuple[int, str], tuple[Path, StoredFolder]] | None = None

    @property
    def root(self) -> Path:
        """Where the checkpoint's own files are."""
        return self.path / FOLDER / FILES

    def difference(
        self, folder: StoredFolder, file: StoredFile, copy: Path | None = None
    ) -> str | None:
        """How a stored file differs from the manifest, if it does; it is copied on the way."""
        root = self.root
        if file.iteration is not None:
            number = file.iteration
            if (number, folder.place) not in self._others():
                return (
                    f"it is in the checkpoint of iteration {number}, which is not beside this one"
                )
            root, folder = self._others()[number, folder.place]
        if folder.uri is not None and not self._may_ask(folder.uri):
            return f"it is at {folder.uri}, and was not looked at"
        pieces = self._bounded(_pieces(root, folder, file, self._meet))
        return _difference(folder, file, pieces, copy)

    def _may_ask(self, uri: str) -> bool:
        if isinstance(self._remote, bool):
            return self._remote
        inside = uri.startswith(self._remote.rstrip("/") + "/")
        return inside and ".." not in unquote(uri).split("/")

    def _meet(self, opened: int) -> None:
        """Notes a file that is about to be read: what may come out grows with what it takes."""
        found = os.fstat(opened)
        if (found.st_dev, found.st_ino) not in self._met:
            self._met.add((found.st_dev, found.st_ino))
            self._left += _TIMES * min(found.st_size, 512 * getattr(found, "st_blocks", 1 << 40))

    def _bounded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._left -= len(piece)
            if self._left < 0:
                raise budget_error("unpacked", str(self.path))
            yield piece

    def _others(self) -> dict[tuple[int, str], tuple[Path, StoredFolder]]:
        """The folders of the other checkpoints: where their files are, by iteration and place."""
        if self._beside is None:
            self._beside = {}
            own = self.path.absolute()
            for path in sorted(own.parent.iterdir()):
                with suppress(CheckpointError):
                    manifest = read_manifest(path) if path != own else Manifest(0, 0)
                    root = path / FOLDER / FILES
                    self._beside |= {
                        (manifest.iteration, f.place): (root, f) for f in manifest.folders
                    }
        return self._beside


def verify(checkpoint: str | Path, *, remote: bool | str = False) -> list[str]:
    """Compares what is stored with the manifest.

    Args:
        checkpoint: The checkpoint's folder, or its address.
        remote: Whether to read what is in stores of its own (`upload_to`), too, at whatever
            addresses the manifest names; or the address below which they have to be.

    Returns:
        A sentence for each file that is missing, differs, or is in no manifest; empty: all is well.

    Raises:
        CheckpointError: As `read_manifest`.
        BudgetExceededError: Far more comes out of the files than is in them.
    """
    checkpoints = _Checkpoints(checkpoint, remote=remote)
    problems, known = [], set()
    for folder in checkpoints.manifest.folders:
        for file in folder.files:
            if file.iteration is None:
                known.add(f"{folder.place}/{file.path}")
            if (problem := checkpoints.difference(folder, file)) is not None:
                problems.append(f"{folder.place}/{file.path}: {problem}")
    packed = {f.place + _ZIP: f.place for f in checkpoints.manifest.folders if f.archive}
    for path in _paths(checkpoints.root):
        inside = [path]
        if path in packed:
            inside = [
                f"{packed[path]}/{name}" for name in _names_in_archive(checkpoints.root, path)
            ]
        problems += [f"{name}: it is not in the manifest" for name in inside if name not in known]
    return problems


def _paths(root: Path) -> Iterator[str]:
    """What is below a folder, but folders."""
    for place, folders, files in walk(root):
        links = [f for f in folders if (place / f).is_symlink()]
        for name in [*files, *links]:
            yield (place / name).relative_to(root).as_posix()


def extract(checkpoint: str | Path, target: str | Path, *, remote: bool | str = False) -> Manifest:
    """Unpacks the simulators' folders, checking each file on the way.

    Args:
        checkpoint: The checkpoint's folder.
        target: A folder that is not there yet. It appears whole or not at all, with a folder
            `runner-1/env-0` for each environment.
        remote: As in `verify`.

    Raises:
        CorruptCheckpointError: A file is missing or differs from the manifest.
        TargetExistsError: `target` is there already.
        BudgetExceededError: Far more comes out of the files than is in them.
    """
    checkpoints = _Checkpoints(checkpoint, remote=remote)
    with atomic_directory(local_path(target), source=checkpoints.path) as new:
        for folder in checkpoints.manifest.folders:
            (new / folder.place).mkdir(parents=True)
            for file in folder.files:
                copy = new / folder.place / file.path
                copy.parent.mkdir(parents=True, exist_ok=True)
                problem = checkpoints.difference(folder, file, copy)
                if problem is not None:
                    raise CorruptCheckpointError(
                        f"A stored file has changed: {problem}.",
                        where=str(checkpoints.root / folder.place / file.path),
                        fix="Run `rllib-compat artifacts CHECKPOINT --verify`, which lists them.",
                    )
    return checkpoints.manifest


def _difference(
    folder: StoredFolder, file: StoredFile, pieces: Iterator[bytes], copy: Path | None = None
) -> str | None:
    digest, size = hashlib.sha256(), 0
    with disk_errors(copy or folder.place), open(copy or os.devnull, "xb" if copy else "wb") as out:  # noqa: PTH123
        try:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                if size > file.size:
                    return "it is larger"
                out.write(piece)
        except FileNotFoundError:
            return "it is missing"
        except (NotADirectoryError, ValueError) as error:
            return str(error)
    if size != file.size:
        return f"it has {size:,} bytes and not {file.size:,}"
    return None if digest.hexdigest() == file.sha256 else "its contents differ"


def _pieces(
    root: Path, folder: StoredFolder, file: StoredFile, meet: Callable[[int], None]
) -> Iterator[bytes]:
    if folder.uri is not None:
        yield from _pieces_of_store(f"{folder.uri}/{quote(file.path)}", _PIECE)
        return
    *before, last = folder.place.split("/")
    parts = [*before, last + _ZIP] if folder.archive else [*before, last]
    try:
        if folder.archive:
            with open_inside(str(root), parts) as archive:
                meet(archive)
                yield from _pieces_of_archive(archive, file.path, _PIECE)
            return
        with open_inside(str(root), [*parts, *file.path.split("/")]) as opened:
            meet(opened)
            start = 0
            while piece := os.pread(opened, _PIECE, start):
                yield piece
                start += len(piece)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"it can't be read: {error.strerror or error}") from error


def pack(folder: Path) -> None:
    """Replaces a folder by an archive of its files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with zipfile.ZipFile(folder.with_name(folder.name + _ZIP), "x", zipfile.ZIP_DEFLATED) as out:
        for path in files:
            out.write(path, path.relative_to(folder).as_posix())
    shutil.rmtree(folder)


def _pieces_of_archive(archive: int, name: str, size: int) -> Iterator[bytes]:
    """A file in an archive that may be a stranger's; nothing is unpacked ahead of what is asked.

    Raises:
        FileNotFoundError: It is not in the archive.
        ValueError: The archive is damaged.
    """
    try:
        with os.fdopen(os.dup(archive), "rb") as file, zipfile.ZipFile(file) as opened:
            try:
                found = opened.open(name)
            except KeyError as error:
                raise FileNotFoundError(name) from error
            with found:
                while piece := found.read(size):
                    yield piece
    except DAMAGED_ZIP as error:
        raise ValueError(f"its archive can't be read: {error}") from error


def _names_in_archive(root: Path, path: str) -> list[str]:
    """The paths of the files in an archive; none where it is damaged, or no file."""
    try:
        with (
            open_inside(str(root), path.split("/")) as opened,
            os.fdopen(os.dup(opened), "rb") as file,
            zipfile.ZipFile(file) as archive,
        ):
            return [name for name in archive.namelist() if not name.endswith("/")]
    except (OSError, *DAMAGED_ZIP):
        return []


def _pieces_of_store(uri: str, size: int) -> Iterator[bytes]:
    """What a store has at an address, in pieces.

    Raises:
        FileNotFoundError: Nothing is there.
        ValueError: It can't be read, or there is no pyarrow.
    """
    try:
        from pyarrow import fs

        store, path = fs.FileSystem.from_uri(uri)
        with store.open_input_stream(path) as file:
            while piece := file.read(size):
                yield piece
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"it can't be read from {uri}: {error}") from error
