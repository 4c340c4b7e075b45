"""Checkpoints of any Ray as a path that today's `Algorithm` loads."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Ray's Checkpointable tree has this beside its state; no older layout does.
_TODAYS = "class_and_ctor_args.pkl"


@contextmanager
def as_todays(path: Path) -> Iterator[Path]:
    """The path itself, or that of a conversion which lives as long as the context."""
    if (path / _TODAYS).exists():
        yield path
        return
    from rllib_compat.checkpoints.convert import convert

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "converted"
        convert(path, target)
        yield target
