"""A simulator's folder as one compressed archive in a checkpoint."""

from __future__ import annotations

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

#: What a folder's archive is called beside it: `env-0.zip`.
SUFFIX = ".zip"


def pack(folder: Path) -> None:
    """Replaces a folder by an archive of its files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    with zipfile.ZipFile(folder.with_name(folder.name + SUFFIX), "x", zipfile.ZIP_DEFLATED) as out:
        for path in files:
            out.write(path, path.relative_to(folder).as_posix())
    shutil.rmtree(folder)


def pieces(archive: int, name: str, size: int) -> Iterator[bytes]:
    """A file in an archive that may be a stranger's; nothing is unpacked ahead of what is asked.

    Args:
        archive: A descriptor of the archive, which stays open.
        name: The file's path in it.
        size: How much is read at once, in bytes.

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
    except _DAMAGED as error:
        raise ValueError(f"its archive can't be read: {error}") from error


def names(path: Path) -> list[str]:
    """The paths of the files in an archive; none where it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]
    except (OSError, *_DAMAGED):
        return []


# What zipfile raises for damage, for encryption, and for ways of packing that it does not know.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
