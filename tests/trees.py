"""The digests of all files below a folder, to tell whether anything in it was touched."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from rllib_compat.neutral.digests import sha256_of


def digest_tree(path: str | Path) -> dict[str, str]:
    """The sha256 of every file below `path`, by its path relative to it.

    Two equal results prove that nothing was added, removed or changed in between. Links are not
    followed; their digest is that of where they point to.
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
    return sha256_of(path)
