"""The import of what a user names. Text of a stranger's file never comes here."""

from __future__ import annotations

import importlib
from typing import Any


def attribute(module: str, name: str) -> Any:
    """What a module has under a name.

    Raises:
        ImportError: There is no such module, or nothing of that name in it.
    """
    try:
        return getattr(importlib.import_module(module), name)
    except (AttributeError, ValueError) as error:
        raise ImportError(str(error)) from error
