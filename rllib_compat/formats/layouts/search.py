"""Checkpoints below a folder; what may be meant by a path where there is none.

A folder with marks of two layouts is no checkpoint that a Ray wrote: whoever takes it for the one
would show or check other data than whoever takes it for the other. It is refused.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from rllib_compat.formats.files import list_folders, walk
from rllib_compat.formats.layouts import v0_1
from rllib_compat.formats.layouts.v2 import MODULES
from rllib_compat.formats.manifest import why_not_ours
from rllib_compat.neutral.errors import CorruptCheckpointError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo

    from rllib_compat.formats.stores import Store

#: The file of a checkpoint of version 0.1 (`checkpoint-12`), without its side files.
_FILE = re.compile(r"checkpoint[-_]\d+", re.IGNORECASE)
#: The folder of a checkpoint that a trainer has saved.
_NUMBERED = re.compile(r"checkpoint_(\d{1,9})")
#: What is in the folder of a checkpoint of versions 1.x and 2.x, whatever the folder is called.
_STATE = re.compile(
    r"algorithm_state\.(pkl|msgpck|msgpack)|policy_state\.(pkl|msgpck)"
    r"|module_state\.(pt|pkl|msgpack)"
)
#: Folders in that of a checkpoint which are its parts.
_PARTS = re.compile(r"policies|learner(_group)?|(eval_)?env_runner|\w+_connector")
_FIRST_STATE = "state.pkl"
_MODULES_OF = MODULES.partition("/")[0]

#: How many names an error lists.
_LISTED = 8

#: What only one layout has in its folder.
_MARKS = {
    "0.1": re.compile(r"checkpoint-\d+(\.extra_data)?"),
    "1.x": re.compile(r"policies|algorithm_state\.msgpck|policy_state\.(pkl|msgpck)"),
    "2.x": re.compile(r"learner_group|class_and_ctor_args\.pkl|algorithm_state\.msgpack"),
}


def find_checkpoints(folder: Path, *, skip: Path | None = None) -> Iterator[Path]:
    """The checkpoints below a folder: files of version 0.1, folders of all later ones.

    Those below a checkpoint's own folder are found, too, but not its parts. Links to folders are
    not followed; the folder `skip`, absolute, is left out.
    """
    for path, folders, files in walk(folder):
        if skip is not None and path.absolute() == skip:
            folders.clear()
            continue
        folders.sort()
        if is_folder_checkpoint(path, folders, files):
            folders[:] = _without_parts(folders, files)
            yield path
        else:
            with contextlib.suppress(OSError):  # a folder that may not be read has none
                yield from v0_1.find_files(path)


def find_in_store(
    store: Store, *, skip: str | None = None
) -> Iterator[tuple[PurePosixPath, list[FileInfo]]]:
    """The checkpoints below a place in a store, by the names of their files.

    One of version 0.1 that was renamed is not found: its name says nothing.

    Yields:
        A checkpoint's path below the place, and those of its files that lie there.
    """
    for folder, folders, files in store.walk():
        if folder.path == skip:
            folders.clear()
            continue
        below = PurePosixPath(folder.path[len(store.path) + 1 :])
        names = [info.base_name for info in files]
        if _MODULES_OF in folders or _has_state(folders, names):
            folders[:] = _without_parts(folders, names)
            yield below, files
        else:
            by_name = dict(zip(names, files, strict=True))
            yield from ((below / n, [by_name[n]]) for n in v0_1.find_numbered(names))


def is_folder_checkpoint(path: Path, folders: Sequence[str], files: Sequence[str]) -> bool:
    """Whether a folder is a checkpoint of versions 1.x or 2.x, judged by the names in it."""
    return _has_state(folders, files) or (path / MODULES).is_dir()


def _has_state(folders: Sequence[str], files: Sequence[str]) -> bool:
    first = _FIRST_STATE in files and "policies" in folders
    return first or any(map(_STATE.fullmatch, files))


def _without_parts(folders: Sequence[str], files: Sequence[str]) -> list[str]:
    """The folders in that of a checkpoint which may hold other ones."""
    modules = any(name.startswith("module_state.") for name in files)
    return [name for name in folders if not (modules or _PARTS.fullmatch(name))]


def whole_of(path: Path) -> Path:
    """The folder of which a file is the state; the path itself if it is none.

    Old code makes up paths (`checkpoint_2/checkpoint-2`) where there is `checkpoint_000002` now.
    """
    if path.exists():
        return path.parent if _STATE.fullmatch(path.name) and path.is_file() else path
    folder = path.parent if path.name.startswith("checkpoint-") else path
    number = _NUMBERED.fullmatch(folder.name)
    padded = folder.with_name(f"checkpoint_{int(number[1]):06d}") if number else folder
    return next((found for found in (folder, padded) if _is_checkpoint(found)), path)


def _is_checkpoint(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    folders = [inner.name for inner in list_folders(folder)]
    files = [inner.name for inner in folder.iterdir() if inner.is_file()]
    return is_folder_checkpoint(folder, folders, files)


def newest_in(path: Path) -> Path:
    """The newest `checkpoint_<number>` of a folder that is no checkpoint itself; else the path."""
    saved = [inner for inner in list_folders(path) if _FILE.fullmatch(inner.name)]
    files = [inner.name for inner in path.iterdir() if inner.is_file()] if saved else []
    if not saved or _is_checkpoint(path) or any(map(_FILE.fullmatch, files)):
        return path
    return max(saved, key=lambda inner: inner.stat().st_mtime)


def require_one_layout(folder: Path) -> None:
    """Makes sure that a folder has marks of one layout only.

    Raises:
        CorruptCheckpointError: It has marks of several.
    """
    names = sorted(path.name for path in folder.iterdir())
    found = {
        layout: name
        for layout, mark in _MARKS.items()
        for name in reversed(names)
        if mark.fullmatch(name)
    }
    if len(found) > 1:
        shown = ", ".join(f"`{name}` (layout {layout})" for layout, name in found.items())
        raise CorruptCheckpointError(
            f"The folder mixes the files of several layouts: {shown}.",
            where=str(folder),
            fix="Pass a folder with a single checkpoint, or the path of the file `checkpoint-N`.",
        )


def why_not_replaceable(target: Path) -> str | None:
    """Why a path is no converted checkpoint that a new one may replace; None if it is one."""
    resolved = target.resolve()
    for place, name in ((Path.home(), "your home folder"), (Path.cwd(), "the working directory")):
        if place.resolve().is_relative_to(resolved):
            return f"it is, or holds, {name}"
    if not target.is_dir():
        return "it is a file, not a folder"
    return why_not_ours(target)


def last_of_trial(folder: Path) -> Path | None:
    """The last checkpoint of a trial's folder whose checkpoints are folders."""
    found = [
        inner
        for inner in list_folders(folder)
        if inner.name.lower().startswith("checkpoint")
        and is_folder_checkpoint(inner, [p.name for p in list_folders(inner)], _list_files(inner))
    ]
    return max(found, key=lambda inner: (len(inner.name), inner.name), default=None)


def suggest(folder: Path) -> str | None:
    """What to give instead of a folder that is no checkpoint, where there are some below it."""
    names = []
    for path in find_checkpoints(folder):
        if path.parent != folder or path.is_dir():  # a file in it has been looked at
            names.append(path.relative_to(folder).as_posix())
        if len(names) > _LISTED:
            break
    if not names:
        return None
    more = ", …" if len(names) > _LISTED else ""
    shown = ", ".join(names[:_LISTED])
    return (
        f"There are checkpoints below it: {shown}{more}. Give one of them, or convert all of them: "
        "`rllib-compat convert --recursive FOLDER OUT`."
    )


def explain_missing(path: Path) -> tuple[str, str]:
    """What may be wrong with a path that does not exist: what was found, and what to do."""
    text = str(path)
    if "\\" in text and os.sep == "/":
        local = Path(PureWindowsPath(text).as_posix())
        there = f"Give {local}." if local.exists() else "Give it as a path of this machine."
        return "It is a path of Windows, which this machine has not.", there
    for change in (text.strip(), text.strip("'\""), text.lower(), text.title()):
        if change != text and change and Path(change).exists():
            return "There is no such file or folder.", f"Give {change!r}."
    folder = next((p for p in path.absolute().parents if p.is_dir()), Path("/"))
    near = [p.name for p in list_folders(folder) if p.name.lower().startswith("checkpoint")]
    near += [name for name in _list_files(folder) if _FILE.fullmatch(name)]
    if near:
        shown = ", ".join(near[-_LISTED:])
        return "There is no such file or folder.", f"In {folder} there are: {shown}."
    return "There is no such file or folder.", f"Check the path; {folder} is there."


def _list_files(folder: Path) -> list[str]:
    try:
        return sorted(p.name for p in folder.iterdir() if p.is_file())
    except OSError:
        return []
