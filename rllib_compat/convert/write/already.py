"""A checkpoint that the installed Ray wrote itself needs no conversion; it is copied.

Nothing of it is loaded, since Ray would run what its pickles hold. That the files are the same is
all that there is to show.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from rllib_compat import ray_versions
from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.neutral.checkpoint import LegacyCheckpoint
from rllib_compat.neutral.errors import RayNotSupportedError, VerificationError
from rllib_compat.neutral.report import Finding, Severity, Verdict


def is_current(checkpoint: LegacyCheckpoint) -> bool:
    """Whether the installed Ray wrote it, in the format that it writes.

    A checkpoint of another release is converted even if the format has the same number: its
    config may name what that release had and this one has not.
    """
    try:
        here = (ray_versions.writes_checkpoint_version(), str(ray_versions.installed()))
    except RayNotSupportedError:
        return False
    return (checkpoint.source.layout, checkpoint.source.ray_version) == here


def copy(source: Path, target: Path) -> Finding:
    """Copies a checkpoint's files into the empty folder `target`, and compares them.

    Raises:
        CorruptCheckpointError: A link leads out of the checkpoint.
        VerificationError: A file is not the same afterwards.
    """
    folder = Folder(source)
    files = [p for p in sorted(source.rglob("*")) if p.is_symlink() or not p.is_dir()]
    for file in files:
        name = file.relative_to(source)
        new = target / name
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder.path(name.as_posix()), new)
        if _digest(file) != _digest(new):
            raise VerificationError("The copy of a file differs.", where=str(name))
    return Finding(
        "verify",
        Severity.INFO,
        Verdict.EXACT,
        ".",
        f"{len(files)} files are the same, byte by byte",
    )


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
