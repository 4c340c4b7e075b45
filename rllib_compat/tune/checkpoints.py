"""What an analysis calls a checkpoint: a text until Ray 1.8, a `TrialCheckpoint` until 1.13."""

from __future__ import annotations

from typing import Any

from rllib_compat.ray_versions.tune import checkpoint_class

__all__ = ["TrialCheckpoint"]


class TrialCheckpoint(str, checkpoint_class()):  # type: ignore[misc]  # Ray has no types
    """Ray's checkpoint, which is the text of its path, too.

    Args:
        local_path: Where it is.
        cloud_path: Where it is, if it is not on this machine: a URI.
    """

    def __new__(
        cls, local_path: str | None = None, cloud_path: str | None = None
    ) -> TrialCheckpoint:
        """The text of the path."""
        return super().__new__(cls, local_path or cloud_path or "")

    def __init__(self, local_path: str | None = None, cloud_path: str | None = None) -> None:
        checkpoint_class().__init__(self, local_path or cloud_path or "")
        self.local_path, self.cloud_path = local_path, cloud_path

    @classmethod
    def of(cls, checkpoint: Any) -> TrialCheckpoint:
        """That of a checkpoint of today."""
        made = cls(str(checkpoint.path))
        made.filesystem = checkpoint.filesystem
        return made
