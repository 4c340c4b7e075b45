"""Atomic directories: each is complete or absent.

A writer fills a temporary directory beside the target, and renames it when all of it is on the
disk. So the final name never refers to half a checkpoint, and a failure changes nothing. A target
is replaced by exchanging the two directories in one step. Where the system does not support that,
the old one is renamed first; if this run is killed, the next run renames it back.

What a killed run leaves is called `.<target>.<8 hex digits>.partial` (or `.old`). A run locks its
own; the next run on the same target removes those without a lock.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from rllib_compat.formats.files import disk_errors, walk
from rllib_compat.neutral.errors import CheckpointError, TargetExistsError

#: Only POSIX has it.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None

_PARTIAL, _OLD = "partial", "old"
_SYNCS = 8  # files that wait for the disk at once


@contextmanager
def atomic_directory(
    target: str | Path,
    *,
    overwrite: bool = False,
    source: str | Path | None = None,
    why_not: Callable[[Path], str | None] = lambda _: None,
) -> Iterator[Path]:
    """Makes a directory that gets its final name only if the block ends well.

    Args:
        target: The directory to make; missing parents are made, and removed again on failure.
        overwrite: Whether `target` may be there already. It stays until the new one is complete.
        source: What is being read meanwhile; `target` must not touch it.
        why_not: Tells why a target that is there may not be replaced, if it may not.

    Yields:
        The temporary directory to fill.

    Raises:
        TargetExistsError: `target` is there already, and `overwrite` was not given, or it is
            nothing that may be replaced.
        CheckpointError: `target` and `source` are the same, or one lies inside the other.
        FileSystemError: The disk is full or read-only, a name is too long, ….
    """
    with disk_errors(target):
        target = Path(target).absolute()
        # A link as the target is replaced, not followed.
        target = target.parent.resolve() / target.name if target.is_symlink() else target.resolve()
        if source is not None:
            _refuse_overlap(target, Path(source).resolve())
        _finish_killed_runs(target)
        if _is_there(target) and not overwrite:
            raise target_exists(target)
        _require_ours(target, why_not)
        made = _make_parents(target.parent)
        temporary, descriptor = target, None
        try:
            temporary, descriptor = _make_locked(target)
            yield temporary
            _sync_tree(temporary)
            _require_ours(target, why_not)
            _put_in_place(temporary, target, overwrite=overwrite)
        except BaseException:
            if temporary != target:
                shutil.rmtree(temporary, ignore_errors=True)
            for parent in made:
                with suppress(OSError):  # somebody else has put something there meanwhile
                    parent.rmdir()
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)
        for parent in (target.parent, *(p.parent for p in made)):
            _sync(parent)


@contextmanager
def atomic_file(target: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Makes a file that gets its final name only if the block ends well.

    A link as the target is replaced, not followed. The file has the permissions of the one that it
    replaces.

    Yields:
        The file to write into, under an unpredictable temporary name.

    Raises:
        TargetExistsError: `target` is there already, and `overwrite` was not given.
        FileSystemError: The disk is full or read-only, a name is too long, ….
    """
    with disk_errors(target):
        _remove_partials(target)
        partial, flags = _beside(target, _PARTIAL), os.O_WRONLY | os.O_CREAT | os.O_EXCL
        descriptor, held = os.open(partial, flags | getattr(os, "O_NOFOLLOW", 0), 0o666), None
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
                held = _lock(partial)
                yield file
                if target.is_file() and not target.is_symlink():
                    partial.chmod(target.stat().st_mode & 0o777)
            _sync(partial)
            if overwrite:
                partial.replace(target)
            else:
                _rename_to_new(partial, target)
        finally:
            partial.unlink(missing_ok=True)
            if held is not None:
                os.close(held)


def _rename_to_new(partial: Path, target: Path) -> None:
    """Gives a file its final name, unless there is one already."""
    try:
        os.link(partial, target, follow_symlinks=False)
    except FileExistsError:
        raise target_exists(target) from None
    except OSError:  # a file system without links
        if _is_there(target):
            raise target_exists(target) from None
        partial.rename(target)


def _refuse_overlap(target: Path, source: Path) -> None:
    resolved = target.resolve()
    if resolved.is_relative_to(source) or source.is_relative_to(resolved):
        raise CheckpointError(
            "The output is the source, or one of them contains the other.",
            where=f"{target} and {source}",
            fix="Choose an output path outside of the source, which is never changed.",
        )


def target_exists(target: Path | str) -> TargetExistsError:
    """The error where something is in the place of an output."""
    return TargetExistsError(
        "The output exists already.",
        where=str(target),
        fix="Choose another path, or pass --overwrite to replace it.",
    )


def _require_ours(target: Path, why_not: Callable[[Path], str | None]) -> None:
    """A link is replaced itself, and what it leads to stays."""
    if target.is_symlink() or not _is_there(target):
        return
    if why := why_not(target):
        raise TargetExistsError(
            f"The output exists already, and is not replaced: {why}.",
            where=str(target),
            fix="Choose another path, or remove it yourself; --overwrite replaces only folders "
            "with nothing but a converted checkpoint.",
        )


def _is_there(target: Path) -> bool:
    """Whether there is anything of that name; a name that no file can have is an error."""
    try:
        os.lstat(target)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _stem(target: Path) -> str:
    """What the names beside a target begin with; file systems take 255 bytes."""
    name = os.fsencode(target.name)
    if len(name) > 200:
        digest = hashlib.sha256(name).hexdigest()[:16]
        return f".{name[:120].decode('utf-8', 'ignore')}~{digest}."
    return f".{target.name}."


def _beside(target: Path, suffix: str) -> Path:
    return target.parent / f"{_stem(target)}{secrets.token_hex(4)}.{suffix}"


def _all_beside(target: Path, suffix: str) -> list[Path]:
    """What runs on this target left, oldest first."""
    ours = re.compile(rf"{re.escape(_stem(target))}[0-9a-f]{{8}}\.{suffix}")
    with suppress(FileNotFoundError, NotADirectoryError):
        found = [path for path in target.parent.iterdir() if ours.fullmatch(path.name)]
        return sorted(found, key=lambda path: path.lstat().st_mtime)
    return []


def _make_locked(target: Path) -> tuple[Path, int | None]:
    """Makes an empty folder beside the target, and takes its lock."""
    while True:
        temporary = _beside(target, _PARTIAL)
        temporary.mkdir()
        descriptor = _lock(temporary)
        if descriptor is not None or temporary.is_dir():
            return temporary, descriptor
        # Another run took it for what a killed one had left, in the moment before it was locked.


def _finish_killed_runs(target: Path) -> None:
    """Restores an old target that was never replaced, and removes unlocked leftovers."""
    for old in _all_beside(target, _OLD):
        descriptor = _lock(old)
        if descriptor is None and not old.is_symlink():
            continue  # another run is about to put the new one in its place
        if _is_there(target):
            _remove(old)
        else:
            old.rename(target)
        if descriptor is not None:
            os.close(descriptor)
    _remove_partials(target)


def _remove_partials(target: Path) -> None:
    """Removes what killed runs have left of a target that was new."""
    for partial in _all_beside(target, _PARTIAL):
        descriptor = _lock(partial)
        if descriptor is not None:
            _remove(partial)
            os.close(descriptor)


def _remove(path: Path) -> None:
    """Removes a folder, a file or a link; what can't be removed stays."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


def _make_parents(parent: Path) -> list[Path]:
    """Makes `parent`; returns what was missing, innermost first."""
    missing = [p for p in (parent, *parent.parents) if not p.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    return missing


def _put_in_place(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if not _is_there(target):
        temporary.rename(target)
        return
    if not overwrite:  # it has appeared while we were writing
        raise target_exists(target)
    if _exchange(temporary, target):
        _sync(target.parent)  # before the old one goes
        _remove(temporary)
        return
    held = _lock(target)
    backup = _beside(target, _OLD)
    target.rename(backup)
    try:
        temporary.rename(target)
    except BaseException:
        backup.rename(target)
        raise
    finally:
        if held is not None:
            os.close(held)
    _sync(target.parent)
    _remove(backup)


def _lock(path: Path) -> int | None:
    """Locks a file or folder exclusively, for as long as the descriptor is open.

    The lock ends with the process, however that ends.

    Returns:
        The descriptor; None where somebody else has the lock, or the system has none.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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


def _exchange(one: Path, other: Path) -> bool:
    """Swaps two paths in one step (Linux 3.15 on, most file systems); False: it is not possible."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, or a C library before 2.28
        return False
    paths = [ctypes.c_char_p(os.fsencode(path)) for path in (one, other)]
    if call(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), str(other))


#: Of Linux.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def _sync_tree(root: Path) -> None:
    """Writes a folder to the disk: files, several at a time, as each waits, then folders."""
    from concurrent.futures import ThreadPoolExecutor  # reading needs none

    tree = [(folder, files) for folder, _, files in walk(root)][::-1]
    with ThreadPoolExecutor(_SYNCS) as pool:
        list(pool.map(_sync, [folder / name for folder, files in tree for name in files]))
    for folder, _ in tree:
        _sync(folder)


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # other systems can't open a directory
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
