"""The tables of `rllib_compat.legacy`, without what importing it does to a process."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_was_there = "rllib_compat.legacy" in sys.modules

from rllib_compat import legacy  # noqa: E402
from rllib_compat.legacy import faces, old_names, removed_names, table  # noqa: E402

if not _was_there:
    legacy.deactivate()  # here, code is read and not run


@contextmanager
def brought_back() -> Iterator[None]:
    """Old imports work in the block: some of the modules that are looked at have them."""
    if legacy.is_active():
        yield
        return
    legacy.activate()
    try:
        yield
    finally:
        legacy.deactivate()


__all__ = ["brought_back", "faces", "old_names", "removed_names", "table"]
