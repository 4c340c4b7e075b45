"""The manifest of a folder that this package has written: every file, with its digest.

It is written last, so a folder with a manifest is complete. A reader finds incomplete copies by it,
and a writer finds what it may replace. Its paths are compared with those that are there; none of
them is opened.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from rllib_compat.formats.atomic import atomic_file
from rllib_compat.formats.files import disk_errors, read_json, walk
from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.digests import sha256_of
from rllib_compat.neutral.errors import CorruptCheckpointError

NAME = "rllib_compat_manifest.json"
_VERSION = 1


def write_manifest(folder: Path) -> None:
    """Lists all regular files below a folder, to which nothing is added any more."""
    from concurrent.futures import ThreadPoolExecutor  # reading needs none

    with disk_errors(folder):
        found = {name: path for name, path in _files(folder).items() if path is not None}
        found.pop(NAME, None)
        # Of files of gigabytes this takes as long as to copy them; it needs no lock of Python's.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            files = dict(zip(found, pool.map(sha256_of, found.values()), strict=True))
    text = json.dumps({"version": _VERSION, "sha256": files}, indent=1, sort_keys=True)
    with atomic_file(folder / NAME) as file:
        file.write(text.encode("ascii"))


def require_whole(folder: Path) -> None:
    """Makes sure that every file that was written into a folder is there, and as it was.

    Others may have been added; a folder without a manifest is somebody else's.

    Raises:
        CorruptCheckpointError: One is missing or has changed, or the manifest is damaged.
    """
    with disk_errors(folder):
        found = _files(folder)
        if found.get(NAME) is None:
            return
        for name, digest in _read(folder).items():
            path = found.get(name)
            if path is None or sha256_of(path) != digest:
                raise CorruptCheckpointError(
                    "A file is missing."
                    if path is None
                    else "A file has changed since it was written.",
                    where=str(folder / name),
                    fix="Copy the checkpoint again, with all its files, or use an earlier one. If "
                    f"you have changed it on purpose, remove {NAME}.",
                )


def why_not_ours(folder: Path) -> str | None:
    """Why a folder holds more than what this package has written there; None if it does not."""
    with disk_errors(folder):
        found = _files(folder)
        if not found:
            return None
        if found.get(NAME) is None:
            return f"it holds {min(found)[:100]!a}, and no {NAME} that says what wrote it"
        try:
            written = _read(folder)
        except CorruptCheckpointError as error:
            return f"its {NAME} is damaged ({error.found})"
        for name in sorted(found.keys() - {NAME}):
            path = found[name]
            if name not in written:
                return f"it holds {name[:100]!a}, which is no part of a converted checkpoint"
            if path is None or sha256_of(path) != written[name]:
                return f"its {name[:100]!a} has been changed since it was written"
    return None


def _files(folder: Path) -> dict[str, Path | None]:
    """What is below a folder, but folders; None for what is no regular file, such as a link."""
    found: dict[str, Path | None] = {}
    for place, folders, names in walk(folder, onerror=_raise):
        for path in (place / name for name in [*names, *folders]):
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode):
                found[path.relative_to(folder).as_posix()] = path if stat.S_ISREG(mode) else None
    return found


def _raise(error: OSError) -> None:
    raise error


def _read(folder: Path) -> Mapping[str, str]:
    place = str(folder / NAME)
    found = read_json(folder / NAME, Budget(), place)
    files = found.get("sha256") if isinstance(found, dict) else None
    if not isinstance(files, dict) or found.get("version") != _VERSION:
        raise CorruptCheckpointError(
            "This version of rllib-compat cannot read the checkpoint's list of files.",
            where=place,
            fix="Copy the checkpoint again, or install the version that wrote it.",
        )
    return files
