"""Which names the modules of old Rays had: the table that `generate` writes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path


@cache
def _table() -> dict[str, dict[str, str]]:
    path = Path(__file__).parent / "names.json"
    rows: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return rows


@cache
def modules() -> frozenset[str]:
    """The modules, and the packages that they are in."""
    found: set[str] = set()
    for name in _table():
        parts = name.split(".")
        found.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return frozenset(found)


@cache
def names(module: str) -> dict[str, str]:
    """The names of a module, each with the last Ray that had it there."""
    rows = _table().get(module, {})
    return {name: release for release, found in rows.items() for name in found.split()}
