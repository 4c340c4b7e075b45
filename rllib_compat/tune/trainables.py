"""`Trainable` with the method names of Ray 0.5 – 0.8: `_setup`, `_train`, `_save`, `_restore` ….

Ray 1.0 renamed them. A subclass that overrides the new names behaves as with Ray's own class.
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
from rllib_compat.neutral.errors import CheckpointError, CorruptCheckpointError

#: The file in a checkpoint with the path that `_save` returned.
_SAVED = ".saved_path"
_LONGEST = 4096


def _is_inside(place: str) -> bool:
    return not Path(place).is_absolute() and os.pardir not in Path(os.path.normpath(place)).parts


def _saved_path(folder: Path) -> str:
    """Reads the path in a checkpoint that `_save` returned, without trusting it.

    Raises:
        CheckpointError: The path is outside of the checkpoint.
    """
    files = Folder(folder)
    place = read_text(files.path(_SAVED), files.budget, _SAVED, _LONGEST)
    if not _is_inside(place) or "\0" in place:
        raise CorruptCheckpointError(
            "The saved path is outside of the checkpoint.", where=str(folder / _SAVED)
        )
    return os.path.normpath(files.path(place))


def _store_path(saved: object, folder: str) -> Any:
    """Writes the returned path into the checkpoint; other values are returned unchanged."""
    if not isinstance(saved, (str, os.PathLike)):
        return saved
    place = os.path.relpath(saved, folder)
    if not _is_inside(place):
        raise CheckpointError(
            "The method returned a path outside of the checkpoint, whose files would be lost.",
            where=os.fspath(saved),
            fix="write into the folder that is the method's argument, and return a path in it",
        )
    Path(folder, _SAVED).write_text(place, "utf-8")
    return None


def _load_saved(checkpoint: Any) -> Any:
    """Returns the stored path of a checkpoint, or the checkpoint unchanged."""
    if not isinstance(checkpoint, dict) and Path(checkpoint, _SAVED).exists():
        return _saved_path(Path(checkpoint))
    return checkpoint


def _saving(written: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(written)
    def save_checkpoint(self: Any, folder: str) -> Any:
        if vars(self).get("_is_saving"):  # called by a subclass, which gets the path
            return written(self, folder)
        self._is_saving = True
        try:
            return _store_path(written(self, folder), folder)
        finally:
            self._is_saving = False

    return save_checkpoint


def _loading(written: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(written)
    def load_checkpoint(self: object, checkpoint: object) -> None:
        written(self, _load_saved(checkpoint))

    return load_checkpoint


class Trainable(ray.tune.Trainable):  # type: ignore[misc]  # Ray has no types
    """Ray's `Trainable`, which calls methods by their older names.

    As until Ray 2.6, `save_checkpoint` may return a path in the checkpoint for `load_checkpoint`.
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
        """Calls `_save`, which returns a dict or a path for `_restore`."""
        saved = self._older("_save", super().save_checkpoint)(checkpoint_dir)
        return _store_path(saved, checkpoint_dir)

    def load_checkpoint(self, checkpoint: dict[str, Any] | str) -> None:
        """Calls `_restore`."""
        self._older("_restore", super().load_checkpoint)(_load_saved(checkpoint))

    def cleanup(self) -> None:
        """Calls `_stop`."""
        self._older("_stop", super().cleanup)()

    def log_result(self, result: dict[str, Any]) -> None:
        """Calls `_log_result`."""
        self._older("_log_result", super().log_result)(result)

    def _older(self, name: str, todays: Callable[..., Any]) -> Any:
        """Returns the method with the older name, if a subclass has it."""
        mine = getattr(type(self), name, None)
        theirs = getattr(ray.tune.Trainable, name, None)
        return todays if mine is None or mine is theirs else getattr(self, name)
