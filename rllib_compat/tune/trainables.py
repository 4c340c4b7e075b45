"""`Trainable` by the methods' names of Ray 0.5 – 0.8: `_setup`, `_train`, `_save`, `_restore` ….

Ray 1.0 renamed them; today's are Ray's own, and whoever overrides those gets nothing but Ray's.
"""

from __future__ import annotations

import functools
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


def _note_path(saved: Any, folder: str) -> Any:
    """Notes which path in a checkpoint was returned; what is none goes on as it is."""
    if not isinstance(saved, (str, os.PathLike)):
        return saved
    place = os.path.relpath(saved, folder)
    if not _is_inside(place):
        raise CheckpointError(
            "A path outside of the checkpoint was returned, so it would be lost.",
            where=os.fspath(saved),
            fix="write into the folder that the method gets, and return a path in it",
        )
    Path(folder, _SAVED).write_text(place, "utf-8")
    return None


def _what_was_saved(checkpoint: Any) -> Any:
    """The path that was returned of a checkpoint, or what was saved as it is."""
    if not isinstance(checkpoint, dict) and Path(checkpoint, _SAVED).exists():
        return _saved_path(Path(checkpoint))
    return checkpoint


def _saving(written: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(written)
    def save_checkpoint(self: Any, folder: str) -> Any:
        if vars(self).get("_is_saving"):  # a subclass calls it, and gets the path
            return written(self, folder)
        self._is_saving = True
        try:
            return _note_path(written(self, folder), folder)
        finally:
            self._is_saving = False

    return save_checkpoint


def _loading(written: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(written)
    def load_checkpoint(self: Any, checkpoint: Any) -> None:
        written(self, _what_was_saved(checkpoint))

    return load_checkpoint


class Trainable(ray.tune.Trainable):  # type: ignore[misc]  # Ray has no types
    """Ray's, which calls the older names.

    `save_checkpoint` may return a path in the checkpoint, which `load_checkpoint` gets, as until
    Ray 2.6.
    """

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name, adapt in (("save_checkpoint", _saving), ("load_checkpoint", _loading)):
            if name in vars(cls):
                setattr(cls, name, adapt(vars(cls)[name]))

    def setup(self, config: dict[str, Any]) -> None:
        """Calls `_setup`."""
        self._older("_setup", super().setup)(config)

    def step(self) -> Any:
        """Calls `_train`."""
        return self._older("_train", super().step)()

    def save_checkpoint(self, checkpoint_dir: str) -> Any:
        """Calls `_save`, which returns a dict or the path that `_restore` is to get."""
        saved = self._older("_save", super().save_checkpoint)(checkpoint_dir)
        return _note_path(saved, checkpoint_dir)

    def load_checkpoint(self, checkpoint: dict[str, Any] | str) -> None:
        """Calls `_restore`."""
        self._older("_restore", super().load_checkpoint)(_what_was_saved(checkpoint))

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
