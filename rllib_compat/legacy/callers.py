"""Whose code is it that imports: the user's, or that of an installed library?"""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rllib_compat.legacy.table import MIRROR

_OURS = str(Path(__file__).parents[1])
_LIBRARIES = ("site-packages", "dist-packages")

#: Installed packages that are to be treated as the user's own: `activate(packages=["flow"])`.
packages: set[str] = set()


def is_user_code(namespace: Mapping[str, Any]) -> bool:
    """Whether the globals of a module are those of the user's own code.

    Code without a file is the user's where it is `__main__`: a notebook, or the interactive Python.
    Below `MIRROR`, only modules out of an old Ray that the user has named have code that imports.
    """
    name = namespace.get("__name__") or ""
    if name.partition(".")[0] in packages or name.startswith(f"{MIRROR}."):
        return True
    file = namespace.get("__file__")
    return _is_user_file(file) if isinstance(file, str) else name == "__main__"


@cache
def _is_user_file(file: str) -> bool:
    path = Path(file).absolute()
    if any(part in _LIBRARIES for part in path.parts):
        return False
    return not any(_below(path, folder) for folder in (_OURS, *_standard_library()))


@cache
def _standard_library() -> tuple[str, ...]:
    return tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


def _below(path: Path, folder: str) -> bool:
    return Path(folder) in path.parents or Path(folder) in path.resolve().parents
