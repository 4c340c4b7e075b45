"""What an import statement of the user's gets, by the first part of the module's name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rllib_compat.legacy.table import MIRROR


def _faces(name: str, fromlist: Sequence[str]) -> Any:
    """As `__import__`: the module itself for `from … import`, else the first of its name."""
    root = name.partition(".")[0]
    module = _imported(name)
    return module if fromlist else _imported(root)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(f"{MIRROR}.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(f"{MIRROR}."):
            missing = (error.name or "").removeprefix(f"{MIRROR}.")
            raise ModuleNotFoundError(f"No module named {missing!r}", name=missing) from None
        raise


def _gym(name: str, fromlist: Sequence[str]) -> Any:
    """The face of gym, unless gym itself is installed."""
    if "gym" in sys.modules or importlib.util.find_spec("gym") is not None:
        return None
    return _faces(name, fromlist)


#: The first part of a module's name → what makes the module; None for what is really there.
ROOTS: dict[str, Callable[[str, Sequence[str]], Any]] = {
    "gym": _gym,
    "ray": _faces,
}
