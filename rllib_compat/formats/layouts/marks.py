"""What only one layout has in its folder.

A folder with marks of two layouts is no checkpoint that a Ray wrote: whoever takes it for the one
would show or check other data than whoever takes it for the other. It is refused.
"""

from __future__ import annotations

import re
from pathlib import Path

from rllib_compat.neutral.errors import CorruptCheckpointError

_MARKS = {
    "0.1": re.compile(r"checkpoint-\d+(\.extra_data)?"),
    "1.x": re.compile(r"policies|algorithm_state\.msgpck|policy_state\.(pkl|msgpck)"),
    "2.x": re.compile(r"learner_group|class_and_ctor_args\.pkl|algorithm_state\.msgpack"),
}


#: All that a conversion puts into a folder, on any Ray.
_WRITTEN = re.compile(
    r"rllib_checkpoint\.json|(algorithm|policy)_state\.\w+|class_and_ctor_args\.pkl|metadata\.json|"
    r"policies|learner_group|(eval_)?env_runner|offline_\w+|"
    r".+\.(onnx|safetensors)"
)


def why_not_ours(target: Path) -> str | None:
    """Why a path is no converted checkpoint that a new one may replace; None if it is one."""
    here, resolved = Path.cwd(), target.resolve()
    for place, told in ((Path.home(), "your home folder"), (here, "the working directory")):
        if place.resolve().is_relative_to(resolved):
            return f"it is, or holds, {told}"
    if not target.is_dir():
        return "it is a file, not a folder"
    for name in sorted(path.name for path in target.iterdir()):
        if not _WRITTEN.fullmatch(name):
            return f"it holds {name[:100]!a}, which is no part of a converted checkpoint"
    return None


def require_one(folder: Path) -> None:
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
            fix="No Ray writes such a folder. Give one that holds a single checkpoint, or the path "
            "of the file `checkpoint-N`.",
        )
