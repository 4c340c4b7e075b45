"""A table of texts in a temporary file, for lists that do not fit in memory."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator

_ADD = "INSERT INTO texts VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
_REPLACE = _ADD.replace("NOTHING", "UPDATE SET text = excluded.text")


class DiskTable:
    """A table of texts by name, in insertion order; the system removes its file."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        self._rows.execute("PRAGMA journal_mode = OFF")
        self._rows.execute("CREATE TABLE texts (name BLOB UNIQUE, text TEXT)")
        weakref.finalize(self, self._rows.close)

    def set(self, name: str, text: str, *, replace: bool = True) -> None:
        """Adds a text, or replaces the one with this name."""
        self._rows.execute(_REPLACE if replace else _ADD, (_key(name), text))

    def get(self, name: str) -> str | None:
        """Returns the text of a name, or None."""
        found = self._rows.execute("SELECT text FROM texts WHERE name = ?", (_key(name),))
        return next((str(text) for (text,) in found), None)

    def items(self) -> Iterator[tuple[str, str]]:
        """Yields the names and their texts."""
        for name, text in self._rows.execute("SELECT name, text FROM texts ORDER BY rowid"):
            yield name.decode("utf-8", "surrogatepass"), text

    def __len__(self) -> int:
        return int(self._rows.execute("SELECT COUNT(*) FROM texts").fetchone()[0])


def _key(name: str) -> bytes:
    """Encodes a name, which may have characters that are not valid text."""
    return name.encode("utf-8", "surrogatepass")
