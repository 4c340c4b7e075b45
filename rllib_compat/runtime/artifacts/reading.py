"""What an env runner does: lists a folder, and reads files in it piece by piece.

Only regular files inside the folder are read. No link is followed, also not one that takes a
folder's place between listing and reading: each part of a path is opened below the one before.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Listed:
    """A file as it was when its folder was listed.

    Attributes:
        parts: Its path in the folder, part by part.
        size: In bytes.
        mtime_ns: When it was last written, in nanoseconds since 1970.
    """

    parts: tuple[str, ...]
    size: int
    mtime_ns: int


@dataclass
class Listing:
    """What there is to collect of one environment.

    Attributes:
        env: The environment's index on its runner.
        folder: Its folder's path on that machine; None where it has declared none.
        node: The machine's name.
        episodes: The numbers of the episodes since the last checkpoint.
        files: The files, smallest paths first.
        left_out: Paths that are no regular files, or more than the limit, each with the reason.
        problem: Why there is nothing to collect, if that is so.
    """

    env: int
    folder: str | None = None
    node: str = ""
    episodes: list[int] = field(default_factory=list)
    files: list[Listed] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    problem: str | None = None


def list_files(listing: Listing, folder: str, *, most: int) -> None:
    """Fills a listing with what is in a folder.

    Args:
        listing: What to fill.
        folder: The folder.
        most: How many files are listed; the others are named as left out.
    """
    if not Path(folder).is_dir():
        listing.problem = "there is no such folder"
        return

    def unreadable(error: OSError) -> None:
        where = os.path.relpath(str(error.filename), folder)
        listing.left_out.append((where, f"it can't be read: {error.strerror}"))

    for name, folders, files in os.walk(folder, onerror=unreadable):
        folders.sort()
        before = Path(name).relative_to(folder).parts
        for link in [f for f in folders if (Path(name) / f).is_symlink()]:
            listing.left_out.append(("/".join((*before, link)), "a link"))
        for file in sorted(files):
            path = "/".join((*before, file))
            try:
                found = (Path(name) / file).lstat()
            except OSError as error:
                listing.left_out.append((path, f"it can't be read: {error.strerror}"))
                continue
            if not stat.S_ISREG(found.st_mode):
                kind = "a link" if stat.S_ISLNK(found.st_mode) else "no regular file"
                listing.left_out.append((path, kind))
            elif len(listing.files) >= most:
                listing.left_out.append((path, "more files than the limit"))
            else:
                found_ = Listed((*before, file), found.st_size, found.st_mtime_ns)
                listing.files.append(found_)


def read_piece(folder: str, parts: Sequence[str], start: int, size: int) -> tuple[bytes, int, int]:
    """A piece of a file in a folder.

    Returns:
        The bytes; fewer where the file has ended. Then the file's size and time of writing now.

    Raises:
        OSError: It is not there any more, or is no regular file now.
    """
    with open_inside(folder, parts) as file:
        found = os.fstat(file)
        return os.pread(file, size, start), found.st_size, found.st_mtime_ns


@contextmanager
def open_inside(folder: str, parts: Sequence[str]) -> Iterator[int]:
    """Opens a regular file inside a folder, without following any link.

    Raises:
        OSError: A part of the path is not there, a link, or something else than it has to be.
    """
    opened = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    inside: Any = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        for part in parts[:-1]:
            opened.append(os.open(part, inside | os.O_DIRECTORY, dir_fd=opened[-1]))
        opened.append(os.open(parts[-1], inside, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            raise OSError(f"{parts[-1]!r} is no regular file")
        yield opened[-1]
    finally:
        for descriptor in reversed(opened):
            os.close(descriptor)


def is_plain(parts: Sequence[Any]) -> bool:
    """Whether parts of a path stay inside the folder that they are put below."""
    return bool(parts) and all(
        isinstance(part, str)
        and part not in ("", ".", "..")
        and "/" not in part
        and "\0" not in part
        and (os.sep == "/" or os.sep not in part)
        for part in parts
    )
