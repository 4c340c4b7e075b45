"""What the file system refuses, as errors that say what to do; and replacing in one step."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rllib_compat.neutral.errors import FileSystemError

#: Only POSIX has it.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

_ROOM = "Free some space, or choose another disk."
_RIGHTS = "Choose a place that you may read and write, or change its permissions."

#: What was found, and what to do, by the number that the system gives.
_KNOWN = {
    errno.ENOSPC: ("The disk is full.", _ROOM),
    errno.EDQUOT: ("Your quota of the disk is used up.", _ROOM),
    errno.EFBIG: ("A file would become larger than is allowed here.", _ROOM),
    errno.EROFS: ("The disk is read-only.", "Choose another place."),
    errno.EACCES: ("Permission denied.", _RIGHTS),
    errno.EPERM: ("Permission denied.", _RIGHTS),
    errno.ENAMETOOLONG: ("A name is too long for the file system.", "Choose a shorter path."),
    errno.ENOENT: ("A file or folder is not there, or no longer.", "Check the path; run it again."),
    errno.ENOTDIR: ("A part of the path is a file, not a folder.", "Check the path."),
    errno.EEXIST: ("A file is in the way of a folder.", "Check the path."),
    errno.ELOOP: ("Links in the path lead in a circle.", "Check the path."),
    errno.EIO: ("The disk reports an error.", "Check the disk."),
    errno.ESTALE: ("The network file system has lost the file.", "Run it again."),
    errno.EMFILE: ("Too many files are open.", "Raise the limit (`ulimit -n`)."),
}


@contextmanager
def disk_errors(where: str | Path) -> Iterator[None]:
    """Turns what the file system refuses inside the block into a `FileSystemError`.

    Args:
        where: What is read or written, where the system does not name a file.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _KNOWN:
            raise
        found, fix = _KNOWN[error.errno]
        place = error.filename if isinstance(error.filename, (str, os.PathLike)) else where
        raise FileSystemError(found, where=str(place), fix=fix) from error


def lock(path: Path) -> int | None:
    """Locks a file or folder for as long as the descriptor is open; nobody else has it then.

    The lock ends with the process, however that ends.

    Returns:
        The descriptor; None where somebody else has the lock, or the system has none.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def exchange(one: Path, other: Path) -> bool:
    """Swaps two paths in one step (Linux 3.15 on, most file systems).

    Returns:
        Whether it was done; False where the system can't.
    """
    call = _renameat2()
    if call is None:
        return False
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


#: `AT_FDCWD` and `RENAME_EXCHANGE` of Linux.
_HERE, _RENAME_EXCHANGE = -100, 2


@cache
def _renameat2() -> Any:
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, or a C library before 2.28
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call
