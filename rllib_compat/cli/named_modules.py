"""Modules of the working directory that the caller names, in this process and in Ray's workers.

Were the whole directory on the path, a file that lies there with a stranger's checkpoint would be
any module that Ray or gymnasium tries to import. What was named may be old code: its imports find
what they found then, as those of a script that `run` runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

import click

#: What names something in a module: `module:Class`, `package.module.Class`.
_PATH = re.compile(r"(?=.*[.:])([^\W\d]\w*)(?:\.\w+)*(?::\S*)?")
_NAMES, _FOLDER = "RLLIB_COMPAT_NAMED_MODULES", "RLLIB_COMPAT_NAMED_MODULES_FOLDER"


class _NamedModules(MetaPathFinder):
    """Finds in the working directory the modules that were named, and no others.

    It comes after all that is installed.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.folder: str | None = None

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A top-level module that was named; those of a package are found by its own path."""
        if path is not None or fullname not in self.names:
            return None
        return PathFinder.find_spec(fullname, [self.folder or str(Path.cwd())], target)


_finder = _NamedModules()


def find_modules(*texts: object) -> None:
    """Lets the modules that the caller names be imported from the working directory, too."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
    for text in texts:
        if isinstance(text, str):
            if path := _PATH.fullmatch(text):
                _finder.names.add(path[1])
                activate_old_imports()
        elif isinstance(text, Mapping):
            find_modules(*text.values())
        elif isinstance(text, (list, tuple)):
            find_modules(*text)


def activate_old_imports() -> None:
    """Gives old code what it imports, until the command ends."""
    from rllib_compat import legacy

    if not legacy.is_active():
        legacy.activate()
    if context := click.get_current_context(silent=True):
        context.call_on_close(legacy.deactivate)


def find_in_workers() -> None:
    """Has the workers of a Ray that is started later find the same modules."""
    from rllib_compat.ray_versions import startup

    if _finder.names:
        variables = {_NAMES: ",".join(sorted(_finder.names)), _FOLDER: str(Path.cwd())}
        startup.call_in_workers(f"{__name__}:find_what_was_named", variables)


def finder() -> Callable[[], None]:
    """What another process of this machine calls to find the same modules."""
    return partial(_find_in, tuple(sorted(_finder.names)), str(Path.cwd()))


def _find_in(names: tuple[str, ...], folder: str) -> None:
    _finder.folder = folder
    find_modules(*(f"{name}:" for name in names))


def find_what_was_named() -> None:
    """What a worker calls."""
    _finder.names.update(os.environ[_NAMES].split(","))
    _finder.folder = os.environ[_FOLDER]
    find_modules()
