"""Directories that appear whole or not at all.

A writer fills a temporary directory beside the target. Only when all of it is on the disk does a
rename put it in place, so that nobody ever sees half a checkpoint under the final name, and a
failure leaves everything as it was. The temporary name starts with a dot and ends with
`.partial`: what a power cut leaves behind can be told from a checkpoint and deleted.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rllib_compat.neutral.errors import CheckpointError, TargetExistsError


@contextmanager
def atomic_directory(
    target: str | Path, *, overwrite: bool = False, source: str | Path | None = None
) -> Iterator[Path]:
    """Makes a directory that gets its final name only if the block ends well.

    Args:
        target: The directory to make; missing parents are made, and removed again on failure.
        overwrite: Whether `target` may be there already. It stays until the new one is complete,
            and comes back if putting the new one in place fails.
        source: What is being read meanwhile; `target` must not touch it.

    Yields:
        The temporary directory to fill.

    Raises:
        TargetExistsError: `target` is there already and `overwrite` was not given.
        CheckpointError: `target` and `source` are the same, or one lies inside the other.
    """
    target = Path(target).absolute()
    # A link as the target is replaced, not followed.
    target = target.parent.resolve() / target.name if target.is_symlink() else target.resolve()
    if source is not None:
        _refuse_overlap(target, Path(source).resolve())
    if os.path.lexists(target) and not overwrite:
        raise _exists(target)

    made = _make_parents(target.parent)
    temporary = _beside(target, "partial")
    try:
        temporary.mkdir()
        yield temporary
        _sync_tree(temporary)
        _put_in_place(temporary, target, overwrite=overwrite)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # somebody else has put something there meanwhile
                parent.rmdir()
        raise
    for parent in (target.parent, *(p.parent for p in made)):
        _sync(parent)


def digest_tree(path: str | Path) -> dict[str, str]:
    """The sha256 of every file below `path`, by its path relative to it.

    Two equal results prove that nothing was added, removed or changed in between. Links are not
    followed; their digest is that of where they point to.

    Args:
        path: A directory, or a single file (then its name is the only key).
    """
    path = Path(path)
    if not path.is_dir():
        return {path.name: _digest(path)}
    found = (Path(folder, name) for folder, dirs, files in os.walk(path) for name in files + dirs)
    files = sorted(p for p in found if p.is_symlink() or p.is_file())
    return {p.relative_to(path).as_posix(): _digest(p) for p in files}


def _digest(path: Path) -> str:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _refuse_overlap(target: Path, source: Path) -> None:
    resolved = target.resolve()
    if resolved.is_relative_to(source) or source.is_relative_to(resolved):
        raise CheckpointError(
            "The output would lie on top of, inside or around the source.",
            where=f"{target} and {source}",
            fix="Give an output path apart from the source; the source is never changed.",
        )


def _exists(target: Path) -> TargetExistsError:
    return TargetExistsError(
        "The output is there already.",
        where=str(target),
        fix="Choose another path, or pass --overwrite to replace it.",
    )


def _beside(target: Path, suffix: str) -> Path:
    # Cut, since the longest name that a file system takes has 255 bytes.
    return target.parent / f".{target.name[:40]}.{secrets.token_hex(4)}.{suffix}"


def _make_parents(parent: Path) -> list[Path]:
    """Makes `parent`; returns what was missing, innermost first."""
    missing = [p for p in (parent, *parent.parents) if not p.exists()]
    parent.mkdir(parents=True, exist_ok=True)
    return missing


def _put_in_place(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if not os.path.lexists(target):
        temporary.rename(target)
        return
    if not overwrite:  # it has appeared while we were writing
        raise _exists(target)
    backup = _beside(target, "old")
    target.rename(backup)
    try:
        temporary.rename(target)
    except BaseException:
        backup.rename(target)
        raise
    _sync(target.parent)  # before the old one goes
    if backup.is_dir() and not backup.is_symlink():
        shutil.rmtree(backup)
    else:
        backup.unlink()


def _sync_tree(root: Path) -> None:
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            _sync(Path(folder, name))
        _sync(Path(folder))


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # other systems can't open a directory
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
