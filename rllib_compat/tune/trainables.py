"""`Trainable` by the methods' names of Ray 0.5 – 0.8: `_setup`, `_train`, `_save`, `_restore` ….

Ray 1.0 renamed them; today's are Ray's own, and whoever overrides those gets nothing but Ray's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray.tune

#: The file that tells which path in the folder of a checkpoint `_save` returned.
_SAVED = ".saved_path"


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
        place = os.fspath(saved) if place.startswith(os.pardir) else place
        Path(checkpoint_dir, _SAVED).write_text(place, "utf-8")
        return None

    def load_checkpoint(self, checkpoint: dict[str, Any] | str) -> None:
        """Calls `_restore`."""
        if not isinstance(checkpoint, dict) and (marker := Path(checkpoint, _SAVED)).exists():
            checkpoint = os.path.normpath(Path(checkpoint, marker.read_text("utf-8")))
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
