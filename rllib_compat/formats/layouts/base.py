"""What a layout is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rllib_compat.neutral.budget import Budget
from rllib_compat.neutral.checkpoint import LegacyCheckpoint


class Miss(Exception):  # noqa: N818 - not an error: another layout may fit
    """A path is not of this layout; the text says what was looked for and not found."""


def by_text(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """A dict with the text of its keys; keys of one text (`1` and `"1"`) are told apart."""
    named: dict[str, Any] = {}
    for key, value in mapping.items():
        name = _text_of(key)
        if name in named:
            name = f"{name} ({type(key).__name__} {len(named)})"
        named[name] = value
    return named


def _text_of(key: Any) -> str:
    if isinstance(key, str):
        return key
    # Python refuses to print integers of thousands of digits, and tuples may hold whatever.
    small = isinstance(key, (bool, float)) or (isinstance(key, int) and key.bit_length() < 128)
    return str(key) if small else type(key).__name__


class Layout(Protocol):
    """A way in which a format lies on disk.

    Attributes:
        name: The format, as RLlib numbers it.
    """

    name: str

    def read(self, path: Path, budget: Budget) -> LegacyCheckpoint:
        """Reads a checkpoint.

        Raises:
            Miss: The path is not of this layout.
            CorruptCheckpointError: It is, and damaged.
        """
        ...
