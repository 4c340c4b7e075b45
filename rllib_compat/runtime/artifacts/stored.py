"""Simulators' files inside checkpoints: how they are checked and unpacked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from rllib_compat.formats.atomic import atomic_directory
from rllib_compat.formats.files import disk_errors
from rllib_compat.neutral.errors import CheckpointError, CorruptCheckpointError
from rllib_compat.runtime.artifacts import archives, elsewhere
from rllib_compat.runtime.artifacts.manifest import (
    FILES,
    FOLDER,
    Manifest,
    StoredFile,
    StoredFolder,
    read_manifest,
)
from rllib_compat.runtime.artifacts.reading import open_inside

_PIECE = 1 << 20


class _Shelf:
    """A checkpoint and those beside it, which may hold files that it names.

    Args:
        checkpoint: The checkpoint's folder.
        remote: Whether to ask the stores that it names.
    """

    def __init__(self, checkpoint: str | Path, *, remote: bool) -> None:
        self.manifest = read_manifest(checkpoint)
        self._remote = remote
        self._checkpoint = Path(checkpoint)
        self._beside: dict[tuple[int, str], tuple[Path, StoredFolder]] | None = None

    @property
    def root(self) -> Path:
        """Where the checkpoint's own files are."""
        return self._checkpoint / FOLDER / FILES

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
        if folder.uri is not None and not self._remote:
            return f"it is at {folder.uri}, and was not looked at"
        return _difference(root, folder, file, copy)

    def _others(self) -> dict[tuple[int, str], tuple[Path, StoredFolder]]:
        """The folders of the other checkpoints: where their files are, by iteration and place."""
        if self._beside is None:
            self._beside = {}
            own = self._checkpoint.absolute()
            for path in sorted(own.parent.iterdir()):
                with suppress(CheckpointError):
                    manifest = read_manifest(path) if path != own else Manifest(0, 0)
                    root = path / FOLDER / FILES
                    self._beside |= {
                        (manifest.iteration, f.place): (root, f) for f in manifest.folders
                    }
        return self._beside


def verify(checkpoint: str | Path, *, remote: bool = False) -> list[str]:
    """Compares what is stored with the manifest.

    Args:
        checkpoint: The checkpoint's folder.
        remote: Whether to read what is in stores of its own (`upload_to`), too, at whatever
            addresses the manifest names.

    Returns:
        A sentence for each file that is missing, differs, or is in no manifest; empty: all is well.

    Raises:
        CheckpointError: As `read_manifest`.
    """
    shelf = _Shelf(checkpoint, remote=remote)
    told, known = [], set()
    for folder in shelf.manifest.folders:
        for file in folder.files:
            if file.iteration is None:
                known.add(f"{folder.place}/{file.path}")
            if (problem := shelf.difference(folder, file)) is not None:
                told.append(f"{folder.place}/{file.path}: {problem}")
    packed = {f.place + archives.SUFFIX: f.place for f in shelf.manifest.folders if f.archive}
    for path in _paths(shelf.root):
        inside = [path]
        if path in packed:
            inside = [f"{packed[path]}/{name}" for name in archives.names(shelf.root / path)]
        told += [f"{name}: it is not in the manifest" for name in inside if name not in known]
    return told


def _paths(root: Path) -> Iterator[str]:
    """What is below a folder, but folders."""
    for name, folders, files in os.walk(root):
        links = [f for f in folders if (Path(name) / f).is_symlink()]
        for file_name in [*files, *links]:
            yield (Path(name) / file_name).relative_to(root).as_posix()


def extract(checkpoint: str | Path, target: str | Path, *, remote: bool = False) -> Manifest:
    """Unpacks the simulators' folders, checking each file on the way.

    Args:
        checkpoint: The checkpoint's folder.
        target: A folder that is not there yet. It appears whole or not at all, with a folder
            `runner-1/env-0` for each environment.
        remote: As in `verify`.

    Raises:
        CorruptCheckpointError: A file is missing or differs from the manifest.
        TargetExistsError: `target` is there already.
    """
    shelf = _Shelf(checkpoint, remote=remote)
    with atomic_directory(target, source=checkpoint) as new:
        for folder in shelf.manifest.folders:
            (new / folder.place).mkdir(parents=True)
            for file in folder.files:
                copy = new / folder.place / file.path
                copy.parent.mkdir(parents=True, exist_ok=True)
                problem = shelf.difference(folder, file, copy)
                if problem is not None:
                    raise CorruptCheckpointError(
                        f"A stored file is not what it was: {problem}.",
                        where=str(shelf.root / folder.place / file.path),
                        fix="`rllib-compat artifacts CHECKPOINT --verify` names all such files.",
                    )
    return shelf.manifest


def _difference(
    root: Path, folder: StoredFolder, file: StoredFile, copy: Path | None = None
) -> str | None:
    digest, size = hashlib.sha256(), 0
    with disk_errors(copy or root), open(copy or os.devnull, "xb" if copy else "wb") as out:  # noqa: PTH123
        try:
            for piece in _pieces(root, folder, file):
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


def _pieces(root: Path, folder: StoredFolder, file: StoredFile) -> Iterator[bytes]:
    if folder.uri is not None:
        yield from elsewhere.pieces(f"{folder.uri}/{quote(file.path)}", _PIECE)
        return
    *before, last = folder.place.split("/")
    parts = [*before, last + archives.SUFFIX] if folder.archive else [*before, last]
    try:
        if folder.archive:
            with open_inside(str(root), parts) as archive:
                yield from archives.pieces(archive, file.path, _PIECE)
            return
        with open_inside(str(root), [*parts, *file.path.split("/")]) as opened:
            start = 0
            while piece := os.pread(opened, _PIECE, start):
                yield piece
                start += len(piece)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"it can't be read: {error.strerror or error}") from error
