"""What a layout is."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from rllib_compat.neutral.checkpoint import LegacyCheckpoint


class Miss(Exception):  # noqa: N818 - not an error: another layout may fit
    """A path is not of this layout; the text says what was looked for and not found."""


class Layout(Protocol):
    """A way in which a format lies on disk.

    Attributes:
        name: The format, as RLlib numbers it.
    """

    name: str

    def read(self, path: Path) -> LegacyCheckpoint:
        """Reads a checkpoint.

        Raises:
            Miss: The path is not of this layout.
            CorruptCheckpointError: It is, and damaged.
        """
        ...
