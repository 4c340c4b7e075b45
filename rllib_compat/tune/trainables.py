"""`Trainable` by the methods' names of Ray 0.5 – 0.8: `_setup`, `_train`, `_save`, `_restore` ….

Ray 1.0 renamed them; today's are Ray's own, and whoever overrides those gets nothing but Ray's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray.tune

from rllib_compat.formats.files import read_text
from rllib_compat.formats.layouts.folder import Folder
from rllib_compat.neutral.errors import CheckpointError

#: The file that tells which path in the folder of a checkpoint `_save` returned.
_SAVED = ".saved_path"
_LONGEST = 4096


def _is_inside(place: str) -> bool:
    return not Path(place).is_absolute() and os.pardir not in Path(os.path.normpath(place)).parts


def _saved_path(folder: Path) -> str:
    """The path in a checkpoint that `_save` returned; the checkpoint may be a stranger's.

    Raises:
        CheckpointError: It leads out of the checkpoint.
    """
    files = Folder(folder)
    place = read_text(files.path(_SAVED), files.budget, _SAVED, _LONGEST)
    if not _is_inside(place) or "\0" in place:
        raise CheckpointError("It names a path outside of its folder.", where=str(folder / _SAVED))
    return os.path.normpath(files.path(place))


class Trainable(ray.tune.Trainable):  # type: ignore[misc]  # Ray has no types
    """Ray's, which calls the older names."""

    def setup(self, config: dict[str, Any]) -> None:
        """Calls `_setup`."""
        self._older("_setup", super().setup)(config)

    def step(self) -> Any:
        """Calls `_train`."""
        return self._older("_train", super().step)()

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Calls `_save`, which returns a dict or the path that `_restore` is to get."""
        saved = self._older("_save", super().save_checkpoint)(checkpoint_dir)
        if not isinstance(saved, (str, os.PathLike)):
            return saved
        place = os.path.relpath(saved, checkpoint_dir)
        if not _is_inside(place):
            raise CheckpointError(
                "`_save` returned a path outside of the checkpoint, so it would be lost.",
                where=os.fspath(saved),
                fix="write into the folder that `_save` is called with, and return a path in it",
            )
        Path(checkpoint_dir, _SAVED).write_text(place, "utf-8")
        return None

    def load_checkpoint(self, checkpoint: dict[str, Any] | str) -> None:
        """Calls `_restore`."""
        if not isinstance(checkpoint, dict) and Path(checkpoint, _SAVED).exists():
            checkpoint = _saved_path(Path(checkpoint))
        self._older("_restore", super().load_checkpoint)(checkpoint)

    def cleanup(self) -> None:
        """Calls `_stop`."""
        self._older("_stop", super().cleanup)()

    def log_result(self, result: dict[str, Any]) -> None:
        """Calls `_log_result`."""
        self._older("_log_result", super().log_result)(result)

    def _older(self, name: str, todays: Callable[..., Any]) -> Any:
        """The method by its older name where somebody has written one."""
        mine = getattr(type(self), name, None)
        theirs = getattr(ray.tune.Trainable, name, None)
        return todays if mine is None or mine is theirs else getattr(self, name)
